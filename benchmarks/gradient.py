"""One clipped gradient over all rows: compiled, in NumPy, and the time it takes to read the table at all.

"NumPy" is the faster of two: the twin of the kernel, which maps raw rows on the way, and the plain two products on rows
mapped beforehand, which is the best that can be done with BLAS or SciPy but holds a second copy of the table.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np
from scipy.sparse import issparse
from scipy.special import expit, softmax
from threadpoolctl import threadpool_limits

from benchmarks.measure import WALL, Work, alternate, turns
from benchmarks.paths import COMPILED, NUMPY, on_path
from benchmarks.processes import required
from benchmarks.report import Row
from benchmarks.tables import Table, held, mapped, table
from dpadmm.privacy.questions import ClippedGradient
from dpadmm.privacy.sampling import Batch
from dpadmm.rows.norms import row_norms

CLIP = 0.5
PLAIN, READ, AT_ONCE = "plain", "read", "two at once"
PROCESSES = 7


@dataclass(frozen=True)
class Case:
    """A table, and what is wanted of one gradient over its rows."""

    title: str
    table: str
    speed_up: float
    of_bandwidth: float | None = None
    dtype: str = "float32"
    slow: bool = False


CASES = (
    Case("covtype f32", "covtype", 3.0, 60.0),
    Case("covtype f64", "covtype", 3.0, 60.0, "float64"),
    Case("mnist softmax f32", "mnist", 1.5),
    Case("w8a CSR", "w8a", 1.2),
    Case("wide CSR", "wide", 1.2, slow=True),
    Case("CSR softmax, 10 classes", "topics", 1.2, slow=True),
    Case("wide CSR softmax, 20 classes", "many topics", 1.2, slow=True),
)


def run(quick: bool) -> Iterator[Row]:
    cases = [case for case in CASES if not (quick and case.slow)]
    for case, found in in_turns(cases).items():
        yield from (sparse if "entries" in found[0] else dense)(case, found)


def in_turns(cases: list[Case]) -> dict[Case, list[dict[str, Any]]]:
    """What some fresh processes find in each case.

    Where the arrays and the machine code of a process come to lie is luck that lasts as long as it does, and is worth a
    tenth of a gradient. Cases take turns, because what else happens on a machine lasts for minutes.
    """
    found: dict[Case, list[dict[str, Any]]] = {case: [] for case in cases}
    for _ in range(PROCESSES):
        for case in cases:
            found[case].append(required("-m", "benchmarks.gradient", case.table, case.dtype))
    return found


def dense(case: Case, found: list[dict[str, Any]]) -> Iterator[Row]:
    yield over_numpy(case, found, "NumPy")
    share = median(100 * each["times"][READ] / each["times"][COMPILED] for each in found)
    yield Row("gradient", case.title, "share of read bandwidth", share, "%", case.of_bandwidth, note=found[0]["note"])


def sparse(case: Case, found: list[dict[str, Any]]) -> Iterator[Row]:
    note = found[0]["note"]
    yield over_numpy(case, found, "SciPy")
    entry = median(1e9 * each["times"][COMPILED] / each["entries"] for each in found)
    yield Row("gradient", case.title, "time a non-zero", entry, "ns", note=note)
    gain, worth = (median(each[what] for each in found) for what in ("gain", "worth"))
    seconds = medians(found, "threads")
    yield Row("gradient", case.title, "speed-up by a second thread", gain, "×", 1.7, note=note, raw=seconds)
    yield Row("gradient", case.title, "two gradients at once, over one by one", worth, "×", note=note, raw=seconds)


def over_numpy(case: Case, found: list[dict[str, Any]], name: str) -> Row:
    ratio, times = median(map(faster, found)), medians(found, "times")
    measure = f"speed-up over {name}"
    return Row("gradient", case.title, measure, ratio, "×", case.speed_up, note=found[0]["note"], raw=times)


def medians(found: list[dict[str, Any]], what: str) -> dict[str, float]:
    return {key: median(each[what][key] for each in found) for key in found[0][what]}


def faster(each: dict[str, Any]) -> float:
    return speed_up(each["times"])


def in_this_process(name: str, dtype: str) -> dict[str, Any]:
    """Times of one gradient by each contestant; of a sparse one also what a second thread gains."""
    rows = table(name)
    rows = rows if issparse(rows.X) else rows.as_dtype(np.dtype(dtype))
    found = {"times": contest(rows), "note": rows.note}
    if not issparse(rows.X):
        return found
    return {**found, "entries": rows.X.nnz, **second_thread(rows)}


def second_thread(rows: Table, rounds: int = 25) -> dict[str, Any]:
    """What a second thread gains, what the second processor is worth to two gradients at once, and the times.

    Both are medians over rounds in which one thread was measured right before: a processor that others want for a while
    spoils the rounds of that while, not the ratio.
    """
    alone, shared = (on_path(COMPILED, lambda: gradient(rows), count) for count in (1, 2))
    with ThreadPoolExecutor(1) as other:

        def at_once() -> None:
            there = other.submit(alone)
            alone()
            there.result()

        times = turns({"1": alone, "2": shared, AT_ONCE: at_once}, rounds, clock=WALL)
    gain, worth = (
        median(gradients * one / two for one, two in zip(times["1"], times[name], strict=True))
        for name, gradients in (("2", 1), (AT_ONCE, 2))
    )
    return {"gain": gain, "worth": worth, "threads": {name: median(each) for name, each in times.items()}}


def contest(rows: Table, rounds: int = 7) -> dict[str, float]:
    """Seconds of one gradient, one thread."""
    contestants = {path: on_path(path, lambda: gradient(rows)) for path in (COMPILED, NUMPY)}
    return alternate(contestants | {PLAIN: plain_gradient(rows), READ: read(rows)}, rounds)


def speed_up(times: dict[str, float]) -> float:
    return min(times[NUMPY], times[PLAIN]) / times[COMPILED]


def gradient(rows: Table) -> Work:
    """The gradient sum that an oracle asks its rows for."""
    private = held(rows)
    point, everything = start(private.space.point_shape), Batch(None)
    return lambda: private.ask(ClippedGradient(CLIP), (point,), everything)


def plain_gradient(rows: Table) -> Work:
    """What one would write: margins, slopes, clip, product, all in the precision of the rows, and everything that can
    be prepared prepared."""
    X, targets = mapped(rows), rows.targets
    peak, ratio = row_norms(X)
    norms = (peak * ratio).astype(X.dtype)
    several = targets.dtype.kind == "i"
    labels = np.eye(int(targets.max()) + 1, dtype=X.dtype)[targets] if several else targets.astype(X.dtype)
    point = start((X.shape[1], labels.shape[1]) if several else (X.shape[1],)).astype(X.dtype)

    def of_one() -> Any:
        slopes = -labels * expit(-labels * (X @ point))
        return X.T @ (slopes * np.minimum(1, CLIP / (np.abs(slopes) * norms)))

    def of_several() -> Any:
        slopes = softmax(X @ point, axis=1) - labels
        lengths = np.sqrt(np.einsum("rk,rk->r", slopes, slopes)) * norms
        return X.T @ (slopes * np.minimum(1, CLIP / lengths)[:, None])

    return of_several if several else of_one


def read(rows: Table) -> Work:
    """The table read once: a dot product with itself, which runs at the bandwidth of memory."""
    values = rows.X.data if issparse(rows.X) else rows.X.ravel()
    return lambda: values @ values


def start(shape: tuple[int, ...]) -> np.ndarray:
    """A point at which some rows are clipped and some are not."""
    return np.random.default_rng(1).normal(size=shape)


if __name__ == "__main__":
    with threadpool_limits(1):
        print(json.dumps(in_this_process(*sys.argv[1:])))
