"""The public map from a raw row to the row a model sees: declared bounds, an intercept, a bound on the norm."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from dpadmm.errors import InvalidParameter
from dpadmm.problem.checks import number
from dpadmm.rows.norms import Matrix, Measure, measured, require_places_inside, row_norms, with_signed_places

LARGEST_BOUND = 1e30
"""Declared ranges end here, so that scaling by them stays finite in float32 too."""

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


@dataclass(frozen=True)
class RowMap:
    """Each row is mapped by itself, by rules fixed before the data: nothing is measured.

    1. With `lower`, `upper`: clip each feature to its declared range and scale it to [0, 1].
    2. With `intercept`: append a constant 1, so that the intercept counts in the norm like any feature.
    3. Scale the row down to norm `row_norm` if it is longer. A row with a non-finite entry becomes zero.

    Examples
    --------
    >>> RowMap(intercept=True).apply(np.array([[3.0, 0.0], [0.0, 0.0]])).round(3).tolist()
    [[0.949, 0.0, 0.316], [0.0, 0.0, 1.0]]
    """

    row_norm: float = 1.0
    intercept: bool = True
    lower: tuple[float, ...] | None = None
    upper: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "row_norm", number("row_norm", self.row_norm, strict=True))
        if not 1 / LARGEST_BOUND <= self.row_norm <= LARGEST_BOUND:
            raise InvalidParameter("a row_norm outside 1e-30 to 1e30", "one inside", "scale the features first")

    @classmethod
    def declare(cls, row_norm: float, intercept: bool, bounds: Any, n_features: int) -> RowMap:
        """Check `bounds`, a pair (lower, upper) of numbers or of sequences with one entry a feature."""
        if bounds is None:
            return cls(row_norm, intercept)
        lower, upper = _declared_range(bounds, n_features)
        return cls(row_norm, intercept, tuple(lower.tolist()), tuple(upper.tolist()))

    @property
    def unit_rows(self) -> bool:
        """Whether every valid row is scaled to exactly `row_norm`: the intercept alone is that long."""
        return self.intercept and self.row_norm <= 1.0

    @property
    def non_negative(self) -> bool:
        """Whether mapped rows have no negative entry: declared bounds map every feature to [0, 1]."""
        return self.lower is not None

    def pack(self, X: Matrix, keep: NDArray[np.bool_] | None = None) -> PackedRows:
        """`X` with the factor of each row; rows that are not finite, not to be kept, or beyond all size get zero."""
        X = canonical(X)
        lower = upper = inverse = None
        if self.lower is not None and self.upper is not None:
            lower, upper = (np.ascontiguousarray(each, dtype=np.float64) for each in (self.lower, self.upper))
            inverse = 1 / (upper - lower)
            if sparse.issparse(X) and lower.any():
                raise _non_zero_lower_bound()
        # Nothing else is as long as the table: where rows are short, a few numbers a row are a large part of it.
        factors = np.empty(X.shape[0])
        norms = np.broadcast_to(self.row_norm, X.shape[0]) if self.unit_rows else np.empty(X.shape[0])
        for rows, found in measured(X, lower, upper, inverse, self.intercept):
            alive = found.finite if keep is None else found.finite & keep[rows]
            factors[rows], lengths = _factor_and_norm(found, alive, self.row_norm)
            if not self.unit_rows:
                norms[rows] = lengths
        return PackedRows(X, factors, norms, self.intercept, lower, upper, inverse)

    def apply(self, X: Matrix) -> Matrix:
        """The mapped rows, in the precision and the format of `X`."""
        return self._apply_sparse(X) if sparse.issparse(X) else self._apply_dense(np.asarray(X))

    def _apply_dense(self, X: NDArray[Any]) -> NDArray[Any]:
        n, d = X.shape
        out = np.empty((n, d + int(self.intercept)), dtype=X.dtype)
        out[:, :d] = X
        bad = ~np.isfinite(X).all(axis=1)
        out[bad, :d] = 0
        if self.lower is not None and self.upper is not None:
            lower, upper = np.asarray(self.lower), np.asarray(self.upper)
            features = out[:, :d]
            np.clip(features, lower, upper, out=features)
            features -= lower
            features /= upper - lower
        if self.intercept:
            out[:, d] = 1
        shrink = _shrink_factor(*row_norms(out), self.row_norm)
        out *= np.where(bad, 0.0, shrink).astype(out.dtype)[:, None]
        return out

    def _apply_sparse(self, X: Any) -> Any:
        X = sparse.csr_matrix(X, copy=True)
        X.sum_duplicates()
        n = X.shape[0]
        bad = np.zeros(n, dtype=bool)
        bad[np.repeat(np.arange(n), np.diff(X.indptr))[~np.isfinite(X.data)]] = True
        X.data[~np.isfinite(X.data)] = 0
        if self.lower is not None and self.upper is not None:
            if any(low != 0 for low in self.lower):
                raise _non_zero_lower_bound()
            upper = np.asarray(self.upper)[X.indices]
            X.data = (np.clip(X.data, 0, upper) / upper).astype(X.dtype)
        if self.intercept:
            ones = np.ones((n, 1), dtype=X.dtype)
            X = sparse.csr_matrix(sparse.hstack([X, ones], format="csr", dtype=X.dtype))
        shrink = np.where(bad, 0.0, _shrink_factor(*row_norms(X), self.row_norm))
        X.data *= np.repeat(shrink, np.diff(X.indptr)).astype(X.dtype)
        return X

    def fold(self, weights: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Coefficients and intercept in the units of the raw features, for rows no longer than `row_norm`.

        `weights` has one row a mapped feature; the intercept comes back as zeros where there is none.
        """
        weights = weights.reshape(len(weights), -1)
        d = len(weights) - int(self.intercept)
        coef = weights[:d].copy()
        offset = weights[d].copy() if self.intercept else np.zeros(weights.shape[1])
        if self.lower is not None and self.upper is not None:
            lower, width = np.asarray(self.lower), np.asarray(self.upper) - np.asarray(self.lower)
            coef /= width[:, None]
            offset -= lower @ coef
        return coef, offset


