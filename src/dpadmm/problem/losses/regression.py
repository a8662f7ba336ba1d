"""Losses for real targets, of one task or of several sharing their rows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dpadmm.kernels import loss_codes
from dpadmm.problem.checks import Array, count, number
from dpadmm.problem.losses.base import LOSSES


@LOSSES.register("squared")
@dataclass(frozen=True)
class Squared:
    """(margin − target)²/2, summed over tasks. Its slope is unbounded, so privacy rests on clipping alone.

    Parameters
    ----------
    n_tasks : int
        1 for margins and targets of shape (n,), more for shape (n, n_tasks).

    Examples
    --------
    >>> import numpy as np
    >>> Squared().value(np.array([3.0]), np.array([1.0])).tolist()
    [2.0]
    """

    n_tasks: int = 1
    name: ClassVar[str] = "squared"
    slope_bound: ClassVar[float] = math.inf
    curvature_bound: ClassVar[float] = 1.0
    curvature_fades: ClassVar[bool] = False
    usual_clip: ClassVar[float] = 2.0  # the whole span of the target: a smaller clip would turn means into medians
    bend: ClassVar[float] = 0.0
    kernel: ClassVar[tuple[int, float]] = (loss_codes.SQUARED, 0.0)

    def __post_init__(self) -> None:
        object.__setattr__(self, "n_tasks", count("n_tasks", self.n_tasks, minimum=1))

    @property
    def outputs(self) -> int:
        return self.n_tasks

    def value(self, margin: Array, target: Array) -> Array:
        with np.errstate(over="ignore"):
            return _over_tasks(_error(margin, target) ** 2 / 2)

    def slope(self, margin: Array, target: Array) -> Array:
        return _error(margin, target)

    def curvature(self, margin: Array, target: Array) -> Array:
        return _between_tasks(np.ones_like(margin))


@LOSSES.register("huber")
@dataclass(frozen=True)
class Huber:
    """error²/2 up to `threshold`, then threshold·(|error| − threshold/2), summed over tasks.

    Parameters
    ----------
    threshold : float
        Size of error from which the loss grows linearly; also the bound on the slope of each task.
    n_tasks : int
        1 for margins and targets of shape (n,), more for shape (n, n_tasks).

    Examples
    --------
    >>> import numpy as np
    >>> Huber().value(np.array([0.5, 3.0]), np.zeros(2)).tolist()
    [0.125, 2.5]
    """

    threshold: float = 1.0
    n_tasks: int = 1
    name: ClassVar[str] = "huber"
    curvature_bound: ClassVar[float] = 1.0
    curvature_fades: ClassVar[bool] = False
    usual_clip: ClassVar[float] = 0.5
    bend: ClassVar[float] = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "threshold", number("threshold", self.threshold, strict=True))
        object.__setattr__(self, "n_tasks", count("n_tasks", self.n_tasks, minimum=1))

    @property
    def slope_bound(self) -> float:
        return self.threshold * math.sqrt(self.n_tasks)

    @property
    def kernel(self) -> tuple[int, float]:
        return loss_codes.HUBER, self.threshold

    @property
    def outputs(self) -> int:
        return self.n_tasks

    def value(self, margin: Array, target: Array) -> Array:
        size = np.abs(_error(margin, target))
        capped = np.minimum(size, self.threshold)
        return _over_tasks(capped * (size - capped / 2))

    def slope(self, margin: Array, target: Array) -> Array:
        return np.clip(_error(margin, target), -self.threshold, self.threshold)

    def curvature(self, margin: Array, target: Array) -> Array:
        return _between_tasks((np.abs(_error(margin, target)) < self.threshold).astype(margin.dtype))


def _error(margin: Array, target: Array) -> Array:
    error: Array = margin - target.astype(margin.dtype, copy=False)
    return error


def _over_tasks(values: Array) -> Array:
    return values if values.ndim == 1 else values.sum(axis=1)


def _between_tasks(curvature: Array) -> Array:
    """Tasks do not interact: per row, a diagonal matrix of their curvatures."""
    return (
        curvature if curvature.ndim == 1 else curvature[:, :, None] * np.eye(curvature.shape[1], dtype=curvature.dtype)
    )
