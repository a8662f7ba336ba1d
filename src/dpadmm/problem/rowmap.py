"""The public map from a raw row to the row a model sees: declared bounds, an intercept, a bound on the norm."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from dpadmm.errors import InvalidParameter
from dpadmm.problem.checks import number
from dpadmm.problem.lengths import Matrix, row_norms, shrink_factor

LARGEST_BOUND = 1e30
"""Declared ranges end here, so that scaling by them stays finite in float32 too."""


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

    def require_zero_kept(self) -> None:
        """Sparse rows can be mapped only where a zero stays a zero."""
        if self.lower is not None and any(low != 0 for low in self.lower):
            raise InvalidParameter(
                "sparse rows with a non-zero lower bound", "lower bounds of 0", "pass dense rows, or bounds from 0"
            )

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
        shrink = shrink_factor(*row_norms(out), self.row_norm)
        out *= np.where(bad, 0.0, shrink).astype(out.dtype)[:, None]
        return out

    def _apply_sparse(self, X: Any) -> Any:
        X = sparse.csr_matrix(X, copy=True)
        X.sum_duplicates()
        n = X.shape[0]
        bad = np.zeros(n, dtype=bool)
        bad[np.repeat(np.arange(n), np.diff(X.indptr))[~np.isfinite(X.data)]] = True
        X.data[~np.isfinite(X.data)] = 0
        self.require_zero_kept()
        if self.upper is not None:
            upper = np.asarray(self.upper)[X.indices]
            X.data = (np.clip(X.data, 0, upper) / upper).astype(X.dtype)
        if self.intercept:
            ones = np.ones((n, 1), dtype=X.dtype)
            X = sparse.csr_matrix(sparse.hstack([X, ones], format="csr", dtype=X.dtype))
        shrink = np.where(bad, 0.0, shrink_factor(*row_norms(X), self.row_norm))
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
