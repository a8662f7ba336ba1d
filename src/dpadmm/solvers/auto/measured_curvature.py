"""Curvature along features, measured once during a fit with a penalty that selects features.

The model assumes that the curvature is a multiple of the second moment. Along a skewed feature this becomes wrong: once
its few large values are fitted, little curvature is left. Estimates that assume too much curvature approach the
coefficient of such a feature more and more slowly. So one release measures how much curvature each feature has left.

In this release rows with a large share of a feature are clipped, as in gradients. A feature whose squares sit in few
rows therefore shows less curvature than it has. So a share of the model's curvature is always kept; less of it where
the model itself may be noise.

The prior expects no coefficient as large as that of a skewed feature. The one feature that contradicts the prior most
is freed from it. That is what a sparse penalty assumes: few features have large coefficients.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dpadmm.solvers.auto.coordinates import SMALLEST_EIGENVALUE, Coordinates
from dpadmm.solvers.auto.gradient_evidence import Evidence

Array = NDArray[np.float64]

EVENNESS = 0.5
"""A feature's weight is its mean square to the power of minus this. 0 leaves features as they are; 1 makes them
alike, and would clip all rows of a rare feature."""

LIMIT = 0.02
"""Length at which a row's curvature is clipped, in units of the mean square of all features together."""

LEAST_LEFT = 0.2
"""Share of a feature's curvature that is always kept: with too little, steps overshoot."""

COMMON = 0.9
"""Quantile of the features' shares that is taken for the loss common to all features."""

LEAST_SQUARE = 0.4
"""Share of a mean square in the model that counts as real, however large its noise."""

REFUTING = 4.0
"""Standard deviations beyond what noise and prior allow at which a coefficient is freed from the prior."""


def question(coordinates: Coordinates) -> Array:
    """Public weights of the features' squares; contributions longer than one after weighting are clipped."""
    squares = _squares(coordinates)
    weights = squares**-EVENNESS
    return np.asarray(weights / (LIMIT * float(squares @ weights)))


def measured(
    answer: Array, noise_std: float, coordinates: Coordinates, square_std: float, level: float, free: int
) -> MeasuredCurvature:
    """The curvature `level` · second moment, less what a noisy `answer` to `question` lacks of it along a feature.

    `square_std` is the noise of a mean square as it was first released.
    """
    squares = _squares(coordinates)
    expected = level * question(coordinates) * squares
    certain = np.maximum(1 - square_std / squares, LEAST_SQUARE)
    left = np.clip(_share(answer, noise_std, expected), LEAST_LEFT * certain, 1.0)
    root = np.sqrt(coordinates.scale)
    turned = coordinates.basis.T @ (np.sqrt(left)[:, None] * coordinates.basis) * root / root[:, None]
    return MeasuredCurvature(
        turned.T @ (level * coordinates.energy[:, None] * turned), coordinates.basis.T / root[:, None], free
    )


def _share(answer: Array, noise_std: float, expected: Array) -> Array:
    """The share of the expected curvature that is left: the posterior mean for a prior of mean one and variance one.

    A loss common to all features may be real or an effect of clipping. So its square root is given back.
    """
    share = 1 + (answer - expected) * expected / (expected**2 + noise_std**2)
    return np.asarray(share / np.sqrt(np.clip(np.quantile(share, COMMON), LEAST_LEFT, 1.0)))


def _squares(coordinates: Coordinates) -> Array:
    """Mean squares of the features, by the model of the second moment."""
    return np.asarray(coordinates.basis**2 @ (coordinates.energy / coordinates.scale))


@dataclass(frozen=True, eq=False)
class MeasuredCurvature:
    """A curvature that is no multiple of the second moment.

    Attributes
    ----------
    matrix : (d, d)
        H.
    features : (d, d)
        Column j is the coefficient of feature j in these coordinates: P⁻¹ eⱼ.
    free : int
        Last features, an intercept, that the penalty leaves alone: never freed from the prior.
    """

    matrix: Array
    features: Array
    free: int

    def apply(self, z: Array) -> Array:
        return self.matrix @ z

    def posterior(self, evidence: Evidence, prior: Array) -> tuple[Array, Array]:
        """The stiffness is H + √V H^(−½) W⁻¹ H^(−½) √V, as of `Even` where all are diagonal; W⁻¹ is `_precision`."""
        variance = np.broadcast_to(evidence.variance, len(prior))
        precision = self._precision(evidence, prior)
        weighed = self.matrix / variance
        mean = np.linalg.solve(weighed @ self.matrix + precision, weighed @ evidence.mean)
        damped = self._inverse_root * np.sqrt(variance)
        return np.asarray(mean), np.asarray(self.matrix + damped.T @ precision @ damped)

    @cached_property
    def _inverse_root(self) -> Array:
        values, vectors = np.linalg.eigh(self.matrix)
        values = np.maximum(values, SMALLEST_EIGENVALUE * values[-1])
        return np.asarray((vectors / np.sqrt(values)) @ vectors.T)

    def _precision(self, evidence: Evidence, prior: Array) -> Array:
        """Of the prior: diagonal, but for none at all along the feature that refutes it most, if one does.

        With q and s the covariance of the evidence with a feature's effect and the variance of that effect, both in
        units of what prior and noise explain, q²/s is about one for a feature they do explain.
        """
        noise = np.broadcast_to(evidence.variance, len(prior))
        explained = self.matrix @ (prior[:, None] * self.matrix) + np.diag(noise)
        effects = self.matrix @ self.features[:, : len(prior) - self.free]
        weighed = np.linalg.solve(explained, effects)
        q, s = weighed.T @ evidence.mean, np.einsum("ij,ij->j", effects, weighed)
        feature = int(np.argmax(q**2 / s))
        precision = np.diag(1.0 / prior)
        if q[feature] ** 2 < REFUTING**2 * s[feature]:
            return precision
        pulled = self.features[:, feature] / prior
        return np.asarray(precision - np.outer(pulled, pulled) / float(self.features[:, feature] @ pulled))
