"""What asking for the curvature along features gains and costs: `auto` with and without it, on training rows only.

Run `python -m experiments.curvature`. Lasso: gap of the penalised objective on all training rows. Without a penalty,
where it is never asked for: accuracy on three tenths of the training rows after a fit of the others. Curvature is
forced or forbidden; where noise is too strong for it there is nothing to compare ("–"). Tables from "rare levels" on
are simulated.
`--sharper` weighs rare features as others and leaves a tenth of their curvature, which was not kept: it does more for
adult and overshoots on rare levels.
Data: `$DPADMM_DATA` or the cache of `dpadmm.datasets`.
"""

from __future__ import annotations

import argparse
from contextlib import nullcontext
from functools import cache
from typing import Any
from unittest import mock

import numpy as np

from dpadmm import DPLogisticRegression
from dpadmm.problem import L1, Constraint, Logistic, Problem
from dpadmm.problem.rowmap import RowMap
from dpadmm.solvers.auto import measured_curvature
from dpadmm.solvers.auto.rules import choose_rules
from dpadmm.solvers.exact_minimiser import objective, solve_exactly
from experiments.common import markdown_table, mean_and_error, train_test

EPSILONS = (0.2, 0.5, 1.0, 3.0)
DELTA, STRENGTH, MOST_ROWS = 1e-5, 1e-4, 60_000
RULES = "dpadmm.solvers.auto.solver.choose_rules"
SHARPER = {"EVENNESS": 0.75, "LEAST_LEFT": 0.1}
HEADER = ["data", "ε", "with", "without"]


@cache
def rows_of(name: str) -> tuple[Any, np.ndarray]:
    if name in SIMULATED:
        return SIMULATED[name]()
    X, y, _, _ = train_test(name)
    order = np.random.default_rng(0).permutation(len(y))[:MOST_ROWS]
    return X[order].astype(float), np.where(y[order] > 0, 1, -1)


def rare_levels() -> tuple[np.ndarray, np.ndarray]:
    """One category of twenty levels, one of them nearly always: rows of the others are cut off, and nothing fades."""
    rng = np.random.default_rng(0)
    level = rng.choice(20, MOST_ROWS, p=[0.9, *[0.1 / 19] * 19])
    return np.eye(20)[level], np.where(rng.random(MOST_ROWS) < np.where(level % 2, 0.9, 0.1), 1, -1)


def heavy_tails() -> tuple[np.ndarray, np.ndarray]:
    """Lognormal features, of which eight matter."""
    rng = np.random.default_rng(1)
    X = np.minimum(np.exp(1.5 * rng.standard_normal((MOST_ROWS // 2, 30))) / 20, 5)
    return X, drawn(X @ np.pad(4 * rng.standard_normal(8), (0, 22)), rng)


def rare_features() -> tuple[np.ndarray, np.ndarray]:
    """Binary features, one row in three to one in a thousand."""
    rng = np.random.default_rng(2)
    X = (rng.random((2 * MOST_ROWS // 3, 60)) < 10 ** rng.uniform(-3, -0.5, 60)).astype(float)
    return X, drawn(X @ rng.choice([-2.0, 0.0, 2.0], 60), rng)


def extremes() -> tuple[np.ndarray, np.ndarray]:
    """Binary features and four that are nearly always zero and else have no mean to speak of."""
    rng = np.random.default_rng(3)
    X = (rng.random((MOST_ROWS // 2, 40)) < 0.3).astype(float)
    X[:, :4] = (rng.random((len(X), 4)) < 0.05) * rng.pareto(1.2, (len(X), 4)).clip(0, 50) / 50
    return X, drawn(X @ np.concatenate([[30.0, -30.0, 60.0, 20.0], rng.standard_normal(36)]), rng)


def correlated() -> tuple[np.ndarray, np.ndarray]:
    """Gaussian features, of which ten matter."""
    rng = np.random.default_rng(4)
    X = rng.standard_normal((MOST_ROWS // 2, 50)) @ rng.standard_normal((50, 50)) / np.sqrt(50)
    return X, drawn(X @ np.pad(2 * rng.standard_normal(10), (0, 40)), rng)


def drawn(scores: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return np.where(rng.random(len(scores)) < 1 / (1 + np.exp(np.median(scores) - scores)), 1, -1)


SIMULATED = {
    "rare levels": rare_levels,
    "heavy tails": heavy_tails,
    "rare features": rare_features,
    "extremes": extremes,
    "correlated": correlated,
}
TABLES = ("adult", "a9a", "ipums_br", "covtype", "bio_train", *SIMULATED)


@cache
def lasso(name: str) -> tuple[Problem, Any, np.ndarray, float]:
    """The problem, its mapped rows and labels, and its minimum."""
    X, y = rows_of(name)
    rows = RowMap(intercept=True).apply(X)
    rows = rows.toarray() if hasattr(rows, "toarray") else rows
    problem = Problem(Logistic(), L1(STRENGTH), Constraint.identity(rows.shape[1], 1))
    return problem, rows, y, objective(problem, rows, y, solve_exactly(problem, rows, y, 1e-7))


def gap(name: str, epsilon: float, seed: int) -> tuple[float, bool]:
    problem, rows, y, lowest = lasso(name)
    model = DPLogisticRegression(epsilon, DELTA, penalty="l1", alpha=STRENGTH, random_state=seed).fit(*rows_of(name))
    return objective(problem, rows, y, model.weights_) - lowest, _asked(model)


def accuracy(name: str, epsilon: float, seed: int) -> tuple[float, bool]:
    X, y = rows_of(name)
    order = np.random.default_rng(seed).permutation(len(y))
    train, held_out = order[: 7 * len(y) // 10], order[7 * len(y) // 10 :]
    model = DPLogisticRegression(epsilon, 1 / len(train) ** 2, random_state=seed).fit(X[train], y[train])
    return float(model.score(X[held_out], y[held_out])), _asked(model)


def _asked(model: DPLogisticRegression) -> bool:
    return any(query.kind == "curvature" for query in model.plan_.queries)


def compared(measure: Any, name: str, epsilon: float, seeds: int) -> list[str]:
    cells = []
    for asking in (True, False):
        with mock.patch(RULES, lambda *public, asking=asking: choose_rules(*public[:-1], asking)):
            found = [measure(name, epsilon, seed) for seed in range(seeds)]
        if asking and not found[0][1]:
            return [name, str(epsilon), "–", "–"]
        cells.append("{:.4f} ± {:.4f}".format(*mean_and_error([value for value, _ in found])))
    return [name, str(epsilon), *cells]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--only", nargs="+", default=TABLES, choices=TABLES, help="some tables")
    parser.add_argument("--sharper", action="store_true")
    options = parser.parse_args()
    with mock.patch.multiple(measured_curvature, **SHARPER) if options.sharper else nullcontext():
        for title, measure in (("Gap of the lasso", gap), ("Accuracy without a penalty", accuracy)):
            rows = [compared(measure, name, epsilon, options.seeds) for name in options.only for epsilon in EPSILONS]
            print(markdown_table(title, HEADER, rows), flush=True)


if __name__ == "__main__":
    main()
