"""Exact accounting of full-data Gaussian releases: any number of them is one Gaussian."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import ClassVar

import numpy as np

from dpadmm.privacy.accountants.base import (
    ACCOUNTANTS,
    full_data_shift,
    mismatch,
    require_nonnegative,
    require_probability,
    require_wellformed,
)
from dpadmm.privacy.budget import Relation
from dpadmm.privacy.events import Event
from dpadmm.privacy.profiles import SMALLEST_SHIFT, gaussian

# Each round divides the bracket by SECTIONS − 1 in one vectorised call.
ROUNDS, SECTIONS = 8, 65


@ACCOUNTANTS.register("gaussian")
class GaussianAccountant:
    """The analytic Gaussian mechanism after exact composition.

    Formal guarantees
    -----------------
    `delta` is the exact profile up to rounding in the fifteenth digit; `epsilon` ends on its private side. Only
    full-data parts are accepted, under either relation.
    """

    name: ClassVar[str] = "gaussian"

    def check(self, event: Event, relation: Relation) -> None:
        require_wellformed(event)
        for part in event.parts:
            if part.sampler.name != "full":
                raise mismatch(
                    self.name, part, relation, "it certifies full-data releases only", "use accountant='pld'"
                )

    def epsilon(self, event: Event, delta: float, relation: Relation) -> float:
        self.check(event, relation)
        return gaussian_epsilon(_shift(event, relation), require_probability(delta))

    def certify(self, event: Event, delta: float, relation: Relation) -> float:
        return self.epsilon(event, delta, relation)

    def delta(self, event: Event, epsilon: float, relation: Relation) -> float:
        self.check(event, relation)
        return min(1.0, float(gaussian(_shift(event, relation), require_nonnegative(epsilon))) * (1 + 1e-9))

    def claims(self, event: Event, relation: Relation) -> tuple[str, ...]:
        return (self.name,)


def _shift(event: Event, relation: Relation) -> float:
    """µ of the event; never below the size at which the profile loses digits, which only counts too much."""
    return max(full_data_shift(event, relation), SMALLEST_SHIFT)


def gaussian_epsilon(mu: float, delta: float) -> float:
    """Smallest ε ≥ 0 with Φ(µ/2 − ε/µ) − e^ε Φ(−µ/2 − ε/µ) ≤ δ, rounded to the private side."""
    target = delta * (1.0 - 1e-9)
    if float(gaussian(mu, 0.0)) <= target:
        return 0.0
    low, high = 0.0, 1e-3
    while float(gaussian(mu, high)) > target:
        low, high = high, 4.0 * high
    for _ in range(ROUNDS):
        points = np.linspace(low, high, SECTIONS)
        first = max(int(np.argmax(gaussian(mu, points) <= target)), 1)
        low, high = float(points[first - 1]), float(points[first])
    return high


@lru_cache(maxsize=256)
def gaussian_shift(epsilon: float, delta: float) -> float:
    """Largest µ whose Gaussian release is (ε, δ)-private, to six digits: where a calibration starts."""
    low, high = 1e-12, 1.0
    while float(gaussian(high, epsilon)) <= delta:
        low, high = high, 2.0 * high
    while high - low > 1e-6 * high:
        middle = math.sqrt(low * high)
        if float(gaussian(middle, epsilon)) > delta:
            high = middle
        else:
            low = middle
    return low
