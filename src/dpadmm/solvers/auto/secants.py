"""Features whose curvature the answers contradict: where gradients hardly change although a coefficient moves far.

The model takes the curvature along a feature for that of its variance. Of a column whose few large values make most of
its variance (an income, a count) little curvature is left once these rows are fitted: the model would then creep along
it for ever, and the prior would hold back a coefficient as large as no other. If the true Hessian is the model's less
diag(s), an estimate Hx − G of −∇f(0) grows along feature j with slope sⱼ in xⱼ. That slope is seen in the answers
themselves, with noise of known size, so that learning it costs no privacy.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpadmm.solvers.auto.coordinates import Coordinates

Array = NDArray[np.float64]

FEWEST = 6
"""Answers from which a slope is looked at."""

LARGEST_SOFTENING = 0.9
"""Share of the model's curvature along a feature that is taken away at most."""

OUTLYING = 2.0
"""By how much the significance asked of a slope falls at most, as its coefficient leaves the prior."""

LEAST_FAR = 1.0
"""Standard deviations of the prior from which a coefficient is looked at."""

LEAST_ALONE = 0.5
"""Share of a feature's curvature that no other feature accounts for, from which it is looked at."""

LARGEST_GROWTH, LAST_GROWTH, LAST_ROUNDS = 2.0, 1.25, 5
"""Factor by which a coefficient, if it is beyond its prior, grows at most in a round because of a softening: less in
the last rounds, after which too few are left to take it back."""

TINY = 1e-300


@dataclass(frozen=True, eq=False)
class Secants:
    """Sums over the rounds of a phase, feature by feature: of points x, of estimates b = Hx − G, and of products."""

    count: int = 0
    x: Array | float = 0.0
    b: Array | float = 0.0
    xx: Array | float = 0.0
    xb: Array | float = 0.0
    weight: float = 0.0
    weighted_x: Array | float = 0.0

    def add(self, x: Array, b: Array, recency: float) -> Secants:
        weight = (self.count + 1) ** recency
        return Secants(
            self.count + 1,
            self.x + x,
            self.b + b,
            self.xx + x * x,
            self.xb + x * b,
            self.weight + weight,
            self.weighted_x + weight * x,
        )

    @property
    def centre(self) -> Array:
        """Mean point, weighed as the estimates are."""
        return np.asarray(self.weighted_x / self.weight)

    def softening(self, along: Along, noise_std: float, x: Array, significance: float) -> Array:
        """s, zero but for the feature whose slope is furthest beyond doubt; the doubt is less for coefficients far out.

        One feature at a time, and only such as move by themselves: what others did must not be taken for its slope.
        """
        if self.count < FEWEST:
            return np.zeros_like(x)
        moved = np.maximum(self.xx - self.x * self.x / self.count, TINY)
        slope = (self.xb - self.x * self.b / self.count) / moved
        doubt = noise_std**2 * along.noise / moved
        far = np.abs(x) / np.sqrt(along.prior)
        beyond = slope / np.sqrt(doubt) - significance + np.clip(far - 1, 0.0, OUTLYING)
        beyond = np.where((far > LEAST_FAR) & (along.alone > LEAST_ALONE), beyond, -np.inf)
        most = int(np.argmax(beyond))
        found = np.zeros_like(x)
        if beyond[most] > 0:
            # A slope is a share of the curvature: the posterior mean where all shares are as likely as one.
            shrunk = slope[most] / (1 + doubt[most] / along.curvature[most] ** 2)
            found[most] = min(shrunk, LARGEST_SOFTENING * along.curvature[most])
        return found


@dataclass(frozen=True, eq=False)
class Along:
    """The model seen along each feature alone, all others free to follow.

    Attributes
    ----------
    curvature : (d,)
        1 / (H⁻¹)ⱼⱼ.
    noise : (d,)
        Variance of a gradient's entry for noise of variance one in whitened coordinates.
    prior : (d,)
        Prior variance of the coefficient.
    alone : (d,)
        Share of the curvature Hⱼⱼ that is left when the others follow: one where nothing else moves with the feature.
    """

    curvature: Array
    noise: Array
    prior: Array
    alone: Array

    @classmethod
    def of(cls, coordinates: Coordinates, curvature: Array, prior_scale: float) -> Along:
        squares = coordinates.basis**2
        left = 1 / (squares @ (coordinates.scale / curvature))
        return cls(
            left,
            squares @ (1 / coordinates.scale),
            prior_scale * (squares @ (coordinates.prior * coordinates.scale)),
            left / (squares @ (curvature / coordinates.scale)),
        )


def largest_growth(rounds_left: int) -> float:
    return LARGEST_GROWTH if rounds_left >= LAST_ROUNDS else LAST_GROWTH


def easing(coordinates: Coordinates, along: Along, softening: Array, stiff: Array, variance: Array, x: Array) -> Array:
    """What to add to the diagonal of the stiffness P⁻ᵀ diag(stiff) P⁻¹ of a posterior, zero where nothing is softened.

    Along a softened feature the curvature is the one that was seen, and the prior as wide as the coefficient `x` is
    far, with the noise of variance `variance` in whitened coordinates weighed by both.
    """
    features = np.flatnonzero(softening)
    added = np.zeros_like(softening)
    if not features.size:
        return added
    rows = coordinates.basis[features]
    inverse = (rows * (coordinates.scale / stiff)) @ rows.T
    seen = (along.curvature - softening)[features]
    noise = rows**2 @ (np.broadcast_to(variance, stiff.shape) / coordinates.scale)
    wide = np.maximum(along.prior[features], x[features] ** 2)
    change = seen + noise / (seen * wide) - 1 / np.diag(inverse)
    # One feature alone keeps the whole positive definite; several together are held to it.
    lowered = np.sqrt(np.maximum(-change, 0.0))
    steepest = float(np.linalg.eigvalsh(lowered[:, None] * inverse * lowered).max())
    added[features] = np.where(change < 0, change * min(1.0, 0.95 / max(steepest, TINY)), change)
    return added


def eased(coordinates: Coordinates, stiff: Array, added: Array, z: Array) -> Array:
    """(diag(stiff) + Pᵀ diag(added) P)⁻¹ diag(stiff) z, by the few features for which `added` is not zero."""
    features = np.flatnonzero(added)
    if not features.size:
        return z
    rows = coordinates.basis[features] * np.sqrt(coordinates.scale)
    columns = rows.T / stiff[:, None]
    change = added[features]
    inner = np.eye(len(features)) + change[:, None] * (rows @ columns)
    return np.asarray(z - columns @ np.linalg.solve(inner, change * (rows @ z)))
