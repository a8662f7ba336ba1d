"""Row blocks summed by threads. The blocks do not depend on how many threads there are, so neither does the sum."""

from __future__ import annotations

import os
from _thread import LockType, allocate_lock, start_new_thread
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import numpy as np
from numpy.typing import NDArray

from dpadmm.errors import InvalidParameter

Array = NDArray[np.float64]

OWN_LIMIT, OTHER_LIMITS = "DPADMM_NUM_THREADS", ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS")
CHUNK_ENTRIES = 1 << 20
LONGEST_RUN = 1 << 14
"""Rows added one after another, at most: the rounding of a sum grows with it, and is charged."""

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
        raise InvalidParameter(f"{count!r} threads", "a whole number from 1 on, or None", "choose 1 or more")
    token = _limit.set(_limit.get() if count is None else count)
    try:
        yield
    finally:
        _limit.reset(token)


def sum_in_chunks(part: Callable[[int, int], Array], n_rows: int, width: int, parallel: bool, effort: int = 1) -> Array:
    """Σ part(start, stop) over blocks of rows of equal lengths, added in the order of the rows.

    Parameters
    ----------
    width, effort : int
        Entries of a row, and what reading one costs in entries of a dense row.
    """
    longest = max(1, min(LONGEST_RUN, CHUNK_ENTRIES // max(1, width)))
    count = max(1, -(-n_rows // longest))
    bounds = [(k * n_rows // count, (k + 1) * n_rows // count) for k in range(count)]
    workers = min(allowed(), count) if parallel and n_rows * width * effort >= WORTH_THREADS else 1
    return _added(_by_threads(part, bounds, workers) if workers > 1 else (part(*each) for each in bounds))


def _by_threads(part: Callable[[int, int], Array], bounds: list[tuple[int, int]], workers: int) -> Iterator[Array]:
    """part(start, stop) of each block in their order; this thread works, too.

    It waits neither for helpers to begin nor for those who came too late to find a block: a thread takes as long to
    start as many a block takes to add. Threads are started for each sum: kept ones would not survive a fork.
    """
    waiting, done, failures = deque(enumerate(bounds)), dict[int, Array](), list[BaseException]()
    at_work = list[LockType]()

    def work() -> None:
        while waiting and not failures:
            try:
                number, each = waiting.popleft()
            except IndexError:  # another thread was faster
                return
            done[number] = part(*each)

    def help_out() -> None:
        busy = allocate_lock()
        with busy:
            at_work.append(busy)
            try:
                work()
            except BaseException as failure:
                failures.append(failure)

    try:
        for _ in range(workers - 1):
            start_new_thread(help_out, ())
        work()
    finally:
        # Who is not at work yet will find no block.
        waiting.clear()
        for busy in list(at_work):
            busy.acquire()
    if failures:
        raise failures[0]
    return (done[number] for number in range(len(bounds)))


def _added(parts: Iterator[Array]) -> Array:
    total = next(parts)
    for part in parts:
        total += part
    return total
