"""Row blocks summed by threads. The blocks do not depend on how many threads there are, so neither does the sum."""

from __future__ import annotations

import os
from _thread import LockType, allocate_lock, start_new_thread
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from dpadmm.errors import InvalidParameter, shown

Array = NDArray[np.float64]

OWN_LIMIT, OTHER_LIMITS = "DPADMM_NUM_THREADS", ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS")
CHUNK_ENTRIES = 1 << 20
LONGEST_RUN = 1 << 14
"""Rows added one after another, at most: the rounding of a sum grows with it, and is charged."""
FEWEST_ROWS = 128
"""Dense rows that take far longer to add than it takes to clear a sum and to add it to another."""
SHARED_BY = 4
"""Threads that get the same number of blocks each; so do two."""
SHORT = 1 << 23
"""Entries of a sum that takes a millisecond or so, which is not much longer than to wake a thread."""
LEAN = 7
"""Blocks of a short sum shrink from a seventh above their mean length to a seventh below it. The caller begins with the
first one and helpers, which begin later, with the last: so they end no later than the caller, which it would take
longer to wake than to let work on."""

PATIENCE = 0.2
"""Seconds a helper waits for another sum."""

WORTH_THREADS = 1 << 20
"""Entries of a dense table that take several times as long to add as a thread takes to start: 0.3 ms to 0.06 ms."""

_limit: ContextVar[int | None] = ContextVar("threads", default=None)


def allowed() -> int:
    """Threads a sum may take: the processors of this process, or less where the user said so.

    The innermost `at_most_threads` counts, else DPADMM_NUM_THREADS, else the first of NUMBA_NUM_THREADS and
    OMP_NUM_THREADS that is set to a number.
    """
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    limit = _limit.get()
    if limit is not None:
        return max(1, min(limit, processors))
    for name in (OWN_LIMIT, *OTHER_LIMITS):
        text = os.environ.get(name, "").split(",")[0].strip()
        if text.isdigit() and int(text):
            return min(int(text), processors)
        if text and name == OWN_LIMIT:
            raise InvalidParameter(f"{name}={text!r}", "a whole number from 1 on", "correct the environment")
    return processors


@contextmanager
def at_most_threads(count: int | None) -> Iterator[None]:
    """Let fits inside take this many threads; None leaves what holds outside. Results do not depend on it."""
    if count is not None and (isinstance(count, bool) or not isinstance(count, int) or count < 1):
        raise InvalidParameter(f"{shown(count)} threads", "a whole number from 1 on, or None", "choose 1 or more")
    token = _limit.set(_limit.get() if count is None else count)
    try:
        yield
    finally:
        _limit.reset(token)


def sum_in_chunks(
    part: Callable[[int, int], Array], n_rows: int, width: int, parallel: bool, effort: int = 1, features: int = 0
) -> Array:
    """Σ part(start, stop) over blocks of rows of like lengths, added in the order of the rows.

    Parameters
    ----------
    width, effort : int
        Entries of a row, and what reading one costs in entries of a dense row.
    features : int
        Of a sparse row, which has fewer entries.
    """
    bounds, entries = _bounds(n_rows, width, effort, features), n_rows * width * effort
    workers = min(allowed(), len(bounds)) if parallel and entries >= WORTH_THREADS else 1
    total = _InOrder()
    if workers > 1:
        _by_threads(part, bounds, workers, total, from_both_ends=entries <= SHORT)
    else:
        for number, each in enumerate(bounds):
            total.bring(number, part(*each))
    return total.sum


