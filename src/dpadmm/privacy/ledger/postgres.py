"""The record in a PostgreSQL database, for a team: the same entries in one table, written under its lock."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from dpadmm.errors import FileProblem, InvalidParameter
from dpadmm.privacy.ledger import store
from dpadmm.privacy.ledger.entries import FORMAT, Entry, damaged, stamp
from dpadmm.privacy.ledger.postgres_schema import SCHEMA, enter_home, require_as_made
from dpadmm.privacy.server_address import HIDDEN, SHOWN, Address

INSERT = "INSERT INTO dpadmm_ledger (sequence, text, hash) VALUES (%s, %s, %s)"
SELECT = "SELECT sequence, text, hash FROM dpadmm_ledger"


@dataclass(frozen=True, repr=False)
class Connection:
    """One connection whose errors are told in the words of this library, without what the driver says of addresses."""

    connection: Any
    place: str

    def execute(self, statement: str, values: tuple[Any, ...] | None = None) -> Any:
        try:
            return self.connection.execute(statement, values)
        except _psycopg().Error as error:
            why = _reason(error)
        raise store.unwritable(self.place, why)

    def commit(self) -> None:
        """A server that dies during a commit may have made it."""
        try:
            self.connection.commit()
            return
        except _psycopg().OperationalError as error:
            problem: FileProblem = store.uncertain(self.place, _reason(error))
        except _psycopg().Error as error:
            problem = store.unwritable(self.place, _reason(error))
        raise problem


@dataclass(frozen=True)
class PostgresLog:
    connection: Connection

    def entries(self, after: int, until: int | None = None) -> list[Entry]:
        limit = None if until is None else max(until - after, 0)
        rows = self.connection.execute(f"{SELECT} WHERE sequence > %s ORDER BY sequence LIMIT %s", (after, limit))
        return [Entry(*row) for row in rows]

    def last_with(self, words: str, at_start: bool = False) -> Entry | None:
        place = "= 1" if at_start else "> 0"
        rows = f"{SELECT} WHERE strpos(text, %s) {place} ORDER BY sequence DESC LIMIT 1"
        row = self.connection.execute(rows, (words,)).fetchone()
        return None if row is None else Entry(*row)

    def append(self, entry: Entry) -> None:
        """Insert, and see that it is there as it was given: rules and triggers may answer without inserting."""
        values = (entry.sequence, entry.text, entry.hash)
        if self.connection.execute(INSERT, values).rowcount != 1:
            raise damaged("the server took an entry and did not write it; look for rules on its tables")
        # From here on nobody can add rules or triggers until this transaction ends.
        require_as_made(self.connection)
        if self.entries(entry.sequence - 1) != [entry]:
            raise damaged("the server wrote another entry than it was given; look for triggers on its tables")

    def now(self) -> str:
        return stamp(self.connection.execute("SELECT clock_timestamp()").fetchone()[0])


@dataclass(frozen=True, repr=False)
class PostgresStore:
    """A database, connected to anew for every transaction. `address` may hold a password."""

    address: Address

    def __repr__(self) -> str:
        return f"PostgresStore({self.place!r})"

    @property
    def place(self) -> str:
        psycopg = _psycopg()
        try:
            parts = psycopg.conninfo.conninfo_to_dict(self.address.secret)
        except psycopg.Error:
            return HIDDEN
        shown = [str(parts.get(name) or "") for name in ("host", "dbname")]
        # A password that holds /, @ or # and is not percent-encoded ends up in other parts of the address.
        return "postgresql://{}/{}".format(*shown) if all(map(SHOWN.fullmatch, shown)) else HIDDEN

    def create(self, first: Callable[[str], Entry]) -> None:
        with self._transaction() as session:
            if enter_home(session):
                raise store.occupied(self.place)
            session.execute("SET LOCAL search_path TO DEFAULT")
            session.execute(SCHEMA)
            session.execute(f"INSERT INTO dpadmm_ledger_format VALUES ({FORMAT})")
            enter_home(session)
            log = PostgresLog(session)
            log.append(first(log.now()))

    @contextmanager
    def writing(self) -> Iterator[PostgresLog]:
        with self._transaction() as session:
            self._require_ours(session)
            # Readers go on, writers wait; what is read after the lock includes what was committed before it. Unlike a
            # lock on the table this one needs no right to change entries: INSERT and SELECT are enough to spend.
            session.execute("SELECT pg_advisory_xact_lock('dpadmm_ledger'::regclass::oid::bigint)")
            yield PostgresLog(session)

    @contextmanager
    def reading(self) -> Iterator[PostgresLog]:
        with self._transaction() as session:
            self._require_ours(session)
            yield PostgresLog(session)

    def faults(self) -> list[str]:
        return []

    @contextmanager
    def _transaction(self) -> Iterator[Connection]:
        """One transaction, committed and flushed when the block ends well, whatever the server's defaults are."""
        connection = self._connected()
        session = Connection(connection, self.place)
        try:
            session.execute("SET TRANSACTION ISOLATION LEVEL READ COMMITTED")
            session.execute(f"SET LOCAL lock_timeout = '{store.PATIENCE:g}s'")
            if session.execute("SHOW synchronous_commit").fetchone()[0] == "off":
                session.execute("SET LOCAL synchronous_commit = on")
            if session.execute("SHOW fsync").fetchone()[0] != "on":
                raise store.unwritable(self.place, "the server runs with fsync = off and may lose charges")
            yield session
            session.commit()
        finally:
            # What was not committed is undone by the server.
            connection.close()

    def _connected(self) -> Any:
        """A connection; the driver's own error is not kept, since it may quote the address."""
        psycopg = _psycopg()
        try:
            return psycopg.connect(self.address.secret, connect_timeout=15)
        except psycopg.OperationalError as error:
            problem: FileProblem = store.unwritable(self.place, _reason(error))
        except (psycopg.Error, ValueError, UnicodeError):
            problem = FileProblem(
                "an address of a PostgreSQL server that cannot be read",
                "postgresql://user@host/database, with special letters percent-encoded",
                "correct it, and keep its password in ~/.pgpass",
            )
        raise problem

    def _require_ours(self, session: Connection) -> None:
        if not enter_home(session):
            raise store.missing(self.place)
        require_as_made(session)
        found = session.execute("SELECT max(version) FROM dpadmm_ledger_format").fetchone()[0]
        if found is None:
            raise store.foreign(self.place)
        if found > FORMAT:
            raise store.newer(self.place, found, FORMAT)


def _reason(error: Any) -> str:
    return f"the server refused or cannot be reached: {error.sqlstate or type(error).__name__}"


def _psycopg() -> Any:
    try:
        import psycopg
        import psycopg.conninfo
    except ImportError:
        raise InvalidParameter(
            "a ledger on PostgreSQL without its driver", "the package psycopg", "pip install 'dpadmm[postgres]'"
        ) from None
    return psycopg
