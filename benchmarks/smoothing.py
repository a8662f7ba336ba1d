"""What ring smoothing and cryptographic noise add to an iteration."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import cache, partial
from statistics import median
from typing import Any

import numpy as np
from scipy import fft
from threadpoolctl import threadpool_limits

from benchmarks.iteration import STEPS, fit
from benchmarks.measure import alternate, turns
from benchmarks.paths import COMPILED, on_path
from benchmarks.processes import required
from benchmarks.report import Row
from benchmarks.tables import Table, held, simulated, table
from dpadmm import kernels
from dpadmm.problem.smoothers import RingLaplacian
from dpadmm.problem.smoothers.ring import ring_eigenvalues
from dpadmm.randomness import make_streams

NU = 10.0
PROCESSES = 7
SIMULATED = "simulated"
TARGETS = {54: None, 784: 4.0, 100_000: 4.0}


def run(quick: bool) -> Iterator[Row]:
    for d, target in TARGETS.items():
        yield ring_and_transform(d, target)
    yield share("w8a CSR, batches of 20, d = 301", "w8a", 20)
    if not quick:
        yield share("simulated dense, batches of 50, d = 785", SIMULATED, 50)
    yield noise("w8a CSR, batches of 20, d = 301", table("w8a"), 20)


def ring_and_transform(d: int, target: float | None) -> Row:
    """The kernel of the recursion against two transforms and a division, whose divisor is prepared."""
    g, ring = np.random.default_rng(0).normal(size=d), RingLaplacian(NU)
    eigenvalues, smoothed = ring_eigenvalues(NU, d), np.empty(d)
    with kernels.use(COMPILED) as compiled:
        recursion = partial(compiled.ring, g, ring.decay, ring.gain, smoothed)
        times = alternate({"ring": recursion, "rfft": lambda: fft.irfft(fft.rfft(g) / eigenvalues, n=d)})
    raw = {f"{name}_us": 1e6 * spent for name, spent in times.items()}
    return Row("smoothing", f"d = {d}", "ring over rfft", times["rfft"] / times["ring"], target=target, raw=raw)


def share(case: str, name: str, batch_size: int) -> Row:
    """What an iteration takes longer because it smooths, in the median of some fresh processes: see `gradient`."""
    found = [required("-m", "benchmarks.smoothing", name, str(batch_size)) for _ in range(PROCESSES)]
    raw = {f"{kind}_us": median(each[kind] for each in found) for kind in ("smoothed", "plain")}
    value = median(each["share"] for each in found)
    return Row("smoothing", case, "share of an iteration", value, "%", 5.0, "at most", found[0]["note"], raw)


def in_this_process(name: str, batch_size: int) -> dict[str, Any]:
    """Microseconds of an iteration of each kind, and the share of smoothing, a median over rounds of both."""
    rows = simulated(20_000, 784) if name == SIMULATED else table(name)
    times = turns(
        {
            "smoothed": on_path(COMPILED, lambda: fit(rows, batch_size, smoothing=NU)),
            "plain": on_path(COMPILED, lambda: fit(rows, batch_size)),
        },
        rounds=15,
    )
    found = {kind: 1e6 * median(spent) / STEPS for kind, spent in times.items()}
    ratios = [plain / smoothed for smoothed, plain in zip(*times.values(), strict=True)]
    return {**found, "share": 100 * (1 - median(ratios)), "note": rows.note}


def noise(case: str, rows: Table, batch_size: int, rounds: int = 15) -> Row:
    """What an iteration takes longer because its noise is drawn and not at hand already, for each value."""
    contestants = {
        "drawn": on_path(COMPILED, lambda: fit(rows, batch_size)),
        "at hand": on_path(COMPILED, lambda: fit(rows, batch_size, streams=replace(make_streams(), noise=AtHand()))),
    }
    times = turns(contestants, rounds)
    drawn = [1e9 * (long - short) / STEPS for long, short in zip(*times.values(), strict=True)]
    raw = {f"{name}_us": 1e6 * median(spent) / STEPS for name, spent in times.items()}
    value = median(drawn) / held(rows).space.n_features
    return Row(
        "smoothing", case, "cryptographic noise in the loop, a value", value, "ns", 25.0, "at most", rows.note, raw
    )


class AtHand:
    """The same normals again and again."""

    def __init__(self) -> None:
        self._normals = cache(np.random.default_rng(0).standard_normal)

    def standard_normal(self, shape: tuple[int, ...]) -> Any:
        return self._normals(shape)


if __name__ == "__main__":
    with threadpool_limits(1):
        print(json.dumps(in_this_process(sys.argv[1], int(sys.argv[2]))))
