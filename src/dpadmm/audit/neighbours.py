"""Neighbouring tables made up for audits: one record that moves every sum as far as the claim allows for."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpadmm.estimators.base import PrivateLinearModel, Target
from dpadmm.oracles.local import LocalRows
from dpadmm.oracles.wide import SpikedRows
from dpadmm.privacy.budget import Relation
from dpadmm.privacy.sampling import Batch
from dpadmm.privacy.statistics import JointMoments, RowMoments
from dpadmm.problem.rowmap import RowMap
from dpadmm.problem.spiked import SpikedMap

Array = NDArray[np.float64]
Table = tuple[NDArray[np.float64], NDArray[Any]]

FAR = 1e3
"""Length of a raw row in units of `row_norm`: scaled down, its intercept is a thousandth of it."""

FIRST = Batch(np.zeros(1, dtype=np.intp))


def worst_pair(n_rows: int, relation: Relation = Relation.REPLACE_ONE, n_features: int = 1) -> tuple[Table, Table]:
    """Neighbours for classes 0 and 1: one unit row with either label, or there and gone, among zero rows."""
    return worst_tables((0, 1), n_rows, relation, n_features)


def worst_tables(
    labels: tuple[Any, Any], n_rows: int, relation: Relation = Relation.REPLACE_ONE, n_features: int = 1
) -> tuple[Table, Table]:
    """Neighbours for any two labels or targets: one unit row with either of them, or there and gone, among zero rows.

    If both labels are the same, the row itself is turned round: of more than two classes that moves sums further than
    another label does, by 2√(1 − 1/K) instead of √2.

    Examples
    --------
    >>> (X, y), (_, turned) = worst_tables(("no", "yes"), 3)
    >>> X.tolist(), y.tolist(), turned.tolist()
    ([[1.0], [0.0], [0.0]], ['no', 'no', 'no'], ['yes', 'no', 'no'])
    """
    X, y = np.zeros((n_rows, n_features)), np.repeat(np.asarray(labels), [n_rows, 0])
    X[0, 0] = 1.0
    if relation is not Relation.REPLACE_ONE:
        return (X, y), (np.zeros_like(X), y)
    turned = np.concatenate([np.asarray(labels)[1:], y[1:]])
    return (X, y), (-X if labels[0] == labels[1] else X, turned)


def declared_target(model: PrivateLinearModel) -> Target:
    """What a fitted or loaded model knows to be public about its target."""
    return model._declare_target(np.asarray(getattr(model, "classes_", ())))


def opposite_targets(model: PrivateLinearModel, target: Target) -> tuple[Any, Any]:
    """The two labels or targets that pull a model in opposite directions: first and last class, or the target range."""
    if target.classes is not None:
        return target.classes[0], target.classes[-1]
    low, high = model._target_range()
    return low, high


def long_row(rowmap: RowMap, n_features: int, feature: int = 0) -> Array:
    """A raw row that is mapped to full length, nearly all of it in one feature."""
    if rowmap.lower is None or rowmap.upper is None:
        lower, upper = np.zeros(n_features), np.full(n_features, FAR * rowmap.row_norm)
    else:
        lower, upper = np.array(rowmap.lower), np.array(rowmap.upper)
    row: Array = np.where(np.arange(n_features) == feature, upper, lower)
    return row


class OneAmongZeros:
    """A table of any length whose rows are all zero but the first: no row of zeros is ever looked at.

    Parameters
    ----------
    row : LocalRows or SpikedRows
        The one row that is not zero.
    n_rows : int
        Length of the table.
    """

    def __init__(self, row: LocalRows | SpikedRows, n_rows: int) -> None:
        self._row = row
        self.n_rows, self.n_features, self.point_shape = n_rows, row.n_features, row.point_shape

    def gradient_sum(self, x: Array, clip_norm: float, batch: Batch) -> Array:
        share = self._share(batch)
        return share * self._row.gradient_sum(x, clip_norm, FIRST) if share else np.zeros(self.point_shape)

    def difference_sum(self, x: Array, anchor: Array, gradient_clip: float, clip_norm: float, batch: Batch) -> Array:
        share = self._share(batch)
        if not share:
            return np.zeros(self.point_shape)
        return share * self._row.difference_sum(x, anchor, gradient_clip, clip_norm, FIRST)

    def moment_sums(self, statistic: JointMoments) -> tuple[Array, Array]:
        return self._row.moment_sums(statistic)

    def second_moment_sum(self) -> Array:
        return self._row.second_moment_sum()

    def row_moment_sums(self, statistic: RowMoments) -> tuple[Array, ...]:
        return self._row.row_moment_sums(statistic)

    def transformed(self, matrix: Array | SpikedMap) -> OneAmongZeros:
        return OneAmongZeros(self._row.transformed(matrix), self.n_rows)

    def _share(self, batch: Batch) -> float:
        """Weight of the first row in the batch."""
        if batch.rows is None:
            return 1.0
        drawn = batch.rows == 0
        return float(np.sum(drawn if batch.weights is None else drawn * batch.weights))


def worst_rows(model: PrivateLinearModel, rowmap: RowMap, n_rows: int) -> tuple[OneAmongZeros, OneAmongZeros]:
    """Neighbours of a fitted or loaded model: its longest row with the opposite target, turned round, or gone."""
    target = declared_target(model)
    low, high = opposite_targets(model, target)
    raw = long_row(rowmap, model.n_features_in_)[None]

    def table(raw: Array, label: Any, kept: bool = True) -> OneAmongZeros:
        encoded, _ = target.encode(np.asarray([label]))
        row = LocalRows(rowmap.pack(raw, np.array([kept])), encoded, target.loss, rowmap.row_norm)
        return OneAmongZeros(row, n_rows)

    if Relation.parse(model.relation) is not Relation.REPLACE_ONE:
        return table(raw, high), table(raw, high, kept=False)
    if target.loss.outputs > 2 and not rowmap.non_negative:
        return table(raw, high), table(-raw, high)
    return table(raw, low), table(raw, high)
