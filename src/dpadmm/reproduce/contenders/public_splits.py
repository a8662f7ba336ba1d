"""Training and test rows of the public tables, split as the papers split them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from dpadmm.datasets import load, make_demo
from dpadmm.problem.rowmap import RowMap

Array = NDArray[Any]
SplitKind = Literal["halves", "folds", "simulated"]
SPLIT_SEED, FOLDS = 0, 10
UNSCALED = ("bio_train",)
QUICK_ROWS = 4000
"""At most so many rows to train on, and to test on, with `--quick`."""


@dataclass(frozen=True, eq=False)
class PublicRows:
    """Rows as an estimator is given them, and as it maps them: norm at most one, a constant last for the intercept."""

    X: Array
    y: Array
    X_test: Array
    y_test: Array

    @property
    def n_rows(self) -> int:
        return len(self.y)

    @property
    def n_features(self) -> int:
        return int(self.X.shape[1])


@lru_cache(maxsize=8)
def public_rows(table: str, kind: SplitKind, seed: int, quick: bool) -> PublicRows:
    """Two halves of the training file, the same for all seeds; all but one fold of all rows; or a simulated table."""
    if kind == "simulated":
        train, test = make_demo(random_state=2 * seed), make_demo(random_state=2 * seed + 1)
        lower, upper = train.extras["bounds"]
        X, X_test = (2 * (each.X - lower) / (upper - lower) - 1 for each in (train, test))
        return _cut(PublicRows(X, train.y, X_test, test.y), quick)
    X, y = _training_file(table) if kind == "halves" else _all_rows(table)
    order = np.random.default_rng(SPLIT_SEED).permutation(len(y))
    cut = np.array_split(order, 2 if kind == "halves" else FOLDS)
    out = 1 if kind == "halves" else seed % FOLDS
    train_rows = np.sort(np.concatenate([part for number, part in enumerate(cut) if number != out]))
    test_rows = np.sort(cut[out])
    if table in UNSCALED:
        X = to_usual_range(X, X[train_rows])
    return _cut(PublicRows(X[train_rows], y[train_rows], X[test_rows], y[test_rows]), quick)


@lru_cache(maxsize=8)
def mapped_rows(rows: PublicRows) -> tuple[Array, Array]:
    """Training and test rows as a model with an intercept sees them, dense, in single precision."""
    rowmap = RowMap(1.0, intercept=True)
    return _dense(rowmap.apply(rows.X)), _dense(rowmap.apply(rows.X_test))


def signs(labels: Array) -> Array:
    """Labels as −1 and +1."""
    return np.where(labels > 0, 1.0, -1.0)


def to_usual_range(X: Array, examples: Array) -> Array:
    """Features cut at their quantiles of 1 % and 99 %, then in [-1, 1]. These bounds are taken as known, as the bounds
    stored with other data sets are."""
    low, high = np.quantile(examples, [0.01, 0.99], axis=0)
    scaled: Array = np.clip(2 * (X - low) / np.where(high > low, high - low, 1.0) - 1, -1, 1)
    return scaled


@lru_cache(maxsize=4)
def _training_file(name: str) -> tuple[Any, Array]:
    """The rows of a table without those of an official test split."""
    data = load(name, download=False)
    return data.X, data.y


def _all_rows(name: str) -> tuple[Any, Array]:
    """All rows of a table; those of an official test split come last."""
    data = load(name, download=False)
    if data.X_test is None or data.y_test is None:
        return data.X, data.y
    join = sparse.vstack if sparse.issparse(data.X) else np.vstack
    return join([data.X, data.X_test]), np.concatenate([data.y, data.y_test])


def _cut(rows: PublicRows, quick: bool) -> PublicRows:
    if not quick:
        return rows
    rng = np.random.default_rng(SPLIT_SEED)
    kept, kept_test = (rng.permutation(len(y))[:QUICK_ROWS] for y in (rows.y, rows.y_test))
    return PublicRows(rows.X[kept], rows.y[kept], rows.X_test[kept_test], rows.y_test[kept_test])


def _dense(X: Any) -> Array:
    return np.ascontiguousarray(X.toarray() if sparse.issparse(X) else X, dtype=np.float32)
