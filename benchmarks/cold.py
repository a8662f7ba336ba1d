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
from time import process_time
from benchmarks.tables import simulated
from dpadmm import DPLogisticRegression
rows = simulated(30_000, 100, dtype="float64")
times = []
for _ in range(4):
    start = process_time()
    DPLogisticRegression(epsilon=1.0, delta=1e-6, classes=[0, 1]).fit(rows.X, rows.y)
    times.append(process_time() - start)
print(json.dumps({"first": times[0], "warm": sorted(times[1:])[1]}))
"""
IMPORT = """
import json
from time import process_time
start = process_time()
from {module} import {name}
print(json.dumps({{"seconds": process_time() - start}}))
"""


def run(quick: bool) -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as folder:
        caches = {"NUMBA_CACHE_DIR": f"{folder}/numba", "DPADMM_CACHE": f"{folder}/plans"}
        empty = in_fresh_process("-c", FIT, **caches)
        kept = in_fresh_process("-c", FIT, **caches)
        compiled = in_fresh_process("-c", FIT, **caches, DPADMM_KERNELS="compiled")
    yield Row("cold", CASE, "first fit, caches empty", empty["first"], "s", 3.0, "at most")
    yield Row("cold", CASE, "first fit, caches filled", kept["first"], "s")
    yield Row("cold", CASE, "first fit, kernels compiled although it is too short for them", compiled["first"], "s")
    yield Row("cold", CASE, "later fits", kept["warm"], "s", 0.3, "at most")
    yield imports(rounds=3 if quick else 9)


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
