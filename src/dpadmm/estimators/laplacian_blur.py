"""A public feature map for rows with a geometry: neighbouring features are averaged before training."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from dpadmm.cells.feature_tables import numeric_table, with_names
from dpadmm.errors import InvalidData, InvalidParameter
from dpadmm.problem.smoothers import Smoother

LARGEST_DIMENSION = 5000
"""The square root of a smoother is a dense matrix."""


class LaplacianBlur(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Maps each row to S^½ row, S = (I + ν·Laplacian)⁻¹ of a declared ring, grid or graph of features.

    A linear model of blurred rows has coefficients that are smooth along the geometry, so that fewer of them have to be
    found through the noise. Each row is mapped by itself by a rule fixed before the data, so nothing is measured and
    nothing is charged. It helps where neighbouring features mean the same (handwriting), and hurts where edges matter.

    Parameters
    ----------
    smoother : Smoother
        From `dpadmm.problem.smoothers`, with one coordinate a feature.

    Examples
    --------
    >>> import numpy as np
    >>> from dpadmm import LaplacianBlur
    >>> from dpadmm.problem.smoothers import RingLaplacian
    >>> LaplacianBlur(RingLaplacian(1.0)).fit_transform(np.eye(4)).sum(axis=1).round(6).tolist()
    [1.0, 1.0, 1.0, 1.0]
    """

    def __init__(self, smoother: Smoother) -> None:
        self.smoother = smoother

    def fit(self, X: Any, y: Any = None) -> Self:
        """Prepare the map for this number of features; nothing is learned from the rows."""
        self._rows(X, reset=True)
        if not (callable(self.smoother) and hasattr(self.smoother, "norm_inverse")):
            raise InvalidParameter(
                f"smoother of type {type(self.smoother).__name__}",
                "a smoother from dpadmm.problem.smoothers",
                "declare a ring, a grid or a graph of features",
            )
        if self.n_features_in_ > LARGEST_DIMENSION:
            raise InvalidParameter(
                f"{self.n_features_in_} features", f"at most {LARGEST_DIMENSION}", "blur fewer features"
            )
        values, basis = np.linalg.eigh(self.smoother(np.eye(self.n_features_in_)))
        self.matrix_ = (basis * np.sqrt(np.maximum(values, 0.0))) @ basis.T
        return self

    def transform(self, X: Any) -> NDArray[Any]:
        """Blurred rows, in the precision of `X`."""
        check_is_fitted(self)
        rows = self._rows(X, reset=False)
        with np.errstate(all="ignore"):  # a warning about a row would be a message about it
            return np.asarray(rows @ self.matrix_.astype(rows.dtype))

    def _rows(self, X: Any, reset: bool) -> NDArray[Any]:
        if sparse.issparse(X):
            raise InvalidData("sparse rows, which blurring makes dense", "a dense table", "pass X.toarray()")
        rows = validate_data(
            self, with_names(numeric_table(X), X), reset=reset, dtype=[np.float64, np.float32], ensure_all_finite=False
        )
        return np.asarray(rows)
