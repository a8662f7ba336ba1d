"""One clipped gradient over all rows: compiled, in NumPy, and the time it takes to read the table at all.

"NumPy" is the faster of two: the twin of the kernel, which maps raw rows on the way, and the plain two products on rows
mapped beforehand, which is the best that can be done with BLAS or SciPy but holds a second copy of the table.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from statistics import median
from typing import Any

import numpy as np
from scipy.sparse import issparse
from scipy.special import expit, softmax
from threadpoolctl import threadpool_limits

from benchmarks.measure import WALL, Work, alternate, turns
from benchmarks.paths import COMPILED, NUMPY, on_path
from benchmarks.processes import in_fresh_process
from benchmarks.report import Row
from benchmarks.tables import Table, held, mapped, table
from dpadmm.privacy.clipping import clip_slopes
from dpadmm.privacy.sampling import Batch
from dpadmm.problem.norms import row_norms

CLIP = 0.5
PLAIN, READ, AT_ONCE = "plain", "read", "two at once"
PROCESSES = 5


def run(quick: bool) -> Iterator[Row]:
    yield from dense("covtype f32", "covtype", at_least=3.0, of_bandwidth=60.0)
    yield from dense("covtype f64", "covtype", "float64", at_least=3.0, of_bandwidth=60.0)
    yield from dense("mnist softmax f32", "mnist", at_least=1.5)
    yield from sparse("w8a CSR", "w8a")
    if not quick:
        yield from sparse("wide CSR", "wide")
        yield from sparse("CSR softmax, 10 classes", "topics")
        yield from sparse("wide CSR softmax, 20 classes", "many topics")


def dense(
    case: str, name: str, dtype: str = "float32", *, at_least: float, of_bandwidth: float | None = None
) -> Iterator[Row]:
    found, note = several(name, dtype)
    times = medians(found, "times")
    yield Row("gradient", case, "speed-up over NumPy", median(map(faster, found)), "×", at_least, note=note, raw=times)
    share = median(100 * each["times"][READ] / each["times"][COMPILED] for each in found)
    yield Row("gradient", case, "share of read bandwidth", share, "%", of_bandwidth, note=note)


def sparse(case: str, name: str) -> Iterator[Row]:
    found, note = several(name)
    times = medians(found, "times")
    yield Row("gradient", case, "speed-up over SciPy", median(map(faster, found)), "×", 1.2, note=note, raw=times)
    entry = median(1e9 * each["times"][COMPILED] / each["entries"] for each in found)
    yield Row("gradient", case, "time a non-zero", entry, "ns", note=note)
    gain, worth = (median(each[what] for each in found) for what in ("gain", "worth"))
    seconds = medians(found, "threads")
    yield Row("gradient", case, "speed-up by a second thread", gain, "×", 1.7, note=note, raw=seconds)
    yield Row("gradient", case, "two gradients at once, over one by one", worth, "×", note=note, raw=seconds)


def several(name: str, dtype: str = "float32") -> tuple[list[dict[str, Any]], str]:
    """What some fresh processes find, and a note on the table.

    Where the arrays and the machine code of a process come to lie is luck that lasts as long as it does, and is worth a
    tenth of a sparse gradient.
    """
    found = [in_fresh_process("-m", "benchmarks.gradient", name, dtype) for _ in range(PROCESSES)]
    if failed := [each["failed"] for each in found if "failed" in each]:
        raise RuntimeError(failed[0])
    return found, str(found[0]["note"])


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
    point, everything = start(private.point_shape), Batch(None)
    return lambda: private.gradient_sum(point, CLIP, everything)


def plain_gradient(rows: Table) -> Work:
    """What one would write: margins, slopes, clip, product, with everything that can be prepared prepared."""
    X, targets = mapped(rows), rows.targets
    peak, ratio = row_norms(X)
    norms = peak * ratio
    several = targets.dtype.kind == "i"
    one_hot = np.eye(int(targets.max()) + 1)[targets] if several else None
    point = start((X.shape[1], one_hot.shape[1]) if one_hot is not None else (X.shape[1],)).astype(X.dtype)

    def work() -> Any:
        margins = X @ point
        slopes = -targets * expit(-targets * margins) if one_hot is None else softmax(margins, axis=1) - one_hot
        return X.T @ clip_slopes(slopes, norms, CLIP).astype(X.dtype)

    return work


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
