"""A penalty that chooses features, a little stronger for features whose gradients are noisier.

Noise in gradients gives coefficients to features that should have none. A penalty that selects features assumes that
most coefficients are zero, and the noise of each feature is known. So the penalty of a feature is raised in proportion
to its noise.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dpadmm.problem.problem import Problem
from dpadmm.problem.regularizers.base import Regularizer
from dpadmm.problem.regularizers.separable import entrywise, soft_threshold
from dpadmm.solvers.auto.coordinates import Coordinates
from dpadmm.solvers.auto.gradient_evidence import Evidence
from dpadmm.solvers.auto.wide_coordinates import SpikedCoordinates

Array = NDArray[np.float64]

SCREENING = 0.25
"""Standard deviations of a feature's noise that are added to its penalty."""


def screened(problem: Problem, evidence: Evidence, coordinates: Coordinates | SpikedCoordinates) -> Problem:
    """The problem with the penalty of each penalised feature raised by its noise.

    It is not raised for wide tables, whose noise is not known by feature, nor for penalties that the user made.
    """
    if isinstance(coordinates, SpikedCoordinates):
        return problem
    noise = _noise_by_feature(evidence, coordinates)[: len(coordinates.scale) - problem.constraint.free]
    asked = entrywise(problem.regularizer, len(noise))
    if asked is None:
        return problem
    return replace(
        problem, regularizer=NoiseAdjustedPenalty(problem.regularizer, np.where(asked[0] > 0, SCREENING * noise, 0.0))
    )


def _noise_by_feature(evidence: Evidence, coordinates: Coordinates) -> Array:
    """Standard deviation of the evidence, which is a gradient, along each feature."""
    back = coordinates.basis / np.sqrt(coordinates.scale)
    return np.asarray(np.sqrt(back**2 @ np.broadcast_to(evidence.variance, len(coordinates.scale))))


@dataclass(frozen=True, eq=False)
class NoiseAdjustedPenalty:
    """penalty(y) + Σ threshold_i |y_i|, for a penalty that is separable and even."""

    penalty: Regularizer
    thresholds: Array
    name: ClassVar[str] = "screened"
    convex: ClassVar[bool] = True
    separable: ClassVar[bool] = True

    def value(self, y: Array) -> float:
        return self.penalty.value(y) + float(self.thresholds @ np.abs(y))

    def prox(self, v: Array, step: float) -> Array:
        """Soft-thresholding first is exact: a threshold moves both proxes of an even function alike."""
        return self.penalty.prox(soft_threshold(v, float(step) * self.thresholds), step)
