"""How many values of each column are at most a threshold: dense and CSR tables, in one pass."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from dpadmm.rows.file_pages import FilePages

Array = NDArray[np.float64]

BLOCK_ENTRIES = 1 << 20
"""Entries of a dense table compared together."""


def counts_below(X: Any, alive: NDArray[np.bool_], thresholds: Array, pages: FilePages) -> Array:
    """Of the rows that are `alive`, how many have x_j ≤ t_j, for each column j."""
    if sparse.issparse(X):
        return _sparse(X, alive, thresholds)
    length = max(1, BLOCK_ENTRIES // max(1, X.shape[1]))
    total = np.zeros(X.shape[1])
    for start in range(0, X.shape[0], length):
        block = slice(start, start + length)
        total += ((X[block] <= thresholds) & alive[block, None]).sum(axis=0)
        pages.after(length * X.shape[1] * X.dtype.itemsize)
    return total


def _sparse(X: Any, alive: NDArray[np.bool_], thresholds: Array) -> Array:
    """Zeros are counted together; each stored entry then takes its own answer in place of that of a zero."""
    zero = (thresholds >= 0).astype(np.float64)
    kept = np.repeat(alive, np.diff(X.indptr))
    columns, values = X.indices[kept], X.data[kept]
    correction = (values <= thresholds[columns]) - zero[columns]
    return np.asarray(np.bincount(columns, weights=correction, minlength=X.shape[1]) + zero * alive.sum())
