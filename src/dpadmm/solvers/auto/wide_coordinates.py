"""Coordinates of a wide table: features as they are or scaled, and the direction of the mean row apart."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray

from dpadmm.problem.spiked_map import LARGEST_STRETCH, SpikedMap
from dpadmm.solvers.auto.coordinates import FLATTENING

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class SpikedCoordinates:
    """What `Coordinates` is for a dense second moment, with P a `SpikedMap`: O(d) in memory and time.

    The model of the second moment is diag(bulk) but for one direction. Rows of non-negative features have most of
    their energy along their mean; a model that missed it would overshoot there at every round.

    Attributes
    ----------
    matrix : SpikedMap
        P.
    energy : (d,)
        The model's second moment of t = Pᵀ row, `crowding` times the bulk off the direction.
    prior : (d,)
        Shape of the prior variance of z, as in `Coordinates`.
    length : float
        Root mean square norm of the rows.
    """

    matrix: SpikedMap
    energy: Array
    prior: Array
    length: float

    @classmethod
    def whiten(cls, bulk: Array, mean: Array, length: float, crowding: float = 1.0, visibility: float = 1.0) -> Self:
        """Coordinates for rows that, divided by `length`, have the mean row `mean` and squares `bulk` (sum one).

        Parameters
        ----------
        crowding : float
            Curvature that matters relative to `bulk`: correlated features crowd it into fewer directions.
        visibility : float
            Expected size of the signal relative to that of features without correlation.
        """
        energy, roots = bulk**FLATTENING, np.sqrt(bulk)
        energy = energy / energy.sum()
        scale = np.sqrt(energy / bulk)
        prior = visibility / crowding * roots / roots.sum() / energy
        energy = crowding * energy
        spike = scale * mean
        strength = float(spike @ spike)
        if strength == 0:
            return cls(SpikedMap(scale / length, spike, 1.0), energy, prior, length)
        level = float((spike**2 @ energy) / strength)
        strength = max(strength, level)
        stretch = max((level / strength) ** ((1 - FLATTENING) / 2), 1 / LARGEST_STRETCH)
        matrix = SpikedMap(scale / length, spike, stretch)
        energy[matrix.axis], prior[matrix.axis] = stretch**2 * strength, 1.0
        return cls(matrix, energy, prior, length)

    @cached_property
    def scale(self) -> Array:
        """Variance in z of noise of variance one in x: the diagonal of PᵀP."""
        reflected = _squared_reflection(self.matrix, self.matrix.scale**2)
        return np.asarray(self.matrix.stretches**2 * reflected)

    def to_model(self, z: Array) -> Array:
        """x = P z."""
        return self.matrix @ z

    def from_model(self, x: Array) -> Array:
        """z = P⁻¹ x."""
        return self.matrix.solve(x)

    def pull_back(self, gradient: Array) -> Array:
        """Gradient in z of a function of x: Pᵀ g."""
        return self.matrix.T @ gradient


def _squared_reflection(matrix: SpikedMap, squares: Array) -> Array:
    """Diagonal of Q diag(squares) Q, Q = I − 2hhᵀ."""
    h = matrix.normal
    return np.asarray(squares - 4 * h**2 * squares + 4 * h**2 * float(squares @ h**2))
