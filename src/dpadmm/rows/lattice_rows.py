"""Rows on a public lattice: every sum is a sum of integers, exact, whatever the order of the rows."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dsyrk

from dpadmm.errors import QueryRefused
from dpadmm.kernels.clipping import SAFETY, clip_slopes
from dpadmm.privacy.arithmetic import LARGEST_EXACT_WIDTH
from dpadmm.privacy.questions import JointMoments, RowMoments
from dpadmm.privacy.sampling import Batch
from dpadmm.problem.losses.base import Loss
from dpadmm.problem.spiked_map import SpikedMap
from dpadmm.rows.curvature_sums import require_curvature
from dpadmm.rows.lattice_sum import LatticeSum
from dpadmm.rows.packed import PackedRows

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

ROW_BITS = 20
MATRIX_BITS = 22
CONTRIBUTION_BITS = 40
BLOCK_ROWS = 1 << 12
"""Sums of so many products of two row entries, or contributions, stay below 2⁵³: float64 adds them without rounding."""
INTEGER_BITS = 62
"""No sum over all rows reaches this power of two."""


class LatticeRows:
    """Rows cut off to multiples of a power of two, towards zero, so that no norm grows.

    Parameters
    ----------
    table : PackedRows
        Mapped rows.
    target, loss
        As in `LocalRows`.
    row_norm : float
        Declared bound on the norm of a row.
    most_rows : int
        Public bound on the number of rows, from which the lattice of the sums is chosen.

    Notes
    -----
    *Formal guarantees.* Every sum is Σ gᵢ in integers, each gᵢ a function of row i and public numbers alone, with
    ‖gᵢ‖ ≤ the clip given, or of the form a statistic's reach is proved for (docs/proofs/float.md, Claim 3). It holds
    one float64 copy of the rows, and one more after a change of coordinates.
    """

    def __init__(self, table: PackedRows, target: NDArray[Any], loss: Loss, row_norm: float, most_rows: int) -> None:
        if table.n_features > LARGEST_EXACT_WIDTH:
            raise QueryRefused(f"exact arithmetic takes at most {LARGEST_EXACT_WIDTH} features")
        self._loss, self._target, self._row_norm = loss, np.asarray(target), row_norm
        self._turned = False
        self._spare = INTEGER_BITS - math.ceil(math.log2(max(2, most_rows)))
        step = math.ldexp(1.0, _exponent(row_norm) - ROW_BITS)
        rows = np.empty((table.n_rows, table.n_features))
        for block in _blocks(table.n_rows):
            # Mapped rows are no longer than declared; were one longer, products would leave the integers of float64.
            shorten = row_norm / np.maximum(table.norms[block], row_norm)
            rows[block] = _cut(table.block(block) * shorten[:, None], step)
        self._see(rows)

    def _see(self, rows: Array) -> None:
        self._rows = rows
        self._norms = np.concatenate([_norms(rows[block]) for block in _blocks(len(rows))])
        self.n_rows, self.n_features = rows.shape
        columns = () if self._loss.outputs == 1 else (self._loss.outputs,)
        self.point_shape: tuple[int, ...] = (self.n_features, *columns)

    def gradient_sum(self, x: Array, clip_norm: float, batch: Batch) -> LatticeSum:
        return self._clipped_sum(x, None, clip_norm, clip_norm, batch)

    def difference_sum(
        self, x: Array, anchor: Array, gradient_clip: float, clip_norm: float, batch: Batch
    ) -> LatticeSum:
        return self._clipped_sum(x, anchor, gradient_clip, clip_norm, batch)

    def moment_sums(self, statistic: JointMoments) -> tuple[LatticeSum, LatticeSum]:
        """The rows are cut off once more, after they were divided by their declared norm: both sums are of one row."""
        bits, outputs = self._unit_bits, self._loss.outputs
        correlation = np.zeros((self.n_features, outputs), dtype=np.int64)
        second = np.zeros((self.n_features, self.n_features), dtype=np.int64)
        for block in _blocks(self.n_rows):
            unit = self._unit_integers(block, self._row_norm, bits)
            if statistic.non_negative:
                np.maximum(unit, 0.0, out=unit)
            correlation += (unit.T @ self._whole_scores(block, statistic.slope_unit, bits)).astype(np.int64)
            second += _gram(unit)
        score_unit = math.ldexp(1.0, -bits) if outputs == 1 else 1.0 / outputs
        row_unit = math.ldexp(1.0, -bits)
        return (
            LatticeSum(correlation[:, 0] if outputs == 1 else correlation, score_unit * row_unit),
            LatticeSum(second, math.sqrt(statistic.balance) * row_unit**2),
        )

    def second_moment_sum(self) -> LatticeSum:
        bits = self._unit_bits
        total = np.zeros((self.n_features, self.n_features), dtype=np.int64)
        for block in _blocks(self.n_rows):
            total += _gram(self._unit_integers(block, 1.0, bits))
        return LatticeSum(total, math.ldexp(1.0, -2 * bits))

    def curvature_sum(self, x: Array, weights: Array) -> LatticeSum:
        """A contribution is cut off once it is clipped, towards zero: it stays short, and without a negative entry."""
        if self._turned:
            raise QueryRefused("curvatures are those along the features of the table")
        require_curvature(self._loss, weights, self._row_norm)
        unit = math.ldexp(1.0, _exponent(1.0) - min(CONTRIBUTION_BITS, self._spare))
        total = np.zeros(self.n_features, dtype=np.int64)
        for block in _blocks(self.n_rows):
            rows = self._rows[block]
            squares = rows * rows * weights
            bends = self._loss.curvature(np.add.reduce(rows * x, axis=1), self._target[block])
            bends = clip_slopes(bends, _norms(squares), 1.0)
            total += np.trunc(squares * bends[:, None] / unit).sum(axis=0).astype(np.int64)
        return LatticeSum(total, unit)

    def row_moment_sums(self, statistic: RowMoments) -> tuple[LatticeSum, ...]:
        raise QueryRefused("row moments are for tables wider than exact arithmetic takes")

    def transformed(self, matrix: Array | SpikedMap) -> LatticeRows:
        """The rows Pᵀ row for the P rounded to 22 bits: products of integers below 2⁵³, exact in any order."""
        if isinstance(matrix, SpikedMap):
            raise QueryRefused("these coordinates are for tables wider than exact arithmetic takes")
        step = math.ldexp(1.0, _exponent(float(np.abs(matrix).max())) - MATRIX_BITS)
        rounded = np.rint(matrix / step) * step
        seen: LatticeRows = copy.copy(self)
        seen._turned = True
        seen._see(self._rows @ rounded)
        return seen

    # -- clipped gradients ---------------------------------------------------------------------------------------

    def _clipped_sum(
        self, x: Array, anchor: Array | None, gradient_clip: float, clip_norm: float, batch: Batch
    ) -> LatticeSum:
        unit = math.ldexp(1.0, _exponent(clip_norm) - min(CONTRIBUTION_BITS, self._spare))
        total = np.zeros((self.n_features, self._loss.outputs), dtype=np.int64)
        count = self.n_rows if batch.rows is None else len(batch.rows)
        for block in _blocks(count):
            chosen = block if batch.rows is None else batch.rows[block]
            slopes = self._slopes(x, chosen, gradient_clip)
            if anchor is not None:
                slopes = slopes - self._slopes(anchor, chosen, gradient_clip)
                slopes = clip_slopes(slopes, self._norms[chosen], clip_norm)
            if batch.weights is not None:
                slopes = slopes * _per_row(batch.weights[block], slopes)
            rows = self._rows[chosen]
            for output, slope in enumerate(slopes.reshape(len(rows), -1).T):
                counts = np.trunc(rows * slope[:, None] / unit)
                total[:, output] += counts.sum(axis=0).astype(np.int64)
        return LatticeSum(total[:, 0] if self._loss.outputs == 1 else total, unit)

    def _slopes(self, x: Array, chosen: Any, clip_norm: float) -> Array:
        """Clipped slopes. Margins are added up row by row, so that they do not depend on where a row stands."""
        rows, columns = self._rows[chosen], x.reshape(len(x), -1)
        margins = np.column_stack([np.add.reduce(rows * column, axis=1) for column in columns.T])
        slopes = self._loss.slope(margins[:, 0] if x.ndim == 1 else margins, self._target[chosen])
        return clip_slopes(slopes, self._norms[chosen], clip_norm)

    # -- moments -------------------------------------------------------------------------------------------------

    @property
    def _unit_bits(self) -> int:
        return min(ROW_BITS, self._spare // 2)

    def _unit_integers(self, block: slice, norm: float, bits: int) -> Array:
        """Rows divided by `norm`, scaled into the unit ball where they leave it, in whole units of 2^(−bits)."""
        factors = SAFETY / norm / np.maximum(self._norms[block] / norm, SAFETY)
        return np.asarray(np.trunc(np.ldexp(self._rows[block] * factors[:, None], bits)))

    def _whole_scores(self, block: slice, slope_unit: float, bits: int) -> Array:
        """Descent slopes at zero, in units of 2^(−bits) for one output and of 1/K for K, where they are K·e_y − 1."""
        target, outputs = self._target[block], self._loss.outputs
        if outputs > 1:
            return np.asarray(outputs * np.eye(outputs)[target] - 1.0)
        slopes = -self._loss.slope(np.zeros(len(target)), target) / slope_unit
        scores = np.clip(np.where(np.isfinite(slopes), slopes, 0.0), -1.0, 1.0)
        return np.asarray(np.trunc(np.ldexp(scores, bits))[:, None])


def _exponent(size: float) -> int:
    """e with size ≤ 2^e."""
    return math.frexp(size)[1]


def _cut(rows: Array, step: float) -> Array:
    return np.asarray(np.trunc(rows / step) * step)


def _norms(rows: Array) -> Array:
    """Also of rows whose squares would underflow."""
    peaks = np.abs(rows).max(axis=1, initial=0.0)
    scaled = rows / np.where(peaks > 0, peaks, 1.0)[:, None]
    return np.asarray(peaks * np.sqrt(np.add.reduce(scaled * scaled, axis=1)))


def _blocks(count: int) -> Iterator[slice]:
    for start in range(0, max(1, count), BLOCK_ROWS):
        yield slice(start, min(start + BLOCK_ROWS, count))


def _gram(integers: Array) -> Integers:
    """AᵀA of whole numbers, exact."""
    upper = dsyrk(1.0, integers.T, lower=False).astype(np.int64)
    return np.asarray(np.triu(upper) + np.triu(upper, 1).T)


def _per_row(values: Array, slopes: Array) -> Array:
    return values if slopes.ndim == 1 else values[:, None]
