"""Whitened coordinates from a model of the second moment: x = P z, t = Pᵀ row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

SMALLEST_EIGENVALUE = 1e-10
FLATTENING = 0.25
"""Directions of eigenvalue λ get energy proportional to λ^0.25 unless noise is weak: between whitening (0) and none."""


@dataclass(frozen=True, eq=False)
class Coordinates:
    """An eigenbasis with a scale a direction.

    Attributes
    ----------
    basis : (d, d)
        Eigenvectors V of the second-moment model.
    energy : (d,)
        u, the model's second moment of t = Pᵀ row, summing to one.
    scale : (d,)
        q, so that P = V diag(√q) in the units of the raw rows.
    prior : (d,)
        Shape of the prior variance of z: a coefficient vector without preferred direction, seen in these coordinates.
    length : float
        Root mean square norm of the rows.
    """

    basis: Array
    energy: Array
    scale: Array
    prior: Array
    length: float

    @classmethod
    def whiten(cls, second_moment: Array, length: float, flattening: float = FLATTENING) -> Self:
        """Coordinates for rows whose second moment, divided by `length`², is `second_moment` (trace one)."""
        values, basis = np.linalg.eigh(second_moment)
        values = np.maximum(values, SMALLEST_EIGENVALUE)
        energy = values**flattening
        energy = energy / energy.sum()
        roots = np.sqrt(values)
        return cls(basis, energy, energy / values / length**2, roots / roots.sum() / energy, length)

    @classmethod
    def blank(cls, n_features: int, length: float) -> Self:
        """What `whiten` makes of a second moment without a preferred direction."""
        even = np.full(n_features, 1 / n_features)
        return cls(np.eye(n_features), even, np.full(n_features, 1 / length**2), np.ones(n_features), length)

    @property
    def eigenvalues(self) -> Array:
        """λ of the second-moment model, in increasing order, summing to one."""
        return np.asarray(self.energy / (self.scale * self.length**2))

    @property
    def matrix(self) -> Array:
        """P."""
        return np.asarray(self.basis * np.sqrt(self.scale))

    def to_model(self, z: Array) -> Array:
        """x = P z."""
        return self.matrix @ z

    def from_model(self, x: Array) -> Array:
        """z = P⁻¹ x."""
        return np.asarray((self.basis.T @ x) / _column(np.sqrt(self.scale), x))

    def pull_back(self, gradient: Array) -> Array:
        """Gradient in z of a function of x: Pᵀ g."""
        return self.matrix.T @ gradient

    def model_of(self, whitened_moment: Array) -> Array:
        """Second-moment model of the rows from one of t: P⁻ᵀ M P⁻¹, trace one."""
        inverse = self.basis / np.sqrt(self.scale)
        moment = inverse @ whitened_moment @ inverse.T
        return np.asarray(moment / np.trace(moment))


def _column(values: Array, like: Array) -> Array:
    return values if like.ndim == 1 else values[:, None]
