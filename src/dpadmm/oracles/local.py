"""Rows in this process's memory, dense or CSR, float32 or float64."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from dpadmm.privacy.clipping import clip_slopes
from dpadmm.privacy.sampling import Batch
from dpadmm.problem.losses.base import Loss
from dpadmm.problem.rowmap import row_norms

Array = NDArray[np.float64]

SUM_BLOCK = 1024
"""Rows converted to float64 at a time: small enough to stay in cache."""


class LocalRows:
    """Mapped rows with their targets.

    Parameters
    ----------
    X : (n, d) ndarray or CSR
        Rows after `RowMap`. A zero row contributes nothing, whatever its target.
    target : (n,)
        What the loss expects: ±1, a number, or a class index.
    loss : Loss
        Per-row loss.

    Notes
    -----
    *Formal guarantees.* Every sum returned is Σ wᵢ gᵢ with wᵢ ∈ {0, 1} and ‖gᵢ‖ ≤ the clip given. Sums are formed in
    float64 whatever the precision of the rows: in float32 the rounding of a long sum can itself exceed the clip.
    """

    def __init__(self, X: Any, target: NDArray[Any], loss: Loss) -> None:
        self._X = X.tocsr().astype(np.float64) if sparse.issparse(X) else np.ascontiguousarray(X)
        self._target = np.asarray(target)
        self._loss = loss
        peak, ratio = row_norms(self._X)
        self._norms = peak * ratio
        self.n_rows = int(self._X.shape[0])

    def gradient_sum(self, x: Array, clip_norm: float, batch: Batch) -> Array:
        X, target, norms = self._take(batch)
        slopes = clip_slopes(self._slopes(X, target, x), norms, clip_norm)
        return self._weigh(X, slopes, batch)

    def difference_sum(self, x: Array, anchor: Array, gradient_clip: float, clip_norm: float, batch: Batch) -> Array:
        X, target, norms = self._take(batch)
        here = clip_slopes(self._slopes(X, target, x), norms, gradient_clip)
        there = clip_slopes(self._slopes(X, target, anchor), norms, gradient_clip)
        return self._weigh(X, clip_slopes(here - there, norms, clip_norm), batch)

    def _take(self, batch: Batch) -> tuple[Any, NDArray[Any], Array]:
        if batch.rows is None:
            return self._X, self._target, self._norms
        return self._X[batch.rows], self._target[batch.rows], self._norms[batch.rows]

    def _slopes(self, X: Any, target: NDArray[Any], x: Array) -> NDArray[Any]:
        return self._loss.slope(X @ x.astype(X.dtype, copy=False), target)

    def _weigh(self, X: Any, slopes: Array, batch: Batch) -> Array:
        if batch.weights is not None:
            slopes = slopes * (batch.weights if slopes.ndim == 1 else batch.weights[:, None])
        if X.dtype == np.float64:
            return np.asarray(X.T @ slopes)
        total = np.zeros((X.shape[1], *slopes.shape[1:]))
        for start in range(0, len(slopes), SUM_BLOCK):
            block = slice(start, start + SUM_BLOCK)
            total += X[block].astype(np.float64).T @ slopes[block]
        return total
