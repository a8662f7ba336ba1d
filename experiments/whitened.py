"""DP-GD that an oracle has tuned, in the given coordinates and in privately whitened ones.

`auto` is compared with it in docs/accuracy.md. Given coordinates: mean clipped gradients of all rows with Gaussian
noise, momentum, and the average of the last iterates. Whitened ones: first a share of the budget (of μ²) buys a noisy
second moment M of the rows; rows become W·row with W = (M + κI)^(−½), κ a multiple of the noise of M, and clip, noise
and step are those of the whitened rows. The whole budget is μ of one Gaussian release, spent exactly
(docs/proofs/gaussian.md; the second moment has sensitivity √2/n, docs/proofs/sensitivity.md).

Share, κ, clip, travel and average are chosen by mean TEST accuracy on a few seeds: no user can choose like this. The
score is that of other seeds, so that the choice is unfair and its luck with the noise is not.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import expit, softmax
from sklearn.metrics import roc_auc_score

from dpadmm.files import replacing
from dpadmm.privacy.accountants.gaussian import gaussian_shift
from dpadmm.problem.rowmap import RowMap
from experiments.accuracy import DATASETS, EPSILONS, delta_for
from experiments.common import train_test

Array = np.ndarray
Score = tuple[float, float | None]
DISTANCE = 2.0
"""Replace-one: a replaced row takes its contribution away and adds another."""
STEPS, MOMENTUM = 60, 0.9
AVERAGED = (0.5, 0.2)
"""Shares of the iterates at the end that are averaged."""
SETTINGS_AT_A_TIME = 12


@dataclass(frozen=True)
class Coordinates:
    """Share of μ² for the second moment, and κ in units of the norm of its noise; share 0 leaves rows as they are."""

    share: float = 0.0
    floor: float = 1.0


@dataclass(frozen=True)
class Descent:
    """The clip in units of a typical row, and the travel Σ s/(1 − m) in units of one over the largest curvature."""

    clip: float
    travel: float


COORDINATES = (Coordinates(), *(Coordinates(*each) for each in itertools.product((0.1, 0.2, 0.4), (0.5, 2.0))))
DESCENTS = tuple(
    Descent(*each) for each in itertools.product((0.125, 0.25, 0.5, 1.0), (1.0, 3.0, 10.0, 30.0, 100.0, 300.0))
)


@dataclass(frozen=True)
class Setting:
    """One point of the grid."""

    coordinates: Coordinates
    descent: Descent
    averaged: float


GRID = tuple(Setting(*each) for each in itertools.product(COORDINATES, DESCENTS, AVERAGED))


@dataclass(frozen=True, eq=False)
class Table:
    """Mapped rows as estimators map them, with the labels as numbers of classes."""

    rows: Array
    labels: Array
    new_rows: Array
    new_labels: Array
    classes: int

    @classmethod
    def of(cls, rows: tuple[Any, Array, Any, Array]) -> Table:
        X, y, X_new, y_new = rows
        known = np.unique(y)
        mapped = [_dense(RowMap(intercept=True).apply(each)) for each in (X, X_new)]
        labels, new_labels = (np.searchsorted(known, each) for each in (y, y_new))
        return cls(mapped[0], labels, mapped[1], new_labels, len(known))

    @property
    def columns(self) -> int:
        """Margins of a row: one for two classes."""
        return 1 if self.classes == 2 else self.classes


def _dense(rows: Any) -> Array:
    return (rows.toarray() if sparse.issparse(rows) else rows).astype(np.float32)


def whitening(table: Table, mu: float, chosen: Coordinates, rng: np.random.Generator) -> Array:
    """W of a noisy second moment."""
    n, d = table.rows.shape
    deviation = math.sqrt(2) / (n * mu * math.sqrt(chosen.share))
    noise = rng.normal(0.0, deviation, (d, d))
    second = table.rows.T.astype(np.float64) @ table.rows / n + (noise + noise.T) / 2
    values, vectors = np.linalg.eigh(second)
    floor = chosen.floor * deviation * math.sqrt(2 * d)
    return vectors / np.sqrt(np.maximum(values, 0.0) + floor) @ vectors.T


def slopes(margins: Array, labels: Array) -> Array:
    """Derivatives of the logistic or softmax loss by the margins: (rows, columns, settings)."""
    if margins.shape[1] == 1:
        return expit(margins) - labels[:, None, None].astype(np.float32)
    answers = softmax(margins, axis=1)
    answers[np.arange(len(labels)), labels] -= 1
    return answers


def descend(
    rows: Array, labels: Array, columns: int, mu: float, tried: Sequence[Descent], rng: np.random.Generator
) -> list[Array]:
    """Averaged iterates of noisy descent, all settings at once: (features, columns, settings) for each share."""
    n, d = rows.shape
    lengths = np.linalg.norm(rows, axis=1)
    clips = np.array([each.clip for each in tried], dtype=np.float32) * math.sqrt(np.mean(lengths**2))
    curvature = 0.25 * float(np.linalg.eigvalsh(rows.T @ rows / n)[-1])
    steps = np.array([each.travel for each in tried], dtype=np.float32) * ((1 - MOMENTUM) / STEPS / curvature)
    noise = noise_widths(clips, n, mu)
    point = np.zeros((d, columns, len(tried)), dtype=np.float32)
    velocity, sums = np.zeros_like(point), [np.zeros_like(point) for _ in AVERAGED]
    for step in range(STEPS):
        gradient = clipped_mean(rows, lengths, slopes(np.tensordot(rows, point, 1), labels), clips)
        velocity = MOMENTUM * velocity + gradient + noise * rng.standard_normal(point.shape, dtype=np.float32)
        point = point - steps * velocity
        for share, total in zip(AVERAGED, sums, strict=True):
            if step >= (1 - share) * STEPS:
                total += point
    return sums


def noise_widths(clips: Array, n_rows: int, mu: float) -> Array:
    """Standard deviation of the noise on each of STEPS mean gradients that spend μ together."""
    return DISTANCE * clips * math.sqrt(STEPS) / (n_rows * mu)


def clipped_mean(rows: Array, lengths: Array, slope: Array, clips: Array) -> Array:
    """Mean over rows of slope ⊗ row, each clipped to norm at most its setting's clip."""
    norms = np.linalg.norm(slope, axis=1) * lengths[:, None]
    slope *= np.minimum(1.0, clips / np.maximum(norms, 1e-12))[:, None, :]
    return np.tensordot(rows.T, slope, 1) / len(rows)


