"""What the rules for weak noise gain: `auto` with and without them, on random splits of training rows only.

Run `python -m experiments.weak_noise`. Every seed draws its own seven tenths of the training rows to fit and scores the
rest; of covtype the first 120,000 rows are used. "lead" is the mean difference of accuracy, and of AUC, in units of
0.0001, with its standard error. Other factors than those of the rules: `--cap 0.9 --curvature 0.85 --flattening 0.6`.
Data: `$DPADMM_DATA` or the cache of `dpadmm.datasets`.
"""

from __future__ import annotations

import argparse
from typing import Any
from unittest import mock

import numpy as np
from sklearn.metrics import roc_auc_score

from dpadmm import DPLogisticRegression
from dpadmm.solvers.auto import rules
from experiments.common import markdown_table, mean_and_error, train_test

CASES = {"a9a": 60, "adult": 60, "ipums_br": 60, "w8a": 30, "bio_train": 20, "covtype": 20}
"""Tables and how many splits each gets, at most."""
EPSILONS = (0.05, 0.1, 0.2, 0.4, 0.8, 1.0)
MOST_ROWS = 120_000
HEADER = ["data", "ε", "without", "lead", "AUC without", "lead"]
WITHOUT = {"WEAK_CAP": 1.0, "WEAK_CURVATURE": 1.0, "WEAK_FLATTENING": 1.0}


def fitted_scores(rows: tuple[Any, ...], epsilon: float, seed: int, factors: dict[str, float]) -> tuple[float, float]:
    X, y, X_new, y_new = rows
    with mock.patch.multiple(rules, **factors):
        model = DPLogisticRegression(epsilon, 1 / len(y) ** 2, classes=np.unique(y), random_state=seed).fit(X, y)
    return float(model.score(X_new, y_new)), float(roc_auc_score(y_new, model.decision_function(X_new)))


def split(name: str, seed: int) -> tuple[Any, ...]:
    X, y, _, _ = train_test(name)
    order = np.random.default_rng(1000 + seed).permutation(min(len(y), MOST_ROWS))
    train, held_out = np.split(order, [7 * len(order) // 10])
    return X[train], y[train], X[held_out], y[held_out]


def row(name: str, epsilon: float, seeds: int, factors: dict[str, float]) -> list[str]:
    with_rules, without = (
        np.array([fitted_scores(split(name, seed), epsilon, seed, chosen) for seed in range(seeds)])
        for chosen in (factors, WITHOUT)
    )
    cells = []
    for base, lead in zip(without.T, 1e4 * (with_rules - without).T, strict=True):
        cells += [f"{base.mean():.4f}", "{:+.1f} ± {:.1f}".format(*mean_and_error(list(lead)))]
    return [name, str(epsilon), *cells]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=60, help="at most so many splits of a table")
    parser.add_argument("--only", nargs="+", default=list(CASES), choices=CASES, help="some tables")
    parser.add_argument("--cap", type=float, default=rules.WEAK_CAP)
    parser.add_argument("--curvature", type=float, default=rules.WEAK_CURVATURE)
    parser.add_argument("--flattening", type=float, default=rules.WEAK_FLATTENING)
    chosen = parser.parse_args()
    factors = {"WEAK_CAP": chosen.cap, "WEAK_CURVATURE": chosen.curvature, "WEAK_FLATTENING": chosen.flattening}
    cases = {name: min(chosen.seeds, CASES[name]) for name in chosen.only}
    rows = [row(name, epsilon, seeds, factors) for name, seeds in cases.items() for epsilon in EPSILONS]
    print(markdown_table("Weak noise", HEADER, rows))


if __name__ == "__main__":
    main()
