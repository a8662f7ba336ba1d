"""What penalties cost and gain under `auto`: the lasso's objective on adult, and known structure on simulated tables.

Lasso: gap F(x) − F* of the penalised training objective on adult, δ = 1e-5, with F* from the exact solver, and the size
of the support. Structure: a chain of correlated features with a piecewise constant truth (fused), and a grid graph with
a truth constant on patches (graph), with strength 1/(nμ) on the chain and a quarter of it on the grid, where each
feature has four neighbours, and without penalty, by accuracy on fresh rows.
Run `python -m experiments.structure`; `--write` renders docs/structure.md.
Data: `$DPADMM_DATA` or the cache of `dpadmm.datasets`.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from dpadmm import DPLogisticRegression
from dpadmm.privacy.accountants.gaussian import gaussian_shift
from dpadmm.problem import L1, Constraint, Logistic, Problem
from dpadmm.problem.rowmap import RowMap
from dpadmm.solvers.auto.rules import choose_rules, loss_model
from dpadmm.solvers.reference import objective, solve_exactly
from experiments.common import markdown_table, mean_and_error, print_table, train_test

DELTA = 1e-5
PAGE = Path("docs/structure.md")
LASSO_EPSILONS = (0.1, 0.5, 1.0)
STRUCTURE_EPSILONS = (0.05, 0.1, 0.2, 1.0)
ROWS, SIDE = 20_000, 10
NO_NOISE = 1000.0
"""An ε at which noise is next to none, under the rules of another."""
Table = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def lasso_gaps(strength: float, free: bool, seeds: int) -> list[list[str]]:
    """With a `free` intercept, or with a column of ones that is penalised like any other."""
    X, y, _, _ = train_test("adult")
    table = X.astype(float) if free else np.hstack([X.astype(float), np.ones((len(X), 1))])
    rows, labels = RowMap(intercept=free).apply(table), np.where(y > 0, 1.0, -1.0)
    problem = Problem(Logistic(), L1(strength), Constraint.identity(rows.shape[1], int(free)))
    exact = solve_exactly(problem, rows, labels, 1e-7)
    lowest = objective(problem, rows, labels, exact)
    setting = [f"{strength:g}", "free" if free else "penalised"]
    lines = [[*setting, "∞", f"{lowest:.4f}", "0", str(np.count_nonzero(exact[:-1] if free else exact))]]
    for epsilon in LASSO_EPSILONS:
        models = [
            DPLogisticRegression(
                epsilon, DELTA, penalty="l1", alpha=strength, fit_intercept=free, random_state=seed
            ).fit(table, y)
            for seed in range(seeds)
        ]
        mean, error = mean_and_error([objective(problem, rows, labels, model.weights_) - lowest for model in models])
        support = np.mean([np.count_nonzero(model.coef_) for model in models])
        lines.append([*setting, str(epsilon), f"{lowest + mean:.4f}", f"{mean:.4f} ± {error:.4f}", f"{support:.1f}"])
    return lines


def gap_parts(strength: float, seeds: int) -> list[list[str]]:
    """The gap with a free intercept under the rules of a budget, as one cause after the other is taken away."""
    X, y, _, _ = train_test("adult")
    rows, labels = RowMap(intercept=True).apply(X.astype(float)), np.where(y > 0, 1.0, -1.0)
    problem = Problem(Logistic(), L1(strength), Constraint.identity(rows.shape[1], 1))
    exact = solve_exactly(problem, rows, labels, 1e-7)
    lowest = objective(problem, rows, labels, exact)
    model = loss_model(Logistic())
    assert model is not None
    lines = []
    for epsilon in LASSO_EPSILONS[1:]:
        rules = choose_rules(len(y) * gaussian_shift(epsilon, DELTA), rows.shape[1], 2, model)
        wide = replace(rules, cap=4.0, confidence=1.0)
        long = replace(wide, refine_rounds=0, final_rounds=10 * rules.final_rounds, recency=1.0)
        cases = (
            ("as released", epsilon, rules, seeds),
            ("model's curvature believed", epsilon, replace(rules, contradiction=None), seeds),
            ("without noise", NO_NOISE, rules, 1),
            ("without noise and cap", NO_NOISE, wide, 1),
            ("without noise and cap, ten times the rounds", NO_NOISE, long, 1),
        )
        for name, spent, chosen, repeats in cases:
            found = [
                DPLogisticRegression(
                    spent, DELTA, penalty="l1", alpha=strength, solver_options={"rules": chosen}, random_state=seed
                )
                .fit(X.astype(float), y)
                .weights_
                for seed in range(repeats)
            ]
            gaps = [objective(problem, rows, labels, x) - lowest for x in found]
            widest = int(np.argmax(np.abs(exact[:-1])))
            mended = [objective(problem, rows, labels, _with(x, widest, exact[widest])) - lowest for x in found]
            lines.append([str(epsilon), name, f"{np.mean(gaps):.4f}", f"{np.mean(mended):.4f}"])
    return lines


def _with(x: np.ndarray, feature: int, value: float) -> np.ndarray:
    changed = x.copy()
    changed[feature] = value
    return changed


def chain_table(rng: np.random.Generator) -> Table:
    """Autoregressive features, each the neighbour of the next; coefficients in five constant pieces."""
    steps = rng.standard_normal((2 * ROWS, SIDE**2))
    features = steps.copy()
    for j in range(1, SIDE**2):
        features[:, j] = 0.9 * features[:, j - 1] + np.sqrt(1 - 0.9**2) * steps[:, j]
    truth = np.repeat(rng.permutation([-1.0, 0.0, 1.0, 0.0, 2.0]), SIDE**2 // 5)
    return labelled(features, truth, rng)


def grid_table(rng: np.random.Generator) -> Table:
    """Independent features at the points of a grid; coefficients constant on four patches."""
    features = rng.standard_normal((2 * ROWS, SIDE**2))
    truth = np.kron(np.array([[1.0, 0.0], [-1.0, 2.0]]), np.ones((SIDE // 2, SIDE // 2))).ravel()
    return labelled(features, truth, rng)


def labelled(features: np.ndarray, truth: np.ndarray, rng: np.random.Generator) -> Table:
    scores = features @ truth
    labels = np.where(rng.random(len(scores)) < 1 / (1 + np.exp(-3 * scores / scores.std())), 1, -1)
    return features[:ROWS], labels[:ROWS], features[ROWS:], labels[ROWS:]


def grid_edges() -> list[tuple[int, int]]:
    across = [(i * SIDE + j, i * SIDE + j + 1) for i, j in product(range(SIDE), range(SIDE - 1))]
    down = [(i * SIDE + j, (i + 1) * SIDE + j) for i, j in product(range(SIDE - 1), range(SIDE))]
    return across + down


def structured(table: Table, penalty: dict[str, Any], factor: float, epsilon: float, seeds: int) -> str:
    X, y, X_test, y_test = table
    strength = factor / (len(y) * gaussian_shift(epsilon, DELTA))
    scores = [
        DPLogisticRegression(epsilon, DELTA, alpha=strength, random_state=seed, **penalty)
        .fit(X, y)
        .score(X_test, y_test)
        for seed in range(seeds)
    ]
    return "{:.4f} ± {:.4f}".format(*mean_and_error(scores))


INTRODUCTION = """# Penalties under `auto`

