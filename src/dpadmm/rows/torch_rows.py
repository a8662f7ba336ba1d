"""Rows in a torch tensor on an accelerator: all work on rows is done there, and sums alone come back."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpadmm.errors import QueryRefused
from dpadmm.kernels.clipping import SAFETY
from dpadmm.privacy.questions import (
    At,
    ClippedGradient,
    CountsBelow,
    FeatureCurvature,
    FeatureMoment,
    GradientDifference,
    JointMoments,
    Question,
    RowMoments,
    SecondMoment,
    Space,
)
from dpadmm.privacy.sampling import Batch
from dpadmm.problem.losses.base import Loss
from dpadmm.problem.rowmap import RowMap
from dpadmm.problem.spiked_map import SpikedMap
from dpadmm.rows.array_view import descent_slopes
from dpadmm.rows.curvature_sums import require_curvature
from dpadmm.rows.lattice_sum import Sum, joined
from dpadmm.rows.local import require_moderate
from dpadmm.rows.row_by_row import Chosen, row_by_row, whole
from dpadmm.rows.tensor_view import TensorView, clip_slopes, curvature_of, margins, slope_of, target_type
from dpadmm.rows.torch_table import (
    PackedTensor,
    Tensor,
    folded,
    lengths,
    pack_tensor,
    row_blocks,
    summed,
    to_device,
    to_host,
)
from dpadmm.rows.wide import SMALLEST_SQUARE, SpikedRows, moment_parts

Array = NDArray[np.float64]


class TorchRows:
    """`LocalRows` on a device.

    Parameters
    ----------
    table : PackedTensor
        Rows and their map.
    target, loss, row_norm, weights
        As in `LocalRows`, in memory; copied to the device.

    Notes
    -----
    *Formal guarantees.* Those of `LocalRows`: every sum is Σ wᵢ gᵢ with wᵢ ∈ [0, 1] and ‖gᵢ‖ ≤ the clip given. It is
    formed in float64, in runs of the lengths that are charged and in whatever order the device adds
    (docs/proofs/float.md, Lemma 1b). Contributions of gradients are computed by elementwise operations alone.
    """

    def __init__(
        self,
        table: PackedTensor,
        target: NDArray[Any],
        loss: Loss,
        row_norm: float = 1.0,
        weights: Array | None = None,
    ) -> None:
        self._table, self._loss, self._row_norm = table, loss, row_norm
        self._slope = slope_of(loss)
        self._target, self._device = np.asarray(target), table.X.device
        columns = self._target.reshape(len(self._target), -1)
        self._columns = to_device(columns.astype(target_type(loss)), self._device)
        self._norms = table.norms
        clipped = None if weights is None else np.clip(np.nan_to_num(weights), 0.0, 1.0)
        self._weights = None if clipped is None else to_device(clipped, self._device)
        self._matrix: Array | None = None
        self._spiked: SpikedMap | None = None
        outputs = () if loss.outputs == 1 else (loss.outputs,)
        self.n_rows, self.space = table.n_rows, Space((table.n_features, *outputs), table.n_features)

    def ask(self, question: Question[Any], at: At, batch: Batch) -> Sum:
        way = self.WAYS.get(type(question))
        return self._row_by_row(question, at, batch) if way is None else way(self, question, at, batch)

    def _row_by_row(self, question: Question[Any], at: At, batch: Batch) -> Array:
        if question.frame == "table" and (self._matrix is not None or self._spiked is not None):
            raise QueryRefused(f"{question.name!r} is asked in the coordinates of the table")
        return to_host(row_by_row(question, at, self.space, self.n_rows, batch, self._shown))

    def _shown(self, chosen: Chosen) -> tuple[TensorView, Tensor]:
        """Some rows as a question sees them, and the factor of each; rows that count as zero contribute nothing."""
        import torch

        places = chosen if isinstance(chosen, slice) else to_device(chosen, self._device)
        factors = (self._table.factors[places] != 0).to(torch.float64)
        if self._weights is not None:
            factors = factors * self._weights[places]
        view = TensorView(
            self._turned(self._table.block(places)),
            self._columns[places],
            self._loss,
            self._row_norm,
            lambda slope_unit: self._labels(chosen, slope_unit),
            lambda: self._table.X[places].to(torch.float64),
        )
        return view, factors

    def _turned(self, rows: Tensor) -> Tensor:
        """Pᵀ row of each row, to the same last bit wherever it stands."""
        if self._matrix is not None:
            return margins(rows, to_device(self._matrix, self._device))
        if self._spiked is None:
            return rows
        parts = self._spiked.scale, self._spiked.normal, self._spiked.stretches
        scale, normal, stretched = (to_device(part, self._device) for part in parts)
        scaled = rows * scale
        return stretched * (scaled - 2.0 * folded(scaled * normal)[:, None] * normal)

    def _gradient(self, question: ClippedGradient, at: At, batch: Batch) -> Array:
        return self._clipped_sum(at[0], None, question.clip, question.clip, batch)

    def _difference(self, question: GradientDifference, at: At, batch: Batch) -> Array:
        x, anchor, clip_norm = at
        return self._clipped_sum(x, anchor, question.gradient_clip, clip_norm, batch)

    def _moments(self, statistic: JointMoments, at: At) -> Sum:
        scores = self._labels(slice(None), statistic.slope_unit)
        correlation = self._zeros(self.space.n_features, self._loss.outputs)

        def correlate(unit: Tensor, block: slice) -> Tensor:
            if statistic.non_negative:
                unit = unit.clamp(min=0.0)
            weighed = scores[block] if self._weights is None else scores[block] * self._weights[block, None]
            correlation.add_(summed(unit, weighed))
            return unit

        second = math.sqrt(statistic.balance) * self._gram(self._row_norm, correlate)
        return joined([self._shaped(correlation), second])

    def _second_moment(self, question: SecondMoment, at: At) -> Array:
        return self._gram(1.0)

    def _curvature(self, question: FeatureCurvature, at: At) -> Array:
        import torch

        x, weights = at
        if self._matrix is not None:
            raise QueryRefused("curvatures are those along the features of the table")
        require_curvature(self._loss, weights, self._row_norm)
        point, weighing = self._point(x), to_device(weights, self._device)
        total, curvature = self._zeros(1, self.space.n_features), curvature_of(self._loss)
        for rows, block in self._blocks():
            squares = rows**2 * weighing
            bends = clip_slopes(curvature(margins(rows, point)), lengths(squares), 1.0)
            if self._weights is not None:
                bends = bends * self._weights[block, None]
            total += summed(bends, torch.where(torch.isfinite(squares), squares, 0.0))
        return self._shaped(total.T)

    def _feature_moment(self, question: FeatureMoment, at: At) -> Array:
        return self._gram(self._row_norm)

    def _below(self, question: CountsBelow, at: At) -> Array:
        """Exact: halves of whole numbers, whatever the weights."""
        import torch

        (thresholds,) = at
        if thresholds.shape[1] != self._table.X.shape[1]:
            raise QueryRefused("the plan's counts are of other features than the table's")
        X, alive = self._table.X, self._table.factors != 0
        levels = to_device(thresholds, self._device)
        counts = torch.zeros(thresholds.shape, dtype=torch.int64, device=self._device)
        for block in self._table.blocks():
            rows, counted = X[block].to(torch.float64), alive[block, None]
            for level, row in enumerate(levels):
                counts[level] += ((rows <= row) & counted).sum(dim=0)
        return np.asarray(to_host(counts) - float(alive.sum()) / 2)

    def _row_moments(self, statistic: RowMoments, at: At) -> Sum:
        import torch

        scores, d = self._labels(slice(None), statistic.slope_unit), self.space.n_features
        sums, squares = self._zeros(d, self._loss.outputs + 1), self._zeros(d, 1)
        for unit, block in self._unit_blocks(self._row_norm):
            weight = torch.ones_like(unit[:, :1]) if self._weights is None else self._weights[block, None]
            sums += summed(unit, torch.cat([scores[block], torch.ones_like(weight)], dim=1) * weight)
            squares += summed(unit**2, weight)
        found = to_host(squares)[:, 0]
        return joined(moment_parts(to_host(sums), found, float(found.sum()), statistic))

    def remapped(self, rowmap: RowMap) -> TorchRows:
        if self._matrix is not None or rowmap.row_norm != self._row_norm or rowmap.intercept != self._table.intercept:
            raise QueryRefused("rows are mapped anew before coordinates change, to the same norm and intercept")
        rows: TorchRows = copy.copy(self)
        rows._table = pack_tensor(rowmap, self._table.X, self._table.factors != 0)
        rows._norms = rows._table.norms
        return rows

    def transformed(self, matrix: Array | SpikedMap) -> TorchRows | SpikedRows:
        """As of `LocalRows`: only norms are new, and upper bounds."""
        import torch

        if isinstance(matrix, SpikedMap):
            return SpikedRows(self._measured_by(matrix), matrix)
        seen: TorchRows = copy.copy(self)
        seen._matrix = matrix if self._matrix is None else self._matrix @ matrix
        size = float(np.linalg.norm(seen._matrix))
        require_moderate(size * self._row_norm)
        bounds = self._table.norms * size
        seen._norms = bounds * ((self._table.n_features + 8) * np.finfo(np.float64).eps)
        for rows, block in seen._blocks():
            squares = folded(rows**2)
            seen._norms[block] += torch.where(squares < SMALLEST_SQUARE, bounds[block], squares.sqrt())
        return seen

    def _measured_by(self, spiked: SpikedMap) -> TorchRows:
        """The same rows, clipped by the norms ‖Pᵀ row‖; of each row two numbers come here for it."""
        if self._matrix is not None:
            raise QueryRefused("coordinates change from those of the table")
        pulled = to_device(spiked.scale * spiked.direction, self._device)
        squared = to_device(spiked.scale**2, self._device)
        norms = np.empty(self.n_rows)
        for rows, block in self._blocks():
            along, squares = to_host(folded(rows * pulled)), to_host(folded(rows**2 * squared))
            exact, bound = spiked.row_norms(squares, along), spiked.norm_bound * to_host(self._table.norms[block])
            norms[block] = np.where(squares < SMALLEST_SQUARE, bound, exact)
        seen: TorchRows = copy.copy(self)
        seen._spiked, seen._norms = spiked, to_device(norms, self._device)
        return seen

    # -- clipped gradients ---------------------------------------------------------------------------------------

    def _clipped_sum(self, x: Array, anchor: Array | None, gradient_clip: float, clip: float, batch: Batch) -> Array:
        point, there = self._point(x), None if anchor is None else self._point(anchor)
        total = self._zeros(self._loss.outputs, self._table.n_features)
        for rows, weights in self._drawn(batch):
            mapped, norms, target = self._table.block(rows), self._norms[rows], self._columns[rows]
            slopes = self._slope(margins(mapped, point), target)
            if there is not None:
                back = clip_slopes(self._slope(margins(mapped, there), target), norms, gradient_clip)
                slopes = clip_slopes(slopes, norms, gradient_clip) - back
            slopes = clip_slopes(slopes, norms, clip)
            if weights is not None:
                slopes = slopes * weights[:, None]
            total += summed(slopes, mapped)
        answer = self._shaped(total.T)
        return answer if self._matrix is None else self._matrix.T @ answer

    def _drawn(self, batch: Batch) -> Iterator[tuple[slice | Tensor, Tensor | None]]:
        """Rows of the batch, block by block, with what each contribution is multiplied by."""
        count = self.n_rows if batch.rows is None else len(batch.rows)
        for block in row_blocks(count, self._table.n_features):
            rows = block if batch.rows is None else to_device(batch.rows[block], self._device)
            own = None if self._weights is None else self._weights[rows]
            drawn = None if batch.weights is None else to_device(batch.weights[block], self._device)
            yield rows, own if drawn is None else drawn if own is None else own * drawn

    def _point(self, x: Array) -> Tensor:
        """x in the coordinates of the mapped rows, one column an output."""
        x = x if self._matrix is None else self._matrix @ x
        return to_device(np.ascontiguousarray(x.reshape(len(x), -1), dtype=np.float64), self._device)

    def _shaped(self, total: Tensor) -> Array:
        answer = np.ascontiguousarray(to_host(total))
        return answer[:, 0] if self._loss.outputs == 1 else answer

    # -- moments -------------------------------------------------------------------------------------------------

    def _gram(self, norm: float, visit: Callable[[Tensor, slice], Tensor] = lambda unit, block: unit) -> Array:
        """Σ a aᵀ over the rows divided by `norm`; `visit` is shown each block first, and may cut it down."""
        total = self._zeros(self.space.n_features, self.space.n_features)
        for unit, block in self._unit_blocks(norm):
            unit = visit(unit, block)
            if self._weights is not None:
                unit = unit * self._weights[block, None].sqrt()
            total += summed(unit, unit)
        upper = np.triu(to_host(total))
        return np.ascontiguousarray(upper + np.triu(upper, 1).T)

    def _unit_blocks(self, norm: float) -> Iterator[tuple[Tensor, slice]]:
        """Blocks of rows divided by `norm` and scaled down to the unit ball where they leave it."""
        import torch

        for rows, block in self._blocks():
            norms = self._norms[block]
            scale = SAFETY / norm / (norms / norm).clamp(min=SAFETY)
            rows = rows * scale[:, None]
            yield torch.where(torch.isfinite(norms)[:, None] & torch.isfinite(rows), rows, 0.0), block

    def _blocks(self) -> Iterator[tuple[Tensor, slice]]:
        """Blocks of rows as they are seen."""
        matrix = None if self._matrix is None else to_device(self._matrix, self._device)
        for block in self._table.blocks():
            rows = self._table.block(block)
            yield (rows if matrix is None else rows @ matrix), block

    def _labels(self, chosen: Chosen, slope_unit: float) -> Tensor:
        labels = descent_slopes(self._loss, self._target[chosen], slope_unit)
        return to_device(labels.reshape(len(labels), self._loss.outputs), self._device)

    def _zeros(self, *shape: int) -> Tensor:
        import torch

        return torch.zeros(shape, dtype=torch.float64, device=self._device)

    WAYS: ClassVar[dict[type, Callable[[Any, Any, At, Batch], Sum]]] = {
        ClippedGradient: _gradient,
        GradientDifference: _difference,
        JointMoments: whole(_moments),
        RowMoments: whole(_row_moments),
        SecondMoment: whole(_second_moment),
        FeatureMoment: whole(_feature_moment),
        FeatureCurvature: whole(_curvature),
        CountsBelow: whole(_below),
    }
    """Fast ways, by type of question."""
