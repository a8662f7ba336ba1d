"""The curvature of the model in its coordinates, and the posterior that evidence and prior have under it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dpadmm.solvers.auto.gradient_evidence import Evidence

Array = NDArray[np.float64]


class Curvature(Protocol):
    """H, the curvature of the smooth part of the objective in the coordinates z."""

    @property
    def matrix(self) -> Array:
        """H as a matrix."""
        ...

    def apply(self, z: Array) -> Array:
        """H z."""
        ...

    def posterior(self, evidence: Evidence, prior: Array) -> tuple[Array, Array]:
        """The mean of z, and the stiffness with which the model holds it there: a diagonal or a matrix.

        The noise of the evidence has a known variance, z the variance `prior` and no preferred direction.
        """
        ...


@dataclass(frozen=True, eq=False)
class Even:
    """A multiple of the second moment: H is the diagonal `values`, in coordinates that whiten it."""

    values: Array

    @property
    def matrix(self) -> Array:
        return np.diag(self.values)

    def apply(self, z: Array) -> Array:
        return np.asarray(self.values * z if z.ndim == 1 else self.values[:, None] * z)

    def posterior(self, evidence: Evidence, prior: Array) -> tuple[Array, Array]:
        mean, variance = evidence.mean, evidence.variance
        stiff = self.values + (variance if variance.ndim < 2 else variance[:, 0]) / (self.values * prior)
        return np.asarray(mean / (stiff if mean.ndim == 1 else stiff[:, None])), np.asarray(stiff)


def relaxed(stiffness: Array, factor: Array | float) -> Array:
    """The stiffness for points `factor` times as far out, by coordinate.

    A cap shortens gradients, so a penalty meant for whole ones chooses too few features. A curvature above that of the
    capped loss makes up for it; with a matrix, which was measured, the penalty counts by the factor as well.
    """
    if stiffness.ndim == 1:
        return np.asarray(stiffness / factor)
    factors = np.broadcast_to(factor, len(stiffness))
    return np.asarray(stiffness / factors / factors[:, None])
