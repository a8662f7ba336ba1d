"""Rows of persons: every person contributes one mean over all their rows, however many they are."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from dpadmm import kernels
from dpadmm.cells.person_ids import PersonNumbers
from dpadmm.errors import QueryRefused
from dpadmm.kernels import numpy_kernels
from dpadmm.kernels.threads import LONGEST_RUN
from dpadmm.privacy.arithmetic import PART_ROWS
from dpadmm.privacy.questions import (
    At,
    ClippedGradient,
    FeatureCurvature,
    FeatureMoment,
    GradientDifference,
    JointMoments,
    Question,
    RowMoments,
    SecondMoment,
    Space,
)
from dpadmm.privacy.questions.base import clip_there
from dpadmm.privacy.sampling import Batch
from dpadmm.privacy.unit import Unit
from dpadmm.problem.losses.base import Loss
from dpadmm.problem.rowmap import RowMap
from dpadmm.problem.scores import Score
from dpadmm.problem.spiked_map import SpikedMap
from dpadmm.rows.array_view import ArrayView
from dpadmm.rows.lattice_sum import Sum
from dpadmm.rows.local import LocalRows, kernel_loss, kernel_target, require_moderate, rows_as_given
from dpadmm.rows.owned import Owned, PieceOfPersons
from dpadmm.rows.packed import PackedRows
from dpadmm.rows.person_vectors import PersonVectors
from dpadmm.rows.protocol import Rows
from dpadmm.rows.tree_sum import TreeSum
from dpadmm.rows.wide import margins, turned_rows

Array = NDArray[np.float64]

Mean = Callable[[PieceOfPersons], PersonVectors]

HELD_ENTRIES = 1 << 16
"""Entries of rows, or of their contributions, that are held together."""


class PersonRows:
    """Rows with their targets and the persons they belong to.

    Parameters
    ----------
    table, target, loss, row_norm
        As in `LocalRows`.
    persons : PersonNumbers
        Whose row each row is; rows of nobody count for nothing.
    weights : (n,) or None
        Within [0, 1]: a function of each row and public numbers.
    score : Score, optional
        A public rule that scores a model on a row.

    Notes
    -----
    *Formal guarantees.* Samplers draw persons. Every sum is Σ vₚ over the persons of a batch, each vₚ a function of the
    rows of person p and of public numbers (but for roundings that are charged). Of gradients vₚ is the mean over the
    rows, clipped once; of every other question it is a mean, of weights that add up to at most one, of contributions
    as the question bounds them. So replacing, adding or removing a person with all their rows moves a sum no further
    than the question says of one row (docs/proofs/persons.md).
    """

    unit = Unit.PERSON

    def __init__(
        self,
        table: PackedRows,
        target: NDArray[Any],
        loss: Loss,
        row_norm: float,
        persons: PersonNumbers,
        weights: Array | None = None,
        score: Score | None = None,
    ) -> None:
        self._table, self._target, self._loss, self._row_norm = table, np.asarray(target), loss, row_norm
        self._persons, self._own_weights, self._score = persons, weights, score
        self._owned = Owned(np.where(table.factors != 0, persons.of_row, -1), persons.count)
        self._share = self._owned.shares(table.n_rows) * (1.0 if weights is None else np.clip(weights, 0.0, 1.0))
        self._columns = kernel_target(self._target)
        self._code, self._parameter = kernel_loss(loss)
        self._map: Array | SpikedMap | None = None
        self._weighed: tuple[Rows, ...] = tuple(self._parts())
        columns = () if loss.outputs == 1 else (loss.outputs,)
        self.n_rows, self.space = persons.count, Space((table.n_features, *columns), table.n_features)

    def ask(self, question: Question[Any], at: At, batch: Batch) -> Sum:
        if not question.persons:
            raise QueryRefused(f"{question.name!r} is asked of single rows, not of persons")
        if question.frame == "table" and self._map is not None:
            raise QueryRefused(f"{question.name!r} is asked in the coordinates of the table")
        way = self.WAYS.get(type(question))
        return self._means_of_contributions(question, at, batch) if way is None else way(self, question, at, batch)

    def transformed(self, matrix: Array | SpikedMap) -> PersonRows:
        """The rows Pᵀ row. The mean of Pᵀ a is Pᵀ of the mean, so that only lengths are new."""
        if self._map is not None:
            raise QueryRefused("coordinates change from those of the table")
        size = matrix.norm_bound if isinstance(matrix, SpikedMap) else float(np.linalg.norm(matrix))
        require_moderate(size * self._row_norm)
        seen: PersonRows = copy.copy(self)
        seen._map = matrix
        if not isinstance(matrix, SpikedMap):
            seen._weighed = tuple(part.transformed(matrix) for part in self._weighed)
        return seen

    def remapped(self, rowmap: RowMap) -> PersonRows:
        """The rows as they were given, under another map; rows that counted as zero still do."""
        if self._map is not None or rowmap.row_norm != self._row_norm or rowmap.intercept != self._table.intercept:
            raise QueryRefused("rows are mapped anew before coordinates change, to the same norm and intercept")
        packed = PackedRows.of(rowmap, self._table.X, self._table.factors != 0)
        return PersonRows(
            packed, self._target, self._loss, self._row_norm, self._persons, self._own_weights, self._score
        )

    def _parts(self) -> Iterator[LocalRows]:
        """The rows weighed by their shares, a public number of them at a time: sums of parts are added in a tree."""
        for start in range(0, self._table.n_rows, PART_ROWS):
            rows = slice(start, start + PART_ROWS)
            yield LocalRows(
                _part_of(self._table, rows), self._target[rows], self._loss, self._row_norm, self._share[rows]
            )

    # -- means of contributions that the question bounds ------------------------------------------------------------

    def _weighed_sum(self, question: Question[Any], at: At, batch: Batch) -> Sum:
        """Σ wᵢcᵢ: the mean over each person's rows, summed over persons, as one weighted sum over all rows."""
        _require_all(question, batch)
        if question.frame == "seen" and isinstance(self._map, SpikedMap):
            raise QueryRefused("a wide table has no second moment to give")
        total = TreeSum()
        for part in self._weighed:
            total.add(np.asarray(part.ask(question, at, batch)))
        return np.asarray(total.sum)

    def _means_of_contributions(self, question: Question[Any], at: At, batch: Batch) -> Sum:
        """Of any other question: each row's contribution clipped, then the mean over each person's rows."""
        clip, none = clip_there(question, at, self.space), np.zeros(0, dtype=np.intp)
        shape = question.contributions(self._view(none), at).shape[1:]
        width = max(self.space.n_features, int(np.prod(shape)))

        def mean(piece: PieceOfPersons) -> PersonVectors:
            view = self._view(piece.rows)
            found = view.clipped(question.contributions(view, at), clip)
            return self._mean(piece, found.reshape(len(piece.rows), -1), np.ones((len(piece.rows), 1)))

        total = TreeSum()
        total.add(np.zeros(int(np.prod(shape))))
        for persons, means in self._means(batch, width, mean):
            total.add(means.total(_drawn(batch, persons, len(means)))[:, 0])
        return np.asarray(total.sum.reshape(shape))

    def _view(self, rows: NDArray[np.intp]) -> ArrayView:
        mapped = turned_rows(self._table.block(rows), self._map)
        raw = partial(self._raw, rows)
        view = ArrayView(mapped, self._target[rows], self._loss, self._row_norm, raw)
        return view if self._score is None else view.with_score(self._score)

    def _raw(self, rows: NDArray[np.intp]) -> Array:
        return rows_as_given(self._table.X[rows])

    # -- gradients: the mean over a person's rows, then clipped ------------------------------------------------------

    def _gradient(self, question: ClippedGradient, at: At, batch: Batch) -> Sum:
        (x,) = at
        return self._clipped_sum(batch, [x], lambda found: found[0].clipped(question.clip, self._map))

    def _difference(self, question: GradientDifference, at: At, batch: Batch) -> Sum:
        x, anchor, clip = at

        def clipped(found: list[PersonVectors]) -> PersonVectors:
            here, there = (each.clipped(question.gradient_clip, self._map, by_rows=True) for each in found)
            return here.minus(there).clipped(clip, self._map, by_rows=True)

        return self._clipped_sum(batch, [x, anchor], clipped)

    def _clipped_sum(
        self, batch: Batch, points: list[Array], clipped: Callable[[list[PersonVectors]], PersonVectors]
    ) -> Array:
        """Σ over the persons of the batch of what is made of their mean gradients at the points."""
        outputs = self._loss.outputs
        mean = self._mean_gradient([x if self._map is None else self._map @ x for x in points])
        total = TreeSum()
        total.add(np.zeros((self._table.n_features, outputs)))
        for persons, means in self._means(batch, self._width, mean):
            each = clipped([means.columns(slice(k * outputs, (k + 1) * outputs)) for k in range(len(points))])
            total.add(each.total(_drawn(batch, persons, len(means))))
        found = total.sum if outputs > 1 else total.sum[:, 0]
        return np.asarray(found if self._map is None else self._map.T @ found)

    def _mean_gradient(self, points: list[Array]) -> Mean:
        """What makes mean gradients at points in the coordinates of the table: the kernels, where they can."""
        by_kernels = self._loss.outputs == 1 and not sparse.issparse(self._table.X)
        return partial(self._mean_by_kernels if by_kernels else self._mean_by_products, points)

    def _mean_by_products(self, points: list[Array], piece: PieceOfPersons) -> PersonVectors:
        mapped, target = self._stored(piece.rows), self._target[piece.rows]
        slopes = [self._loss.slope(margins(mapped, x), target).reshape(len(target), -1) for x in points]
        usable = np.nan_to_num(np.concatenate(slopes, axis=1), nan=0.0, posinf=0.0, neginf=0.0)
        return self._mean(piece, mapped, usable)

    def _mean_by_kernels(self, points: list[Array], piece: PieceOfPersons) -> PersonVectors:
        table = self._table
        constant = np.array(points)[:, -1:] if table.intercept else np.zeros((len(points), 1))
        features = table.X.shape[1]
        placed = np.concatenate([np.array(points)[:, :features], constant], axis=1)
        means = np.empty((len(piece.ends) - 1, len(points), features + 1))
        kernel = kernels.active().person_means if isinstance(self._code, int) else numpy_kernels.person_means
        bounds, rule = (table.lower, table.upper, table.inverse), (self._code, self._parameter)
        shares = self._share[piece.rows]
        kernel(table.X, *bounds, table.factors, self._columns, piece.rows, piece.ends, shares, placed, *rule, means)
        return PersonVectors([means[:, k, : table.n_features] for k in range(len(points))])

    def _stored(self, rows: NDArray[np.intp]) -> Any:
        """Mapped rows in float64, sparse where the table is."""
        if not sparse.issparse(self._table.X):
            return self._table.block(rows)
        return _part_of(self._table, rows).stored(slice(None))

    @property
    def _width(self) -> int:
        """Entries of a row that are held."""
        if not sparse.issparse(self._table.X):
            return self._table.n_features
        return int(self._table.X.nnz // max(1, self._table.n_rows)) + 1

    # -- persons -----------------------------------------------------------------------------------------------------

    def _means(self, batch: Batch, width: int, mean: Mean) -> Iterator[tuple[slice, PersonVectors]]:
        """Means over the rows of each person of the batch, some persons at a time."""
        most, begun = max(1, HELD_ENTRIES // max(1, width)), TreeSum()
        for piece in self._owned.gathered(batch.rows, most, LONGEST_RUN):
            begun.add(mean(piece))
            if not piece.continued:
                yield piece.persons, begun.sum
                begun = TreeSum()

    def _mean(self, piece: PieceOfPersons, vectors: Any, coefficients: Array) -> PersonVectors:
        """Of one vector a row, (m, k), and coefficients, (m, columns): a row contributes their products."""
        return PersonVectors.weighed(vectors, coefficients * self._share[piece.rows][:, None], piece.ends)

    WAYS: ClassVar[dict[type, Callable[[Any, Any, At, Batch], Sum]]] = {
        ClippedGradient: _gradient,
        GradientDifference: _difference,
        JointMoments: _weighed_sum,
        RowMoments: _weighed_sum,
        SecondMoment: _weighed_sum,
        FeatureMoment: _weighed_sum,
        FeatureCurvature: _weighed_sum,
    }


def _drawn(batch: Batch, persons: slice, count: int) -> Array:
    """Whether each of these persons was drawn, one or zero; without weights all were."""
    return np.ones(count) if batch.weights is None else np.clip(batch.weights[persons], 0.0, 1.0)


def _require_all(question: Question[Any], batch: Batch) -> None:
    if batch.rows is not None or batch.weights is not None:
        raise QueryRefused(f"Got a sample of persons for {question.name!r}. Expected all of them.")


def _part_of(table: PackedRows, rows: slice | NDArray[np.intp]) -> PackedRows:
    """Some rows of a table as a table."""
    if isinstance(rows, slice) and rows.start == 0 and rows.stop >= table.n_rows:
        return table
    return replace(table, X=table.X[rows], factors=table.factors[rows], norms=table.norms[rows])
