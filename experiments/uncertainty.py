"""Are the stated standard errors right? They are compared with the spread of the model over noise seeds, same rows.

For each table and ε: fits of `--seeds` seeds on the same rows give the true spread of every coefficient and of the
score of 200 test rows; the standard errors stated by `STATED` further fits are divided by it.
Run `python -m experiments.uncertainty` (cached and resumable: results/uncertainty.json); `--write` renders the table in
docs/uncertainty.md. Data: `$DPADMM_DATA` or the cache of `dpadmm.datasets`.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits

from dpadmm import DPLinearRegression, DPLinearSVC, DPLogisticRegression
from dpadmm.files import replacing
from experiments.common import markdown_table, print_table, train_test
from experiments.regression import tables as regression_tables

EPSILONS = (0.1, 0.3, 1.0, 3.0)
DELTA, ROWS, TEST_ROWS, STATED = 1e-5, 20_000, 200, 2
NEGLIGIBLE = 0.1
CACHE, PAGE = Path("results/uncertainty.json"), Path("docs/uncertainty.md")
HEAD = ["table", "ε", "coefficients: median", "10 %", "90 %", "scores: median", "10 %", "90 %"]

Data = tuple[Any, np.ndarray, Any]


@cache
def rows_of(name: str) -> Data:
    """Training rows, targets, and test rows."""
    if name in ("plain", "friedman"):
        X, y, _ = regression_tables()[name]
        half = len(y) // 2
        return X[:half], y[:half], X[half : half + TEST_ROWS]
    if name == "blobs":
        rng = np.random.default_rng(3)
        centres, y = 0.5 * rng.standard_normal((5, 20)), rng.integers(0, 5, 10_200)
        X = centres[y] + rng.standard_normal((10_200, 20))
        return X[:-TEST_ROWS], y[:-TEST_ROWS], X[-TEST_ROWS:]
    if name == "digits":
        X, y = load_digits(return_X_y=True)
        rng = np.random.default_rng(0)
        X = np.tile(X / 16, (10, 1)) + 0.05 * rng.standard_normal((10 * len(X), X.shape[1]))
        return X[:-TEST_ROWS], np.tile(y, 10)[:-TEST_ROWS], X[-TEST_ROWS:]
    X, y, tests, _ = train_test(name)
    if name == "mnist":
        X, tests = pooled(X[:ROWS]), pooled(tests[:TEST_ROWS])
    rows = ROWS if name in ("mnist", "w8a", "covtype", "bio_train") else len(y)
    return X[:rows], y[:rows], tests[:TEST_ROWS]


def pooled(images: Any) -> np.ndarray:
    """28 × 28 pixels averaged to 14 × 14."""
    return np.asarray(images).reshape(-1, 14, 2, 14, 2).mean(axis=(2, 4)).reshape(len(images), -1)


def classifier(**more: Any) -> Callable[[float, int], Any]:
    return lambda epsilon, seed: DPLogisticRegression(epsilon, DELTA, random_state=seed, **more)


def regression(name: str, **more: Any) -> Callable[[float, int], Any]:
    bounds = {"plain": (-600.0, 600.0), "friedman": (0.0, 30.0)}[name]
    return lambda epsilon, seed: DPLinearRegression(
        epsilon, DELTA, target_bounds=bounds, row_norm=2.0, random_state=seed, **more
    )


MODELS: dict[str, tuple[str, Callable[[float, int], Any]]] = {
    "adult": ("adult", classifier()),
    "a9a": ("a9a", classifier()),
    "mushrooms": ("mushrooms", classifier()),
    "ipums_br": ("ipums_br", classifier()),
    "plain, squared loss": ("plain", regression("plain")),
    "blobs, 5 classes": ("blobs", classifier()),
    "w8a, 20 000 rows": ("w8a", classifier()),
    "mnist 14 × 14, 20 000 rows": ("mnist", classifier()),
    "adult, SVM": ("adult", lambda epsilon, seed: DPLinearSVC(epsilon, DELTA, random_state=seed)),
    "covtype, 20 000 rows (*)": ("covtype", classifier()),
    "friedman, squared loss": ("friedman", regression("friedman")),
    "friedman, Huber loss": ("friedman", regression("friedman", loss="huber")),
    "digits, 10 classes (*)": ("digits", classifier()),
    "ipums_br, L1": ("ipums_br", classifier(penalty="l1", alpha=1e-3)),
    "adult, L1": ("adult", classifier(penalty="l1", alpha=1e-4)),
    "bio_train, 20 000 rows": ("bio_train", classifier()),
    "mushrooms, add-remove (*)": ("mushrooms", classifier(relation="add-remove", n_rows=4000)),
}


def scores(model: Any, tests: Any) -> np.ndarray:
    return np.asarray(model.predict(tests) if isinstance(model, DPLinearRegression) else model.decision_function(tests))


def stated_scores(model: Any, tests: Any) -> np.ndarray:
    return np.asarray(model.predict_std(tests) if isinstance(model, DPLinearRegression) else model.decision_std(tests))


def ratios(name: str, epsilon: float, seeds: int) -> list[float]:
    """Quantiles of stated over true, for coefficients and for scores, means over the stating fits; none if refused."""
    table, make = MODELS[name]
    X, y, tests = rows_of(table)
    if not hasattr(make(epsilon, seeds).fit(X, y), "coef_std_"):
        return []
    fits = [make(epsilon, seed).fit(X, y) for seed in range(seeds)]
    true = [np.std([fit.coef_ for fit in fits], axis=0, ddof=1)]
    true.append(np.std([scores(fit, tests) for fit in fits], axis=0, ddof=1))
    found = []
    for seed in range(seeds, seeds + STATED):
        fit = make(epsilon, seed).fit(X, y)
        stated = [fit.coef_std_, stated_scores(fit, tests)]
        found.append([value for pair in zip(stated, true, strict=True) for value in quantiles(*pair)])
    return [float(value) for value in np.mean(found, axis=0)]


def quantiles(stated: np.ndarray, true: np.ndarray) -> list[float]:
    """Median, 10 % and 90 % of the ratios; coefficients that hardly ever leave zero have none."""
    moving = true > NEGLIGIBLE * np.median(true[true > 0])
    ratio = stated[moving] / true[moving]
    return [float(np.median(ratio)), float(np.quantile(ratio, 0.1)), float(np.quantile(ratio, 0.9))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=30)
    parser.add_argument("--only", nargs="+", help="some tables")
    parser.add_argument("--write", action="store_true", help="render docs/uncertainty.md from the cache")
    options = parser.parse_args()
    known: dict[str, list[float]] = json.loads(CACHE.read_text()) if CACHE.exists() else {}
    for name in [] if options.write else options.only or MODELS:
        for epsilon in EPSILONS:
            if f"{name}|{epsilon}" in known:
                continue
            found = ratios(name, epsilon, options.seeds)
            CACHE.parent.mkdir(exist_ok=True)
            # Several processes may fill one cache, a table each.
            known = {**(json.loads(CACHE.read_text()) if CACHE.exists() else {}), f"{name}|{epsilon}": found}
            with replacing(CACHE) as stream:
                stream.write(json.dumps(known, indent=0).encode())
    lines = [
        [name, f"{epsilon:g}", *([f"{value:.2f}" for value in known[f"{name}|{epsilon}"]] or ["refused"] * 6)]
        for name in MODELS
        for epsilon in EPSILONS
        if f"{name}|{epsilon}" in known
    ]
    part = ("Stated standard error divided by the spread over noise seeds", HEAD, lines)
    print_table(*part)
    if options.write:
        marks = re.compile(r"(<!-- generated -->\n).*(<!-- end -->)", re.DOTALL)
        PAGE.write_text(marks.sub(lambda match: f"{match[1]}\n{markdown_table(*part)}\n{match[2]}", PAGE.read_text()))


if __name__ == "__main__":
    main()
