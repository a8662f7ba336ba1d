"""Timing contestants side by side, so that a machine that slows down slows all of them.

Times are processor times, which do not count waiting for a processor that others use; on an idle machine they are what
a clock on the wall shows, for work on one thread.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from statistics import median
from time import perf_counter, process_time
from typing import Any

Work = Callable[[], Any]
Clock = Callable[[], float]
WALL: Clock = perf_counter
"""For work on several threads."""


def alternate(
    contestants: Mapping[str, Work], rounds: int = 7, shortest: float = 0.02, clock: Clock = process_time
) -> dict[str, float]:
    """Median seconds of one call of each contestant; see `turns`."""
    return {name: median(times) for name, times in turns(contestants, rounds, shortest, clock).items()}


def turns(
    contestants: Mapping[str, Work], rounds: int = 7, shortest: float = 0.02, clock: Clock = process_time
) -> dict[str, list[float]]:
    """Seconds of one call of each contestant in each round.

    Parameters
    ----------
    rounds : int
        Times each contestant is measured, taking turns.
    shortest : float
        Calls are repeated within a measurement until it lasts this many seconds.
    """
    for work in contestants.values():
        work()  # compiles, and fills caches
    repeats = {name: max(1, round(shortest / seconds(work, clock=clock))) for name, work in contestants.items()}
    samples: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(rounds):
        for name, work in contestants.items():
            samples[name].append(seconds(work, repeats[name], clock))
    return samples


def seconds(work: Work, repeats: int = 1, clock: Clock = process_time) -> float:
    """Mean seconds of one call."""
    start = clock()
    for _ in range(repeats):
        work()
    return (clock() - start) / repeats
