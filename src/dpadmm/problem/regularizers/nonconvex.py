"""SCAD and MCP: like L1 near zero but flat for large coefficients. Not convex, so no convergence is claimed."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dpadmm.problem.checks import Array, number
from dpadmm.problem.regularizers.base import REGULARIZERS
from dpadmm.problem.regularizers.separable import soft_threshold


@REGULARIZERS.register("scad")
@dataclass(frozen=True)
class SCAD:
    """Smoothly clipped absolute deviation of Fan and Li (2001), summed over entries.

    strength·|y| up to `strength`, a concave parabola up to a·strength, constant (a + 1)·strength²/2 from there.

    Parameters
    ----------
    strength : float
        At least 0.
    a : float
        Where the penalty stops growing, above 2.

    Examples
    --------
    >>> import numpy as np
    >>> SCAD(1.0).prox(np.array([0.5, 1.5, 9.0]), step=1.0).tolist()
    [0.0, 0.5, 9.0]
    """

    strength: float
    a: float = 3.7
    name: ClassVar[str] = "scad"
    convex: ClassVar[bool] = False
    separable: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "strength", number("strength", self.strength))
        object.__setattr__(self, "a", number("a", self.a, minimum=2.0, strict=True))

    def value(self, y: Array) -> float:
        return float(self._each(np.abs(y)).sum())

    def prox(self, v: Array, step: float) -> Array:
        step, knee, flat = float(step), self.strength, self.a * self.strength
        soft = soft_threshold(v, step * knee)
        if step >= self.a - 1:
            # The parabola outweighs the quadratic and its piece holds no minimum: v stays, or the linear piece wins.
            near = np.clip(soft, -knee, knee)
            return np.where(self._cost(v, v, step) < self._cost(near, v, step), v, near)
        slope = (self.a - 1) / (self.a - 1 - step)
        middle = soft_threshold(v, flat * step / (self.a - 1)) * slope
        size = np.abs(v)
        return np.where(size <= knee * (1 + step), soft, np.where(size <= flat, middle, v))

    def _cost(self, w: Array, v: Array, step: float) -> Array:
        cost: Array = self._each(np.abs(w)) + (w - v) ** 2 / (2 * step)
        return cost

    def _each(self, size: Array) -> Array:
        linear = np.minimum(size, self.strength)
        bend = np.clip(size, self.strength, self.a * self.strength)
        parabola = (bend - self.strength) * (2 * self.a * self.strength - bend - self.strength) / (2 * (self.a - 1))
        each: Array = self.strength * linear + parabola
        return each


@REGULARIZERS.register("mcp")
@dataclass(frozen=True)
class MCP:
    """Minimax concave penalty of Zhang (2010), summed over entries.

    strength·|y| − y²/(2·gamma) up to gamma·strength, constant gamma·strength²/2 from there.

    Parameters
    ----------
    strength : float
        At least 0.
    gamma : float
        Where the penalty stops growing, in units of `strength`; above 0.

    Examples
    --------
    >>> import numpy as np
    >>> MCP(1.0, gamma=2.0).prox(np.array([0.5, 1.5, 9.0]), step=1.0).tolist()
    [0.0, 1.0, 9.0]
    """

    strength: float
    gamma: float = 3.0
    name: ClassVar[str] = "mcp"
    convex: ClassVar[bool] = False
    separable: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "strength", number("strength", self.strength))
        object.__setattr__(self, "gamma", number("gamma", self.gamma, strict=True))

    def value(self, y: Array) -> float:
        rising = np.minimum(np.abs(y), self.gamma * self.strength)
        return float((rising * (self.strength - rising / (2 * self.gamma))).sum())

    def prox(self, v: Array, step: float) -> Array:
        step, size = float(step), np.abs(v)
        if step >= self.gamma:
            # The rising piece is concave then: either nothing is kept or everything, at equal cost where sizes meet.
            return np.where(size > self.strength * math.sqrt(self.gamma * step), v, np.zeros_like(v))
        firm = soft_threshold(v, step * self.strength) * (self.gamma / (self.gamma - step))
        return np.where(size <= self.gamma * self.strength, firm, v)
