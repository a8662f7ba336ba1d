"""Hard constraints as penalties: zero inside a convex set, infinite outside; the proximal map is the projection."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dpadmm.errors import InvalidParameter
from dpadmm.problem.checks import Array, number
from dpadmm.problem.regularizers.base import REGULARIZERS


@REGULARIZERS.register("box")
@dataclass(frozen=True)
class Box:
    """lower ≤ y_i ≤ upper for every entry; either side may be infinite.

    Examples
    --------
    >>> import numpy as np
    >>> Box(0.0, 1.0).prox(np.array([-2.0, 0.5, 7.0]), step=1.0).tolist()
    [0.0, 0.5, 1.0]
    """

    lower: float
    upper: float
    name: ClassVar[str] = "box"
    convex: ClassVar[bool] = True
    separable: ClassVar[bool] = True

    def __post_init__(self) -> None:
        for side in ("lower", "upper"):
            object.__setattr__(self, side, number(side, getattr(self, side), -math.inf, finite=False))
        if self.lower > self.upper or self.lower == math.inf or self.upper == -math.inf:
            raise InvalidParameter(
                f"lower={self.lower!r}, upper={self.upper!r}", "lower <= upper with a number between", "widen the box"
            )

    def value(self, y: Array) -> float:
        excess = np.maximum(self.lower - y, y - self.upper).max(initial=0.0)
        size = max(abs(side) for side in (self.lower, self.upper, 1.0) if math.isfinite(side))
        return _zero_inside(float(excess), size, y)

    def prox(self, v: Array, step: float) -> Array:
        return np.clip(v, self.lower, self.upper)


@REGULARIZERS.register("ball")
@dataclass(frozen=True)
class Ball:
    """‖y‖₂ ≤ radius (Frobenius norm for a matrix).

    Examples
    --------
    >>> import numpy as np
    >>> Ball(1.0).prox(np.array([3.0, 4.0]), step=1.0).round(12).tolist()
    [0.6, 0.8]
    """

    radius: float = 1.0
    name: ClassVar[str] = "ball"
    convex: ClassVar[bool] = True
    separable: ClassVar[bool] = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "radius", number("radius", self.radius, strict=True))

    def value(self, y: Array) -> float:
        return _zero_inside(float(np.linalg.norm(y)) - self.radius, self.radius, y)

    def prox(self, v: Array, step: float) -> Array:
        norm = float(np.linalg.norm(v))
        return v * (self.radius / norm) if norm > self.radius else v.copy()


@REGULARIZERS.register("simplex")
@dataclass(frozen=True)
class Simplex:
    """y_i ≥ 0 and Σ y_i = total; each column on its own for a matrix.

    Examples
    --------
    >>> import numpy as np
    >>> Simplex().prox(np.array([2.0, 1.5, -1.0]), step=1.0).tolist()
    [0.75, 0.25, 0.0]
    """

    total: float = 1.0
    name: ClassVar[str] = "simplex"
    convex: ClassVar[bool] = True
    separable: ClassVar[bool] = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "total", number("total", self.total, strict=True))

    def value(self, y: Array) -> float:
        imbalance = np.abs(y.sum(axis=0, dtype=np.float64) - self.total).max()
        return _zero_inside(float(max(imbalance, -y.min())), self.total, y)

    def prox(self, v: Array, step: float) -> Array:
        columns = v.reshape(v.shape[0], -1)
        # The projection does not change when a column is shifted; near zero the sums below keep their digits.
        columns = columns - columns.max(axis=0)
        descending = -np.sort(-columns, axis=0)
        place = np.arange(1, v.shape[0] + 1, dtype=v.dtype)[:, None]
        water_level = (np.cumsum(descending, axis=0) - self.total) / place
        above = np.maximum(np.count_nonzero(descending > water_level, axis=0), 1)
        level = np.take_along_axis(water_level, above[None, :] - 1, axis=0)
        projected: Array = np.maximum(columns - level, 0).reshape(v.shape)
        return projected


def _zero_inside(excess: float, size: float, y: Array) -> float:
    """0 if the set is left by no more than an iterative solver's rounding, infinity otherwise."""
    return 0.0 if excess <= size * math.sqrt(np.finfo(y.dtype).eps) else math.inf
