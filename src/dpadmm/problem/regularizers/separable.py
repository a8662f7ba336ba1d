"""Convex penalties that treat every entry on its own: none, L1, squared L2 and the elastic net."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dpadmm.errors import InvalidParameter
from dpadmm.problem.checks import Array, number
from dpadmm.problem.regularizers.base import REGULARIZERS


def soft_threshold(v: Array, threshold: float | Array) -> Array:
    """Shrink every entry towards zero by `threshold`, and no further.

    Examples
    --------
    >>> import numpy as np
    >>> soft_threshold(np.array([-3.0, 0.5, 2.0]), 1.0).tolist()
    [-2.0, 0.0, 1.0]
    """
    # Subtracting the clipped value gives +0.0 inside, so that "exactly zero" prints and counts as zero.
    shrunk: Array = v - np.clip(v, -threshold, threshold)
    return shrunk


@REGULARIZERS.register("none")
@dataclass(frozen=True)
class Zero:
    """No penalty.

    Examples
    --------
    >>> import numpy as np
    >>> Zero().prox(np.array([1.0, -2.0]), step=5.0).tolist()
    [1.0, -2.0]
    """

    name: ClassVar[str] = "none"
    convex: ClassVar[bool] = True
    separable: ClassVar[bool] = True

    def value(self, y: Array) -> float:
        return 0.0

    def prox(self, v: Array, step: float) -> Array:
        return v.copy()


@REGULARIZERS.register("l1")
@dataclass(frozen=True)
class L1:
    """strength · Σ_i weight_i |y_i|.

    Parameters
    ----------
    strength : float
        At least 0.
    weights : tuple of float, optional
        One public weight ≥ 0 per row of y, the same for all its columns; 1 for every row if left out.

    Examples
    --------
    >>> import numpy as np
    >>> L1(0.5).prox(np.array([-3.0, 0.5, 2.0]), step=2.0).tolist()
    [-2.0, 0.0, 1.0]
    """

    strength: float
    weights: tuple[float, ...] | None = None
    name: ClassVar[str] = "l1"
    convex: ClassVar[bool] = True
    separable: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "strength", number("strength", self.strength))
        if self.weights is not None:
            object.__setattr__(self, "weights", tuple(number("weights", w) for w in self.weights))

    def value(self, y: Array) -> float:
        return self.strength * float(np.sum(self._weights_like(y) * np.abs(y)))

    def prox(self, v: Array, step: float) -> Array:
        return soft_threshold(v, float(step) * self.strength * self._weights_like(v))

    def _weights_like(self, y: Array) -> float | Array:
        if self.weights is None:
            return 1.0
        return np.asarray(self.weights, dtype=y.dtype).reshape(-1, *[1] * (y.ndim - 1))


@REGULARIZERS.register("l2")
@dataclass(frozen=True)
class SquaredL2:
    """strength/2 · ‖y‖².

    Examples
    --------
    >>> import numpy as np
    >>> SquaredL2(1.0).prox(np.array([3.0]), step=2.0).tolist()
    [1.0]
    """

    strength: float
    name: ClassVar[str] = "l2"
    convex: ClassVar[bool] = True
    separable: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "strength", number("strength", self.strength))

    def value(self, y: Array) -> float:
        return self.strength / 2 * float(np.sum(y * y))

    def prox(self, v: Array, step: float) -> Array:
        shrunk: Array = v / (1 + float(step) * self.strength)
        return shrunk


@REGULARIZERS.register("elasticnet")
@dataclass(frozen=True)
class ElasticNet:
    """strength · (l1_ratio · ‖y‖₁ + (1 − l1_ratio)/2 · ‖y‖²), as in scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> ElasticNet(1.0, l1_ratio=0.5).prox(np.array([3.0, 0.5]), step=2.0).tolist()
    [1.0, 0.0]
    """

    strength: float
    l1_ratio: float = 0.5
    name: ClassVar[str] = "elasticnet"
    convex: ClassVar[bool] = True
    separable: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "strength", number("strength", self.strength))
        object.__setattr__(self, "l1_ratio", number("l1_ratio", self.l1_ratio))
        if self.l1_ratio > 1:
            raise InvalidParameter(f"l1_ratio={self.l1_ratio!r}", "0 <= l1_ratio <= 1", "choose another l1_ratio")

    def value(self, y: Array) -> float:
        absolute, square = float(np.sum(np.abs(y))), float(np.sum(y * y))
        return self.strength * (self.l1_ratio * absolute + (1 - self.l1_ratio) / 2 * square)

    def prox(self, v: Array, step: float) -> Array:
        scale = float(step) * self.strength
        shrunk: Array = soft_threshold(v, scale * self.l1_ratio) / (1 + scale * (1 - self.l1_ratio))
        return shrunk


def entrywise(regularizer: object, rows: int) -> tuple[Array, float] | None:
    """(threshold of each entry, stiffness) of a prox that soft-thresholds and shrinks; None of any other penalty.

    Examples
    --------
    >>> entrywise(ElasticNet(2.0, 0.25), 1)
    (array([0.5]), 1.5)
    """
    if type(regularizer) is Zero:
        return np.zeros(rows), 0.0
    if type(regularizer) is L1:
        weights = np.ones(rows) if regularizer.weights is None else np.array(regularizer.weights)
        return regularizer.strength * weights, 0.0
    if type(regularizer) is SquaredL2:
        return np.zeros(rows), regularizer.strength
    if type(regularizer) is ElasticNet:
        absolute = regularizer.strength * regularizer.l1_ratio
        return np.full(rows, absolute), regularizer.strength * (1 - regularizer.l1_ratio)
    return None
