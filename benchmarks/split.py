"""What the time of one mini-batch iteration goes to: each part by itself, and what is left of the whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from benchmarks.iteration import STEPS, fit, planned
from benchmarks.measure import Work, alternate
from benchmarks.paths import COMPILED, on_path
from benchmarks.report import Row
from benchmarks.tables import Table, held, table
from dpadmm.oracles.gate import Gate
from dpadmm.oracles.private import mechanism_of
from dpadmm.privacy.questions import ClippedGradient
from dpadmm.privacy.sampling import Batch
from dpadmm.randomness import make_streams

WHOLE = "whole iteration"
DRAW = "draw the batch"
SUM = "read and sum its rows"
RELEASE = "release: round, add noise"
SOLVER = "solver, once the gradient is released"
REST = "admission, lock and loop: the rest"


def run(quick: bool) -> Iterator[Row]:
    yield from split("covtype, batches of 50", table("covtype"), 50)


def split(case: str, rows: Table, batch_size: int, rounds: int = 7) -> Iterator[Row]:
    """Nanoseconds of an iteration and of its parts, on compiled kernels."""
    parts = Parts(rows, batch_size)
    made = {DRAW: parts.draw, SUM: parts.sum, RELEASE: parts.release, SOLVER: parts.step}
    works = {name: on_path(COMPILED, partial(repeated, part)) for name, part in made.items()}
    spent = alternate({WHOLE: on_path(COMPILED, lambda: fit(rows, batch_size)), **works}, rounds)
    times = {name: 1e9 * seconds / STEPS for name, seconds in spent.items()}
    # Rows are in no cache only if they were just drawn, so that they are summed after a draw, which is then taken off.
    times[SUM] -= times[DRAW]
    times[REST] = 2 * times[WHOLE] - sum(times.values())
    for name, value in times.items():
        yield Row("split", case, name, value, "ns", note=rows.note)


class Parts:
    """The parts of one iteration, each to be done as often as one likes."""

    def __init__(self, rows: Table, batch_size: int) -> None:
        self._rows, self._streams = held(rows), make_streams()
        self._recipe = planned(self._rows, batch_size)
        (self._query,) = self._recipe.plan.queries
        self._gate = Gate(self._recipe.plan)
        self._mechanism = mechanism_of(self._gate, self._rows, self._streams)
        self._start = self._recipe.solver.init(self._recipe.problem)
        self._question = ClippedGradient(self._query.clip_norm)
        self._total = self.sum()
        self._repeating = Repeating(self.release())

    def draw(self) -> Batch:
        return self._query.sampler.draw(self._rows.n_rows, self._streams.sampling)

    def sum(self) -> Any:
        return self._rows.ask(self._question, (self._start.x,), self.draw())

    def release(self) -> Any:
        return self._mechanism.release(self._total, self._query, self._query.clip_norm, self._gate)

    def step(self) -> Any:
        return self._recipe.solver.update(self._start, self._recipe.problem, self._repeating)


class Repeating:
    """An oracle that says the same at every point: what a solver does by itself."""

    def __init__(self, answer: Any) -> None:
        self._answer = answer

    def ask(self, kind: Any, *at: Any) -> Any:
        return self._answer


def repeated(action: Callable[[], Any]) -> Work:
    def work() -> None:
        for _ in range(STEPS):
            action()

    return work
