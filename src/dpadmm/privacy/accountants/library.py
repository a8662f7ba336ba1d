"""A second opinion: the same event composed by dp_accounting's own privacy-loss distributions.

Poisson and full-data parts are built by the library from its own formulas, with its convention that the noise
multiplier refers to one record's contribution also under replace-one. Fixed-size and truncated Poisson parts enter
through `create_pmf_pessimistic_connect_dots_fixed_gap` with the profiles proved in docs/proofs/, which it lacks.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpadmm.privacy import profiles
from dpadmm.privacy.accountants.base import full_data_shift
from dpadmm.privacy.budget import Relation
from dpadmm.privacy.events import Event, Part
from dpadmm.privacy.sampling import Poisson, TruncatedPoisson, WithoutReplacement

# Lattice spacing in standard deviations of one loss, and of their sum; spacings keep e^spacing close to one.
OF_ONE, OF_ALL, WIDEST = 0.08, 1 / 400, 0.005
MAX_POINTS = 4e5


def library_epsilon(event: Event, delta: float, relation: Relation, reach: float, spread: float) -> float:
    """ε of dp_accounting at δ.

    Parameters
    ----------
    reach : float
        Largest privacy loss of one release worth a lattice point.
    spread : float
        Standard deviation of the total privacy loss, for the size of the lattice.
    """
    count = sum(part.count for part in event.parts)
    finest = spread * min(OF_ONE / math.sqrt(count), OF_ALL)
    interval = max(min(finest, WIDEST), 2 * reach / MAX_POINTS, 40 * spread / (5 * MAX_POINTS))
    composed: Any = None
    tail = min(1e-15, 1e-3 * delta / count)
    for part, count in _parts(event, relation, interval, tail):
        power = part.self_compose(count) if count > 1 else part
        composed = power if composed is None else composed.compose(power)
    return float(composed.get_epsilon_for_delta(delta))


def profile_epsilon(
    profile: Callable[[ArrayLike], NDArray[np.float64]], count: int, delta: float, interval: float
) -> float:
    """ε at δ of `count` releases with a symmetric profile, on a lattice of the given interval."""
    one = _from_profile(profile, interval, min(1e-15, 1e-3 * delta / count))
    return float(one.self_compose(count).get_epsilon_for_delta(delta))


def _parts(event: Event, relation: Relation, interval: float, tail: float) -> list[tuple[Any, int]]:
    from dp_accounting import NeighboringRelation
    from dp_accounting.pld.privacy_loss_distribution import from_gaussian_mechanism

    found = []
    if shift := full_data_shift(event, relation):
        found.append((from_gaussian_mechanism(1.0 / shift, value_discretization_interval=interval), 1))
    names = {
        Relation.REPLACE_ONE: NeighboringRelation.REPLACE_ONE,
        Relation.ADD_REMOVE: NeighboringRelation.ADD_OR_REMOVE_ONE,
    }
    for part in event.parts:
        if isinstance(part.sampler, Poisson):
            sampled = from_gaussian_mechanism(
                part.noise_multiplier,
                value_discretization_interval=interval,
                log_mass_truncation_bound=math.log(tail),
                sampling_prob=part.sampler.rate,
                neighboring_relation=names[relation],
            )
            found.append((sampled, part.count))
        elif part.sampler.name != "full":
            found.append((_from_profile(_profile(part), interval, tail), part.count))
    return found


def _profile(part: Part) -> Callable[[ArrayLike], NDArray[np.float64]]:
    sampler, mu_one = part.sampler, 1.0 / part.noise_multiplier
    if isinstance(sampler, WithoutReplacement):
        return partial(profiles.without_replacement, sampler.rate, 2.0 * mu_one)
    if isinstance(sampler, TruncatedPoisson):
        return partial(profiles.truncated_poisson, sampler.rate, sampler.cap, sampler.n_rows, mu_one)
    raise TypeError(f"no profile for sampler {sampler.name!r}")


def _from_profile(profile: Callable[[ArrayLike], NDArray[np.float64]], interval: float, tail: float) -> Any:
    """A pessimistic distribution from a symmetric profile; what lies beyond the last point is infinite loss."""
    from dp_accounting.pld.pld_pmf import create_pmf_pessimistic_connect_dots_fixed_gap
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

    largest = interval
    while float(profile(largest)) > tail:
        largest *= 1.25
    half = math.ceil(largest / interval)
    values = np.clip(profile(interval * np.arange(-half, half + 1)), 0.0, 1.0)
    values = np.minimum.accumulate(values)
    return PrivacyLossDistribution(create_pmf_pessimistic_connect_dots_fixed_gap(interval, -half, half, values))
