"""Wide tables: accuracy and AUC of `solver="auto"` beyond 3000 features, beside full-admm and what else was tried.

Run `python -m experiments.wide` (cached and resumable: results/wide.json), `--quick` for two tables and one seed, or
`--regression`. Tables: products of pairs of features of a9a, mushrooms, adult and w8a (the last two hashed), and
simulated sparse text with Zipf frequencies. Protocol: TRAINING rows only, three quarters to fit and one to judge
(seed 7); δ = 1/n², replace-one, noise seeds 0, 1, 2. The constants of `wide_rules.py` were chosen on these same tables.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.metrics import roc_auc_score

from dpadmm import DPLinearRegression, DPLogisticRegression
from dpadmm.privacy.accountants.gaussian import gaussian_shift
from dpadmm.solvers.auto.rules import LossModel
from dpadmm.solvers.auto.wide_rules import WideRules, choose_wide_rules
from experiments.common import mean_and_error, print_table, train_test

EPSILONS = (0.1, 0.5, 1.0, 3.0)
TABLES = ("a9a-pairs", "mushrooms-pairs", "adult-hashed", "w8a-hashed", "text", "long-text")
QUICK = ("mushrooms-pairs", "text")
METHODS = ("auto", "full-admm", "mean row", "mean row and diagonal", "neither")
RESULTS = Path("results/wide.json")
LOGISTIC = LossModel(0.5, 0.25, calibrated=True)


def pairs(X: Any) -> Any:
    """Products of all pairs of features, the squares included."""
    X = sparse.csr_matrix(X)
    n, d = X.shape
    rows, columns, values = [], [], []
    for i in range(n):
        row = X[i]
        order = np.argsort(row.indices)
        index, value = row.indices[order].astype(np.int64), row.data[order]
        first, second = np.triu_indices(len(index))
        columns.append(index[first] * d - index[first] * (index[first] - 1) // 2 + index[second] - index[first])
        values.append(value[first] * value[second])
        rows.append(np.full(len(first), i))
    entries = np.concatenate(values).astype(float), (np.concatenate(rows), np.concatenate(columns))
    return sparse.csr_matrix(entries, shape=(n, d * (d + 1) // 2))


def hashed(X: Any, size: int) -> Any:
    bucket = np.random.default_rng(0).integers(0, size, X.shape[1])
    return sparse.csr_matrix(X @ sparse.csr_matrix((np.ones(len(bucket)), (np.arange(len(bucket)), bucket))))


def text(n: int, d: int, seed: int) -> tuple[Any, np.ndarray]:
    """Rows of about 75 words with Zipf frequencies; a third of the words carries weight."""
    rng = np.random.default_rng(seed)
    chance = 1 / np.arange(1, d + 1)
    lengths = rng.poisson(75, n) + 1
    words = rng.choice(d, lengths.sum(), p=chance / chance.sum())
    X = sparse.csr_matrix((np.ones(len(words)), (np.repeat(np.arange(n), lengths), words)), shape=(n, d))
    X.sum_duplicates()
    X.data[:] = 1
    margin = X @ (rng.standard_normal(d) * (rng.random(d) < 0.3))
    margin = 3 * (margin - margin.mean()) / margin.std()
    return X, np.where(rng.random(n) < 1 / (1 + np.exp(-margin)), 1, -1)


@cache
def split(name: str) -> tuple[Any, np.ndarray, Any, np.ndarray]:
    if name in ("text", "long-text"):
        X, y = text(26_000, 20_000, 0) if name == "text" else text(200_000, 5_000, 2)
    else:
        base, kind = name.split("-")
        X, y, *_ = train_test(base)
        X = pairs(X) if kind == "pairs" else hashed(pairs(X), {"adult": 4096, "w8a": 16384}[base])
    order = np.random.default_rng(7).permutation(len(y))
    fit, judge = np.split(order, [int(0.75 * len(y))])
    return X[fit], y[fit], X[judge], y[judge]


def rules_of(method: str, signal: float, d: int) -> WideRules:
    """The rules with another choice of what is asked for; the weight of an unwanted mean row goes to zero."""
    rules = choose_wide_rules(signal, d, 2, LOGISTIC)
    if method == "mean row and diagonal":
        return replace(rules, diagonal=0.4, crowding=1.0, visibility=1.0)
    without = replace(rules, diagonal=0.0, crowding=4.0, visibility=max(0.8 * d / signal, 1.0))
    return without if method == "mean row" else replace(without, balance=1e-12)


def score(name: str, epsilon: float, seed: int, method: str) -> tuple[float, float]:
    X, y, X_judge, y_judge = split(name)
    delta, chosen = 1 / len(y) ** 2, {"solver": method}
    if method not in ("auto", "full-admm"):
        signal = len(y) * gaussian_shift(epsilon, delta)
        chosen = {"solver": "auto", "solver_options": {"rules": rules_of(method, signal, X.shape[1] + 1)}}
    model = DPLogisticRegression(epsilon, delta, classes=np.unique(y), random_state=seed, **chosen).fit(X, y)
    return float(model.score(X_judge, y_judge)), float(roc_auc_score(y_judge, model.decision_function(X_judge)))


def regression() -> None:
    """R² on a simulated sparse table: six features matter among 3206."""
    rows = []
    for n in (4_000, 20_000):
        rng = np.random.default_rng(0)
        X = sparse.random(n, 3200, 0.01, format="csr", random_state=1)
        X.data[:] = 1.0
        X = sparse.csr_matrix(sparse.hstack([rng.integers(0, 2, (n, 6)), X]))
        y, cut = np.asarray(X[:, :6] @ [3.0, -3.0, 3.0, -3.0, 3.0, -3.0]), int(0.75 * n)
        for epsilon in (0.5, 1.0, 3.0):
            cells = [str(n), f"{epsilon:g}"]
            for solver in ("auto", "full-admm"):
                models = (
                    DPLinearRegression(epsilon, 1e-8, target_bounds=(-9, 9), solver=solver, random_state=seed)
                    for seed in range(3)
                )
                cells.append(
                    "{:.3f} ± {:.3f}".format(
                        *mean_and_error([model.fit(X[:cut], y[:cut]).score(X[cut:], y[cut:]) for model in models])
                    )
                )
            rows.append(cells)
    print_table("R² on rows not fitted", ["rows", "ε", "auto", "full-admm"], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--regression", action="store_true")
    parser.add_argument("--tables", nargs="*")
    options = parser.parse_args()
    if options.regression:
        return regression()
    cached = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    rows = []
    for name in options.tables or (QUICK if options.quick else TABLES):
        for epsilon in EPSILONS:
            cells = [name, f"{epsilon:g}"]
            for method in METHODS:
                scores = []
                for seed in range(1 if options.quick else 3):
                    key = f"{name}/{epsilon:g}/{method}/{seed}"
                    if key not in cached:
                        cached[key] = score(name, epsilon, seed, method)
                        RESULTS.parent.mkdir(exist_ok=True)
                        RESULTS.write_text(json.dumps(cached, indent=1))
                    scores.append(cached[key])
                cells.append(f"{np.mean([s[0] for s in scores]):.4f} / {np.mean([s[1] for s in scores]):.4f}")
            rows.append(cells)
    print_table("accuracy / AUC on training rows not fitted", ["table", "ε", *METHODS], rows)


if __name__ == "__main__":
    main()
