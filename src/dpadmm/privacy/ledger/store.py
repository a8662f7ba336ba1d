"""Where a record lives. A store knows nothing of privacy: it keeps numbered texts, one writer at a time."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from dpadmm.errors import FileProblem
from dpadmm.privacy.ledger.entries import Entry

# How long to wait for another writer, in seconds.
PATIENCE = 60.0


class Log(Protocol):
    """The record inside one transaction."""

    def entries(self, after: int) -> list[Entry]:
        """Entries numbered above `after`, in order."""
        ...

    def append(self, entry: Entry) -> None: ...

    def now(self) -> str:
        """The clock of the place, as `stamp` writes it."""
        ...


class Store(Protocol):
    """The place of one record.

    Formal guarantees
    -----------------
    Transactions of `writing` exclude each other, in this process and in all others. When the block ends without an
    exception the appended entries are on the disk, flushed; when it does not, or the process dies in it, none is.
    """

    @property
    def place(self) -> str:
        """What to call the place in messages, without a password."""
        ...

    def create(self, first: Callable[[str], Entry]) -> None:
        """Make the place with a first entry for the time now, whole or not at all; refuse one that exists."""
        ...

    def writing(self) -> AbstractContextManager[Log]: ...

    def reading(self) -> AbstractContextManager[Log]: ...

    def faults(self) -> list[str]:
        """What is wrong with the place below the level of entries."""
        ...


def store_at(place: str | Path) -> Store:
    """A PostgreSQL server for postgresql://…, and a file for everything else."""
    if isinstance(place, str) and re.match(r"postgres(ql)?://", place):
        from dpadmm.privacy.ledger.postgres import PostgresStore

        return PostgresStore(place)
    if isinstance(place, str) and re.match(r"[a-z][a-z0-9+]+://", place):
        raise FileProblem(
            f"a ledger at {place.split('://')[0]}://…", "a file name or postgresql://…", "choose one of these"
        )
    from dpadmm.privacy.ledger.sqlite import SqliteStore

    return SqliteStore(Path(place).expanduser().resolve())


def missing(place: str) -> FileProblem:
    return FileProblem(
        f"{place}, which holds no ledger",
        "a ledger made beforehand",
        "make one with `dpadmm ledger init` or Ledger.create; if there was one, restore it from a backup",
    )


def occupied(place: str) -> FileProblem:
    return FileProblem(
        f"{place}, which exists", "a new place", "open the ledger that is there, or choose another place"
    )


def newer(place: str, found: int, known: int) -> FileProblem:
    return FileProblem(
        f"{place}, a ledger of format {found}",
        f"format {known} or older",
        "install a newer dpadmm; nothing was changed",
    )


def foreign(place: str) -> FileProblem:
    return FileProblem(
        f"{place}, which is not a ledger of this library",
        "what `dpadmm ledger init` made",
        "correct the path; nothing was changed",
    )


def unwritable(place: str, why: str) -> FileProblem:
    return FileProblem(
        f"the ledger {place}, which cannot be used ({why})",
        "a place that can be read, written and has space",
        "make it so; nothing was recorded by this step, and what was recorded before stands",
    )
