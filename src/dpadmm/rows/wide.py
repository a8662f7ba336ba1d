"""Sums over rows of a wide table in O(non-zeros): sparse rows stay sparse, and nothing has d² entries."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from dpadmm.errors import QueryRefused
from dpadmm.kernels.numpy_kernels import products
from dpadmm.kernels.threads import LONGEST_RUN
from dpadmm.privacy.arithmetic import shortest_run
from dpadmm.privacy.questions import At, ClippedGradient, GradientDifference, Question, RowMoments, SecondMoment
from dpadmm.privacy.sampling import Batch
from dpadmm.problem.rowmap import RowMap
from dpadmm.problem.spiked_map import SpikedMap
from dpadmm.rows.lattice_sum import Sum, as_numbers
from dpadmm.rows.norms import row_blocks
from dpadmm.rows.packed import PackedRows
from dpadmm.rows.protocol import Rows

Array = NDArray[np.float64]

BLOCK_ENTRIES = 1 << 17
"""Stored entries of a block of rows copied to float64 at a time, or more where such a block would be too short."""

SMALLEST_SQUARE = 1e-250
"""Squared norms below this may have lost their digits."""


class SpikedRows:
    """The rows Pᵀ row without forming them: ⟨Pᵀa, z⟩ = ⟨a, Pz⟩ and Σ c Pᵀa = Pᵀ Σ c a.

    Parameters
    ----------
    rows : Rows
        The rows a, clipped by the norms ‖Pᵀa‖.
    spiked : SpikedMap
        P.
    """

    def __init__(self, rows: Rows, spiked: SpikedMap) -> None:
        self._rows, self._map = rows, spiked
        self.n_rows, self.space = rows.n_rows, rows.space

    def ask(self, question: Question[Any], at: At, batch: Batch) -> Sum:
        if question.frame == "table":
            raise QueryRefused(f"{question.name!r} is asked in the coordinates of the table")
        if type(question) is SecondMoment:
            raise QueryRefused("a wide table has no second moment to give")
        if type(question) in (ClippedGradient, GradientDifference):
            # A place holds one or two points, and the public clip of a difference.
            there = tuple(self._map @ value if isinstance(value, np.ndarray) else value for value in at)
            return self._map.T @ as_numbers(self._rows.ask(question, there, batch))
        # The rows below know the map, and show a question rows that are turned by it.
        return self._rows.ask(question, at, batch)

    def transformed(self, matrix: Array | SpikedMap) -> SpikedRows:
        raise QueryRefused("coordinates change from those of the table")

    def remapped(self, rowmap: RowMap) -> SpikedRows:
        raise QueryRefused("rows are mapped anew before coordinates change")


def row_moments(
    table: PackedRows,
    to_unit: Callable[[slice], Array],
    scores: Callable[[slice], Array],
    weights: Array | None,
    statistic: RowMoments,
) -> tuple[Array, Array, Array, Array]:
    """Σ s ⊗ a, √mean Σ a, √diagonal Σ a∘a and √length Σ ‖a‖² for a = to_unit · row, ‖a‖ ≤ 1.

    Parts of weight zero in the statistic come back empty. `to_unit(block)` and `scores(block)` give the factor and s
    for a slice of the rows; `weights`, within [0, 1], multiply whole contributions.
    """
    d, outputs = table.n_features, statistic.outputs
    sums, squares, length = np.zeros((d, outputs + 1)), np.zeros(d), 0.0
    for unit, block in scaled_blocks(table, to_unit):
        weight = np.ones(unit.shape[0]) if weights is None else weights[block]
        columns = np.column_stack([scores(block), np.ones(unit.shape[0])])
        sums += unit.T @ (columns * weight[:, None])
        squared = np.asarray(_squared(unit).T @ weight)
        squares += squared
        length += float(squared.sum())
    return moment_parts(sums, squares, length, statistic)


def moment_parts(
    sums: Array, squares: Array, length: float, statistic: RowMoments
) -> tuple[Array, Array, Array, Array]:
    """From Σ (s, 1) ⊗ a, Σ a∘a and Σ ‖a‖² to the parts of the statistic."""
    outputs = statistic.outputs
    correlation = sums[:, 0] if outputs == 1 else sums[:, :outputs]
    return (
        np.ascontiguousarray(correlation),
        _weighed(sums[:, outputs], statistic.mean),
        _weighed(squares, statistic.diagonal),
        _weighed(np.array([length]), statistic.length),
    )


def spiked_norms(table: PackedRows, spiked: SpikedMap) -> Array:
    """‖Pᵀ row‖ of every row; not finite where it overflows, an upper bound where squares underflow."""
    seen = np.empty(table.n_rows)
    pulled, squared = spiked.scale * spiked.direction, spiked.scale**2
    for rows, block in scaled_blocks(table):
        along = rows @ pulled
        squares = _squared(rows) @ squared
        exact, bound = spiked.row_norms(squares, along), spiked.norm_bound * table.norms[block]
        seen[block] = np.where(squares < SMALLEST_SQUARE, bound, exact)
    return seen


def turned_rows(rows: Array, matrix: Array | SpikedMap | None) -> Array:
    """Pᵀ row of each row, to the same last bit wherever it stands: for questions that have no faster way."""
    if matrix is None:
        return rows
    if not isinstance(matrix, SpikedMap):
        return products(rows, matrix.T)
    scaled, normal = rows * matrix.scale, matrix.normal
    return np.asarray(
        matrix.stretches * (scaled - 2.0 * np.multiply.outer(products(scaled, normal[None])[:, 0], normal))
    )


def scaled_blocks(table: PackedRows, factors: Callable[[slice], Array] | None = None) -> Iterator[tuple[Any, slice]]:
    """Blocks of mapped rows in float64, each row times its factor; entries that are not finite then count as zero."""
    for block in row_blocks(table.X, BLOCK_ENTRIES, shortest_run(table.n_features), LONGEST_RUN):
        rows = table.stored(block)
        values = entries_of(rows)
        if factors is not None:
            factor = factors(block)
            with np.errstate(invalid="ignore", over="ignore"):
                values *= np.repeat(factor, np.diff(rows.indptr)) if sparse.issparse(rows) else factor[:, None]
        values[~np.isfinite(values)] = 0.0
        yield rows, block


def entries_of(rows: Any) -> Any:
    """All that dense rows hold, or sparse rows store."""
    return rows.data if sparse.issparse(rows) else rows


def margins(rows: Any, x: Array) -> Array:
    """⟨row, x⟩, a function of the row and the model alone: SciPy's CSR product takes row by row, BLAS would not."""
    if sparse.issparse(rows):
        return np.asarray(rows @ x)
    found = products(rows, np.atleast_2d(x.T))
    return found if x.ndim == 2 else found[:, 0]


def _squared(rows: Any) -> Any:
    """The squares of all entries, in their place: a block is a copy of its rows, and this is the last use of it."""
    values = entries_of(rows)
    np.square(values, out=values)
    return rows


def _weighed(total: Array, weight: float) -> Array:
    return math.sqrt(weight) * total if weight > 0 else np.zeros(0)