def scores(table: Table, mu: float, tried: Sequence[Setting], seed: int) -> dict[Setting, Score]:
    """Test accuracy and AUC of each setting; those in the same coordinates see the same second moment."""
    found: dict[Setting, Score] = {}
    for number, coordinates in enumerate(COORDINATES):
        mine = [each for each in tried if each.coordinates == coordinates]
        descents = sorted({each.descent for each in mine}, key=str)
        rng = np.random.default_rng([seed, number])
        rows, new_rows = in_coordinates(table, mu, coordinates, rng) if mine else (table.rows, table.new_rows)
        left = mu * math.sqrt(1 - coordinates.share)
        for begin in range(0, len(descents), SETTINGS_AT_A_TIME):
            some = descents[begin : begin + SETTINGS_AT_A_TIME]
            sums = descend(rows, table.labels, table.columns, left, some, rng)
            for share, total in zip(AVERAGED, sums, strict=True):
                for place, descent in enumerate(some):
                    setting = Setting(coordinates, descent, share)
                    if setting in mine:
                        found[setting] = score(new_rows @ total[:, :, place], table)
    return found


def in_coordinates(table: Table, mu: float, chosen: Coordinates, rng: np.random.Generator) -> tuple[Array, Array]:
    """Rows and new rows, in the coordinates chosen."""
    if not chosen.share:
        return table.rows, table.new_rows
    matrix = whitening(table, mu, chosen, rng).astype(np.float32)
    return table.rows @ matrix, table.new_rows @ matrix


