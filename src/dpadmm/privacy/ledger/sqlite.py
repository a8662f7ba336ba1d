"""The record in one SQLite file: write-ahead log, every commit flushed to the disk, one writer at a time."""

from __future__ import annotations

import os
import sqlite3
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote

from dpadmm.privacy.ledger import store
from dpadmm.privacy.ledger.entries import FORMAT, Entry, damaged, stamp
from dpadmm.privacy.ledger.sqlite_pages import HEADER_SIZE, SIGNATURE, stray_bytes

APPLICATION = int.from_bytes(b"dpLg", "big")
SCHEMA = {
    "entries": "CREATE TABLE entries (sequence INTEGER PRIMARY KEY, text TEXT NOT NULL, hash TEXT NOT NULL)",
    "never_changed": "CREATE TRIGGER never_changed BEFORE UPDATE ON entries "
    "BEGIN SELECT RAISE(ABORT, 'entries are never changed'); END",
    "never_removed": "CREATE TRIGGER never_removed BEFORE DELETE ON entries "
    "BEGIN SELECT RAISE(ABORT, 'entries are never removed'); END",
}
INSERT = "INSERT INTO entries (sequence, text, hash) VALUES (?, ?, ?)"
_WHY = {
    sqlite3.SQLITE_BUSY: "another process has kept it busy for too long",
    sqlite3.SQLITE_READONLY: "it is read-only",
    sqlite3.SQLITE_FULL: "the disk is full",
    sqlite3.SQLITE_CANTOPEN: "it cannot be opened for writing",
    sqlite3.SQLITE_IOERR: "the disk reports an error, or is full",
    sqlite3.SQLITE_PERM: "permission is denied",
}


@dataclass(frozen=True)
class SqliteLog:
    connection: sqlite3.Connection

    def entries(self, after: int) -> list[Entry]:
        rows = self.connection.execute(
            "SELECT sequence, text, hash FROM entries WHERE sequence > ? ORDER BY sequence", (after,)
        )
        return [Entry(*row) for row in rows]

    def append(self, entry: Entry) -> None:
        self.connection.execute(INSERT, (entry.sequence, entry.text, entry.hash))

    def now(self) -> str:
        return stamp(datetime.now(UTC))


