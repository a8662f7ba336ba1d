"""A slowdown fails here: ratios of compiled kernels to NumPy, never seconds, with room for a busy machine.

Gates lie between 60 % of the target of docs/performance.md and the target, no kernel may be slower than NumPy or SciPy,
the gate of the import is more than half above its target, and that of memory a tenth of the table.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from time import process_time

import numpy as np
import pytest

from benchmarks import cold, gradient, iteration, memory, smoothing
from benchmarks.processes import required
from benchmarks.tables import Table, simulated, simulated_sparse, uneven
from dpadmm import kernels
from dpadmm.privacy.questions import FeatureMoment
from dpadmm.problem.losses import Logistic
from dpadmm.problem.rowmap import RowMap
from dpadmm.rows.local import LocalRows
from dpadmm.rows.packed import PackedRows
from tests.asking import EVERY_ROW

ATTEMPTS = 3


def best(measure: Callable[[], float | None], gate: float) -> float:
    """The best of a few attempts: noise makes ratios worse more often than better."""
    found = 0.0
    for _ in range(ATTEMPTS):
        found = max(found, measure() or 0.0)
        if found >= gate:
            break
    return found


@pytest.mark.parametrize(
    ("rows", "gate"),
    [
        pytest.param(lambda: simulated(200_000, 54), 2.2, id="dense f32"),
        pytest.param(lambda: simulated(200_000, 54, dtype=np.float64), 2.0, id="dense f64"),
        pytest.param(lambda: simulated(10_000, 784, classes=10), 1.2, id="softmax"),
        pytest.param(lambda: uneven(50_000, 300, 12), 1.2, id="CSR"),
        pytest.param(lambda: simulated_sparse(50_000, 300, 40), 1.0, id="CSR, longer rows"),
        pytest.param(lambda: simulated_sparse(10_000, 5_000, 75, classes=10), 1.1, id="CSR softmax"),
    ],
)
def test_full_gradient(rows: Callable[[], Table], gate: float) -> None:
    table = rows()
    assert best(lambda: gradient.speed_up(gradient.contest(table, rounds=3)), gate) >= gate


def test_moments_and_coordinates_of_sparse_rows() -> None:
    """Entry by entry, against the same rows made dense."""
    X = PackedRows.of(RowMap(), simulated_sparse(20_000, 300, 12).X)
    dense = PackedRows.of(RowMap(), X.X.toarray())
    matrix, gate = np.eye(301), 1.5

    def seconds(packed: PackedRows) -> float:
        rows = LocalRows(packed, np.ones(X.n_rows, np.int8), Logistic())
        start = process_time()
        rows.ask(FeatureMoment(), (), EVERY_ROW)
        rows.transformed(matrix)
        return process_time() - start

    with kernels.use("compiled"):
        seconds(X)  # compiles
        assert best(lambda: seconds(dense) / seconds(X), gate) >= gate


@pytest.mark.parametrize(
    ("rows", "batch_size", "gate"),
    [
        pytest.param(lambda: simulated(200_000, 54), 50, 3.6, id="dense, 54 features"),
        pytest.param(lambda: uneven(50_000, 300, 12).dense(), 20, 2.4, id="dense, 300 features"),
        pytest.param(lambda: uneven(50_000, 300, 12), 20, 4.8, id="CSR"),
    ],
)
def test_iteration(rows: Callable[[], Table], batch_size: int, gate: float) -> None:
    table = rows()
    assert best(lambda: iteration.compare("", table, batch_size, gate, rounds=3).value, gate) >= gate


def test_ring_beats_the_transform() -> None:
    gate = 2.8
    assert best(lambda: smoothing.ring_and_transform(784, gate).value, gate) >= gate


def test_noise_takes_a_small_part_of_an_iteration() -> None:
    """Less than half of it: 25 ns a value would be the third of an iteration of 300 features."""
    raw = smoothing.noise("", uneven(50_000, 300, 12), 20, rounds=5).raw
    assert raw["at hand_us"] > raw["drawn_us"] / 2


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="the peak of a process is counted on Linux")
@pytest.mark.parametrize(
    "table",
    [("dense", "200000", "100", "float32"), ("dense", "100000", "100", "float64"), ("sparse", "100000", "20000", "75")],
    ids=["f32", "f64", "CSR"],
)
def test_no_copy_of_the_table_is_made(table: tuple[str, ...]) -> None:
    """Full-data solvers keep some bytes a row; tables of this size are too small for what else `auto` takes."""
    row = memory.over_input("", required("-m", "benchmarks.peak", "full-admm", *table))
    assert row.value is not None
    assert row.value <= 1.4


def test_import_stays_near_that_of_scikit_learn() -> None:
    at_most = 2.0
    assert best(lambda: 1 / (cold.imports(rounds=1).value or np.inf), 1 / at_most) >= 1 / at_most
