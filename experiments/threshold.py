"""Whether small budgets lose accuracy by the threshold or by the direction, on training rows only.

Run `python -m experiments.threshold`. Seven tenths of the training rows are fitted and the rest are scored: at
threshold zero; at the threshold that is best for these very rows, which no one could pick; and with an intercept that
makes the mean probability of the fitted rows equal the mean label, both exact and not private: what moments of the
labels could do at best. "mean row known" is `auto` with the direction of the mean row taken from the table itself, not
private either: what a better first release could gain. The second table shows how far mean rows lie from the top
direction of the second moment, which doubt takes them for.
"""

from __future__ import annotations

import argparse
from contextlib import AbstractContextManager, nullcontext
from typing import Any
from unittest import mock

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit
from sklearn.metrics import roc_auc_score

from dpadmm import DPLogisticRegression
from dpadmm.problem.rowmap import RowMap
from dpadmm.rows.packed import PackedRows
from experiments.common import markdown_table, mean_and_error
from experiments.imbalance import Split, thinned

KNOWN = "auto, mean row known"
METHODS = ("auto", "dp-sgd", "dp-gd", KNOWN)
CASES = (
    *(("mushrooms", epsilon, method) for epsilon in (0.1, 0.14, 0.28) for method in METHODS),
    *(("w8a", epsilon, "auto") for epsilon in (0.1, 1.0)),
)
CLEANING = "dpadmm.solvers.auto.first_release.clean_second_moment"
DATASETS = ("adult", "a9a", "mushrooms", "ipums_br", "w8a")
HEADER = ["data", "ε", "method", "accuracy", "best threshold", "exact mean", "AUC", "called positive", "positive"]


def mapped(X: Any) -> Any:
    """Rows as the solver sees them."""
    return PackedRows.of(RowMap(), X, np.ones(X.shape[0], dtype=bool)).stored(slice(None))


def mean_row(X: Any) -> np.ndarray:
    return np.asarray(mapped(X).mean(axis=0)).ravel()


def constant_column(X: Any) -> np.ndarray:
    """The intercept's entry of each mapped row."""
    return np.asarray(mapped(X)[:, [-1]].sum(axis=1)).ravel()


def second_moment(X: Any) -> np.ndarray:
    rows = mapped(X)
    moment = rows.T @ rows / rows.shape[0]
    return np.asarray(moment.toarray() if hasattr(moment, "toarray") else moment)


def knowing(mean: np.ndarray) -> AbstractContextManager[Any]:
    """A second moment of the mean row's direction and mass, the same in all others."""
    mass, d = float(mean @ mean), len(mean)
    along = np.outer(mean, mean) / mass
    model = mass * along + (1 - mass) / (d - 1) * (np.eye(d) - along)
    return mock.patch(CLEANING, return_value=model)


def best_accuracy(margins: np.ndarray, positive: np.ndarray) -> float:
    """Over all thresholds: the k smallest margins are called negative."""
    ordered = positive[np.argsort(margins)]
    negatives = np.concatenate([[0], np.cumsum(~ordered)])
    positives = ordered.sum() - np.concatenate([[0], np.cumsum(ordered)])
    return float((negatives + positives).max() / len(ordered))


def intercept_for_mean(margins: np.ndarray, along: np.ndarray, mean: float) -> float:
    """The multiple of `along` that, added to the margins, gives probabilities of this mean."""
    return float(brentq(lambda shift: expit(margins + shift * along).mean() - mean, -1e3, 1e3))


def outcome(split: Split, epsilon: float, seed: int, solver: str) -> tuple[float, ...]:
    X, y, X_new, y_new = split
    classes = np.unique(y)
    positive = y_new == classes[1]
    model = DPLogisticRegression(epsilon, 1 / len(y) ** 2, classes=classes, random_state=seed, solver=solver).fit(X, y)
    margins = model.decision_function(X_new)
    shift = intercept_for_mean(model.decision_function(X), constant_column(X), float(np.mean(y == classes[1])))
    return (
        float(np.mean((margins > 0) == positive)),
        best_accuracy(margins, positive),
        float(np.mean((margins + shift * constant_column(X_new) > 0) == positive)),
        float(roc_auc_score(positive, margins)),
        float(np.mean(margins > 0)),
    )


def row(name: str, epsilon: float, method: str, seeds: int) -> list[str]:
    split = thinned(name, None)
    solver = "auto" if method == KNOWN else method
    with knowing(mean_row(split[0])) if method == KNOWN else nullcontext():
        found = [outcome(split, epsilon, seed, solver) for seed in range(seeds)]
    cells = ["{:.4f} ± {:.4f}".format(*mean_and_error(list(values))) for values in zip(*found, strict=True)]
    positive = np.mean(split[3] == np.unique(split[1])[1])
    return [name, str(epsilon), method, *cells, f"{positive:.4f}"]


def beyond_top(name: str) -> list[str]:
    """The part of the mean row's length that lies outside the top direction."""
    X = thinned(name, None)[0]
    mean, top = mean_row(X), np.linalg.eigh(second_moment(X))[1][:, -1]
    return [name, f"{np.linalg.norm(mean - top * (top @ mean)) / np.linalg.norm(mean):.3f}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=100, help="on w8a a tenth of them")
    seeds = parser.parse_args().seeds
    rows = [row(*case, seeds if case[0] == "mushrooms" else max(2, seeds // 10)) for case in CASES]
    print(markdown_table("Threshold and direction", HEADER, rows))
    print(markdown_table("Mean rows", ["data", "beyond the top direction"], [beyond_top(name) for name in DATASETS]))


if __name__ == "__main__":
    main()
