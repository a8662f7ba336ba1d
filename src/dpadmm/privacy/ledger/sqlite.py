"""The record in one SQLite file: a rollback journal, every commit flushed to the disk, one writer at a time.

The file is opened by SQLite only. Whoever opens and closes it beside SQLite, in the same process, drops the locks that
SQLite holds on it (https://sqlite.org/howtocorrupt.html, section 2.2).
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote

from dpadmm.privacy.ledger import store
from dpadmm.privacy.ledger.entries import FORMAT, Entry, damaged, stamp
from dpadmm.privacy.ledger.sqlite_pages import stray_bytes
from dpadmm.privacy.ledger.sqlite_place import OPEN_LEDGERS, identity, require_same, scratch_beside

APPLICATION = int.from_bytes(b"dpLg", "big")
SCHEMA = {
    "entries": "CREATE TABLE entries (sequence INTEGER PRIMARY KEY, text TEXT NOT NULL, hash TEXT NOT NULL)",
    "never_changed": "CREATE TRIGGER never_changed BEFORE UPDATE ON entries "
    "BEGIN SELECT RAISE(ABORT, 'entries are never changed'); END",
    "never_removed": "CREATE TRIGGER never_removed BEFORE DELETE ON entries "
    "BEGIN SELECT RAISE(ABORT, 'entries are never removed'); END",
}
# The same as SQLite lists it: number, kind, name, table, first page, definition.
TABLES = [
    (number, definition.split()[1].lower(), name, "entries", 2 if name == "entries" else 0, definition)
    for number, (name, definition) in enumerate(SCHEMA.items(), start=1)
]
INSERT = "INSERT INTO entries (sequence, text, hash) VALUES (?, ?, ?)"
SELECT = "SELECT sequence, text, hash FROM entries"
# Seconds between two tries to end the write-ahead log of an earlier version.
PAUSE = 0.01
# A disk with less free space than this cannot take a journal and an entry.
LEAST_SPACE = 65_536
_WHY = {
    sqlite3.SQLITE_BUSY: "another process has kept it busy for too long",
    sqlite3.SQLITE_READONLY: "it is read-only",
    sqlite3.SQLITE_FULL: "the disk is full",
    sqlite3.SQLITE_CANTOPEN: "it cannot be opened for writing",
    sqlite3.SQLITE_IOERR: "the disk reports an error",
    sqlite3.SQLITE_PERM: "permission is denied",
    sqlite3.SQLITE_NOMEM: "the memory of this machine is used up",
}
# Where these are said, the reason may be that the disk is full.
_MAYBE_FULL = (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY)


@dataclass(frozen=True)
class SqliteLog:
    connection: sqlite3.Connection

    def entries(self, after: int, until: int | None = None) -> list[Entry]:
        end = -1 if until is None else max(until - after, 0)
        rows = self.connection.execute(f"{SELECT} WHERE sequence > ? ORDER BY sequence LIMIT ?", (after, end))
        return [Entry(*row) for row in rows]

    def last_with(self, words: str, at_start: bool = False) -> Entry | None:
        place = "instr(text, ?) = 1" if at_start else "instr(text, ?) > 0"
        row = self.connection.execute(f"{SELECT} WHERE {place} ORDER BY sequence DESC LIMIT 1", (words,)).fetchone()
        return None if row is None else Entry(*row)

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
        if not self.path.name:
            raise store.occupied(self.place)
        scratch = scratch_beside(self.path, uuid.uuid4().hex)
        try:
            with _told(self.path), OPEN_LEDGERS.one_more(self.place):
                _make(scratch, first(stamp(datetime.now(UTC))))
            os.link(scratch, self.path)
            scratch.unlink(missing_ok=True)
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
        before = identity(self.path)
        with _told(self.path), self._opened() as connection:
            _end_write_ahead_log(connection)
            connection.execute("BEGIN IMMEDIATE")
            try:
                require_same(self.path, before)
                yield SqliteLog(connection)
            except BaseException:
                with suppress(sqlite3.Error):
                    connection.rollback()
                raise
            _commit(connection, self.place)
        require_same(self.path, before)

    @contextmanager
    def reading(self) -> Iterator[SqliteLog]:
        identity(self.path)
        with _told(self.path), self._opened_to_read() as connection:
            connection.execute("BEGIN")
            yield SqliteLog(connection)

    def faults(self) -> list[str]:
        """Pages that SQLite finds damaged, and bytes it never wrote."""
        with self.reading() as log:
            found = [str(row[0]) for row in log.connection.execute("PRAGMA integrity_check(5)") if row[0] != "ok"]
            if found:
                return [f"the database is damaged: {what}" for what in found]
            if _beside(self.path)[0].exists():
                # The file of an earlier version, in use by it: what is in its log is not in its pages yet.
                return []
            return stray_bytes(log.connection.serialize(), self.path.stat().st_size)

    @contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        with OPEN_LEDGERS.one_more(self.place), closing(_connect(self.path, "mode=rw")) as connection:
            self._require_ours(connection)
            yield connection

    @contextmanager
    def _opened_to_read(self) -> Iterator[sqlite3.Connection]:
        """As `_opened`; from a read-only disk, all of a closed ledger of an earlier version that is in its file."""
        with OPEN_LEDGERS.one_more(self.place), closing(self._connected_to_read()) as connection:
            yield connection

    def _connected_to_read(self) -> sqlite3.Connection:
        connection = _connect(self.path, "mode=rw")
        try:
            self._require_ours(connection)
        except sqlite3.OperationalError as error:
            connection.close()
            if _primary(error) not in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN) or _pending(self.path):
                raise
        except BaseException:
            connection.close()
            raise
        else:
            return connection
        return _connect(self.path, "mode=ro&immutable=1")

    def _require_ours(self, connection: sqlite3.Connection) -> None:
        """Look at the mark, the format and the tables of the file; refuse what this library did not write."""
        mark = connection.execute("PRAGMA application_id").fetchone()[0]
        found = connection.execute("PRAGMA user_version").fetchone()[0]
        if mark != APPLICATION:
            raise store.foreign(self.place)
        if found > FORMAT:
            raise store.newer(self.place, found, FORMAT)
        # A trigger or a view put there by others could swallow a charge.
        if connection.execute("SELECT rowid, * FROM sqlite_master ORDER BY rowid").fetchall() != TABLES:
            raise damaged("the tables were changed")


def _connect(path: Path, options: str) -> sqlite3.Connection:
    connection = sqlite3.connect(
        f"file:{quote(str(path))}?{options}", uri=True, timeout=store.PATIENCE, isolation_level=None
    )
    connection.execute("PRAGMA synchronous = EXTRA")
    connection.execute("PRAGMA secure_delete = ON")
    connection.execute("PRAGMA trusted_schema = OFF")
    return connection


def _make(path: Path, first: Entry) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA synchronous = EXTRA")
        connection.execute("PRAGMA secure_delete = ON")
        connection.execute(f"PRAGMA application_id = {APPLICATION}")
        connection.execute(f"PRAGMA user_version = {FORMAT}")
        for statement in SCHEMA.values():
            connection.execute(statement)
        connection.execute(INSERT, (first.sequence, first.text, first.hash))


def _end_write_ahead_log(connection: sqlite3.Connection) -> None:
    """Earlier versions kept a write-ahead log beside the file, where a confirmed charge could be left behind.

    Its last user brings it to an end; while others use the file SQLite refuses at once, so this tries again. The
    rollback journal is kept between transactions, emptied: to make it anew would take longer.
    """
    patience = time.monotonic() + store.PATIENCE
    while True:
        try:
            connection.execute("PRAGMA journal_mode = PERSIST").fetchone()
        except sqlite3.OperationalError as error:
            if _primary(error) != sqlite3.SQLITE_BUSY or time.monotonic() > patience:
                raise
            time.sleep(PAUSE)
        else:
            return


def _commit(connection: sqlite3.Connection, place: str) -> None:
    try:
        connection.execute("COMMIT")
    except sqlite3.Error as error:
        with suppress(sqlite3.Error):
            connection.rollback()
        code = _primary(error)
        if code == sqlite3.SQLITE_BUSY:
            raise
        # The last write of a commit may have reached the disk before the error, and nothing could be taken back.
        raise store.uncertain(place, _WHY.get(code, _WHY[sqlite3.SQLITE_IOERR])) from None


@contextmanager
def _told(path: Path) -> Iterator[None]:
    """Errors of SQLite in the words of this library."""
    try:
        yield
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        # A damaged name of a table breaks the decoding of the message about it.
        code = _primary(error)
        if code in _WHY:
            full = code in _MAYBE_FULL and _is_full(path)
            raise store.unwritable(str(path), _WHY[sqlite3.SQLITE_FULL if full else code]) from None
        if code == sqlite3.SQLITE_NOTADB:
            raise store.foreign(str(path)) from None
        raise damaged("the database is damaged") from None


def _is_full(path: Path) -> bool:
    """SQLite cannot always tell why it could not write; the disk can."""
    try:
        return shutil.disk_usage(path.parent).free < LEAST_SPACE
    except OSError:
        return False


def _primary(error: Exception) -> int:
    return int(getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT)) & 0xFF


def _beside(path: Path) -> list[Path]:
    return [path.with_name(path.name + suffix) for suffix in ("-wal", "-shm", "-journal")]


def _pending(path: Path) -> bool:
    """Whether entries of an earlier version wait in its write-ahead log."""
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
