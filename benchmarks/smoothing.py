"""What ring smoothing and cryptographic noise add to an iteration."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.iteration import STEPS, fit
from benchmarks.measure import alternate, seconds
from benchmarks.paths import COMPILED, on_path
from benchmarks.report import Row
from benchmarks.tables import Table, simulated, table
from dpadmm.problem.smoothers import RingLaplacian
from dpadmm.randomness import make_streams

NU = 10.0
TARGETS = {54: None, 784: 4.0, 100_000: 4.0}


def run(quick: bool) -> Iterator[Row]:
    for d, target in TARGETS.items():
        yield ring_and_transform(d, target)
    yield share("w8a CSR, batches of 20, d = 301", table("w8a"), 20)
    if not quick:
        yield share("simulated dense, batches of 50, d = 785", simulated(20_000, 784), 50)
    yield noise(301)


def ring_and_transform(d: int, target: float | None) -> Row:
    g = np.random.default_rng(0).normal(size=d)
    ring, transform = RingLaplacian(NU, "recursion"), RingLaplacian(NU, "fft")
    times = alternate({"ring": on_path(COMPILED, lambda: lambda: ring(g)), "rfft": lambda: transform(g)})
    raw = {f"{name}_us": 1e6 * spent for name, spent in times.items()}
    return Row("smoothing", f"d = {d}", "ring over rfft", times["rfft"] / times["ring"], target=target, raw=raw)


def share(case: str, rows: Table, batch_size: int) -> Row:
    """What an iteration takes longer because it smooths."""
    times = alternate(
        {
            "smoothed": on_path(COMPILED, lambda: fit(rows, batch_size, smoothing=NU)),
            "plain": on_path(COMPILED, lambda: fit(rows, batch_size)),
        },
        rounds=9,
    )
    raw = {f"{name}_us": 1e6 * spent / STEPS for name, spent in times.items()}
    value = 100 * (1 - times["plain"] / times["smoothed"])
    return Row("smoothing", case, "share of an iteration", value, "%", 5.0, "at most", rows.note, raw)


def noise(d: int) -> Row:
    stream = make_streams().noise
    draw = [seconds(lambda: stream.standard_normal((d,)), repeats=20_000) for _ in range(5)]
    value = 1e9 * float(np.median(draw)) / d
    return Row("smoothing", f"d = {d}", "cryptographic noise, a value", value, "ns", 25.0, "at most")
