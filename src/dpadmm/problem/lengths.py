"""Lengths of the rows of any matrix, and factors that shorten them, without overflow or underflow."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from dpadmm.kernels.clipping import squared_lengths

#: A dense array or a sparse matrix of SciPy in CSR form.
Matrix: TypeAlias = Any


def row_norms(X: Matrix) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(peak, ratio) with ‖row‖ = peak · ratio, both accumulated in float64, safe for rows of size 1e300."""
    if sparse.issparse(X):
        counts = np.diff(X.indptr)
        owner = np.repeat(np.arange(X.shape[0]), counts)
        values = np.abs(X.data.astype(np.float64))
        peak = np.zeros(X.shape[0])
        np.maximum.at(peak, owner, values)
        safe = np.where(peak > 0, peak, 1.0)
        squares = np.bincount(owner, weights=(values / safe[owner]) ** 2, minlength=X.shape[0])
        return safe, np.sqrt(squares)
    peak = np.abs(X).max(axis=1, initial=0).astype(np.float64)
    safe = np.where(peak > 0, peak, 1.0)
    ratio = np.empty(len(X))
    block = max(1, (1 << 20) // max(1, X.shape[1]))
    for start in range(0, len(X), block):
        rows = X[start : start + block].astype(np.float64) / safe[start : start + block, None]
        ratio[start : start + block] = np.sqrt(squared_lengths(rows))
    return safe, ratio


def shrink_factor(peak: NDArray[np.float64], ratio: NDArray[np.float64], bound: float) -> NDArray[np.float64]:
    """min(1, bound / (peak · ratio)), without forming the product, which may overflow."""
    ratio = np.where(ratio > 0, ratio, 1.0)
    with np.errstate(over="ignore"):
        shrink = bound / peak
        shrink /= ratio
        return np.minimum(1.0, shrink, out=shrink)
