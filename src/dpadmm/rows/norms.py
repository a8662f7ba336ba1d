"""Norms of rows, found block by block, that neither overflow nor underflow; and which rows are finite."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from dpadmm.cells.sparse_places import require_places_inside
from dpadmm.kernels.clipping import squared_lengths
from dpadmm.problem.lengths import Matrix, row_norms
from dpadmm.rows.file_pages import FilePages

BLOCK_ENTRIES = 1 << 18
"""Entries measured together."""

SPARSE_ROOM = 4
"""What a stored entry of a sparse row takes while it is measured, in entries of a dense one: it has a place, too."""


class Measure(NamedTuple):
    """Of each row: ‖row‖ = peak · ratio, and whether the raw row is finite."""

    peak: NDArray[np.float64]
    ratio: NDArray[np.float64]
    finite: NDArray[np.bool_]


def finite_rows(X: Matrix) -> NDArray[np.bool_]:
    """Which rows hold finite numbers only, found block by block."""
    require_places_inside(X)
    finite = np.empty(X.shape[0], dtype=bool)
    for rows in _row_blocks(X):
        part = X[rows]
        if sparse.issparse(part):
            bad = ~np.isfinite(part.data)
            finite[rows] = True
            if bad.any():
                finite[rows.start + _owners(part)[bad]] = False
        else:
            finite[rows] = np.isfinite(part).all(axis=1)
    return finite


def measured(X: Matrix, lower: Any, upper: Any, inverse: Any, intercept: bool) -> Iterator[tuple[slice, Measure]]:
    """Blocks of rows with the measure of each row after bounds and intercept."""
    for rows in _row_blocks(X):
        yield rows, _measure(X[rows], lower, upper, inverse, intercept)


def _measure(part: Matrix, lower: Any, upper: Any, inverse: Any, intercept: bool) -> Measure:
    squares = _squares(_within(part, lower, upper, inverse)) + float(intercept)
    peak, finite = np.ones(len(squares)), np.ones(len(squares), dtype=bool)
    with np.errstate(invalid="ignore"):
        ratio = np.sqrt(squares)
        unsafe = np.flatnonzero(~((squares > 1e-200) & (squares < 1e200)))
    if len(unsafe):
        finite[unsafe] = finite_rows(part[unsafe])
        plain = unsafe[finite[unsafe]]
        peak[plain], ratio[plain] = row_norms(_within(part[plain], lower, upper, inverse))
        if intercept:
            # A row so long or so short that its squares left the numbers hides the intercept, or hides in it.
            ratio[plain] = np.hypot(ratio[plain], 1 / peak[plain])
    return Measure(peak, ratio, finite)


def _within(part: Matrix, lower: Any, upper: Any, inverse: Any) -> Matrix:
    """Rows in float64, within their bounds where there are any; NaN in rows that are not finite."""
    if sparse.issparse(part):
        values = part.data.astype(np.float64)
        if upper is not None:
            inside = np.clip(values, 0, upper[part.indices]) * inverse[part.indices]
            values = np.where(np.isfinite(values), inside, np.nan)
        return sparse.csr_matrix((values, part.indices, part.indptr), shape=part.shape)
    values = part.astype(np.float64)
    if lower is not None:
        bad = ~np.isfinite(values).all(axis=1)
        values = (np.clip(values, lower, upper) - lower) * inverse
        values[bad] = np.nan
    return values


def _squares(rows: Matrix) -> NDArray[np.float64]:
    """Squared norms; not finite for rows that are not."""
    if sparse.issparse(rows):
        squares = np.bincount(_owners(rows), weights=rows.data * rows.data, minlength=rows.shape[0])
        return np.asarray(squares, dtype=float)
    return np.asarray(squared_lengths(rows))


def _row_blocks(X: Matrix) -> Iterator[slice]:
    pages, room = FilePages(X), SPARSE_ROOM if sparse.issparse(X) else 1
    for block in row_blocks(X, BLOCK_ENTRIES // room):
        yield block
        pages.after(int((block.stop - block.start) * X.shape[1]) * X.dtype.itemsize)


def row_blocks(X: Matrix, entries: int, fewest: int = 1, most: int | None = None) -> Iterator[slice]:
    """Blocks of rows that hold up to so many entries, but no fewer rows than `fewest` and no more than `most`.

    Rows of a CSR table are taken as long as each is, others as long as they are in the mean.
    """
    n, start = X.shape[0], 0
    width = X.nnz / max(1, n) if sparse.issparse(X) else X.shape[1]
    while start < n:
        fitting = int(entries / max(1.0, width))
        if sparse.issparse(X) and X.format == "csr":
            fitting = int(np.searchsorted(X.indptr, int(X.indptr[start]) + entries, side="right")) - 1 - start
        length = max(fewest, fitting if most is None else min(most, fitting))
        yield slice(start, min(start + length, n))
        start += length


def _owners(part: Any) -> NDArray[np.intp]:
    return np.repeat(np.arange(part.shape[0]), np.diff(part.indptr))
