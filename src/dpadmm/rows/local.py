"""Rows in this process's memory or mapped from a file, dense or CSR, float32 or float64."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, ClassVar, cast

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg.blas import dsyrk

from dpadmm import kernels
from dpadmm.errors import QueryRefused
from dpadmm.kernels import numpy_kernels
from dpadmm.kernels.clipping import SAFETY, squared_lengths
from dpadmm.kernels.threads import LONGEST_RUN, sum_in_chunks
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
from dpadmm.problem.hidden_pass_program import Program
from dpadmm.problem.lengths import Matrix
from dpadmm.problem.losses.base import Loss, kernel_of
from dpadmm.problem.rowmap import RowMap
from dpadmm.problem.spiked_map import SpikedMap
from dpadmm.rows.array_view import ArrayView, descent_slopes
from dpadmm.rows.curvature_sums import curved, require_curvature
from dpadmm.rows.file_pages import FilePages
from dpadmm.rows.lattice_sum import Sum, joined
from dpadmm.rows.packed import PackedRows, canonical
from dpadmm.rows.row_by_row import Chosen, row_by_row, whole
from dpadmm.rows.threshold_counts import counts_below
from dpadmm.rows.visit import visit
from dpadmm.rows.wide import (
    SMALLEST_SQUARE,
    SpikedRows,
    entries_of,
    row_moments,
    scaled_blocks,
    spiked_norms,
    turned_rows,
)

Array = NDArray[np.float64]

PAGE_BYTES = 4096
"""What reading one row of a batch brings into memory, at least."""

SPARSE_EFFORT = 8
"""What adding one stored entry of a sparse row costs, in entries of a dense one."""

FEW_ENTRIES = 2
"""A sparse row is turned entry by entry if it stores at most one for so many features, else with its dense block. Which
of the two depends on the row alone, and so must its norm: replacing a row moves no other."""

TURNED_TOGETHER = 256
"""Columns of a matrix that sparse rows are multiplied by at a time: few enough of it to stay in cache."""

MOMENT_ENTRIES = 1 << 18
"""Entries of a block of rows made dense and float64 for a product."""

LONGEST_SEEN = 1e50
"""Coordinates in which a row could be longer are refused: slopes of rows that were scaled down to their declared norm,
clipped by such lengths, would come near the subnormal numbers, whose rounding no clip allows for."""


KERNELS_SUM: frozenset[type] = frozenset({ClippedGradient, GradientDifference})
"""Questions that compiled kernels sum without NumPy, whose warnings are then not silenced."""


class LocalRows:
    """Rows with their targets.

    Parameters
    ----------
    X : (n, d) ndarray, CSR or PackedRows
        Mapped rows, or raw ones with their map (`PackedRows.of`). A zero row contributes nothing, whatever its target.
    target : (n,) or (n, tasks)
        What the loss expects: ±1, a number, or a class index.
    loss : Loss
        Per-row loss.
    row_norm : float
        Declared norm by which rows are divided for moments.
    weights : (n,) or None
        Within [0, 1]: what each contribution is multiplied by after it was clipped, so that no bound changes.

    Notes
    -----
    *Formal guarantees.* Every sum returned is Σ wᵢ gᵢ with wᵢ ∈ [0, 1] and ‖gᵢ‖ ≤ the clip given. Sums are formed in
    float64 whatever the precision of the rows: in float32 the rounding of a long sum can itself exceed the clip.
    """

    def __init__(
        self, X: Any, target: NDArray[Any], loss: Loss, row_norm: float = 1.0, weights: Array | None = None
    ) -> None:
        self._hold(X if isinstance(X, PackedRows) else PackedRows.of_mapped(X))
        self._target = np.asarray(target)
        self._columns = kernel_target(self._target)
        self._loss = loss
        self._code, self._parameter = kernel_loss(loss)
        self._has_code = isinstance(self._code, int)
        self._measure(self._table.norms)
        self._row_norm = row_norm
        self._weights = None if weights is None else _within_one(weights)
        self._matrix: Array | None = None
        self._spiked: SpikedMap | None = None
        self._kernels_suffice = self._has_code
        self._see(self._table.n_features)

    def _hold(self, table: PackedRows) -> None:
        self._table, self._X = table, table.X
        self._pages = FilePages(self._X)
        self._is_sparse = bool(sparse.issparse(self._X))
        self._as_matrix = np.s_[:, None] if self._is_sparse else np.s_[None]
        self._arrays, self._precision, self._width = _kernel_table(table)
        self._effort = SPARSE_EFFORT if self._is_sparse else 1

    def _measure(self, norms: Array) -> None:
        """Contributions are clipped by these norms from now on."""
        self._norms = norms
        self._facts: Array | None = None

    def _stored_norms(self) -> Array:
        """One number a row, as kernels take them: made for the first sum where all rows have the same norm."""
        self._norms = np.ascontiguousarray(self._norms)
        return self._norms

    def bare(self) -> LocalRows:
        """All but the table, a few numbers a row: what is kept where the table is read anew for each sum."""
        rows: LocalRows = copy.copy(self)
        rows._hold(replace(self._table, X=self._X[:0].copy()))
        return rows

    def holding(self, X: Any) -> LocalRows:
        """Bare rows with their table, which must be the one that was measured."""
        X = canonical(X)
        if X.shape != (self.n_rows, self._X.shape[1]):
            raise QueryRefused("a table that has changed since its rows were measured")
        rows: LocalRows = copy.copy(self)
        rows._hold(replace(self._table, X=X))
        return rows

    def _see(self, n_features: int) -> None:
        columns = () if self._loss.outputs == 1 else (self._loss.outputs,)
        self.n_rows, self.space = self._table.n_rows, Space((n_features, *columns), n_features)
        self.silent = KERNELS_SUM if self._kernels_suffice else frozenset()
        self._is_plain = (
            self._kernels_suffice
            and not (self._is_sparse or columns)
            and self._table.intercept
            and self._table.lower is None
            and self._weights is None
        )

    def ask(self, question: Question[Any], at: At, batch: Batch) -> Sum:
        way = self.WAYS.get(type(question))
        return self._row_by_row(question, at, batch) if way is None else way(self, question, at, batch)

    def _row_by_row(self, question: Question[Any], at: At, batch: Batch) -> Array:
        if question.frame == "table" and (self._matrix is not None or self._spiked is not None):
            raise QueryRefused(f"{question.name!r} is asked in the coordinates of the table")
        return cast(Array, row_by_row(question, at, self.space, self.n_rows, batch, self._shown))

    def _shown(self, chosen: Chosen) -> tuple[ArrayView, Array]:
        """Some rows as a question sees them, and the factor of each; rows that count as zero contribute nothing."""
        rows, factors = self._table.block(chosen), (self._table.factors[chosen] != 0).astype(np.float64)
        if self._weights is not None:
            factors *= self._weights[chosen]
        turned = turned_rows(rows, self._spiked if self._matrix is None else self._matrix)
        self._pages.after(len(rows) * (self._row_bytes if isinstance(chosen, slice) else PAGE_BYTES))
        return self._view(turned, chosen), factors

    def _view(self, rows: Array, chosen: Chosen) -> ArrayView:
        return ArrayView(rows, self._target[chosen], self._loss, self._row_norm, lambda: rows_as_given(self._X[chosen]))

    def _gradient(self, question: ClippedGradient, at: At, batch: Batch) -> Array:
        x, clip_norm, rows = at[0], question.clip, batch.rows
        if not self._is_plain or rows is None or batch.weights is not None or len(rows) > LONGEST_RUN:
            return self._clipped_sum(x, None, clip_norm, clip_norm, batch)
        facts = self._facts_side_by_side() if self._facts is None else self._facts
        point, total = np.ascontiguousarray(x), np.empty(x.size)
        kernels.active().dense_batch(self._X, facts, rows, point, clip_norm, self._code, self._parameter, total)
        self._pages.after(len(rows) * PAGE_BYTES)
        return total

    def _facts_side_by_side(self) -> Array:
        """Factor, norm and target of each row, as `dense_batch` wants them: made once, for the first batch."""
        self._facts = np.stack([self._table.factors, self._norms, self._columns[0]], axis=1)
        return self._facts

    def _difference(self, question: GradientDifference, at: At, batch: Batch) -> Array:
        x, anchor, clip_norm = at
        return self._clipped_sum(x, anchor, question.gradient_clip, clip_norm, batch)

    def _moments(self, statistic: JointMoments, at: At) -> Sum:
        correlation = np.zeros((self.space.n_features, self._loss.outputs))

        def correlate(unit: Matrix, block: slice) -> None:
            if statistic.non_negative:
                entries = entries_of(unit)
                np.maximum(entries, 0.0, out=entries)
            scores = self._scores(block, statistic.slope_unit).reshape(unit.shape[0], -1)
            if self._weights is not None:
                scores *= self._weights[block, None]
            correlation[...] += unit.T @ scores

        second = math.sqrt(statistic.balance) * self._gram(self._row_norm, correlate)
        return joined([correlation, second])

    def _second_moment(self, question: SecondMoment, at: At) -> Array:
        return self._gram(1.0)

    def _curvature(self, question: FeatureCurvature, at: At) -> Array:
        x, weights = at
        if self._matrix is not None:
            raise QueryRefused("curvatures are those along the features of the table")
        require_curvature(self._loss, weights, self._row_norm)
        total = np.zeros(self.space.n_features)
        for rows, block in scaled_blocks(self._table):
            squares, bends = curved(rows, x, weights, self._loss)
            if self._weights is not None:
                bends *= self._weights[block]
            total += squares.T @ bends
            self._pages.after(len(bends) * self._row_bytes)
        return total

    def _feature_moment(self, question: FeatureMoment, at: At) -> Array:
        return self._gram(self._row_norm)

    def _below(self, question: CountsBelow, at: At) -> Array:
        """Exact: halves of whole numbers. Rows count for one whatever their weight, or not at all."""
        (thresholds,), alive = at, self._table.factors != 0
        if thresholds.shape[1] != self._X.shape[1]:
            raise QueryRefused("the plan's counts are of other features than the table's")
        counts = np.stack([counts_below(self._X, alive, row, self._pages) for row in thresholds])
        return np.asarray(counts - alive.sum() / 2)

    def remapped(self, rowmap: RowMap) -> LocalRows:
        if self._matrix is not None or rowmap.row_norm != self._row_norm or rowmap.intercept != self._table.intercept:
            raise QueryRefused("rows are mapped anew before coordinates change, to the same norm and intercept")
        packed = PackedRows.of(rowmap, self._X, self._table.factors != 0)
        return LocalRows(packed, self._target, self._loss, self._row_norm, self._weights)

    def _row_moments(self, statistic: RowMoments, at: At) -> Sum:
        def to_unit(block: slice) -> Array:
            return self._to_unit(block, self._row_norm)

        def scores(block: slice) -> Array:
            return self._scores(block, statistic.slope_unit)

        return joined(row_moments(self._table, to_unit, scores, self._weights, statistic))

    def noisy_pass(
        self,
        program: Program,
        state: tuple[Array, Array],
        clip_norm: float,
        order: NDArray[np.intp],
        noise: Callable[[int], Array],
        grid: float,
    ) -> tuple[Array, Array]:
        """Rows longer than the program counts on are scaled down to it, so that its step stays below 1/L."""
        if program.problem.loss != self._loss or program.problem.shape != (self.space.n_features,):
            raise QueryRefused("the program is for another loss or another number of features")
        longest, code = program.problem.row_norm, cast(int, self._code)
        length = max(1, MOMENT_ENTRIES // self.space.n_features)
        for start in range(0, len(order), length):
            visited = order[start : start + length]
            rows, norms = self._table.block(visited), self._norms[visited]
            finite = np.isfinite(norms)
            rows[~finite] = 0.0
            rows *= (longest / np.maximum(np.where(finite, norms, 0.0), longest))[:, None]
            weights = np.ones(len(visited)) if self._weights is None else self._weights[visited]
            state = visit(
                program,
                state,
                rows,
                np.where(finite, np.minimum(norms, longest), 0.0),
                self._columns[0, visited].astype(np.float64),
                weights,
                noise(len(visited)),
                clip_norm,
                grid,
                code,
                self._parameter,
            )
        return state

    def transformed(self, matrix: Array | SpikedMap) -> LocalRows | SpikedRows:
        """The rows Pᵀ row, without forming them: ⟨Pᵀa, z⟩ = ⟨a, Pz⟩ and Σ c Pᵀa = Pᵀ Σ c a; only norms are new.

        What is clipped by is an upper bound on ‖Pᵀa‖ for every P: the computed norm, or ‖P‖‖a‖ where squares underflow,
        plus what its rounding can hide.
        """
        if isinstance(matrix, SpikedMap):
            return SpikedRows(self.measured_by(matrix), matrix)
        seen: LocalRows = copy.copy(self)
        seen._matrix = matrix if self._matrix is None else self._matrix @ matrix
        seen._kernels_suffice = False
        size, norms = float(np.linalg.norm(seen._matrix)), np.empty(self.n_rows)
        require_moderate(size * self._row_norm)
        rounding = (self._table.n_features + 8) * np.finfo(np.float64).eps
        for rows, block in seen._blocks():
            squares, bounds = squared_lengths(rows), size * self._table.norms[block]
            norms[block] = np.where(squares < SMALLEST_SQUARE, bounds, np.sqrt(squares)) + rounding * bounds
        seen._measure(norms)
        seen._see(seen._matrix.shape[1])
        return seen

    def measured_by(self, spiked: SpikedMap) -> LocalRows:
        """The same rows, clipped by the norms ‖Pᵀ row‖."""
        if self._matrix is not None:
            raise QueryRefused("coordinates change from those of the table")
        seen: LocalRows = copy.copy(self)
        seen._spiked = spiked
        seen._measure(spiked_norms(self._table, spiked))
        return seen

    # -- clipped gradients ---------------------------------------------------------------------------------------

    def _clipped_sum(self, x: Array, anchor: Array | None, gradient_clip: float, clip: float, batch: Batch) -> Array:
        engine = kernels.active() if self._has_code else numpy_kernels
        kernel = engine.sparse_sum if self._is_sparse else engine.dense_sum
        rows, weights = batch.rows, batch.weights if self._weights is None else self._weights_of(batch)
        point, there = self._point(x), None if anchor is None else self._point(anchor)
        asked, norms = (point, there, gradient_clip, clip, self._code, self._parameter), self._stored_norms()
        if rows is not None and len(rows) <= LONGEST_RUN:
            self._pages.after(len(rows) * PAGE_BYTES)
            total = np.empty(point.shape)
            kernel(*self._arrays, norms, self._columns, rows, weights, 0, len(rows), *asked, total)
            return self._answer(total)

        def part(start: int, stop: int) -> Array:
            total = np.empty(point.shape)
            kernel(*self._arrays, norms, self._columns, rows, weights, start, stop, *asked, total)
            self._pages.after((stop - start) * (self._row_bytes if rows is None else PAGE_BYTES))
            return total

        count, features = self.n_rows if rows is None else len(rows), self._table.n_features if self._is_sparse else 0
        with np.errstate(all="ignore"):
            return self._answer(sum_in_chunks(part, count, self._width, engine.PARALLEL, self._effort, features))

    def _weights_of(self, batch: Batch) -> Array | None:
        """Of each row of the batch: whether it was drawn, times its public weight."""
        assert self._weights is not None, "without weights all rows count alike"
        own = self._weights if batch.rows is None else self._weights[batch.rows]
        return own if batch.weights is None else own * batch.weights

    def _point(self, x: Array) -> NDArray[Any]:
        """x in the coordinates of the raw rows and the shape a kernel takes, the intercept last or zero."""
        if self._matrix is not None:
            x = self._matrix @ x
        if not self._table.intercept:
            x = np.concatenate([x, np.zeros((1, *x.shape[1:]))])
        if x.ndim == 1:
            x = x[self._as_matrix]
        elif not self._is_sparse:
            x = x.T
        return x.astype(self._precision, "C")

    def _answer(self, total: Array) -> Array:
        """A kernel's sum in the coordinates and the shape of a point."""
        if self._loss.outputs == 1:
            answer = total.ravel()
        else:
            answer = total if self._is_sparse else np.ascontiguousarray(total.T)
        if not self._table.intercept:
            answer = answer[:-1]
        return answer if self._matrix is None else self._matrix.T @ answer

    # -- moments -------------------------------------------------------------------------------------------------

    def _gram(self, norm: float, visit: Callable[[Matrix, slice], None] = lambda unit, block: None) -> Array:
        """Σ a aᵀ over the rows divided by `norm`; `visit` is shown each block first, and may cut it down."""
        sparsely = self._is_sparse and self._matrix is None and self._pairs_are_few()
        lower = self._sparse_gram(norm, visit) if sparsely else self._dense_gram(norm, visit)
        lower += np.tril(lower, -1).T
        return lower

    def _pairs_are_few(self) -> bool:
        """Whether products of stored entries, two by two, take less time than those of dense blocks.

        The products are the same, and so is the bound on the rounding of their sum, whatever its order.
        """
        starts = self._X.indptr
        runs = (starts[first : first + LONGEST_RUN + 1] for first in range(0, self.n_rows, LONGEST_RUN))
        pairs = sum(float(np.square(np.diff(run), dtype=np.float64).sum()) for run in runs)
        return bool(kernels.active().PAIR_COST * pairs <= self.n_rows * float(self.space.n_features) ** 2)

    def _dense_gram(self, norm: float, visit: Callable[[Matrix, slice], None]) -> Array:
        total = np.zeros((self.space.n_features, self.space.n_features), order="F")
        for unit, block in self._unit_blocks(norm):
            visit(unit, block)
            if self._weights is not None:
                unit *= np.sqrt(self._weights[block])[:, None]
            total = dsyrk(1.0, unit.T, beta=1.0, c=total, lower=False, overwrite_c=True)
        return np.asarray(total.T)

    def _sparse_gram(self, norm: float, visit: Callable[[Matrix, slice], None]) -> Array:
        total, part = (np.zeros((self.space.n_features, self.space.n_features)) for _ in range(2))
        for unit, block in scaled_blocks(self._table, lambda block: self._to_unit(block, norm)):
            visit(unit, block)
            if self._weights is not None:
                unit.data *= np.repeat(np.sqrt(self._weights[block]), np.diff(unit.indptr))
            kernels.active().sparse_gram(unit.data, unit.indices, unit.indptr, part)
            total += part
            self._pages.after(unit.shape[0] * self._row_bytes)
        return total

    def _unit_blocks(self, norm: float) -> Iterator[tuple[Array, slice]]:
        """Blocks of rows in float64, divided by `norm` and scaled down to the unit ball where they leave it."""
        for rows, block in self._blocks():
            rows[~np.isfinite(self._norms[block])] = 0.0
            rows *= self._to_unit(block, norm)[:, None]
            yield rows, block

    def _to_unit(self, block: slice, norm: float) -> Array:
        """What takes rows divided by `norm` into the unit ball; zero where their length is not finite."""
        norms = self._norms[block]
        return np.where(np.isfinite(norms), SAFETY / norm / np.maximum(norms / norm, SAFETY), 0.0)

    def _blocks(self) -> Iterator[tuple[Array, slice]]:
        """Blocks of rows as they are seen, dense and in float64; each takes the place of the last."""
        length = max(1, min(LONGEST_RUN, MOMENT_ENTRIES // max(1, self._table.n_features)))
        room = np.empty((min(length, self.n_rows), self._table.n_features))
        turn = self._turner(len(room))
        for start in range(0, self.n_rows, length):
            block = slice(start, min(start + length, self.n_rows))
            yield (self._table.block(block, room) if turn is None else turn(block, room)), block
            self._pages.after(length * self._row_bytes)

    def _turner(self, length: int) -> Callable[[slice, Array], Array] | None:
        """What turns a block of rows to the coordinates they are seen in; None where these are those of the table."""
        matrix = self._matrix
        if matrix is None:
            return None
        turned, features = np.empty((length, matrix.shape[1])), self._table.n_features
        strips = _strips(matrix) if self._is_sparse else []

        def turn(block: slice, room: Array) -> Array:
            out = turned[: block.stop - block.start]
            if not self._is_sparse:
                return np.matmul(self._table.block(block, room), matrix, out=out)
            short = FEW_ENTRIES * np.diff(self._X.indptr[block.start : block.stop + 1]) <= features
            if not short.all():
                np.matmul(self._table.block(block, room), matrix, out=out)
            if short.any():
                rows = self._table.stored(block)
                rows = rows if short.all() else rows[short]
                for columns, strip in strips:
                    out[short, columns] = rows @ strip
            return out

        return turn

    @property
    def _row_bytes(self) -> int:
        return self._width * int(self._X.dtype.itemsize)

    def _scores(self, block: slice, slope_unit: float) -> Array:
        return descent_slopes(self._loss, self._target[block], slope_unit)

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


def rows_as_given(part: Any) -> Array:
    """Rows dense and in float64."""
    return np.asarray(part.toarray() if sparse.issparse(part) else part, dtype=np.float64)


def _strips(matrix: Array) -> list[tuple[slice, Array]]:
    """A matrix, some columns at a time."""
    starts = range(0, matrix.shape[1], TURNED_TOGETHER)
    columns = [slice(start, min(start + TURNED_TOGETHER, matrix.shape[1])) for start in starts]
    return [(each, np.ascontiguousarray(matrix[:, each])) for each in columns]


def require_moderate(length: float) -> None:
    """Of the longest row there may be, in new coordinates: a public number."""
    if not length <= LONGEST_SEEN:
        raise QueryRefused("coordinates that stretch rows of the declared norm too far")


def _kernel_table(table: PackedRows) -> tuple[tuple[Any, ...], type[Any], int]:
    """The arrays a kernel takes, the precision of its points, and stored entries a row."""
    X = table.X
    precision = X.dtype.type if table.lower is None else np.float64
    if sparse.issparse(X):
        stored = (X.data, X.indices, X.indptr, table.upper, table.inverse, table.factors)
        return stored, precision, X.nnz // max(1, table.n_rows)
    return (X, table.lower, table.upper, table.inverse, table.factors), precision, table.n_features


def _within_one(weights: NDArray[Any]) -> Array:
    """A copy of the weights, within [0, 1]."""
    kept = np.nan_to_num(np.asarray(weights, dtype=np.float64))
    return np.clip(kept, 0.0, 1.0, out=kept)


def kernel_target(target: NDArray[Any]) -> NDArray[Any]:
    """Targets as a kernel takes them, (columns, n): float64, or int8 where the caller knows them to be so small."""
    kind = np.int8 if target.dtype == np.int8 else np.float64
    return np.ascontiguousarray(target.reshape(len(target), -1).T, dtype=kind)


def kernel_loss(loss: Loss) -> tuple[int | Callable[[Array, Array], Array], float]:
    """The loss as kernels know it; of a loss they do not know, its slope, which the NumPy twins can call."""
    return kernel_of(loss) or (loss.slope, 0.0)
