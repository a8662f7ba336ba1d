"""What the best of K runs costs if one run costs a known amount: two bounds, each proved in docs/proofs/tuning.md.

With f(x) = E[x^K] and output laws Q, Q' of one run, the selection has density f'(F) with respect to Q, F the chance of
a worse output. So its cost is that of Q plus what f'(q)/f'(q') can be for two chances q, q' of one event.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from dpadmm.errors import CannotCertify
from dpadmm.privacy import profiles
from dpadmm.privacy.accountants import make_accountant
from dpadmm.privacy.accountants.base import full_data_shift
from dpadmm.privacy.accountants.gaussian import gaussian_epsilon
from dpadmm.privacy.accountants.rdp import ORDERS, RdpAccountant, composed
from dpadmm.privacy.budget import Relation
from dpadmm.privacy.events import Event
from dpadmm.privacy.selection.repetitions import Repetitions

Floats = NDArray[np.float64]

ROUNDING = 1e-9
# Where the range of ε̂ may end: at the first of these δ̂ that the run has a finite ε for.
SMALLEST_HATS = (1e-12, 1e-9, 1e-6, 1e-3)
# Points tried over the whole range of ε̂, and again around the best of them.
POINTS = 24
# Chance of more runs than `Repetitions.chances` lists, and the rounding of the sum over them.
RARE_REST = 2e-15
# Orders of full-data runs, whose curve costs nothing; those of mini-batches leave out the costly ones, which is sound.
FINE_ORDERS = np.unique(np.concatenate([1 + np.geomspace(0.02, 1, 30), np.geomspace(2, 2e4, 240)]))
SAMPLED_ORDERS = np.unique(np.concatenate(ORDERS[:3]))


# -- one run -----------------------------------------------------------------------------------------------------


class Base(Protocol):
    """The privacy profile of one run, whichever record differs: upper bounds both ways."""

    def epsilon(self, delta: float) -> float:
        """ε at δ."""
        ...

    def delta(self, epsilons: Floats) -> Floats:
        """δ at each ε."""
        ...


@dataclass(frozen=True)
class GaussianBase:
    """One Gaussian of this shift dominates the run, but for `slack`."""

    shift: float
    slack: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "shift", max(self.shift, profiles.SMALLEST_SHIFT))

    def epsilon(self, delta: float) -> float:
        return gaussian_epsilon(self.shift, delta - self.slack) if delta > self.slack else math.inf

    def delta(self, epsilons: Floats) -> Floats:
        return np.asarray(profiles.gaussian(self.shift, epsilons) * (1.0 + ROUNDING) + self.slack)


@dataclass(frozen=True)
class JudgedBase:
    """A run that an accountant judges."""

    event: Event
    accountant: str
    relation: Relation

    def epsilon(self, delta: float) -> float:
        return make_accountant(self.accountant).epsilon(self.event, delta, self.relation)

    def delta(self, epsilons: Floats) -> Floats:
        judge = make_accountant(self.accountant)
        return np.array([judge.delta(self.event, float(epsilon), self.relation) for epsilon in epsilons])


@dataclass(frozen=True)
class WorstOf:
    """A run that does one of several things to a record: no worse than the worst of them (Claim 1)."""

    bases: tuple[Base, ...]

    def epsilon(self, delta: float) -> float:
        return max(base.epsilon(delta) for base in self.bases)

    def delta(self, epsilons: Floats) -> Floats:
        return np.asarray(np.max([base.delta(epsilons) for base in self.bases], axis=0))


def profile_base(runs: Sequence[tuple[Event, str]], relation: Relation) -> Base:
    """One run with these alternatives, each judged by the named accountant; full data exactly."""
    full = [full_data_shift(event, relation) for event, _ in runs if event.full_batch]
    sampled = [JudgedBase(event, name, relation) for event, name in runs if not event.full_batch]
    return WorstOf((*([GaussianBase(max(full))] if full else []), *sampled))


# -- by privacy profiles -----------------------------------------------------------------------------------------


def profile_epsilon(base: Base, repetitions: Repetitions, delta: float) -> float:
    """ε of the selection at δ: that of one run at δ/E[K], plus the largest log f'(q)/f'(q').

    Formal guarantees
    -----------------
    docs/proofs/tuning.md, Claim 3 (compare Koskela, Redberg & Wang 2024).
    """
    return (base.epsilon(delta / repetitions.mean) + log_slope_ratio(base, repetitions)) * (1.0 + ROUNDING)


def log_slope_ratio(base: Base, repetitions: Repetitions) -> float:
    """Upper bound on log f'(q)/f'(q'), with q and q' the chances of one event on two neighbouring tables.

    Every (ε̂, δ̂) of the base gives one; the smallest found is returned, so that the search need not be exact.
    """
    top = next((end for end in map(base.epsilon, SMALLEST_HATS) if math.isfinite(end)), None)
    if top is None:
        raise CannotCertify("given a run without a finite ε at small δ; expected one; use more noise or a larger delta")
    grid, found = np.linspace(0.0, top, POINTS), math.inf
    for _ in range(2):
        values = _ratio_bounds(grid, base.delta(grid), repetitions)
        best = int(np.argmin(values))
        found = min(found, float(values[best]))
        grid = np.linspace(grid[max(best - 1, 0)], grid[min(best + 1, POINTS - 1)], POINTS)
    return found


def _ratio_bounds(epsilons: Floats, deltas: Floats, repetitions: Repetitions) -> Floats:
    """Claim 2: from each (ε̂, δ̂) of the base mechanism."""
    if repetitions.law == "poisson":
        return np.asarray(repetitions.mean * (np.tanh(epsilons / 2) + 2 * deltas * expit(-epsilons)))
    odds = (1 - repetitions.stopping) / repetitions.stopping
    return np.asarray((1 + repetitions.eta) * np.logaddexp(epsilons, np.log(np.maximum(deltas, 1e-300) * odds)))


def gaussian_profile(shift: float, slack: float, repetitions: Repetitions, epsilons: Floats) -> Floats:
    """Upper bounds on δ of a selection over runs that one Gaussian dominates but for `slack`, at each ε.

    The smaller of Claim 3 and Claim 5: the profile bound, and the composition of all K runs averaged over K.
    """
    base = GaussianBase(shift, slack)
    ratio = log_slope_ratio(base, repetitions)
    one_run = base.delta(np.maximum(epsilons - ratio, 0.0))
    by_ratio = np.where(epsilons > ratio, repetitions.mean * one_run, 1.0)
    chances = repetitions.chances()
    by_composition = np.full(epsilons.shape, repetitions.mean * slack + RARE_REST)
    for runs in np.flatnonzero(chances > 0):
        if runs > 0:
            by_composition += chances[runs] * profiles.gaussian(math.sqrt(runs) * base.shift, epsilons)
    return np.asarray(np.minimum(np.minimum(by_ratio, by_composition) * (1.0 + ROUNDING), 1.0))


# -- by Rényi divergences ----------------------------------------------------------------------------------------


def renyi_epsilon(orders: Floats, curve: Floats, repetitions: Repetitions, delta: float) -> float:
    """ε at δ from the Rényi curve of one run (docs/proofs/tuning.md, Claim 4; Papernot & Steinke 2022)."""
    return _converted(orders, repeated_curve(orders, curve, repetitions), delta)


def repeated_curve(orders: Floats, curve: Floats, repetitions: Repetitions) -> Floats:
    """Rényi divergence of the selection at each order above one."""
    mean = repetitions.mean
    if repetitions.law == "poisson":
        hats = [math.log1p(1 / (order - 1)) for order in orders]
        slips = np.array([_delta(orders, curve, hat) for hat in hats])
        # P[K = 0] is the chance of the public default, whose density is the same on both tables.
        exponent = (orders - 1) * (curve + mean * slips) + math.log(mean)
        return np.asarray(np.logaddexp(math.log(repetitions.nothing), exponent) / (orders - 1))
    gamma, weight = repetitions.stopping, 1 + repetitions.eta
    hat = weight * float(np.min((1 - 1 / orders) * curve - math.log(gamma) / orders))
    return np.asarray(curve + hat + math.log(mean) / (orders - 1))


def _converted(orders: Floats, curve: Floats, delta: float) -> float:
    """ε at δ (Canonne, Kamath & Steinke 2020, Prop. 12)."""
    return max(0.0, float(np.min(curve + np.log1p(-1 / orders) - np.log(delta * orders) / (orders - 1))))


def _delta(orders: Floats, curve: Floats, epsilon: float) -> float:
    """δ at ε, by the same proposition."""
    logs = (orders - 1) * (curve - epsilon + np.log1p(-1 / orders)) - np.log(orders)
    return min(1.0, math.exp(min(0.0, float(np.min(logs)))))


def library_epsilon(shift: float, repetitions: Repetitions, delta: float) -> float:
    """dp_accounting's own figure for the best of K Gaussians."""
    import dp_accounting
    from dp_accounting.dp_event import RepeatAndSelectDpEvent
    from dp_accounting.rdp import RdpAccountant as Backend

    run = dp_accounting.GaussianDpEvent(1.0 / shift)
    backend = Backend(FINE_ORDERS.tolist(), dp_accounting.NeighboringRelation.REPLACE_ONE)
    backend.compose(RepeatAndSelectDpEvent(run, repetitions.mean, repetitions.eta))
    return float(backend.get_epsilon(delta))


def renyi_certificate(events: Sequence[Event], repetitions: Repetitions, delta: float, relation: Relation) -> float:
    """The larger of two computations: ours, and dp_accounting's of the Gaussian with the largest shift.

    Formal guarantees
    -----------------
    An alternative without a Rényi bound (truncated Poisson sampling; Poisson under replace-one) is refused.
    """
    for event in events:
        RdpAccountant().check(event, relation)
    full = [full_data_shift(event, relation) for event in events if event.full_batch]
    sampled = [event for event in events if not event.full_batch]
    orders = SAMPLED_ORDERS if sampled else FINE_ORDERS
    curves = [orders * shift**2 / 2 for shift in full] + [_curve(event, relation) for event in sampled]
    ours = renyi_epsilon(orders, np.max(curves, axis=0), repetitions, delta)
    theirs = library_epsilon(max(full), repetitions, delta) if full else 0.0
    found = max(ours, theirs)
    if not math.isfinite(found):
        raise CannotCertify("given a search without a finite Rényi bound; expected one; use accountant='profile'")
    return found


@lru_cache(maxsize=256)
def _curve(event: Event, relation: Relation) -> Any:
    # The library keeps its curve to itself; the ε it gives out is for one run.
    return composed(event, relation, tuple(SAMPLED_ORDERS.tolist()))._rdp  # noqa: SLF001
