"""The nuclear norm: the sum of singular values, which favours matrices of low rank."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dpadmm.problem.checks import Array, number
from dpadmm.problem.regularizers.base import REGULARIZERS
from dpadmm.problem.regularizers.separable import soft_threshold


@REGULARIZERS.register("nuclear")
@dataclass(frozen=True)
class Nuclear:
    """strength · Σ singular values of y; a vector counts as one column.

    Examples
    --------
    >>> import numpy as np
    >>> Nuclear(1.0).prox(np.diag([3.0, 0.5]), step=1.0).round(12).tolist()
    [[2.0, 0.0], [0.0, 0.0]]
    """

    strength: float
    name: ClassVar[str] = "nuclear"
    convex: ClassVar[bool] = True
    separable: ClassVar[bool] = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "strength", number("strength", self.strength))

    def value(self, y: Array) -> float:
        return self.strength * float(np.linalg.svd(_as_matrix(y), compute_uv=False).sum())

    def prox(self, v: Array, step: float) -> Array:
        if not np.isfinite(v).all():
            # LAPACK refuses these; passing them on lets the solver's own loop report that the iterates diverged.
            return np.full_like(v, np.nan)
        if v.ndim == 1:
            # One column has one singular value, its length; no factorisation is as exact.
            length = float(np.linalg.norm(v))
            return v * (max(length - float(step) * self.strength, 0.0) / (length or 1.0))
        left, values, right = np.linalg.svd(v, full_matrices=False)
        kept = soft_threshold(values, float(step) * self.strength)
        shrunk: Array = ((left * kept) @ right).reshape(v.shape)
        return shrunk


def _as_matrix(y: Array) -> Array:
    return y[:, None] if y.ndim == 1 else y
