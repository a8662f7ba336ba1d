"""Measurements in processes of their own, one a core, each with one thread."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
import warnings
from collections.abc import Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from typing import Any

from dpadmm.errors import CannotCertify, Diverged, PublicWarning
from dpadmm.reproduce.bookshelf import find_exhibit
from dpadmm.reproduce.exhibit import Algorithm, Case, Cell

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


@dataclass(frozen=True)
class Order:
    """One measurement to make: an exhibit by its name or file, so that nothing but texts and numbers are sent."""

    exhibit: str
    cell: Cell
    quick: bool
    key: str


Delivery = tuple[Order, dict[str, Any]]


def measure(order: Order) -> Delivery:
    """Make one measurement; `seconds` is the time it took, and `refused` says why there is nothing else."""
    algorithm, case = find_exhibit(order.exhibit).case(order.cell, order.quick)
    begun = time.perf_counter()
    with warnings.catch_warnings():
        # Models are trained on public tables, often with less than is wise: that is the experiment.
        warnings.simplefilter("ignore", PublicWarning)
        values = _made(algorithm, case)
    return order, {**values, "seconds": round(time.perf_counter() - begun, 3)}


def _made(algorithm: Algorithm, case: Case) -> dict[str, Any]:
    """What an algorithm gives; a plan that nobody certifies is a result, too, and ends no run of hours."""
    try:
        return dict(algorithm(case))
    except (CannotCertify, Diverged) as refusal:
        return {"refused": str(refusal)}


def measure_all(orders: Iterable[Order], jobs: int) -> Iterator[Delivery]:
    """Make measurements in the order given, `jobs` at a time, and hand each over when it is done.

    Whoever stops asking waits only for those that have begun.
    """
    if jobs == 1:
        yield from map(measure, orders)
        return
    waiting, running = iter(orders), set[Future[Delivery]]()
    context = multiprocessing.get_context("spawn")
    with OneThreadEach(), ProcessPoolExecutor(jobs, mp_context=context, initializer=_deaf_to_interrupts) as pool:
        try:
            for order in waiting:
                running.add(pool.submit(measure, order))
                if len(running) >= 2 * jobs:
                    done, running = wait(running, return_when=FIRST_COMPLETED)
                    yield from (future.result() for future in done)
            while running:
                done, running = wait(running, return_when=FIRST_COMPLETED)
                yield from (future.result() for future in done)
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


class OneThreadEach:
    """Processes started within take one thread; what the environment said is restored."""

    def __enter__(self) -> None:
        self._before = {name: os.environ.get(name) for name in THREADS}
        os.environ.update(dict.fromkeys(THREADS, "1"))

    def __exit__(self, *problem: object) -> None:
        for name, value in self._before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _deaf_to_interrupts() -> None:
    """Ctrl-C reaches every process of a terminal; only the one that wrote nothing down yet must not die of it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
