"""A table as it was given, with what has to be done to each of its rows: nothing is copied."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from dpadmm.cells.sparse_places import require_places_inside, with_signed_places
from dpadmm.problem.lengths import Matrix, shrink_factor
from dpadmm.problem.rowmap import RowMap
from dpadmm.rows.norms import Measure, measured

SMALLEST_FACTOR = 1e-150
"""Rows that would have to be scaled down further count as zero: products with such a factor lose their precision."""

SMALLEST_NORM = 1e-280
"""What shorter mapped rows are taken to measure: among the smallest numbers a norm would be rounded by half of it."""


@dataclass(frozen=True, eq=False)
class PackedRows:
    """A table as it was given, with what has to be done to each row: nothing is copied.

    The mapped row i is factorᵢ · ((clip(xᵢ, lower, upper) − lower)·inverse, 1), without the 1 if there is no intercept
    and with xᵢ itself if there are no bounds. Rows of factor zero are never looked at again.

    Attributes
    ----------
    X : (n, d) ndarray or CSR
        float32 or float64, read-only; C-contiguous, or with sorted and distinct indices.
    factors, norms : (n,)
        Scale and norm of each mapped row; norms of rows that count are at least `SMALLEST_NORM`. Where all rows are
        scaled to one norm, it is stored once.
    """

    X: Matrix
    factors: NDArray[np.float64]
    norms: NDArray[np.float64]
    intercept: bool = False
    lower: NDArray[np.float64] | None = None
    upper: NDArray[np.float64] | None = None
    inverse: NDArray[np.float64] | None = None

    @classmethod
    def of(cls, rowmap: RowMap, X: Matrix, keep: NDArray[np.bool_] | None = None) -> PackedRows:
        """`X` with the factor of each row; rows that are not finite, not to be kept, or beyond all size get zero."""
        X = canonical(X)
        if sparse.issparse(X):
            rowmap.require_zero_kept()
        lower = upper = inverse = None
        if rowmap.lower is not None and rowmap.upper is not None:
            lower, upper = (np.ascontiguousarray(each, dtype=np.float64) for each in (rowmap.lower, rowmap.upper))
            inverse = 1 / (upper - lower)
        # Nothing else is as long as the table: where rows are short, a few numbers a row are a large part of it.
        factors = np.empty(X.shape[0])
        norms = np.broadcast_to(rowmap.row_norm, X.shape[0]) if rowmap.unit_rows else np.empty(X.shape[0])
        for rows, found in measured(X, lower, upper, inverse, rowmap.intercept):
            alive = found.finite if keep is None else found.finite & keep[rows]
            factors[rows], lengths = _factor_and_norm(found, alive, rowmap.row_norm)
            if not rowmap.unit_rows:
                norms[rows] = lengths
        return cls(X, factors, norms, rowmap.intercept, lower, upper, inverse)

    @classmethod
    def of_mapped(cls, X: Matrix) -> PackedRows:
        """Rows that are mapped already; those that are not finite count as zero."""
        X = canonical(X)
        factors, norms = np.empty(X.shape[0]), np.empty(X.shape[0])
        for rows, (peak, ratio, finite) in measured(X, None, None, None, intercept=False):
            factors[rows] = finite
            norms[rows] = np.where(finite, np.maximum(peak * ratio, SMALLEST_NORM), 0.0)
        return cls(X, factors, norms)

    @property
    def n_rows(self) -> int:
        return int(self.X.shape[0])

    @property
    def n_features(self) -> int:
        """Of a mapped row."""
        return int(self.X.shape[1]) + int(self.intercept)

    def block(self, rows: slice | NDArray[np.intp], room: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
        """Mapped rows, by a slice or by their numbers, dense and in float64; at the beginning of `room`, if given."""
        part, factors = self.X[rows], self.factors[rows]
        mapped = np.empty((part.shape[0], self.n_features)) if room is None else room[: part.shape[0]]
        raw = mapped[:, : part.shape[1]]
        if sparse.issparse(part):
            # With the column of the intercept, which it leaves empty: so they need no other place on the way.
            stored = (part.data.astype(np.float64, copy=False), part.indices, part.indptr)
            sparse.csr_matrix(stored, shape=mapped.shape).toarray(out=mapped)
        else:
            raw[...] = part
        raw[factors == 0] = 0
        if self.lower is not None and self.upper is not None and self.inverse is not None:
            np.clip(raw, self.lower, self.upper, out=raw)
            raw -= self.lower
            raw *= self.inverse
        if self.intercept:
            mapped[:, -1] = 1
        mapped *= factors[:, None]
        return mapped

    def stored(self, rows: slice) -> Matrix:
        """Mapped rows in float64, sparse where the table is."""
        if not sparse.issparse(self.X):
            return self.block(rows)
        part, factors = self.X[rows].astype(np.float64), self.factors[rows]
        if self.upper is not None and self.inverse is not None:
            part.data = np.clip(part.data, 0, self.upper[part.indices]) * self.inverse[part.indices]
        each = np.repeat(factors, np.diff(part.indptr))
        part.data *= each
        part.data[each == 0] = 0.0
        return _with_last_column(part, factors) if self.intercept else part


def canonical(X: Matrix) -> Matrix:
    """Read-only rows in the form the kernels read, without a copy where they have it."""
    if not sparse.issparse(X):
        X = np.asarray(X)
        return _frozen(np.ascontiguousarray(X, dtype=_precision(X)))
    require_places_inside(X)
    rows = sparse.csr_matrix(with_signed_places(X), dtype=_precision(X))
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    parts = tuple(_frozen(np.ascontiguousarray(each)) for each in (rows.data, rows.indices, rows.indptr))
    return sparse.csr_matrix(parts, shape=rows.shape, copy=False)


def _precision(X: Matrix) -> type[Any]:
    """Of a float32 table, in whatever order of bytes, float32; else float64."""
    return np.float32 if X.dtype.kind == "f" and X.dtype.itemsize == 4 else np.float64


def _with_last_column(rows: Any, column: NDArray[np.float64]) -> Any:
    """CSR rows with one more entry each. `scipy.sparse.hstack` does it too, by way of three times the memory."""
    n, d = rows.shape
    ends = rows.indptr[1:]
    data, indices = np.insert(rows.data, ends, column), np.insert(rows.indices, ends, d)
    return sparse.csr_matrix((data, indices, rows.indptr + np.arange(n + 1)), shape=(n, d + 1))


def _frozen(values: NDArray[Any]) -> NDArray[Any]:
    view = values.view()
    view.flags.writeable = False
    return view


def _factor_and_norm(
    found: Measure, alive: NDArray[np.bool_], bound: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Of rows scaled down to a bound; zeros for those that are not alive, or beyond all size."""
    factors = shrink_factor(found.peak, found.ratio, bound)
    alive = alive & (factors >= SMALLEST_FACTOR)
    factors[~alive] = 0.0
    norms = np.maximum(factors * found.peak * found.ratio, SMALLEST_NORM)
    alive &= np.isfinite(norms)
    factors[~alive] = norms[~alive] = 0.0
    return factors, norms