Generated by `python -m experiments.structure --write`; do not edit. Penalties are applied to the released model by
ADMM, so they cost no privacy. The gap is F(x) − F* of the penalised training objective on adult, δ = 10⁻⁵, with F* from
the exact solver (optimality 10⁻⁷); the intercept is free, as in the estimators, or a column of ones that is penalised
too. Fused and graph penalties have strength 1/(nμ) and 1/(4nμ). Means ± standard errors over noise seeds.

The second table takes the gap apart, with a free intercept and l1 = 10⁻⁴: the rules (cap, rounds, curvature) stay those
of the budget while noise, and with it all shrinkage, is taken away, then the cap, then the limit on rounds. The last
column is the gap if the one coefficient that is largest in the exact solution, that of capital gain, were exact. Few
rows make up the variance of that column and they are soon fitted: little is left of the curvature that its variance
promises, and the coefficient has to go far beyond the prior. `auto` learns the curvature along such a feature from its
answers; "model's curvature believed" is the gap without.
"""


def all_tables(seeds: int) -> list[tuple[str, list[str], list[list[str]]]]:
    gaps = [line for strength in (1e-4, 1e-3) for free in (True, False) for line in lasso_gaps(strength, free, seeds)]
    found = [("Objective gap of the lasso on adult", ["l1", "intercept", "ε", "F", "gap", "support"], gaps)]
    found.append(("What the gap consists of", ["ε", "setting", "gap", "capital gain exact"], gap_parts(1e-4, seeds)))
    rng = np.random.default_rng(0)
    for name, table, penalty, factor in (
        ("Fused chain, accuracy on fresh rows", chain_table(rng), {"penalty": "fused"}, 1.0),
        ("Graph of a grid, accuracy on fresh rows", grid_table(rng), {"penalty": "graph", "graph": grid_edges()}, 0.25),
    ):
        lines = [
            [
                str(epsilon),
                structured(table, penalty, factor, epsilon, seeds),
                structured(table, {}, factor, epsilon, seeds),
            ]
            for epsilon in STRUCTURE_EPSILONS
        ]
        found.append((name, ["ε", penalty["penalty"], "no penalty"], lines))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=6)
    parser.add_argument("--write", action="store_true", help="render docs/structure.md")
    options = parser.parse_args()
    found = all_tables(options.seeds)
    for table in found:
        print_table(*table)
    if options.write:
        PAGE.write_text("\n".join([INTRODUCTION, *(markdown_table(*table) for table in found)]))


if __name__ == "__main__":
    main()