def score(margins: Array, table: Table) -> Score:
    """Accuracy, and AUC of two classes; of weights that ran away, nothing."""
    if not np.isfinite(margins).all():
        return 0.0, None
    if table.columns > 1:
        return float(np.mean(margins.argmax(axis=1) == table.new_labels)), None
    accuracy = float(np.mean((margins[:, 0] > 0) == table.new_labels))
    return accuracy, float(roc_auc_score(table.new_labels, margins[:, 0]))


# Which setting, and how it does with other noise.

RESULTS = Path("results/whitened.json")
PLAIN, WHITENED = "dp-gd, tuned", "whitened dp-gd, tuned"
KINDS: dict[str, Callable[[Setting], bool]] = {
    PLAIN: lambda setting: setting.coordinates.share == 0,
    WHITENED: lambda setting: setting.coordinates.share > 0,
}
CHOSEN_BY, SHOWN = 3, 10
"""Seeds that choose a setting, and further seeds that its score is shown of."""
FEWER = {"w8a": (2, 10), "covtype": (2, 5), "bio_train": (2, 10), "mnist": (1, 2)}
FIRST_SHOWN = 100
MNIST_GRID = tuple(
    Setting(Coordinates(*at), Descent(clip, travel), share)
    for at in ((0.0, 1.0), (0.2, 0.5), (0.4, 0.5))
    for clip, travel, share in itertools.product((0.25, 0.5), (10.0, 30.0, 100.0, 300.0), AVERAGED)
)


def grid_for(name: str) -> tuple[Setting, ...]:
    """All settings; a few where each takes long."""
    return MNIST_GRID if name == "mnist" else GRID


def cached(results: dict[str, Any], key: str, compute: Callable[[], Any]) -> Any:
    """The stored result, or a new one that is stored at once."""
    if key not in results:
        results[key] = compute()
        RESULTS.parent.mkdir(exist_ok=True)
        with replacing(RESULTS) as stream:
            stream.write(json.dumps(results, sort_keys=True).encode())
    return results[key]


def best_setting(results: dict[str, Any], name: str, epsilon: float, kind: str) -> Setting:
    """The best by mean test accuracy on the seeds that choose."""
    grid, (seeds, _) = grid_for(name), FEWER.get(name, (CHOSEN_BY, SHOWN))
    means = np.mean([results[f"{name}|{epsilon}|grid|{seed}"] for seed in range(seeds)], axis=0)
    _, place = max((mean, place) for place, mean in enumerate(means) if KINDS[kind](grid[place]))
    return grid[place]


def collect(names: Sequence[str], epsilons: Sequence[float]) -> dict[str, Any]:
    """Scores of every setting with few seeds, and of the chosen ones with others."""
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for name in names:
        rows = train_test(name)
        table, n = Table.of(rows), len(rows[1])
        chosen_by, shown = FEWER.get(name, (CHOSEN_BY, SHOWN))
        for epsilon in epsilons:
            mu = gaussian_shift(epsilon, delta_for(name, n))
            for seed in range(chosen_by):
                key = f"{name}|{epsilon}|grid|{seed}"
                cached(results, key, lambda: accuracies(table, mu, grid_for(name), seed))  # noqa: B023
            for kind in KINDS:
                chosen = best_setting(results, name, epsilon, kind)
                for seed in range(FIRST_SHOWN, FIRST_SHOWN + shown):
                    key = f"{name}|{epsilon}|{kind}|{seed}"
                    cached(results, key, lambda: (*scores(table, mu, [chosen], seed)[chosen], str(chosen)))  # noqa: B023
                print(name, epsilon, kind, chosen, flush=True)
    return results


def accuracies(table: Table, mu: float, grid: Sequence[Setting], seed: int) -> list[float]:
    """In the order of the grid."""
    found = scores(table, mu, grid, seed)
    return [found[setting][0] for setting in grid]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--datasets", nargs="+", default=list(DATASETS))
    parser.add_argument("--epsilon", nargs="+", type=float, default=list(EPSILONS))
    given = parser.parse_args()
    collect(given.datasets, given.epsilon)


if __name__ == "__main__":
    main()
