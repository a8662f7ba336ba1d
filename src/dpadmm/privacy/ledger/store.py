"""Where a record lives. A store knows nothing of privacy: it keeps numbered texts, one writer at a time."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from dpadmm.errors import FileProblem, UncertainCharge
from dpadmm.files import usable_path
from dpadmm.privacy.ledger.entries import Entry
from dpadmm.privacy.server_address import hidden, is_address, is_doubtful

# How long to wait for another writer, in seconds.
PATIENCE = 60.0


class Log(Protocol):
    """The record inside one transaction."""

    def entries(self, after: int, until: int | None = None) -> list[Entry]:
        """Entries numbered above `after`, and not above `until`, in order."""
        ...

    def last_with(self, words: str, at_start: bool = False) -> Entry | None:
        """The last entry whose text contains `words`, or begins with them."""
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
    """A PostgreSQL server for postgresql://… or the keywords of libpq, and a file for everything else."""
    if is_address(place):
        from dpadmm.privacy.ledger.postgres import PostgresStore

        return PostgresStore(hidden(place))
    if is_doubtful(place):
        raise FileProblem(
            "a ledger at what looks like an address",
            "the name of a file, or postgresql://user@host/database",
            "choose one of these; an address is not quoted here, because it may hold a password",
        )
    from dpadmm.privacy.ledger.sqlite import SqliteStore

    path = usable_path(place, "a ledger")
    try:
        path = path.expanduser()
    except RuntimeError:
        raise FileProblem(
            f"{path}, in the home of a user who is not known here", "the name of a file", "correct the name"
        ) from None
    return SqliteStore(path.resolve())


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
        "mend the place; nothing was recorded by this step, and earlier records stand",
    )


def uncertain(place: str, why: str) -> UncertainCharge:
    return UncertainCharge(
        f"the ledger {place}, which failed while it was recording this step ({why})",
        "a place that confirms what it has recorded",
        "look with `dpadmm ledger show` whether the step is there; if it is, its budget is spent",
    )


def two_names(place: str, why: str, do: str) -> FileProblem:
    return FileProblem(
        f"the ledger {place}, a file that has a second name ({why})",
        "one name, because a crash under one name cannot be undone under another, and charges would be lost",
        f"{do}; nothing was recorded by this step",
    )


def exchanged(place: str) -> FileProblem:
    return FileProblem(
        f"the ledger {place}, where another file was put while this step was recorded",
        "one file that stays in its place while it is used",
        "find out which of the two is the ledger, and move files only while nobody uses them",
    )


def inherited(place: str) -> FileProblem:
    return FileProblem(
        f"the ledger {place} in a process that was forked while another thread was using a ledger",
        "a process that began without an open ledger",
        "start it by `spawn` instead of `fork`, or before the ledger is used; nothing was recorded by this step",
    )