@lru_cache(maxsize=64)
def _bounds(n_rows: int, width: int, effort: int, features: int) -> tuple[tuple[int, int], ...]:
    """Equal blocks; those of a short sum, which are few, shrink along the table, unless the first would be too long."""
    count = _blocks(n_rows, width, effort, features)
    unit, short = LEAN * count, n_rows * width * effort <= SHORT
    lean = short and n_rows * (unit + count - 1) <= unit * count * LONGEST_RUN
    ends = (k * n_rows * (unit + lean * (count - k)) // (unit * count) for k in range(count + 1))
    return tuple(pairwise(ends))


def _blocks(n_rows: int, width: int, effort: int, features: int) -> int:
    """How many blocks: some for each thread, none of which takes less long than to make a sum and to add it.

    No more than are charged for (`privacy.arithmetic.summation_error`).
    """
    enough = max(CHUNK_ENTRIES, FEWEST_ROWS * features)
    # Of sparse rows calls take longer than what uneven blocks lose, if every thread still has some.
    most = max(2 * CHUNK_ENTRIES, enough) if features else enough
    longest = max(1, min(LONGEST_RUN, most // max(1, width * effort)))
    shortest = max(1, min(LONGEST_RUN, (CHUNK_ENTRIES >> 2) // (max(width, features) + 1)))
    count = -(-n_rows // longest)
    if count > 1 or n_rows * width * effort > enough:
        count = -(-count // SHARED_BY) * SHARED_BY
    return max(1, min(count, -(-n_rows // shortest)))


class _InOrder:
    """A sum of parts in the order of their numbers, whenever they come and whoever brings them."""

    def __init__(self) -> None:
        self.sum: Array = np.zeros(0)
        self._early, self._added, self._adding = dict[int, Array](), 0, allocate_lock()

    def bring(self, number: int, part: Array) -> None:
        self._early[number] = part
        self.add()

    def add(self) -> None:
        """Add what there is, unless somebody does."""
        if not self._adding.acquire(blocking=False):
            return
        try:
            while self._added in self._early:
                part = self._early.pop(self._added)
                if self._added:
                    self.sum += part
                else:
                    self.sum = part
                self._added += 1
        finally:
            self._adding.release()


def _by_threads(
    part: Callable[[int, int], Array],
    bounds: Sequence[tuple[int, int]],
    workers: int,
    total: _InOrder,
    from_both_ends: bool,
) -> None:
    """Bring part(start, stop) of each block to a sum; this thread works, too, from the first block on.

    Helpers take blocks in their order, too, or from the last on: sums of these wait for all before them, in memory, and
    are then added at once, which short sums can bear. This thread waits neither for helpers to begin nor for those who
    came too late to find a block: a thread takes as long to start as many a block takes to add.
    """
    waiting, failures = deque(enumerate(bounds)), list[BaseException]()
    at_work = list[LockType]()

    def work(take: Callable[[], tuple[int, tuple[int, int]]]) -> None:
        while waiting and not failures:
            try:
                number, each = take()
            except IndexError:  # another thread was faster
                return
            total.bring(number, part(*each))

    def help_out() -> None:
        busy = allocate_lock()
        with busy:
            at_work.append(busy)
            try:
                work(waiting.pop if from_both_ends else waiting.popleft)
            except BaseException as failure:
                failures.append(failure)

    try:
        # A system without another thread to give, or memory for one, leaves all blocks to this one.
        with suppress(RuntimeError, MemoryError):
            for _ in range(workers - 1):
                _lend(help_out)
        work(waiting.popleft)
    finally:
        # Who is not at work yet will find no block.
        waiting.clear()
        for busy in list(at_work):
            busy.acquire()
    if failures:
        raise failures[0]
    total.add()  # what was brought while another part was added


class _Helper:
    """A thread that does one job after another, and ends when none came for a while."""

    def __init__(self, job: Callable[[], None], idle: deque[_Helper]) -> None:
        self._job: Callable[[], None] | None = job
        self._idle, self._called = idle, allocate_lock()
        self._called.acquire()

    def call(self, job: Callable[[], None]) -> None:
        """For whoever took it out of those idle."""
        self._job = job
        self._called.release()

    def serve(self) -> None:
        while self._job is not None:
            self._job()
            self._job = None  # it holds on to the rows
            self._idle.append(self)
            if not self._called.acquire(timeout=PATIENCE):
                self._leave()

    def _leave(self) -> None:
        try:
            self._idle.remove(self)
        except ValueError:  # somebody is about to call, unless interrupted
            self._called.acquire(timeout=PATIENCE)


_idle = deque[_Helper]()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_idle.clear)  # threads do not survive a fork


def _lend(job: Callable[[], None]) -> None:
    """Have a thread do a job soon. One that waits is there in half the time it takes to start one."""
    try:
        helper = _idle.pop()
    except IndexError:
        start_new_thread(_Helper(job, _idle).serve, ())
    else:
        helper.call(job)
