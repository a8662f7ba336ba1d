"""Privacy-loss-distribution accounting: the tight one, from the closed-form profile of every release."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpadmm.errors import CannotCertify
from dpadmm.privacy import profiles
from dpadmm.privacy.accountants.base import (
    ACCOUNTANTS,
    full_data_shift,
    mismatch,
    require_nonnegative,
    require_probability,
    require_wellformed,
)
from dpadmm.privacy.accountants.lattice import MAX_POINTS, Composition, connect_dots
from dpadmm.privacy.accountants.library import library_epsilon
from dpadmm.privacy.budget import Relation
from dpadmm.privacy.events import Event, Part
from dpadmm.privacy.sampling import Poisson, TruncatedPoisson, WithoutReplacement
from dpadmm.privacy.wording import rounded_down

Profile = Callable[[ArrayLike], NDArray[np.float64]]

# Lattice spacing in standard deviations of one loss: 0.02 inflates the variance by less than 1e-4.
FINE, COARSE = 0.02, 0.1
# What a search widens the spacing by: the variance grows by less than a thousandth.
WIDER = (3.0, 6.0, 36.0)
# Spacing that keeps e^spacing close to one, for very large losses.
WIDEST = 0.005
# Probability, over all releases, that a loss above the lattice is treated as infinite.
TAIL = 1e-17
LARGEST_LOSS = 500.0


@dataclass(frozen=True)
class DominatingPair:
    """A dominating pair by its two profiles, H(P‖Q) and H(Q‖P), released `count` times."""

    forward: Profile
    backward: Profile
    count: int


@ACCOUNTANTS.register("pld")
class PldAccountant:
    """Numerical composition of dominating pairs on a lattice of privacy losses.

    Formal guarantees
    -----------------
    Each part is replaced by a pair that dominates it (docs/proofs/), pairs compose adaptively
    (docs/proofs/composition.md), and every numerical step rounds towards more loss. The result is an upper bound.
    What is written into a plan is confirmed by dp_accounting's composition of the same event (`certify`).
    """

    name: ClassVar[str] = "pld"

    def check(self, event: Event, relation: Relation) -> None:
        require_wellformed(event)
        for part in event.parts:
            _require_known(part, relation)
            _require_enough_noise(part, relation)

    def epsilon(self, event: Event, delta: float, relation: Relation) -> float:
        self.check(event, relation)
        require_probability(delta)
        return _worst(event, relation, lambda composition: composition.epsilon(delta))

    def estimate(self, event: Event, delta: float, relation: Relation) -> float:
        self.check(event, relation)
        require_probability(delta)
        return _worst(event, relation, lambda composition: composition.epsilon(delta), WIDER)

    def certify(self, event: Event, delta: float, relation: Relation) -> float:
        """The larger of two computations: this module's, and dp_accounting's own composition."""
        return max(self.epsilon(event, delta, relation), _second_opinion(event, delta, relation))

    def delta(self, event: Event, epsilon: float, relation: Relation) -> float:
        self.check(event, relation)
        require_nonnegative(epsilon)
        return _worst(event, relation, lambda composition: composition.delta(epsilon))

    def claims(self, event: Event, relation: Relation) -> tuple[str, ...]:
        proofs = {
            "full": "gaussian",
            "poisson": "poisson",
            "fixed": "without-replacement",
            "truncated-poisson": "truncated-poisson",
        }
        return tuple(dict.fromkeys(proofs[part.sampler.name] for part in event.parts))


def _second_opinion(event: Event, delta: float, relation: Relation) -> float:
    found = pairs(event, relation)
    sketches = [_sketch(pair, TAIL) for pair in found]
    spread = math.sqrt(sum(pair.count * second for pair, (_, second) in zip(found, sketches, strict=True)))
    return library_epsilon(event, delta, relation, max(largest for largest, _ in sketches), spread)


def _require_known(part: Part, relation: Relation) -> None:
    kind = part.sampler.name
    if kind not in ("full", "poisson", "fixed", "truncated-poisson"):
        raise mismatch(
            "pld", part, relation, "it knows no such sampling", "leave the accountant out: one that does is then chosen"
        )
    if relation is Relation.ADD_REMOVE and kind == "truncated-poisson":
        why = "how often the cap is reached depends on the number of rows, which add-remove keeps private"
        raise mismatch("pld", part, relation, why, "use sampler='poisson', or relation='replace-one'")
    if relation is Relation.ADD_REMOVE and kind == "fixed":
        why = "a batch of fixed size needs a public number of rows, hence replace-one"
        raise mismatch("pld", part, relation, why, "use sampler='poisson', or relation='replace-one'")


def _require_enough_noise(part: Part, relation: Relation) -> None:
    if part.sampler.name != "full" and part.count > 1000 and part.noise_multiplier < 0.2 * relation.record_distance:
        raise CannotCertify(
            f"Got {part.count} subsampled releases with noise "
            f"{rounded_down(part.noise_multiplier / relation.record_distance)} times the sensitivity. "
            "Expected at least 0.2 times for more than 1000 releases. "
            "Use a smaller epsilon, fewer steps or a larger batch."
        )


def pairs(event: Event, relation: Relation) -> list[DominatingPair]:
    """Dominating pairs of an event; all full-data parts become one Gaussian."""
    found = []
    if shift := full_data_shift(event, relation):
        gaussian: Profile = partial(profiles.gaussian, max(shift, profiles.SMALLEST_SHIFT))
        found.append(DominatingPair(gaussian, gaussian, 1))
    return found + [_pair(part, relation) for part in event.parts if part.sampler.name != "full"]


def _pair(part: Part, relation: Relation) -> DominatingPair:
    mu_one, sampler = max(1.0 / part.noise_multiplier, profiles.SMALLEST_SHIFT), part.sampler
    if isinstance(sampler, Poisson) and relation is Relation.ADD_REMOVE:
        removed: Profile = partial(profiles.poisson_removed, sampler.rate, mu_one)
        added: Profile = partial(profiles.poisson_added, sampler.rate, mu_one)
        return DominatingPair(removed, added, part.count)
    both: Profile
    if isinstance(sampler, Poisson):
        both = partial(profiles.poisson, sampler.rate, mu_one)
    elif isinstance(sampler, WithoutReplacement):
        both = partial(profiles.without_replacement, sampler.rate, 2.0 * mu_one)
    elif isinstance(sampler, TruncatedPoisson):
        both = partial(profiles.truncated_poisson, sampler.rate, sampler.cap, sampler.n_rows, mu_one)
    else:
        raise mismatch(
            "pld", part, relation, "it knows no such sampling", "leave the accountant out: one that does is then chosen"
        )
    return DominatingPair(both, both, part.count)


def _worst(
    event: Event,
    relation: Relation,
    ask: Callable[[Composition], float],
    widenings: tuple[float, ...] = (1.0, 6.0, 36.0),
) -> float:
    """The larger answer of both directions, on the finest lattice that fits into memory."""
    for widening in widenings:
        try:
            return max(ask(composition) for composition in _compositions(event, relation, widening))
        except CannotCertify:
            # Rare large losses among many tiny ones: a wider spacing is looser and still sound.
            if widening == widenings[-1]:
                raise
    raise AssertionError


def _compositions(event: Event, relation: Relation, widening: float = 1.0) -> list[Composition]:
    """One composition per direction in which the two tables can be compared, both on one lattice."""
    found = pairs(event, relation)
    count = sum(pair.count for pair in found)
    sketches = [_sketch(pair, TAIL / count) for pair in found]
    interval = _spacing(found, sketches, widening)
    values = [_on_lattice(pair, largest, interval) for pair, (largest, _) in zip(found, sketches, strict=True)]
    counts = [pair.count for pair in found]
    directions = [values]
    if any(pair.forward is not pair.backward for pair in found):
        directions.append([(backward, forward) for forward, backward in values])
    return [
        Composition([(connect_dots(*both, interval), count) for both, count in zip(direction, counts, strict=True)])
        for direction in directions
    ]


def _spacing(found: list[DominatingPair], sketches: list[tuple[float, float]], widening: float) -> float:
    count = sum(pair.count for pair in found)
    deviation = math.sqrt(sum(p.count * second for p, (_, second) in zip(found, sketches, strict=True)) / count)
    reach = max(largest for largest, _ in sketches)
    # The window of the sum spans some forty standard deviations.
    least = max(40.0 * math.sqrt(count) * deviation, 2.0 * reach) / MAX_POINTS
    interval = max(min(widening * FINE * deviation, WIDEST), least)
    if interval > widening * COARSE * deviation or reach > LARGEST_LOSS:
        raise CannotCertify(
            f"Got {count} releases with privacy losses up to {reach:.3g}, which need a lattice of more than "
            f"{MAX_POINTS} points. Expected a smaller one. Use more noise, fewer steps or a larger batch."
        )
    return interval


def _on_lattice(
    pair: DominatingPair, largest: float, interval: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Both profiles at 0, interval, 2·interval, … up to the largest loss."""
    grid = interval * np.arange(math.ceil(largest / interval) + 1)
    forward = pair.forward(grid)
    return forward, forward if pair.forward is pair.backward else pair.backward(grid)


def _sketch(pair: DominatingPair, tail: float) -> tuple[float, float]:
    """(largest loss worth a lattice point, mean square of one loss), from 600 points in geometric progression."""
    grid = np.geomspace(1e-15, 1.2 * LARGEST_LOSS, 600)
    largest, second = 0.0, 0.0
    for sign, profile in ((1.0, pair.forward), (-1.0, pair.backward)):
        h = profile(grid)
        inside = int(np.argmax(h <= tail)) if bool((h <= tail).any()) else grid.size - 1
        largest = max(largest, float(grid[inside]))
        x, h = grid[: inside + 1], h[: inside + 1]
        slope = -np.diff(h) / (np.exp(x[:-1]) * np.expm1(np.diff(x)))
        below = np.maximum(-np.diff(slope), 0.0)
        weight = below * np.exp(x[1:-1]) if sign > 0 else below
        second += float(np.sum(weight * x[1:-1] ** 2))
    return largest, max(second, (largest / MAX_POINTS) ** 2)
