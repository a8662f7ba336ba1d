"""The record in a PostgreSQL database, for a team: the same entries in one table, written under its lock."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from dpadmm.errors import InvalidParameter
from dpadmm.privacy.ledger import store
from dpadmm.privacy.ledger.entries import FORMAT, Entry, stamp

SCHEMA = """
CREATE TABLE dpadmm_ledger_format (version integer NOT NULL);
CREATE TABLE dpadmm_ledger (sequence bigint PRIMARY KEY, text text NOT NULL, hash text NOT NULL);
CREATE FUNCTION dpadmm_ledger_is_append_only() RETURNS trigger LANGUAGE plpgsql
    AS $$ BEGIN RAISE EXCEPTION 'entries of a ledger are never changed or removed'; END $$;
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON dpadmm_ledger
    FOR EACH ROW EXECUTE FUNCTION dpadmm_ledger_is_append_only();
CREATE TRIGGER never_emptied BEFORE TRUNCATE ON dpadmm_ledger
    FOR EACH STATEMENT EXECUTE FUNCTION dpadmm_ledger_is_append_only();
"""
INSERT = "INSERT INTO dpadmm_ledger (sequence, text, hash) VALUES (%s, %s, %s)"


@dataclass(frozen=True)
class PostgresLog:
    connection: Any

    def entries(self, after: int) -> list[Entry]:
        rows = self.connection.execute(
            "SELECT sequence, text, hash FROM dpadmm_ledger WHERE sequence > %s ORDER BY sequence", (after,)
        )
        return [Entry(*row) for row in rows]

    def append(self, entry: Entry) -> None:
        self.connection.execute(INSERT, (entry.sequence, entry.text, entry.hash))

    def now(self) -> str:
        return stamp(self.connection.execute("SELECT clock_timestamp()").fetchone()[0])


@dataclass(frozen=True, repr=False)
class PostgresStore:
    """A database, connected to anew for every transaction. `address` is a connection URI and may hold a password."""

    address: str

    @property
    def place(self) -> str:
        parts = _psycopg().conninfo.conninfo_to_dict(self.address)
        return f"postgresql://{parts.get('host', '')}/{parts.get('dbname', '')}"

    def create(self, first: Callable[[str], Entry]) -> None:
        with self._connected() as connection:
            if _exists(connection):
                raise store.occupied(self.place)
            for statement in (SCHEMA, f"INSERT INTO dpadmm_ledger_format VALUES ({FORMAT})"):
                connection.execute(statement)
            log = PostgresLog(connection)
            log.append(first(log.now()))

    @contextmanager
    def writing(self) -> Iterator[PostgresLog]:
        with self._connected() as connection:
            self._require_ours(connection)
            # Readers go on, writers wait; what is read after the lock includes what was committed before it. Unlike a
            # lock on the table this one needs no right to change entries: INSERT and SELECT are enough to spend.
            connection.execute("SELECT pg_advisory_xact_lock('dpadmm_ledger'::regclass::oid::bigint)")
            yield PostgresLog(connection)

    @contextmanager
    def reading(self) -> Iterator[PostgresLog]:
        with self._connected() as connection:
            self._require_ours(connection)
            yield PostgresLog(connection)

    def faults(self) -> list[str]:
        return []

    @contextmanager
    def _connected(self) -> Iterator[Any]:
        """One transaction, committed and flushed when the block ends well, whatever the server's defaults are."""
        psycopg = _psycopg()
        try:
            with psycopg.connect(self.address, connect_timeout=15) as connection:
                connection.execute("SET TRANSACTION ISOLATION LEVEL READ COMMITTED")
                connection.execute(f"SET LOCAL lock_timeout = '{store.PATIENCE:g}s'")
                if connection.execute("SHOW synchronous_commit").fetchone()[0] == "off":
                    connection.execute("SET LOCAL synchronous_commit = on")
                if connection.execute("SHOW fsync").fetchone()[0] != "on":
                    raise store.unwritable(self.place, "the server runs with fsync = off and may lose charges")
                yield connection
        except psycopg.Error as error:
            why = error.sqlstate or type(error).__name__
            raise store.unwritable(self.place, f"the server refused or cannot be reached: {why}") from None

    def _require_ours(self, connection: Any) -> None:
        if not _exists(connection):
            raise store.missing(self.place)
        found = connection.execute("SELECT max(version) FROM dpadmm_ledger_format").fetchone()[0]
        if found is None:
            raise store.foreign(self.place)
        if found > FORMAT:
            raise store.newer(self.place, found, FORMAT)


def _exists(connection: Any) -> bool:
    names = "SELECT to_regclass('dpadmm_ledger'), to_regclass('dpadmm_ledger_format')"
    return all(name is not None for name in connection.execute(names).fetchone())


def _psycopg() -> Any:
    try:
        import psycopg
        import psycopg.conninfo
    except ImportError:
        raise InvalidParameter(
            "a ledger on PostgreSQL without its driver", "the package psycopg", "pip install 'dpadmm[postgres]'"
        ) from None
    return psycopg
