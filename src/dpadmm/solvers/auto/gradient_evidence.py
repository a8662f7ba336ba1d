"""Noisy gradients fused through a quadratic model: each one is an estimate of −∇f(0), and estimates are averaged."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Evidence:
    """An estimate of −∇f(0) in whitened coordinates with the variance its noise is known to have."""

    mean: Array
    variance: Array


@dataclass(frozen=True, eq=False)
class Track:
    """Weighted sums of the points of one phase and of the gradients there; later ones, nearer the optimum, weigh more.

    Through a model of curvature H they give the weighted mean of the estimates Hz − G, whenever H becomes known.
    """

    points: Array | float = 0.0
    gradients: Array | float = 0.0
    weight: float = 0.0
    squared_weight: float = 0.0
    count: int = 0

    def add(self, point: Array, gradient: Array, recency: float) -> Track:
        weight = (self.count + 1) ** recency
        return Track(
            self.points + weight * point,
            self.gradients + weight * gradient,
            self.weight + weight,
            self.squared_weight + weight**2,
            self.count + 1,
        )

    def evidence(self, curvature: Callable[[Array], Array], noise_variance: float) -> Evidence:
        mean = np.asarray((curvature(np.asarray(self.points)) - self.gradients) / self.weight)
        return Evidence(mean, np.asarray(noise_variance * self.squared_weight / self.weight**2))


def fuse(newest: Evidence, older: tuple[Evidence, ...]) -> Evidence:
    """Precision-weighted mean; an older estimate counts less by the drift its distance from the newest reveals."""
    numerator, precision = newest.mean / newest.variance, 1.0 / newest.variance
    for evidence in older:
        surprise = (newest.mean - evidence.mean) ** 2 - evidence.variance - newest.variance
        drift = max(0.0, float(np.mean(surprise)))
        numerator = numerator + evidence.mean / (evidence.variance + drift)
        precision = precision + 1.0 / (evidence.variance + drift)
    return Evidence(numerator / precision, 1.0 / precision)
