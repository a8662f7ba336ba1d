"""Rows on a public lattice: every sum is a sum of integers, exact, whatever the order of the rows."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dsyrk

from dpadmm.errors import QueryRefused
from dpadmm.kernels.clipping import SAFETY, clip_slopes
from dpadmm.privacy.arithmetic import LARGEST_EXACT_WIDTH
from dpadmm.privacy.questions import (
    At,
    ClippedGradient,
    FeatureCurvature,
    GradientDifference,
    JointMoments,
    Question,
    SecondMoment,
    Space,
)
from dpadmm.privacy.questions.base import clip_there
from dpadmm.privacy.sampling import Batch
from dpadmm.problem.losses.base import Loss
from dpadmm.problem.rowmap import RowMap
from dpadmm.problem.spiked_map import SpikedMap
from dpadmm.rows.array_view import ArrayView
from dpadmm.rows.curvature_sums import require_curvature
from dpadmm.rows.lattice_sum import LatticeSum, Sum, joined
from dpadmm.rows.packed import PackedRows
from dpadmm.rows.row_by_row import Chosen, finished, held, shape_of_answer, size_of, stretches, whole

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
        self._turned, self._alive = False, table.factors != 0
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
        self.n_rows, n_features = rows.shape
        columns = () if self._loss.outputs == 1 else (self._loss.outputs,)
        self.space = Space((n_features, *columns), n_features)

    def ask(self, question: Question[Any], at: At, batch: Batch) -> Sum:
        way = self.WAYS.get(type(question))
        return self._row_by_row(question, at, batch) if way is None else way(self, question, at, batch)

    def _row_by_row(self, question: Question[Any], at: At, batch: Batch) -> LatticeSum:
        """Contributions clipped, weighed and cut off towards zero, to units that all rows together cannot exhaust."""
        if not question.may_be_cut:
            raise QueryRefused(f"{question.name!r} has no proof for contributions that exact arithmetic cuts off")
        if question.frame == "table" and self._turned:
            raise QueryRefused(f"{question.name!r} is asked in the coordinates of the table")
        clip, (shape, _) = clip_there(question, at, self.space), shape_of_answer(question, at, self._shown)
        unit, total = self._unit(clip), np.zeros(shape, dtype=np.int64)
        for places in stretches(slice(0, size_of(batch, self.n_rows)), min(BLOCK_ROWS, held(self.space, shape))):
            found = finished(question, at, clip, batch, places, self._shown)
            total += np.trunc(found / unit).sum(axis=0).astype(np.int64)
        return LatticeSum(total, unit)

    def _shown(self, chosen: Chosen) -> tuple[ArrayView, Array]:
        view = ArrayView(self._rows[chosen], self._target[chosen], self._loss, self._row_norm, _no_raw_rows)
        return view, self._alive[chosen].astype(np.float64)

    def _unit(self, clip_norm: float) -> float:
        """Of the entries of contributions of at most this norm."""
        return math.ldexp(1.0, _exponent(clip_norm) - min(CONTRIBUTION_BITS, self._spare))

    def _gradient(self, question: ClippedGradient, at: At, batch: Batch) -> LatticeSum:
        return self._clipped_sum(at[0], None, question.clip, question.clip, batch)

    def _difference(self, question: GradientDifference, at: At, batch: Batch) -> LatticeSum:
        x, anchor, clip_norm = at
        return self._clipped_sum(x, anchor, question.gradient_clip, clip_norm, batch)

    def _moments(self, statistic: JointMoments, at: At) -> Sum:
        """The rows are cut off once more, after they were divided by their declared norm: both sums are of one row."""
        bits, outputs = self._unit_bits, self._loss.outputs
        d = self.space.n_features
        correlation, second = np.zeros((d, outputs), dtype=np.int64), np.zeros((d, d), dtype=np.int64)
        for block in _blocks(self.n_rows):
            unit = self._unit_integers(block, self._row_norm, bits)
            if statistic.non_negative:
                np.maximum(unit, 0.0, out=unit)
            correlation += (unit.T @ self._whole_scores(block, statistic.slope_unit, bits)).astype(np.int64)
            second += _gram(unit)
        score_unit = math.ldexp(1.0, -bits) if outputs == 1 else 1.0 / outputs
        row_unit = math.ldexp(1.0, -bits)
        return joined(
            [
                LatticeSum(correlation, score_unit * row_unit),
                LatticeSum(second, math.sqrt(statistic.balance) * row_unit**2),
            ]
        )

    def _second_moment(self, question: SecondMoment, at: At) -> LatticeSum:
        bits, d = self._unit_bits, self.space.n_features
        total = np.zeros((d, d), dtype=np.int64)
        for block in _blocks(self.n_rows):
            total += _gram(self._unit_integers(block, 1.0, bits))
        return LatticeSum(total, math.ldexp(1.0, -2 * bits))

    def _curvature(self, question: FeatureCurvature, at: At) -> LatticeSum:
        """A contribution is cut off once it is clipped, towards zero: it stays short, and without a negative entry."""
        x, weights = at
        if self._turned:
            raise QueryRefused("curvatures are those along the features of the table")
        require_curvature(self._loss, weights, self._row_norm)
        unit, total = self._unit(1.0), np.zeros(self.space.n_features, dtype=np.int64)
        for block in _blocks(self.n_rows):
            rows = self._rows[block]
            squares = rows * rows * weights
            bends = self._loss.curvature(np.add.reduce(rows * x, axis=1), self._target[block])
            bends = clip_slopes(bends, _norms(squares), 1.0)
            total += np.trunc(squares * bends[:, None] / unit).sum(axis=0).astype(np.int64)
        return LatticeSum(total, unit)

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

    def remapped(self, rowmap: RowMap) -> LatticeRows:
        raise QueryRefused("rows of exact arithmetic are mapped once")

    # -- clipped gradients ---------------------------------------------------------------------------------------

    def _clipped_sum(
        self, x: Array, anchor: Array | None, gradient_clip: float, clip_norm: float, batch: Batch
    ) -> LatticeSum:
        unit, total = self._unit(clip_norm), np.zeros((self.space.n_features, self._loss.outputs), dtype=np.int64)
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

    WAYS: ClassVar[dict[type, Callable[[Any, Any, At, Batch], Sum]]] = {
        ClippedGradient: _gradient,
        GradientDifference: _difference,
        JointMoments: whole(_moments),
        SecondMoment: whole(_second_moment),
        FeatureCurvature: whole(_curvature),
    }
    """Fast ways, by type of question."""


def _no_raw_rows() -> Array:
    raise QueryRefused("rows of exact arithmetic are held as they are mapped, not as they were given")


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
