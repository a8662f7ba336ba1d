"""The multi-class loss: cross-entropy of the softmax of K margins."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dpadmm.kernels import loss_codes
from dpadmm.problem.checks import Array, count
from dpadmm.problem.losses.base import LOSSES


@LOSSES.register("softmax")
@dataclass(frozen=True)
class Softmax:
    """log Σ_k exp(margin_k) − margin_target, for targets in {0, …, K − 1}.

    The slope is softmax(margin) − e_target, whose norm is below √2; the second derivative diag(p) − ppᵀ has spectral
    norm at most 1/2, reached where two classes share all the probability.

    Parameters
    ----------
    n_classes : int
        K, at least 2.

    Examples
    --------
    >>> import numpy as np
    >>> Softmax(2).slope(np.zeros((1, 2)), np.array([0])).tolist()
    [[-0.5, 0.5]]
    """

    n_classes: int
    name: ClassVar[str] = "softmax"
    slope_bound: ClassVar[float] = math.sqrt(2)
    curvature_bound: ClassVar[float] = 0.5
    curvature_fades: ClassVar[bool] = True
    usual_clip: ClassVar[float | None] = None
    bend: ClassVar[float] = 0.0
    kernel: ClassVar[tuple[int, float]] = (loss_codes.SOFTMAX, 0.0)

    def __post_init__(self) -> None:
        object.__setattr__(self, "n_classes", count("n_classes", self.n_classes, minimum=2))

    @property
    def outputs(self) -> int:
        return self.n_classes

    def value(self, margin: Array, target: Array) -> Array:
        below = _below_largest(margin)
        chosen = np.take_along_axis(below, _class_column(target), axis=1)[:, 0]
        value: Array = np.log(np.exp(below).sum(axis=1)) - chosen
        return value

    def slope(self, margin: Array, target: Array) -> Array:
        slope, column = _probability(margin), _class_column(target)
        np.put_along_axis(slope, column, np.take_along_axis(slope, column, axis=1) - 1, axis=1)
        return slope

    def curvature(self, margin: Array, target: Array) -> Array:
        p = _probability(margin)
        curvature: Array = p[:, :, None] * (np.eye(self.n_classes, dtype=p.dtype) - p[:, None, :])
        return curvature


def _probability(margin: Array) -> Array:
    weight = np.exp(_below_largest(margin))
    probability: Array = weight / weight.sum(axis=1, keepdims=True)
    return probability


def _below_largest(margin: Array) -> Array:
    """Margins minus the row's largest, so that no exponential overflows."""
    with np.errstate(over="ignore"):
        below: Array = margin - margin.max(axis=1, keepdims=True)
    return below


def _class_column(target: Array) -> Array:
    return target.astype(np.intp, copy=False)[:, None]