def _declared_range(bounds: Any, n_features: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Lower and upper end of each feature; what is wrong with them is said by feature, as they are public."""

    def refusal(given: str) -> InvalidParameter:
        return InvalidParameter(
            f"bounds {given}",
            f"bounds=(lower, upper) with lower < upper, within ±{LARGEST_BOUND:g}: two numbers, or two sequences with "
            f"one entry for each of the {n_features} features",
            "declare the range each feature can take, from public knowledge",
        )

    if isinstance(bounds, list) and any(isinstance(pair, tuple) for pair in bounds):
        # Would be misread where there are two features.
        raise refusal("as a list of pairs: pass (lower, upper) = zip(*pairs)")
    try:
        ends = [np.asarray(end, dtype=float) for end in bounds]
    except (TypeError, ValueError, OverflowError):
        raise refusal("that are not a pair of finite numbers or sequences") from None
    if len(ends) != 2:
        raise refusal(f"that are not a pair of finite numbers or sequences, but {len(ends)} of them")
    if wrong := [end.shape for end in ends if end.shape not in ((), (n_features,))]:
        raise refusal(f"of {' × '.join(map(str, wrong[0]))} numbers for {n_features} features")
    lower, upper = (np.broadcast_to(end, (n_features,)) for end in ends)
    if not all(np.all(np.abs(end) <= LARGEST_BOUND) for end in (lower, upper)):
        raise refusal("that are not a pair of finite numbers or sequences within what can be computed")
    if reversed_ := np.flatnonzero(~(upper - lower >= 1 / LARGEST_BOUND)).tolist():
        raise refusal(f"with lower >= upper, reversed or equal, for feature {reversed_[0]} (counted from 0)")
    return lower, upper


def pack_mapped(X: Matrix) -> PackedRows:
    """Rows that are mapped already; those that are not finite count as zero."""
    X = canonical(X)
    factors, norms = np.empty(X.shape[0]), np.empty(X.shape[0])
    for rows, (peak, ratio, finite) in measured(X, None, None, None, intercept=False):
        factors[rows] = finite
        norms[rows] = np.where(finite, np.maximum(peak * ratio, SMALLEST_NORM), 0.0)
    return PackedRows(X, factors, norms)


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


def _non_zero_lower_bound() -> InvalidParameter:
    return InvalidParameter(
        "sparse rows with a non-zero lower bound", "lower bounds of 0", "pass dense rows, or bounds from 0"
    )


def _factor_and_norm(
    found: Measure, alive: NDArray[np.bool_], bound: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Of rows scaled down to a bound; zeros for those that are not alive, or beyond all size."""
    factors = _shrink_factor(found.peak, found.ratio, bound)
    alive = alive & (factors >= SMALLEST_FACTOR)
    factors[~alive] = 0.0
    norms = np.maximum(factors * found.peak * found.ratio, SMALLEST_NORM)
    alive &= np.isfinite(norms)
    factors[~alive] = norms[~alive] = 0.0
    return factors, norms


def _shrink_factor(peak: NDArray[np.float64], ratio: NDArray[np.float64], bound: float) -> NDArray[np.float64]:
    """min(1, bound / (peak · ratio)), without forming the product, which may overflow."""
    ratio = np.where(ratio > 0, ratio, 1.0)
    with np.errstate(over="ignore"):
        shrink = bound / peak
        shrink /= ratio
        return np.minimum(1.0, shrink, out=shrink)
