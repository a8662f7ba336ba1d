"""A public feature map for rows with a geometry: neighbouring features are averaged before training."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpadmm.errors import InvalidParameter
from dpadmm.estimators.row_maps.row_map_base import PublicRowMap
from dpadmm.problem.smoothers import Smoother

LARGEST_DIMENSION = 5000
"""The square root of a smoother is a dense matrix."""


class LaplacianBlur(PublicRowMap):
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

    def _prepare(self, n_features: int) -> None:
        if not (callable(self.smoother) and hasattr(self.smoother, "norm_inverse")):
            raise InvalidParameter(
                f"smoother of type {type(self.smoother).__name__}",
                "a smoother from dpadmm.problem.smoothers",
                "declare a ring, a grid or a graph of features",
            )
        if n_features > LARGEST_DIMENSION:
            raise InvalidParameter(f"{n_features} features", f"at most {LARGEST_DIMENSION}", "blur fewer features")
        values, basis = np.linalg.eigh(self.smoother(np.eye(n_features)))
        self.matrix_ = (basis * np.sqrt(np.maximum(values, 0.0))) @ basis.T

    def _map(self, rows: NDArray[Any]) -> NDArray[Any]:
        """Row by row: in a product of all rows at once the last bits of one could depend on its place."""
        matrix, out = self.matrix_.astype(rows.dtype), np.empty(rows.shape, dtype=rows.dtype)
        for row, blurred in zip(rows, out, strict=True):
            np.matmul(matrix, np.ascontiguousarray(row), out=blurred)
        return out
