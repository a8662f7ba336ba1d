"""A public change of coordinates that a wide table can afford: a scale a feature, and one direction stretched."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpadmm.errors import InvalidParameter
from dpadmm.problem.checks import leading_axis

Array = NDArray[np.float64]

LARGEST_STRETCH = 1e4
"""Beyond it, or below its inverse, the norm of a row in new coordinates is a small difference of large numbers."""


@dataclass(frozen=True, eq=False)
class SpikedMap:
    """P = diag(scale) · Q · diag(1, …, stretch, …, 1), Q the reflection that turns one coordinate axis into ±direction.

    Everything costs O(d): `P @ z`, `P.T @ v`, `P.solve(x)`; and ‖Pᵀa‖ for a row a costs its non-zeros.

    Parameters
    ----------
    scale : (d,)
        Positive.
    direction : (d,)
        Made a unit vector; all zeros stands for the last axis.
    stretch : float
        Factor along the direction.
    transposed : bool
        Whether this is Pᵀ; use `.T`.

    Examples
    --------
    >>> P = SpikedMap(np.array([1.0, 2.0]), np.array([3.0, 4.0]), 0.5)
    >>> np.round(P @ (P.T @ np.array([1.0, 0.0])), 3).tolist()
    [0.73, -0.72]
    """

    scale: Array
    direction: Array
    stretch: float
    transposed: bool = False

    def __post_init__(self) -> None:
        scale, direction = np.asarray(self.scale, dtype=float), np.asarray(self.direction, dtype=float)
        usable = (
            scale.ndim == 1
            and scale.shape == direction.shape
            and scale.size > 0
            and bool(np.all(np.isfinite(scale)) and np.all(scale > 0) and np.all(np.isfinite(direction)))
            and 1 / LARGEST_STRETCH <= self.stretch <= LARGEST_STRETCH
        )
        if not usable:
            raise InvalidParameter(
                "unusable coordinates", "a positive scale and a finite direction of one length", "correct the model"
            )
        norm = float(np.linalg.norm(direction))
        unit = direction / norm if norm > 0 else np.eye(1, scale.size, scale.size - 1)[0]
        object.__setattr__(self, "scale", scale)
        object.__setattr__(self, "direction", unit)

    @property
    def shape(self) -> tuple[int, int]:
        return self.scale.size, self.scale.size

    @property
    def T(self) -> SpikedMap:
        return SpikedMap(self.scale, self.direction, self.stretch, not self.transposed)

    @property
    def axis(self) -> int:
        """The coordinate of z that runs along the direction."""
        return int(np.abs(self.direction).argmax())

    @cached_property
    def stretches(self) -> Array:
        """diag(1, …, stretch, …, 1) as a vector."""
        stretches = np.ones(self.scale.size)
        stretches[self.axis] = self.stretch
        return stretches

    @cached_property
    def normal(self) -> Array:
        """Unit normal h of the mirror: Q = I − 2hhᵀ."""
        normal = self.direction.copy()
        normal[self.axis] += np.copysign(1.0, normal[self.axis])
        return np.asarray(normal / np.linalg.norm(normal))

    def __matmul__(self, vector: Array) -> Array:
        leading_axis("vector", vector, self.scale.size)
        scale, stretches = _column(self.scale, vector), _column(self.stretches, vector)
        if self.transposed:
            return np.asarray(stretches * self.reflect(scale * vector))
        return np.asarray(scale * self.reflect(stretches * vector))

    def solve(self, x: Array) -> Array:
        """P⁻¹ x."""
        return np.asarray(self.reflect(x / _column(self.scale, x)) / _column(self.stretches, x))

    def reflect(self, vector: Array) -> Array:
        """Q v = Qᵀ v."""
        h = self.normal
        return np.asarray(vector - 2 * (np.multiply.outer(h, h @ vector)))

    @property
    def norm_bound(self) -> float:
        """At least ‖P‖."""
        return float(self.scale.max()) * max(1.0, self.stretch)

    @property
    def condition(self) -> float:
        """At least the ratio of the extreme singular values."""
        return float(self.scale.max() / self.scale.min()) * max(self.stretch, 1 / self.stretch)

    def row_norms(self, squares: Array, along: Array) -> Array:
        """‖Pᵀa‖ from ‖scale∘a‖² and ⟨direction, scale∘a⟩, never less than it: both carry the rounding of d terms."""
        rounding = 4 * (self.scale.size + 8) * np.finfo(np.float64).eps * (1 + self.stretch**2)
        exact = np.maximum(squares + (self.stretch**2 - 1) * along**2, 0.0)
        return np.sqrt(exact + rounding * squares)


def _column(values: Array, like: Any) -> Array:
    return values if like.ndim == 1 else values[:, None]
