"""Rows on an accelerator beside the same rows in memory: equal sums, bounded movements, and how long they take.

    PYTHONPATH=src python -m experiments.gpu              # on a machine with a CUDA device
    PYTHONPATH=src python -m experiments.gpu --device cpu --quick

It needs NumPy, SciPy and PyTorch and nothing else. Where the other dependencies of the library are installed too, whole
fits are compared as well. It ends with status 1 if anything differs by more than rounding.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpadmm.privacy.arithmetic import summation_error
from dpadmm.privacy.questions import (
    ClippedGradient,
    FeatureMoment,
    GradientDifference,
    JointMoments,
    RowMoments,
    SecondMoment,
)
from dpadmm.privacy.sampling import Batch
from dpadmm.problem.losses import Huber, HuberisedHinge, Logistic, Softmax, Squared
from dpadmm.problem.losses.base import Loss
from dpadmm.problem.rowmap import RowMap
from dpadmm.problem.spiked_map import SpikedMap
from dpadmm.rows.local import LocalRows
from dpadmm.rows.packed import PackedRows
from dpadmm.rows.torch_rows import TorchRows, _margins
from dpadmm.rows.torch_table import folded, pack_tensor, require_double_precision
from tests.asking import EVERY_ROW, below_sums, moment_sums, row_moment_sums

Array = NDArray[np.float64]
Check = tuple[str, float, float]

LOSSES: list[Loss] = [Logistic(), HuberisedHinge(), Squared(), Huber(0.5), Softmax(3)]
CLIP = 0.4


def targets(loss: Loss, rng: np.random.Generator, n: int) -> NDArray[Any]:
    if isinstance(loss, Softmax):
        return rng.integers(0, loss.n_classes, n)
    return rng.choice([-1.0, 1.0], n) if isinstance(loss, (Logistic, HuberisedHinge)) else rng.standard_normal(n)


def both(X: NDArray[Any], y: NDArray[Any], loss: Loss, rowmap: RowMap, device: str) -> tuple[LocalRows, TorchRows]:
    import torch

    with np.errstate(all="ignore"):
        here = LocalRows(PackedRows.of(rowmap, X), y, loss, rowmap.row_norm)
    return here, TorchRows(pack_tensor(rowmap, torch.tensor(X, device=device)), y, loss, rowmap.row_norm)


def distance(one: Any, two: Any) -> float:
    """Largest relative distance of two answers."""
    parts = zip(one, two, strict=True) if isinstance(one, tuple) else [(one, two)]
    return max(
        float(np.linalg.norm(a - b) / max(1.0, float(np.linalg.norm(a)))) if np.size(a) else 0.0 for a, b in parts
    )


def answers(device: str, n: int, d: int) -> Iterator[Check]:
    """(what, distance between device and memory, allowed)."""
    rng = np.random.default_rng(0)
    raw = rng.standard_normal((n, d)) * 10.0 ** rng.integers(-2, 3, (n, 1))
    maps = {"plain": RowMap(2.0, False), "bounds": RowMap.declare(2.0, True, (-1.0, 1.0), d)}
    for loss in LOSSES:
        for name, rowmap in maps.items():
            here, there = both(raw, targets(loss, rng, n), loss, rowmap, device)
            width = here.space.n_features
            x, anchor = (rng.standard_normal(here.space.point_shape) for _ in range(2))
            matrix = np.linalg.qr(rng.standard_normal((width, width)))[0] * rng.uniform(0.5, 2, width)
            spiked = SpikedMap(rng.uniform(0.5, 2, width), rng.standard_normal(width), 3.0)
            drawn = Batch(rng.permutation(n)[: n // 2], rng.integers(0, 2, n // 2).astype(float))
            moments, parts = JointMoments(0.3, loss.outputs, 0.5), RowMoments(1.0, 0.1, 0.1, loss.outputs, 0.5)
            questions: dict[str, Callable[[Any], Any]] = {
                "gradient": lambda rows, x=x: rows.ask(ClippedGradient(CLIP), (x,), Batch(None)),
                "mini-batch": lambda rows, x=x, drawn=drawn: rows.ask(ClippedGradient(CLIP), (x,), drawn),
                "difference": lambda rows, x=x, a=anchor: rows.ask(
                    GradientDifference(2 * CLIP), (x, a, 0.1), Batch(None)
                ),
                "coordinates": lambda rows, x=x, m=matrix: rows.transformed(m).ask(
                    ClippedGradient(CLIP), (x,), Batch(None)
                ),
                "spiked": lambda rows, x=x, s=spiked: rows.transformed(s).ask(ClippedGradient(CLIP), (x,), Batch(None)),
                "second moment": lambda rows, m=matrix: rows.transformed(m).ask(SecondMoment(), (), EVERY_ROW),
                "moments": lambda rows, s=moments: moment_sums(rows, s),
                "row moments": lambda rows, s=parts: row_moment_sums(rows, s),
                "feature moment": lambda rows: rows.ask(FeatureMoment(), (), EVERY_ROW),
                "counts": lambda rows, d=d: below_sums(rows, np.zeros((2, d))),
            }
            for what, ask in questions.items():
                yield f"{loss.name} {name} {what}", distance(ask(here), ask(there)), 1e-10


def movements(device: str, n: int) -> Iterator[Check]:
    """How far a replaced row moves a sum, in units of the clip; at most 2, also for rows of wild sizes."""
    rng = np.random.default_rng(1)
    for loss in LOSSES:
        worst = 0.0
        for _ in range(20):
            X = rng.standard_normal((n, 3)) * 10.0 ** rng.integers(-8, 8, (n, 1))
            X[1] = rng.choice([0.0, np.nan, np.inf, 1e300], 3)
            y, x = targets(loss, rng, n), rng.standard_normal((4, loss.outputs)).squeeze() * rng.choice([0, 1, 1e20])
            other, other_y = X.copy(), np.roll(y, 1)
            other[0] = -X[0]
            tables = ((X, y), (other, np.r_[other_y[:1], y[1:]]))
            pair = [both(*table, loss, RowMap(), device)[1] for table in tables]
            sums = [rows.ask(ClippedGradient(CLIP), (x,), Batch(None)) for rows in pair]
            worst = max(worst, float(np.linalg.norm(sums[0] - sums[1])) / CLIP)
        yield f"{loss.name} moved by a replaced row", worst, 2.0 * (1 + summation_error(n, 4))


def places(device: str) -> Iterator[Check]:
    """Rows whose margin changes, in its last bit, when another row is taken away. There must be none."""
    import torch

    rng = np.random.default_rng(2)
    for n, d in ((52, 40), (37, 5), (9, 130), (1030, 785)):
        raw = rng.standard_normal((n, d))
        raw[:, -1] -= raw.sum(axis=1)
        rows, point = torch.tensor(raw, device=device), torch.full((d, 3), 1 / 3, dtype=torch.float64, device=device)
        whole, squares, changed = _margins(rows, point), folded(rows**2), 0
        for gone in range(0, n, max(1, n // 30)):
            rest = torch.cat([rows[:gone], rows[gone + 1 :]])
            changed += int((_margins(rest, point) != torch.cat([whole[:gone], whole[gone + 1 :]])).sum())
            changed += int((folded(rest**2) != torch.cat([squares[:gone], squares[gone + 1 :]])).sum())
        yield f"margins of {n} × {d} that depend on a neighbour", float(changed), 0.0
        exps = torch.tensor(-np.abs(rng.standard_normal(n)), device=device)
        alone = torch.cat([torch.exp(exps[i : i + 1]) for i in range(n)])
        yield f"exponentials of {n} that depend on a neighbour", float((torch.exp(exps) != alone).sum()), 0.0


def fits(device: str) -> Iterator[Check]:
    """Seeded fits; the noise is the same, so that models differ by rounding, or by a cell of the grid."""
    import torch

    rng = np.random.default_rng(3)
    X = rng.uniform(-1, 1, (5000, 6))
    y = (X[:, 0] > 0).astype(int)
    for solver in ("auto", "full-admm", "dp-sadmm"):
        try:
            from dpadmm import DPLogisticRegression

            model = DPLogisticRegression(1.0, 1e-6, solver=solver, steps=10, classes=[0, 1], random_state=0)
            expected = model.fit(X, y).weights_
        except ImportError as missing:
            print(f"no fit with {solver}: {missing.name} is not installed")
            continue
        found = model.fit(torch.tensor(X, device=device), torch.tensor(y, device=device)).weights_
        yield f"fit with {solver}", distance(expected, found), 1e-7


def timings(device: str, quick: bool) -> Iterator[tuple[str, float, float]]:
    """(what, milliseconds in memory with NumPy's kernels, milliseconds on the device)."""
    rng = np.random.default_rng(4)
    few = 20 if quick else 1
    cases: list[tuple[int, int, Loss, Any]] = [
        (581_012 // few, 54, Logistic(), np.float32),
        (581_012 // few, 54, Logistic(), np.float64),
        (60_000 // few, 784, Softmax(10), np.float32),
        (4_000_000 // few, 100, Logistic(), np.float32),
    ]
    for n, d, loss, dtype in cases:
        name = f"{n} × {d} {loss.name}, {np.dtype(dtype)}"
        X, y = rng.random((n, d), dtype=np.float32).astype(dtype), targets(loss, rng, n)
        here, there = both(X, y, loss, RowMap(), device)
        x = np.zeros(here.space.point_shape)
        batch = Batch(rng.permutation(n)[:1000])
        questions: dict[str, Callable[[Any], Any]] = {
            "gradient": lambda rows, x=x: rows.ask(ClippedGradient(CLIP), (x,), Batch(None)),
            "mini-batch of 1000": lambda rows, x=x, batch=batch: rows.ask(ClippedGradient(CLIP), (x,), batch),
            "second moment": lambda rows: rows.ask(SecondMoment(), (), EVERY_ROW),
        }
        for what, ask in questions.items():
            yield f"{what}, {name}", _milliseconds(here, ask), _milliseconds(there, ask)


def _milliseconds(rows: Any, ask: Callable[[Any], Any], repeats: int = 5) -> float:
    ask(rows)
    taken = []
    for _ in range(repeats):
        start = time.perf_counter()
        ask(rows)
        taken.append(time.perf_counter() - start)
    return 1000 * statistics.median(taken)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--quick", action="store_true", help="small tables")
    chosen = parser.parse_args()
    import torch

    device = torch.device(chosen.device)
    require_double_precision(device)
    shown = torch.cuda.get_device_name(device) if device.type == "cuda" else device.type
    print(f"torch {torch.__version__} on {shown}\n")
    checks = [*answers(chosen.device, 2000 if chosen.quick else 40_000, 7), *movements(chosen.device, 5)]
    checks += [*places(chosen.device), *fits(chosen.device)]
    failed = [check for check in checks if not check[1] <= check[2]]
    for what, found, allowed in failed:
        print(f"FAILED: {what}: {found:.3g}, allowed {allowed:.3g}")
    worst = max(found for _, found, allowed in checks if allowed == 1e-10)
    print(f"{len(checks) - len(failed)} of {len(checks)} checks passed; largest relative distance {worst:.1e}\n")
    print("| sum | in memory, NumPy kernels (ms) | on the device (ms) | ratio |\n|---|---|---|---|")
    for what, here, there in timings(chosen.device, chosen.quick):
        print(f"| {what} | {here:.2f} | {there:.2f} | {here / there:.1f} |")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
