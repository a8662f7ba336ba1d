"""The first fit of a fresh process, with and without machine code kept on disk, and the time of the import."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from statistics import median

from benchmarks.processes import in_fresh_process
from benchmarks.report import Row

CASE = "30,000 × 100, defaults"
FIT = """
import json
from time import perf_counter
from benchmarks.tables import simulated
from dpadmm import DPLogisticRegression
rows = simulated(30_000, 100, dtype="float64")
times = []
for _ in range(4):
    start = perf_counter()
    DPLogisticRegression(epsilon=1.0, delta=1e-6, classes=[0, 1]).fit(rows.X, rows.y)
    times.append(perf_counter() - start)
print(json.dumps({"first": times[0], "later": sorted(times[1:])[1]}))
"""
IMPORT = """
import json
from time import process_time
start = process_time()
from {module} import {name}
print(json.dumps({{"seconds": process_time() - start}}))
"""


def run(quick: bool) -> Iterator[Row]:
    found = [fits() for _ in range(1 if quick else 3)]
    for measure, (target, key) in MEASURES.items():
        yield Row("cold", CASE, measure, median(each[key] for each in found), "s", target, "at most")
    yield imports(rounds=3 if quick else 9)


MEASURES: dict[str, tuple[float | None, str]] = {
    "first fit, caches empty": (3.0, "empty"),
    "first fit, caches filled": (None, "filled"),
    "later fits": (0.3, "later"),
    "first fit, made to compile every kernel it uses": (None, "compiling"),
    "first fit, made to load them": (None, "loading"),
}


def fits() -> dict[str, float]:
    """Seconds on the wall. So short a fit neither compiles nor loads machine code unless it is made to."""
    with tempfile.TemporaryDirectory() as folder:
        caches = {"NUMBA_CACHE_DIR": f"{folder}/numba", "DPADMM_CACHE": f"{folder}/plans"}
        empty = in_fresh_process("-c", FIT, **caches)
        filled = in_fresh_process("-c", FIT, **caches)
    with tempfile.TemporaryDirectory() as folder:
        made = {"NUMBA_CACHE_DIR": f"{folder}/numba", "DPADMM_CACHE": f"{folder}/plans", "DPADMM_KERNELS": "compiled"}
        compiling = in_fresh_process("-c", FIT, **made)
        loading = in_fresh_process("-c", FIT, **made)
    return {
        "empty": empty["first"],
        "filled": filled["first"],
        "later": filled["later"],
        "compiling": compiling["first"],
        "loading": loading["first"],
    }


def imports(rounds: int) -> Row:
    ours, theirs = [], []
    for _ in range(rounds):
        ours.append(import_seconds("dpadmm", "DPLogisticRegression"))
        theirs.append(import_seconds("sklearn.linear_model", "LogisticRegression"))
    raw = {"dpadmm_s": median(ours), "sklearn_s": median(theirs)}
    ratio = median(ours) / median(theirs)
    return Row("cold", "import", "of scikit-learn's import", ratio, target=1.2, sense="at most", raw=raw)


def import_seconds(module: str, name: str) -> float:
    return float(in_fresh_process("-c", IMPORT.format(module=module, name=name))["seconds"])
