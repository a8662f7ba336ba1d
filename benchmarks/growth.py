"""How time grows with rows, features, steps and classes: exponents of t = c · size^p by least squares on logarithms."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks.measure import seconds
from benchmarks.report import Row
from benchmarks.tables import Table, simulated
from dpadmm import DPLogisticRegression

STEPS = 20
LINEAR = 1.15


def run(quick: bool) -> Iterator[Row]:
    most = 6 if quick else 7
    yield grow("rows", [10**k for k in range(4, most + 1)], lambda n: (simulated(n, 20), STEPS))
    yield grow("features", [125, 250, 500, 1000, 2000], lambda d: (simulated(50_000, d), STEPS))
    rows = simulated(200_000, 20)
    yield grow("steps", [25, 50, 100, 200, 400], lambda steps: (rows, steps))
    yield grow("classes", [5, 10, 20, 40, 80], lambda classes: (simulated(50_000, 50, classes), STEPS))


def grow(what: str, sizes: list[int], make: Callable[[int], tuple[Table, int]]) -> Row:
    """Time full-data fits; the exponent is that of the larger half, where fixed costs no longer matter."""
    times = [fit_seconds(*make(size)) for size in sizes]
    half = len(sizes) // 2
    exponent = float(np.polyfit(np.log(sizes[half:]), np.log(times[half:]), 1)[0])
    raw: dict[str, Any] = {str(size): spent for size, spent in zip(sizes, times, strict=True)}
    case = f"{sizes[0]:,} to {sizes[-1]:,} {what}"
    return Row("growth", case, "exponent", exponent, "", LINEAR, "at most", raw=raw)


def fit_seconds(rows: Table, steps: int) -> float:
    classes = np.unique(rows.y)
    model = DPLogisticRegression(1.0, 1e-9, solver="full-admm", steps=steps, classes=classes)
    model.fit(rows.X, rows.y)
    return min(seconds(lambda: model.fit(rows.X, rows.y)) for _ in range(2))
