"""Losses for two classes, coded as targets −1 and +1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import expit

from dpadmm.kernels import loss_codes
from dpadmm.problem.checks import Array, number
from dpadmm.problem.losses.base import LOSSES


@LOSSES.register("logistic")
@dataclass(frozen=True)
class Logistic:
    """log(1 + exp(−target·margin)).

    Examples
    --------
    >>> import numpy as np
    >>> Logistic().slope(np.array([0.0, 1e300]), np.array([1.0, 1.0])).tolist()
    [-0.5, -0.0]
    """

    name: ClassVar[str] = "logistic"
    slope_bound: ClassVar[float] = 1.0
    curvature_bound: ClassVar[float] = 0.25
    outputs: ClassVar[int] = 1
    curvature_fades: ClassVar[bool] = True
    usual_clip: ClassVar[float | None] = None
    bend: ClassVar[float] = 0.0
    kernel: ClassVar[tuple[int, float]] = (loss_codes.LOGISTIC, 0.0)

    def value(self, margin: Array, target: Array) -> Array:
        return np.logaddexp(0, -_signed(margin, target))

    def slope(self, margin: Array, target: Array) -> Array:
        return _signed(-expit(-_signed(margin, target)), target)

    def curvature(self, margin: Array, target: Array) -> Array:
        curvature: Array = expit(margin) * expit(-margin)
        return curvature


@LOSSES.register("huberised-hinge")
@dataclass(frozen=True)
class HuberisedHinge:
    """The hinge loss with its corner replaced by a parabola of half-width `h`, as in Chen et al. (2020).

    With z = target·margin: 0 for z > 1 + h, (1 + h − z)²/(4h) for |1 − z| ≤ h, 1 − z below.

    Parameters
    ----------
    h : float
        Half-width of the parabola; the paper uses 0.5.

    Examples
    --------
    >>> import numpy as np
    >>> HuberisedHinge().value(np.array([2.0, 1.0, -1.0]), np.ones(3)).tolist()
    [0.0, 0.125, 2.0]
    """

    h: float = 0.5
    name: ClassVar[str] = "huberised-hinge"
    slope_bound: ClassVar[float] = 1.0
    outputs: ClassVar[int] = 1
    curvature_fades: ClassVar[bool] = True
    usual_clip: ClassVar[float | None] = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "h", number("h", self.h, strict=True))

    @property
    def curvature_bound(self) -> float:
        return 1 / (2 * self.h)

    @property
    def bend(self) -> float:
        return 1.0 + self.h

    @property
    def kernel(self) -> tuple[int, float]:
        return loss_codes.HUBERISED_HINGE, self.h

    def value(self, margin: Array, target: Array) -> Array:
        z = _signed(margin, target)
        return self._parabola_depth(z) ** 2 / (4 * self.h) + np.maximum(1 - self.h - z, 0)

    def slope(self, margin: Array, target: Array) -> Array:
        return _signed(-self._parabola_depth(_signed(margin, target)) / (2 * self.h), target)

    def curvature(self, margin: Array, target: Array) -> Array:
        depth = self._parabola_depth(_signed(margin, target))
        inside = (depth > 0) & (depth < 2 * self.h)
        return inside.astype(margin.dtype) / (2 * self.h)

    def _parabola_depth(self, z: Array) -> Array:
        return np.clip(1 + self.h - z, 0, 2 * self.h)


def _signed(margin: Array, target: Array) -> Array:
    signed: Array = margin * target.astype(margin.dtype, copy=False)
    return signed
