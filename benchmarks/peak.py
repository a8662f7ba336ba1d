"""Run by `benchmarks.memory` in a fresh process: fit one table and print how much memory that took.

`python -m benchmarks.peak {auto,full-admm,dp-sgd} KIND ...` prints {"input": bytes, "extra": bytes beyond what was
resident before `fit`, "peak": bytes, "seconds": wall time}; for kinds of tables see `KINDS`.
"""

from __future__ import annotations

import ctypes
import json
import os
import re
import resource
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from time import perf_counter

import numpy as np

from benchmarks.tables import Table, simulated, simulated_sparse
from dpadmm import DPLogisticRegression

SOLVERS: dict[str, dict[str, object]] = {
    "auto": {},
    "full-admm": {"solver": "full-admm", "steps": 5},
    "dp-sgd": {"solver": "dp-sgd", "steps": 500},
}
"""What each solver is given: the default nothing."""
FOR_TARGETS = ("auto", "full-admm")
MAPPED_FEATURES = 100
LARGEST_ALLOCATION = 8 << 30
"""A fit that copies a table larger than memory shall fail by itself, before the system kills something else."""


def main(solver: str, kind: str, *arguments: str) -> None:
    resource.setrlimit(resource.RLIMIT_DATA, (LARGEST_ALLOCATION, LARGEST_ALLOCATION))
    os.environ["DPADMM_KERNELS"] = "compiled"  # what a large table takes, so that its code is loaded before counting
    rows = KINDS[kind](*arguments)
    fit(solver, first_rows(rows, 2000))  # imports and compiles
    count_from_here()
    before, start = resident("VmRSS"), perf_counter()
    fit(solver, rows)
    seconds = perf_counter() - start
    peak = resident("VmHWM")
    print(json.dumps({"input": input_bytes(rows), "extra": peak - before, "peak": peak, "seconds": seconds}))


def dense(n_rows: str, n_features: str, dtype: str, classes: str = "2") -> Table:
    return simulated(int(n_rows), int(n_features), int(classes), np.dtype(dtype))


def sparse(n_rows: str, n_features: str, nonzeros: str, classes: str = "2") -> Table:
    return simulated_sparse(int(n_rows), int(n_features), int(nonzeros), int(classes))


def by_columns(*arguments: str) -> Table:
    rows = dense(*arguments)
    return replace(rows, X=np.asfortranarray(rows.X))


def long_indices(*arguments: str) -> Table:
    rows = sparse(*arguments)
    rows.X.indices, rows.X.indptr = (each.astype(np.int64) for each in (rows.X.indices, rows.X.indptr))
    return rows


def mapped(path: str) -> Table:
    """Rows stay on disk; the labels are in memory."""
    X = np.load(path, mmap_mode="r")
    return Table(X, np.arange(len(X)) % 2)


KINDS: dict[str, Callable[..., Table]] = {
    "dense": dense,
    "sparse": sparse,
    "by columns": by_columns,
    "long indices": long_indices,
    "mapped": mapped,
}


def first_rows(rows: Table, count: int) -> Table:
    return Table(rows.X[:count], rows.y[:count])


def fit(solver: str, rows: Table) -> None:
    classes = np.unique(rows.y[:1000])
    DPLogisticRegression(1.0, 1e-10, classes=classes, **SOLVERS[solver]).fit(rows.X, rows.y)


def count_from_here() -> None:
    """Give back what was freed, which `fit` could otherwise take without it being seen, and forget the peak so far."""
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")


def input_bytes(rows: Table) -> int:
    X = rows.X
    return int(X.nbytes if isinstance(X, np.ndarray) else X.data.nbytes + X.indices.nbytes + X.indptr.nbytes)


def resident(key: str) -> int:
    found = re.search(rf"{key}:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None
    return 1024 * int(found[1])


if __name__ == "__main__":
    main(*sys.argv[1:])
