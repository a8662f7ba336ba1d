"""What DP-VRADMM's rules gain on training rows: each beside its neighbours and dp-sadmm.

`python -m experiments.variance_reduction [DATA …] [--epsilon 0.2 …] [--seeds 20]` splits the training rows at random
into four fifths to train on and one fifth to score, anew for each seed, and prints accuracy and mean logistic loss of
dp-sadmm, and how far each setting of dp-vradmm is from it on the same split and seed. L1 penalty 1e-4, δ = 1/n²,
replace-one. covtype is cut to 100,000 rows. No test rows are read, but with `--test`, which compares the finished rule
alone: on the split of docs/accuracy.md and, as there, without a penalty.
"""

from __future__ import annotations

import argparse
import functools
from typing import Any

import numpy as np

from dpadmm import DPLogisticRegression
from experiments.accuracy import Rows, delta_for
from experiments.common import mean_and_error, print_table, train_test

DATASETS = ("adult", "mushrooms", "a9a", "ipums_br")
MOST_ROWS = 100_000
SETTINGS: dict[str, dict[str, Any]] = {
    "the rule": {},
    "worst-case clip, 10 epochs": {"clip_fraction": 1.0, "expected_clip": 1.0, "epochs": 10, "averaging": "tail"},
    "worst-case clip": {"clip_fraction": 1.0, "expected_clip": 1.0},
    "clip x 3": {"clip_fraction": 0.15, "expected_clip": 0.1},
    "30 epochs": {"epochs": 30},
    "200 epochs": {"epochs": 200},
    "average half": {"averaging": 0.5},
    "average a tenth": {"averaging": 0.1},
}


@functools.lru_cache(maxsize=32)
def split(name: str, seed: int) -> Rows:
    """Training rows to fit on and training rows to score."""
    X, y, _, _ = train_test(name)
    order = np.random.default_rng(1000 + seed).permutation(len(y))[:MOST_ROWS]
    cut = int(0.8 * len(order))
    fitted, scored = np.sort(order[:cut]), np.sort(order[cut:])
    return X[fitted], y[fitted], X[scored], y[scored]


def scores(
    name: str, epsilon: float, seed: int, solver: str, options: dict[str, Any], rows: Rows | None = None
) -> tuple[float, float]:
    """Accuracy and mean logistic loss on the rows given, without a penalty, or on a split, with one."""
    X, y, X_new, y_new = split(name, seed) if rows is None else rows
    classes = np.unique(y)
    model = DPLogisticRegression(
        epsilon,
        delta_for(name, len(y)),
        penalty="l1" if rows is None else "none",
        classes=classes,
        solver=solver,
        solver_options=options or None,
        random_state=seed,
    ).fit(X, y)
    signs = np.where(y_new == classes[1], 1.0, -1.0)
    return model.score(X_new, y_new), float(np.mean(np.logaddexp(0.0, -signs * model.decision_function(X_new))))


def line(label: str, found: list[tuple[float, float]], base: list[tuple[float, float]]) -> list[str]:
    """Differences from dp-sadmm with their standard errors."""
    gains = np.array(found) - np.array(base)
    return [label, *("{:+.4f} ± {:.4f}".format(*mean_and_error(column.tolist())) for column in gains.T)]


def compare(name: str, epsilon: float, seeds: int) -> None:
    base = [scores(name, epsilon, seed, "dp-sadmm", {}) for seed in range(seeds)]
    rows = [["dp-sadmm", *(f"{value:.4f}" for value in np.mean(base, axis=0))]]
    for label, options in SETTINGS.items():
        found = [scores(name, epsilon, seed, "dp-vradmm", options) for seed in range(seeds)]
        rows.append(line(label, found, base))
    print_table(f"{name}, ε = {epsilon:g}", ["dp-vradmm against dp-sadmm", "accuracy", "loss"], rows)


def compare_on_test_rows(name: str, epsilons: list[float], seeds: int) -> None:
    rows = []
    for epsilon in epsilons:
        base, found = (
            [scores(name, epsilon, seed, solver, {}, train_test(name)) for seed in range(seeds)]
            for solver in ("dp-sadmm", "dp-vradmm")
        )
        means = (f"{np.mean(values, axis=0)[0]:.4f}" for values in (base, found))
        rows.append([f"{epsilon:g}", *means, *line("", found, base)[1:]])
    print_table(name, ["ε", "dp-sadmm", "dp-vradmm", "gain of accuracy", "gain of loss"], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="*", default=DATASETS)
    parser.add_argument("--epsilon", nargs="+", type=float, default=[0.05, 0.2, 1.0])
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--test", action="store_true", help="the rule alone, on test rows")
    given = parser.parse_args()
    for name in given.data:
        if given.test:
            compare_on_test_rows(name, given.epsilon, given.seeds)
            continue
        for epsilon in given.epsilon:
            compare(name, epsilon, given.seeds)


if __name__ == "__main__":
    main()
