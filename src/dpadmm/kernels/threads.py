"""Row blocks summed by threads. The blocks do not depend on how many threads there are, so neither does the sum."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

LIMITS = ("DPADMM_NUM_THREADS", "NUMBA_NUM_THREADS", "OMP_NUM_THREADS")
CHUNK_ENTRIES = 1 << 20
LONGEST_RUN = 1 << 14
"""Rows added one after another, at most: the rounding of a sum grows with it, and is charged."""

_limit: ContextVar[int | None] = ContextVar("threads", default=None)


def allowed() -> int:
    """Threads a sum may take: the processors of this process, or less where the user said so.

    The innermost `at_most` counts, else the first of DPADMM_NUM_THREADS, NUMBA_NUM_THREADS and OMP_NUM_THREADS that is
    set to a number.
    """
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    limit = _limit.get()
    if limit is not None:
        return max(1, min(limit, processors))
    for name in LIMITS:
        text = os.environ.get(name, "").split(",")[0].strip()
        if text.isdigit():
            return max(1, min(int(text), processors))
    return processors


@contextmanager
def at_most(count: int | None) -> Iterator[None]:
    """Let sums take this many threads; None leaves what holds outside."""
    token = _limit.set(_limit.get() if count is None else count)
    try:
        yield
    finally:
        _limit.reset(token)


def sum_in_chunks(part: Callable[[int, int], Array], n_rows: int, width: int, parallel: bool) -> Array:
    """Σ part(start, stop) over blocks of rows, added in the order of the rows."""
    length = max(1, min(LONGEST_RUN, CHUNK_ENTRIES // max(1, width)))
    bounds = [(start, min(start + length, n_rows)) for start in range(0, max(1, n_rows), length)]
    # Below a million entries threads take longer to start than to add.
    workers = min(allowed(), len(bounds)) if parallel and n_rows * width > CHUNK_ENTRIES else 1
    if workers == 1:
        return _added(part(*each) for each in bounds)
    # A pool for each sum: threads kept between sums would not survive a fork, and starting them costs microseconds.
    with ThreadPoolExecutor(workers) as pool:
        return _added(pool.map(lambda each: part(*each), bounds))


def _added(parts: Iterator[Array]) -> Array:
    total = next(parts)
    for part in parts:
        total += part
    return total
