"""Rows in this process's memory, dense or CSR, float32 or float64."""

from __future__ import annotations

import copy
import functools
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from dpadmm.oracles.wide import SpikedRows, row_moments, spiked_norms
from dpadmm.privacy.clipping import SAFETY, clip_slopes
from dpadmm.privacy.sampling import Batch
from dpadmm.privacy.statistics import JointMoments, RowMoments
from dpadmm.problem.losses.base import Loss
from dpadmm.problem.rowmap import row_norms
from dpadmm.problem.spiked import SpikedMap

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
    row_norm : float
        Declared norm by which rows are divided in `moment_sums`.

    Notes
    -----
    *Formal guarantees.* Every sum returned is Σ wᵢ gᵢ with wᵢ ∈ {0, 1} and ‖gᵢ‖ ≤ the clip given. Sums are formed in
    float64 whatever the precision of the rows: in float32 the rounding of a long sum can itself exceed the clip.
    """

    def __init__(self, X: Any, target: NDArray[Any], loss: Loss, row_norm: float = 1.0) -> None:
        self._X = _canonical(X)
        self._drop_infinite_rows()
        self._target = np.asarray(target)
        self._loss = loss
        peak, ratio = row_norms(self._X)
        self._norms = peak * ratio
        self._row_norm = row_norm
        self.n_rows, self.n_features = (int(size) for size in self._X.shape)
        columns = () if loss.outputs == 1 else (loss.outputs,)
        self.point_shape: tuple[int, ...] = (self.n_features, *columns)

    def _drop_infinite_rows(self) -> None:
        """A row that is not finite would turn a sum into NaN and so show itself; it counts as zero."""
        values = self._X.data if sparse.issparse(self._X) else self._X
        if np.all(np.isfinite(values)):
            return
        self._X = self._X.copy()
        if sparse.issparse(self._X):
            owner = np.repeat(np.arange(self._X.shape[0]), np.diff(self._X.indptr))
            bad = np.isin(owner, owner[~np.isfinite(self._X.data)])
            self._X.data[bad] = 0
        else:
            self._X[~np.isfinite(self._X).all(axis=1)] = 0

    def gradient_sum(self, x: Array, clip_norm: float, batch: Batch) -> Array:
        X, target, norms = self._take(batch)
        slopes = clip_slopes(self._slopes(X, target, x), norms, clip_norm)
        return self._weigh(X, slopes, batch)

    def difference_sum(self, x: Array, anchor: Array, gradient_clip: float, clip_norm: float, batch: Batch) -> Array:
        X, target, norms = self._take(batch)
        here = clip_slopes(self._slopes(X, target, x), norms, gradient_clip)
        there = clip_slopes(self._slopes(X, target, anchor), norms, gradient_clip)
        return self._weigh(X, clip_slopes(here - there, norms, clip_norm), batch)

    def moment_sums(self, statistic: JointMoments) -> tuple[Array, Array]:
        def correlate(rows: Array, block: slice) -> Array:
            return np.asarray(rows.T @ self._scores(block, statistic.slope_unit))

        correlation = self._sum(self._unit_blocks(self._row_norm, correlate))
        return correlation, math.sqrt(statistic.balance) * self._gram(self._row_norm)

    def second_moment_sum(self) -> Array:
        return self._gram(1.0)

    def row_moment_sums(self, statistic: RowMoments) -> tuple[Array, ...]:
        with np.errstate(invalid="ignore"):
            factors = SAFETY / self._row_norm / np.maximum(self._norms / self._row_norm, SAFETY)
        return row_moments(self._X, factors, lambda block: self._scores(block, statistic.slope_unit), statistic)

    def transformed(self, matrix: Array | SpikedMap) -> LocalRows | SpikedRows:
        if isinstance(matrix, SpikedMap):
            seen = copy.copy(self)
            seen._norms = spiked_norms(self._X, self._norms, matrix)
            return SpikedRows(seen, matrix)
        return LocalRows(self._X @ matrix.astype(self._X.dtype), self._target, self._loss, self._row_norm)

    def _gram(self, norm: float) -> Array:
        return self._sum(self._unit_blocks(norm, lambda a, block: a.T @ a))

    def _unit_blocks(self, norm: float, summarise: Callable[[Array, slice], Array]) -> Iterator[Array]:
        """Blocks of rows in float64, divided by `norm` and scaled down to the unit ball where they leave it."""
        longest = np.maximum(self._norms / norm, SAFETY)
        for start in range(0, self.n_rows, SUM_BLOCK):
            block = slice(start, start + SUM_BLOCK)
            rows = self._X[block]
            dense = rows.toarray() if sparse.issparse(rows) else np.asarray(rows, dtype=np.float64)
            with np.errstate(invalid="ignore"):
                unit = dense * (SAFETY / norm / longest[block])[:, None]
            yield summarise(np.where(np.isfinite(unit), unit, 0.0), block)

    def _sum(self, parts: Iterator[Array]) -> Array:
        return np.asarray(functools.reduce(np.add, parts))

    def _scores(self, block: slice, slope_unit: float) -> Array:
        """Descent slopes at zero: within ±1 for one output, e_y − 1/K for K."""
        target, outputs = self._target[block], self._loss.outputs
        if outputs > 1:
            return np.asarray(np.eye(outputs)[target] - 1.0 / outputs)
        slopes = -self._loss.slope(np.zeros(len(target)), target) / slope_unit
        return np.clip(np.where(np.isfinite(slopes), slopes, 0.0), -1.0, 1.0)

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


def _canonical(X: Any) -> Any:
    """Dense as it is; CSR in float64 with duplicate entries summed, so that its norms are those of its rows."""
    if not sparse.issparse(X):
        return np.ascontiguousarray(X)
    rows = sparse.csr_matrix(X, dtype=np.float64, copy=True)
    rows.sum_duplicates()
    return rows
