"""What a fit keeps or makes for each row, beside the table: a few numbers, and nothing that passes."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from scipy import sparse

from dpadmm import DPLinearRegression, DPLogisticRegression

ROWS = 200_000
"""More than any block of rows, so that what is as long as a block does not count."""

NUMBER, LABEL, MASK = 8, 1, 1
FACTOR_AND_NORM = 2 * NUMBER
"""Of `auto` the norm in its coordinates: that of the table, the same for all rows, is stored once."""


def dense(n):
    return np.random.default_rng(0).random((n, 4), dtype=np.float32)


def csr(n):
    columns = np.arange(2 * n, dtype=np.int32) % 6
    values = np.random.default_rng(0).random(2 * n, dtype=np.float32)
    return sparse.csr_matrix((values, columns, np.arange(0, 2 * n + 1, 2, dtype=np.int32)), shape=(n, 6))


MODELS = {
    "two classes": (DPLogisticRegression, {"classes": [0, 1]}, LABEL),
    "three classes": (DPLogisticRegression, {"classes": [0, 1, 2]}, LABEL),
    "numbers": (DPLinearRegression, {}, NUMBER),
}


def peak(model, table):
    y = np.arange(table.shape[0]) % 2
    model.fit(table, y)  # once before: plans are remembered
    tracemalloc.start()
    model.fit(table, y)
    taken = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return taken


def bytes_a_row(model, make):
    return (peak(model, make(2 * ROWS)) - peak(model, make(ROWS))) / ROWS


@pytest.mark.parametrize("make", [dense, csr])
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("solver", ["full-admm", "auto"])
def test_a_row_takes_no_more_than_is_kept_of_it(solver, name, make, monkeypatch):
    monkeypatch.setenv("DPADMM_KERNELS", "numpy")
    estimator, declared, target = MODELS[name]
    model = estimator(1.0, 1e-10, solver=solver, steps=None if solver == "auto" else 2, random_state=0, **declared)
    assert bytes_a_row(model, make) < FACTOR_AND_NORM + target + MASK


@pytest.mark.parametrize("make", [dense, csr])
def test_weights_are_one_more_number_and_a_copy_of_it(make, monkeypatch):
    monkeypatch.setenv("DPADMM_KERNELS", "numpy")
    weights = {"classes": [0, 1], "class_weight": {0: 1.0, 1: 3.0}}
    model = DPLogisticRegression(1.0, 1e-10, solver="full-admm", steps=2, random_state=0, **weights)
    assert bytes_a_row(model, make) < FACTOR_AND_NORM + LABEL + 3 * NUMBER
