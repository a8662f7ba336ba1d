"""The tables that are measured on: real ones where they are at hand, else simulated ones of the same shape."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from dpadmm.datasets import load
from dpadmm.errors import DpadmmError
from dpadmm.problem.losses import Logistic, Softmax
from dpadmm.problem.rowmap import RowMap
from dpadmm.rows.local import LocalRows
from dpadmm.rows.packed import PackedRows

SHAPES = {"adult": (30162, 104), "covtype": (581012, 54), "w8a": (49749, 300), "mnist": (60000, 784)}
W8A_NONZEROS = 12
WIDE = (200_000, 50_000, 75)
"""Rows, columns and entries of a row of the simulated sparse table."""
TOPICS = (50_000, 10_000, 75, 10)
"""The same of one with several classes, and how many."""
MANY_TOPICS = (30_000, 50_000, 75, 20)
"""The same of one whose sums do not fit into a cache."""


@dataclass(frozen=True, eq=False)
class Table:
    """Raw rows and class labels. `note` says if they were simulated."""

    X: Any
    y: NDArray[Any]
    note: str = ""

    def as_dtype(self, dtype: Any) -> Table:
        return Table(self.X.astype(dtype), self.y, self.note)

    def dense(self) -> Table:
        return Table(self.X.toarray(), self.y, self.note)

    @property
    def targets(self) -> NDArray[Any]:
        """±1 for two classes, class numbers for more."""
        classes, numbers = np.unique(self.y, return_inverse=True)
        return 2.0 * numbers - 1.0 if len(classes) == 2 else numbers.astype(np.intp)


@cache
def table(name: str) -> Table:
    """adult, covtype and mnist dense in float32, w8a and the simulated ones as CSR."""
    if name == "wide":
        return simulated_sparse(*WIDE)
    if name == "topics":
        return simulated_sparse(*TOPICS)
    if name == "many topics":
        return simulated_sparse(*MANY_TOPICS)
    try:
        data = load(name, download=False)
    except DpadmmError:
        note = f"simulated, shape of {name}"
        return replace(_stand_in(name), note=note)
    return Table(data.X if sparse.issparse(data.X) else data.X.astype(np.float32), data.y)


def _stand_in(name: str) -> Table:
    if name == "w8a":
        return uneven(*SHAPES[name], W8A_NONZEROS)
    return simulated(*SHAPES[name], classes=10 if name == "mnist" else 2)


def simulated(n_rows: int, n_features: int, classes: int = 2, dtype: Any = np.float32, seed: int = 0) -> Table:
    """Uniform features, labels from a noisy linear rule."""
    rng = np.random.default_rng(seed)
    X = rng.random((n_rows, n_features), dtype=np.float32).astype(dtype, copy=False)
    weights = rng.standard_normal((n_features, classes)).astype(dtype)
    scores = X @ weights
    y = (scores - scores.mean(axis=0) + rng.gumbel(size=scores.shape)).argmax(axis=1)
    return Table(X, y, "simulated")


def simulated_sparse(n_rows: int, n_features: int, nonzeros: int, classes: int = 2, seed: int = 0) -> Table:
    """`nonzeros` entries a row, in different columns with frequencies that fall like those of words."""
    rng = np.random.default_rng(seed)
    columns = different_columns(rng, n_rows, n_features, nonzeros)
    values = rng.random(n_rows * nonzeros, dtype=np.float32)
    starts = np.arange(0, n_rows * nonzeros + 1, nonzeros, dtype=np.int32)
    X = sparse.csr_matrix((values, columns.ravel(), starts), shape=(n_rows, n_features))
    if classes > 2:
        scores = X @ rng.standard_normal((n_features, classes)).astype(np.float32)
        return Table(X, (scores + rng.gumbel(size=scores.shape)).argmax(axis=1), "simulated")
    scores = X @ rng.standard_normal(n_features).astype(np.float32)
    y = np.where(scores + rng.logistic(size=n_rows) > 0, 1, -1)
    return Table(X, y, "simulated")


def uneven(n_rows: int, n_features: int, nonzeros: int) -> Table:
    """The same with rows of all lengths from none to twice as many entries."""
    even, rng = simulated_sparse(n_rows, n_features, 2 * nonzeros), np.random.default_rng(1)
    kept = rng.random(even.X.nnz) < np.repeat(rng.random(n_rows), 2 * nonzeros)
    rows = even.X.tocoo()
    X = sparse.csr_matrix((rows.data[kept], (rows.row[kept], rows.col[kept])), shape=even.X.shape)
    return replace(even, X=X)


def different_columns(rng: np.random.Generator, n_rows: int, n_features: int, count: int) -> NDArray[np.int32]:
    """`count` columns of each row, in order; of those that meet one is drawn anew until none do."""
    columns = np.sort(words(rng, (n_rows, count), n_features), axis=1)
    crowded = np.arange(n_rows)
    while len(crowded):
        rows = columns[crowded]
        again = np.zeros(rows.shape, bool)
        again[:, 1:] = rows[:, 1:] == rows[:, :-1]
        rows[again] = words(rng, again.sum(), n_features)
        columns[crowded] = np.sort(rows, axis=1)
        crowded = crowded[again.any(axis=1)]
    return columns


def words(rng: np.random.Generator, shape: Any, n_features: int) -> NDArray[np.int32]:
    """Columns, of which number k has a frequency of about 1/k."""
    return np.asarray(n_features ** rng.random(shape) - 1).astype(np.int32)


def mapped(rows: Table) -> Any:
    """A copy of the rows as a model sees them."""
    return RowMap().apply(rows.X)


def held(rows: Table) -> LocalRows:
    """The rows as a fit holds them."""
    targets = rows.targets
    loss = Logistic() if targets.dtype.kind == "f" else Softmax(int(targets.max()) + 1)
    return LocalRows(PackedRows.of(RowMap(), rows.X), targets, loss)
