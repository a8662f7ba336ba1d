"""The true ε of published settings by the library's accountants: from below by a pair that is attained, and from above.

Deviations are those of the noise on a MEAN gradient whose rows have gradients of norm at most one; all are replace-one.
"""

from __future__ import annotations

import math
from functools import lru_cache

from dpadmm.errors import DpadmmError
from dpadmm.privacy.accountants.gaussian import gaussian_epsilon, gaussian_shift
from dpadmm.privacy.accountants.pld import PldAccountant
from dpadmm.privacy.budget import Relation
from dpadmm.privacy.events import Event, GaussianSums
from dpadmm.privacy.sampling import Poisson, WithoutReplacement

INFINITE = 1e300
"""Stands for an infinite ε where numbers have to be finite."""


@lru_cache(maxsize=256)
def sampled(rows: int, batch: int, steps: int, deviation: float, delta: float) -> tuple[float, float]:
    """ε of `steps` noisy mean gradients, each of a fresh batch of fixed size: from below and from above.

    From below: all other rows have the opposite gradient, so that a release is N(0) against a mixture at distance two.
    INFINITE stands for a bound that the accountant does not give.

    Examples
    --------
    >>> low, high = sampled(1000, 10, 100, 0.2, 1e-5)
    >>> low <= high
    True
    """
    noise = deviation * batch
    attained = Event((GaussianSums(Poisson(batch / rows), noise / 2, steps),))
    bound = Event((GaussianSums(WithoutReplacement(batch, rows), noise, steps),))
    return _least(attained, delta), _most(bound, delta)


def full_data(rows: int, steps: int, deviation: float, delta: float) -> float:
    """ε of `steps` noisy mean gradients of all rows, exactly.

    Examples
    --------
    >>> round(full_data(1000, 100, 0.02, 1e-5), 2)
    4.38
    """
    return gaussian_epsilon(2 * math.sqrt(steps) / (rows * deviation), delta)


def exact_snapshots(rows: int, batch: int, steps: int, deviation: float, delta: float) -> float:
    """ε of DP-VRADMM as printed for general convex problems, from below.

    Every step adds noise once to the exact mean gradient of the snapshot plus the difference of a batch. For rows whose
    gradients do not change the difference is nothing, and `steps` Gaussian releases of the full mean remain. For rows
    of which the difference changes by 2/b when drawn, the sampled part by itself is a lower bound. The larger counts.
    """
    return max(full_data(rows, steps, deviation, delta), sampled(rows, batch, steps, deviation, delta)[0])


def sharper(claimed: float, delta: float, factor: float) -> float:
    """ε of a Gaussian release whose noise was found for a claim and a sensitivity that is `factor` times too small.

    Examples
    --------
    >>> round(sharper(1.0, 1e-5, 1.0), 4), round(sharper(1.0, 1e-5, 2.0), 2)
    (1.0, 2.15)
    """
    return gaussian_epsilon(factor * gaussian_shift(claimed, delta), delta)


EASIER = (1.1, 1.25, 1.5, 2.0, 3.0, 4.0, 8.0, 16.0, 64.0, 256.0, 1024.0)
"""By how much steps are cut, or noise is raised, where an accountant cannot do as it is told."""


def _least(event: Event, delta: float) -> float:
    """From below. Where all steps with so little noise are too much for the accountant, fewer of them are a lower
    bound, and so is more noise, which could be added to what is released."""
    (part,) = event.parts
    assert isinstance(part, GaussianSums)
    found = _epsilon(part, 1.0, 1.0, delta)
    if found is not None:
        return found
    fewer = next((each for easier in EASIER if (each := _epsilon(part, easier, 1.0, delta)) is not None), 0.0)
    noisier = next((each for easier in EASIER if (each := _epsilon(part, 1.0, easier, delta)) is not None), 0.0)
    return max(fewer, noisier)


def _epsilon(part: GaussianSums, fewer: float, noisier: float, delta: float) -> float | None:
    steps = max(1, int(part.count / fewer))
    easier = Event((GaussianSums(part.sampler, noisier * part.noise_multiplier, steps),))
    try:
        return PldAccountant().epsilon(easier, delta, Relation.ADD_REMOVE)
    except DpadmmError:
        return None


def _most(event: Event, delta: float) -> float:
    try:
        return PldAccountant().epsilon(event, delta, Relation.REPLACE_ONE)
    except DpadmmError:
        return INFINITE


def model_perturbation(claimed: float, delta: float, step_size: float, beta: float = 0.5) -> float:
    """ε of mpADMM as printed: noise for a sensitivity without its factor η, on three blocks that move together.

    Examples
    --------
    >>> round(model_perturbation(1.0, 1e-5, 5.0), 2)
    5.75
    """
    return sharper(claimed, delta, step_size * math.sqrt(2 / (2 + beta**2)))