@dataclass(frozen=True)
class SqliteStore:
    """A file, opened anew for every transaction: nothing is shared between threads, forks or pickles."""

    path: Path

    @property
    def place(self) -> str:
        return str(self.path)

    def create(self, first: Callable[[str], Entry]) -> None:
        """Made beside its place and linked there when complete, so that nobody ever sees half a ledger."""
        scratch = self.path.with_name(f".{self.path.name}.{uuid.uuid4().hex}")
        try:
            with _told(self.place):
                _make(scratch, first(stamp(datetime.now(UTC))))
            os.link(scratch, self.path)
            _flush_folder(self.path.parent)
        except FileExistsError:
            raise store.occupied(self.place) from None
        except OSError as error:
            raise store.unwritable(self.place, error.strerror or type(error).__name__) from None
        finally:
            for leftover in (scratch, *_beside(scratch)):
                with suppress(OSError):
                    leftover.unlink()

    @contextmanager
    def writing(self) -> Iterator[SqliteLog]:
        with _told(self.place), closing(self._connected()) as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield SqliteLog(connection)
            except BaseException:
                connection.rollback()
                raise
            _commit(connection)

    @contextmanager
    def reading(self) -> Iterator[SqliteLog]:
        with _told(self.place), closing(self._connected_to_read()) as connection:
            connection.execute("BEGIN")
            yield SqliteLog(connection)

    def faults(self) -> list[str]:
        """Pages that SQLite finds damaged, and bytes it never wrote. On a busy ledger the latter are not looked for."""
        with _told(self.place), closing(self._connected_to_read()) as connection:
            found = [str(row[0]) for row in connection.execute("PRAGMA integrity_check(5)") if row[0] != "ok"]
            if found:
                return [f"the database is damaged: {what}" for what in found]
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            # While this transaction reads, nobody moves new pages from the log into the file.
            connection.execute("BEGIN")
            connection.execute("SELECT count(*) FROM entries").fetchone()
            return [] if _pending(self.path) else stray_bytes(self.path.read_bytes())

    def _connected(self) -> sqlite3.Connection:
        self._require_ours()
        connection = _connect(self.path, "mode=rw")
        try:
            connection.execute("PRAGMA journal_mode = WAL").fetchone()
            # A trigger or a view put there by others could swallow a charge.
            if dict(connection.execute("SELECT name, sql FROM sqlite_master")) != SCHEMA:
                raise damaged("the tables were changed")
        except BaseException:
            connection.close()
            raise
        return connection

    def _connected_to_read(self) -> sqlite3.Connection:
        """On a read-only disk a closed ledger can still be read: then its file is all there is."""
        try:
            return self._connected()
        except sqlite3.OperationalError as error:
            if _primary(error) not in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN) or _pending(self.path):
                raise
        return _connect(self.path, "mode=ro&immutable=1")

    def _require_ours(self) -> None:
        """Look at the first bytes of the file before SQLite does, which might change a file that is not ours."""
        try:
            with self.path.open("rb") as stream:
                header = stream.read(HEADER_SIZE)
        except FileNotFoundError:
            raise store.missing(self.place) from None
        except OSError as error:
            raise store.unwritable(self.place, error.strerror or type(error).__name__) from None
        if len(header) < HEADER_SIZE or not header.startswith(SIGNATURE):
            raise store.foreign(self.place)
        if int.from_bytes(header[68:72], "big") != APPLICATION:
            raise store.foreign(self.place)
        found = int.from_bytes(header[60:64], "big")
        if found > FORMAT:
            raise store.newer(self.place, found, FORMAT)


def _connect(path: Path, options: str) -> sqlite3.Connection:
    connection = sqlite3.connect(
        f"file:{quote(str(path))}?{options}", uri=True, timeout=store.PATIENCE, isolation_level=None
    )
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA secure_delete = ON")
    connection.execute("PRAGMA trusted_schema = OFF")
    return connection


def _make(path: Path, first: Entry) -> None:
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA secure_delete = ON")
        connection.execute(f"PRAGMA application_id = {APPLICATION}")
        connection.execute(f"PRAGMA user_version = {FORMAT}")
        for statement in SCHEMA.values():
            connection.execute(statement)
        connection.execute(INSERT, (first.sequence, first.text, first.hash))
        connection.execute("PRAGMA journal_mode = WAL")
    finally:
        connection.close()


def _commit(connection: sqlite3.Connection) -> None:
    try:
        connection.execute("COMMIT")
    except sqlite3.Error:
        with suppress(sqlite3.Error):
            connection.rollback()
        raise
    # Best effort: the shorter the log, the less is lost by whoever copies the file without it.
    with suppress(sqlite3.Error):
        connection.execute("PRAGMA wal_checkpoint(PASSIVE)")


@contextmanager
def _told(place: str) -> Iterator[None]:
    """Errors of SQLite in the words of this library."""
    try:
        yield
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        # A damaged name of a table breaks the decoding of the message about it.
        code = _primary(error)
        if code in _WHY:
            raise store.unwritable(place, _WHY[code]) from None
        raise damaged("the database is damaged") from None


def _primary(error: Exception) -> int:
    return int(getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT)) & 0xFF


def _beside(path: Path) -> list[Path]:
    return [path.with_name(path.name + suffix) for suffix in ("-wal", "-shm", "-journal")]


def _pending(path: Path) -> bool:
    """Whether entries wait in the write-ahead log."""
    try:
        return _beside(path)[0].stat().st_size > 0
    except FileNotFoundError:
        return False


def _flush_folder(folder: Path) -> None:
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
