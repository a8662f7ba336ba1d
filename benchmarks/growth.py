"""How time grows with rows, features, steps and classes: exponents of t = c · size^p by least squares on logarithms."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from benchmarks.measure import seconds
from benchmarks.report import Row
from benchmarks.tables import Table, simulated, simulated_sparse
from dpadmm import DPLogisticRegression

LINEAR = 1.15
CLASSES = [5, 10, 20, 40, 80]


def run(quick: bool) -> Iterator[Row]:
    rows = [round(10 ** (k / 2)) for k in range(8, 13 if quick else 15)]
    yield from of_full_admm(rows)
    yield from of_auto(rows)


def of_full_admm(rows: list[int]) -> Iterator[Row]:
    """Linear in everything."""
    grow = partial(grown, "full-admm", target=LINEAR)
    yield grow("rows", rows, lambda n: fit(simulated(n, 20), steps=20))
    yield grow("features", [125, 250, 500, 1000, 2000], lambda d: fit(simulated(50_000, d), steps=20))
    table = simulated(200_000, 20)
    yield grow("steps", [25, 50, 100, 200, 400], lambda steps: fit(table, steps=steps))
    yield grow("classes", CLASSES, lambda classes: fit(simulated(50_000, 50, classes), steps=20))


def of_auto(rows: list[int]) -> Iterator[Row]:
    """Linear in rows and classes, and in features where it does without their d × d second moment."""
    yield grown("auto", "rows", rows, lambda n: fit(simulated(n, 20)), LINEAR)
    yield grown("auto", "features", [64, 125, 250, 500, 1000], lambda d: fit(simulated(20_000, d)))
    wide = [50_000, 100_000, 200_000, 400_000, 800_000]
    yield grown("auto", "features, CSR, 75 a row", wide, lambda d: fit(simulated_sparse(20_000, d, 75)), LINEAR)
    yield grown("auto", "classes", CLASSES, lambda classes: fit(simulated(50_000, 50, classes)), LINEAR)


Fit = Callable[[str], float]


def fit(table: Table, steps: int | None = None) -> Fit:
    """The seconds that a solver takes: the less of two, after a fit that may compile."""

    def spent(solver: str) -> float:
        model = DPLogisticRegression(1.0, 1e-9, solver=solver, steps=steps, classes=np.unique(table.y))
        model.fit(table.X, table.y)
        return min(seconds(lambda: model.fit(table.X, table.y)) for _ in range(2))

    return spent


def grown(solver: str, what: str, sizes: list[int], make: Callable[[int], Fit], target: float | None = None) -> Row:
    """Time whole fits; the exponent is that of the larger half, where fixed costs no longer matter."""
    times = [make(size)(solver) for size in sizes]
    half = len(sizes) // 2
    exponent = float(np.polyfit(np.log(sizes[half:]), np.log(times[half:]), 1)[0])
    raw: dict[str, Any] = {str(size): spent for size, spent in zip(sizes, times, strict=True)}
    case = f"{solver}, {sizes[0]:,} to {sizes[-1]:,} {what}"
    return Row("growth", case, "exponent", exponent, "", target, "at most", raw=raw)
