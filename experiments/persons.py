"""Persons with several rows: what a promise to the whole person costs in accuracy, beside two older ways to keep it.

Run `python -m experiments.persons`. Every way promises (ε, 1/N²) to each of N = 3000 persons with all their rows:

- "one row": one row of each person, drawn at random, and a promise to rows;
- "group": at most four rows of each person, and a promise to rows that is four times as strong (group privacy);
- "person": all rows, `fit(X, y, person=ids)`;
- "person, half clip": the same with half the usual clip, which makes another solver than `auto` stand in.

"rows" promises privacy to single rows only and stands for comparison. Every seed simulates its own table, and scores a
fit on 3000 new persons, each of whom counts once. Lower is better: log-loss, or mean squared error.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np

from dpadmm import DPLinearRegression, DPLogisticRegression
from dpadmm.declare.recipe import default_clip
from dpadmm.privacy.accountants.gaussian import gaussian_epsilon, gaussian_shift
from dpadmm.problem import Logistic, Squared
from experiments.common import markdown_table, mean_and_error

PERSONS, FEATURES, GROUP = 3000, 10, 4
EPSILONS = (0.1, 0.3, 1.0, 3.0)
WAYS = ("one row", "group", "person", "person, half clip", "rows")
Table = tuple[Any, Any, Any]


def few(rng: np.random.Generator) -> Any:
    """Three rows a person in the mean."""
    return 1 + rng.poisson(2, PERSONS)


def heavy(rng: np.random.Generator) -> Any:
    """Many persons with one row or two, and some with hundreds."""
    return np.minimum(300, 1 + np.floor(rng.pareto(1.2, PERSONS) * 2)).astype(int)


TABLES: dict[str, tuple[Callable[[np.random.Generator], Any], bool]] = {
    "a few rows, two classes": (few, True),
    "heavy-tailed, two classes": (heavy, True),
    "heavy-tailed, a number": (heavy, False),
}


def simulated(name: str, seed: int, truth: Any) -> Table:
    """Rows that are alike within a person: half of the variance of every feature is the person's own."""
    rng = np.random.default_rng(seed)
    sizes, classes = TABLES[name]
    ids = np.repeat(np.arange(PERSONS), sizes(rng))
    own = rng.normal(size=(PERSONS, FEATURES))
    X = (own[ids] + rng.normal(size=(len(ids), FEATURES))) / np.sqrt(2)
    signal = X @ truth + 0.5 * rng.normal(size=PERSONS)[ids]
    if classes:
        return X, (rng.random(len(ids)) < 1 / (1 + np.exp(-2 * signal))).astype(int), ids
    return X, np.clip(signal + 0.5 * rng.normal(size=len(ids)), -3, 3), ids


def at_most(rows: int, table: Table, rng: np.random.Generator) -> Table:
    """A random choice of so many rows of each person, or all of them."""
    X, y, ids = table
    order = rng.permutation(len(ids))
    order = order[np.argsort(ids[order], kind="stable")]
    rank = np.arange(len(ids)) - np.searchsorted(ids[order], ids[order])
    kept = order[rank < rows]
    return X[kept], y[kept], ids[kept]


def fitted(name: str, way: str, epsilon: float, table: Table, seed: int) -> Any:
    """A model that keeps the promise to persons in this way."""
    delta, rng = 1 / PERSONS**2, np.random.default_rng(seed)
    classes, norm = TABLES[name][1], float(np.sqrt(FEATURES + 1))
    chosen: dict[str, Any] = {"row_norm": norm, "random_state": seed}
    if way == "person, half clip":
        chosen["clip_norm"] = 0.5 * norm * default_clip(Logistic() if classes else Squared(), 0.0)
    if way == "one row":
        table = at_most(1, table, rng)
    if way == "group":
        table = at_most(GROUP, table, rng)
        epsilon = gaussian_epsilon(gaussian_shift(epsilon, delta) / GROUP, delta)
    ids = table[2] if way.startswith("person") else None
    if not classes:
        return DPLinearRegression(epsilon, delta, target_bounds=(-3, 3), **chosen).fit(*table[:2], person=ids)
    return DPLogisticRegression(epsilon, delta, classes=[0, 1], **chosen).fit(*table[:2], person=ids)


def loss(name: str, model: Any, table: Table) -> float:
    """Of new rows, every person counting once."""
    X, y, ids = table
    if TABLES[name][1]:
        losses = -np.log(np.clip(model.predict_proba(X)[np.arange(len(y)), y], 1e-12, 1.0))
    else:
        losses = (model.predict(X) - y) ** 2
    return float(np.mean(np.bincount(ids, weights=losses) / np.bincount(ids)))


def row(name: str, epsilon: float, seeds: int) -> list[str]:
    truth = np.random.default_rng(99).normal(size=FEATURES) / np.sqrt(FEATURES)
    found: dict[str, list[float]] = {way: [] for way in WAYS}
    for seed in range(seeds):
        train, test = simulated(name, seed, truth), simulated(name, 10_000 + seed, truth)
        for way in WAYS:
            found[way].append(loss(name, fitted(name, way, epsilon, train, seed), test))
    return [name, str(epsilon), *("{:.4f} ± {:.4f}".format(*mean_and_error(found[way])) for way in WAYS)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--only", nargs="+", default=list(TABLES), choices=TABLES, help="some tables")
    asked = parser.parse_args()
    rows = [row(name, epsilon, asked.seeds) for name in asked.only for epsilon in EPSILONS]
    print(markdown_table(f"{PERSONS} persons, {asked.seeds} seeds", ["table", "ε", *WAYS], rows))


if __name__ == "__main__":
    main()
