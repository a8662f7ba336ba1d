"""One file, one name: what must hold of a place on a disk so that SQLite's locks and journal protect it.

SQLite finds the journal of a file by the file's name, so a file with two names has two journals, and a crash under one
name cannot be undone under the other. SQLite's locks belong to the process: a child made by `fork` while a ledger is
open would believe that it holds locks which it does not (https://sqlite.org/howtocorrupt.html, sections 2.2 and 2.6).
"""

from __future__ import annotations

import os
import stat
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from dpadmm.privacy.ledger import store

MOUNTS = Path("/proc/self/mountinfo")
Identity = tuple[int, int]


def identity(path: Path) -> Identity:
    """Device and number of the ledger at `path`, which must be there, and there only."""
    place = str(path)
    try:
        found = path.stat()
        if not stat.S_ISREG(found.st_mode):
            raise store.foreign(place)
        if found.st_nlink > 1:
            _finish_creation(path, found)
            found = path.stat()
    except FileNotFoundError:
        raise store.missing(place) from None
    except OSError as error:
        raise store.unwritable(place, error.strerror or type(error).__name__) from None
    if found.st_nlink > 1:
        raise store.two_names(place, "hard links: `find . -samefile` lists them", "remove all names but one")
    if _is_mounted(path):
        raise store.two_names(
            place, "the file itself is mounted here, as a container's volume", "mount its folder instead of the file"
        )
    return found.st_dev, found.st_ino


def require_same(path: Path, before: Identity) -> None:
    """Refuse a place where another file was put since, or from which the ledger was taken away."""
    try:
        found = path.stat()
    except OSError:
        raise store.exchanged(str(path)) from None
    if (found.st_dev, found.st_ino) != before:
        raise store.exchanged(str(path))


def scratch_beside(path: Path, token: str) -> Path:
    """The name under which a ledger is made before it gets its own."""
    return path.with_name(f".{path.name}.{token}")


def _finish_creation(path: Path, found: os.stat_result) -> None:
    """Remove the second name that a killed, or a running, `create` has left: it is ours and no longer needed."""
    for other in path.parent.glob(f".{path.name}.{'[0-9a-f]' * 32}"):
        with suppress(OSError):
            if os.path.samestat(other.lstat(), found):
                other.unlink()


def _is_mounted(path: Path) -> bool:
    try:
        lines = MOUNTS.read_text("utf-8", "surrogateescape").splitlines()
    except OSError:
        # Other systems than Linux cannot mount single files.
        return False
    escaped = str(path)
    for letter in "\\ \t\n":
        escaped = escaped.replace(letter, f"\\{ord(letter):03o}")
    return any(line.split(" ", 5)[4] == escaped for line in lines)


class OpenLedgers:
    """Counts the connections of this process, so that a fork waits until none is open."""

    def __init__(self) -> None:
        self._begin(inherited=False)

    def _begin(self, inherited: bool) -> None:
        self._changed = threading.Condition()
        self._open: Counter[int] = Counter()
        self._forking = False
        self._inherited = inherited

    @contextmanager
    def one_more(self, place: str) -> Iterator[None]:
        """For as long as a connection is open."""
        own = threading.get_ident()
        with self._changed:
            if self._inherited:
                raise store.inherited(place)
            # A thread that has one open already must go on, or the fork would wait for ever.
            self._changed.wait_for(lambda: not self._forking or self._open[own] > 0)
            self._open[own] += 1
        try:
            yield
        finally:
            with self._changed:
                self._open[own] -= 1
                if not self._open[own]:
                    del self._open[own]
                self._changed.notify_all()

    def before_fork(self) -> None:
        own = threading.get_ident()
        self._changed.acquire()
        self._changed.wait_for(lambda: not self._forking)
        self._forking = True
        self._changed.wait_for(lambda: set(self._open) <= {own}, timeout=store.PATIENCE)

    def after_fork_in_parent(self) -> None:
        self._forking = False
        self._changed.notify_all()
        self._changed.release()

    def after_fork_in_child(self) -> None:
        self._begin(inherited=self._inherited or bool(self._open))


OPEN_LEDGERS = OpenLedgers()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=OPEN_LEDGERS.before_fork,
        after_in_parent=OPEN_LEDGERS.after_fork_in_parent,
        after_in_child=OPEN_LEDGERS.after_fork_in_child,
    )
