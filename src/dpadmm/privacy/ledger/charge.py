"""What a fit costs and what fits cost together: every fit is at most one Gaussian, and Gaussians add up exactly.

| symbol | word | meaning |
|---|---|---|
| µ | `shift` | the fit is no worse than telling N(µ, 1) from N(0, 1) … |
| s | `slack` | … but for this extra probability; 0 for fits that read all rows |
| (ε, δ) | limit | what all fits on a data set may cost together |

A private search (`Selection`) is one fit here: its total is one charge, whatever its secret number of trials.

docs/proofs/ledger.md has the proofs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from dpadmm.errors import CannotCertify
from dpadmm.privacy import profiles
from dpadmm.privacy.accountants.base import default_accountant, full_data_shift, make_accountant
from dpadmm.privacy.accountants.gaussian import gaussian_epsilon
from dpadmm.privacy.budget import Budget, Relation
from dpadmm.privacy.events import Event
from dpadmm.privacy.ledger.sums import Sums
from dpadmm.privacy.selection.bounds import GaussianBase, gaussian_profile, log_slope_ratio
from dpadmm.privacy.selection.search_event import Selection

Floats = NDArray[np.float64]

# Part of a limit's δ that is set aside, once and for all, for the slacks of mini-batch fits.
SLACK_SHARE = 0.05
# Points at which a mini-batch fit is compared with its Gaussian: 96 cost less than 0.2 % in µ.
POINTS = 96
# Covers the rounding of both sides of a comparison.
ROUNDING = 1e-9
# µ is found to this relative accuracy, on its private side.
ACCURACY = 1e-6


@dataclass(frozen=True)
class Charge:
    """The Gaussian that stands for one fit."""

    shift: float
    slack: float = 0.0


def next_slack(limit: Budget, earlier: int) -> float:
    """Slack of a mini-batch fit after `earlier` others: halves of halves, so that all of them fit into the share.

    Fits number 2ʲ … 2ʲ⁺¹ − 1 get share·δ·2^(−2j−1) each, 2^(−j−1) of the share together.

    Examples
    --------
    >>> sum(next_slack(Budget(1.0, 1e-5), k) for k in range(1000)) < SLACK_SHARE * 1e-5
    True
    """
    power = (earlier + 1).bit_length() - 1
    return float(SLACK_SHARE * limit.delta * 2.0 ** (-2 * power - 1))


def charge(event: Event | Selection, relation: Relation, slack: float) -> Charge:
    """The Gaussian that dominates `event`: exactly for full data, but for `slack` for mini-batches and searches."""
    if isinstance(event, Event) and event.full_batch:
        return Charge(full_data_shift(event, relation))
    return Charge(_dominating_shift(event, relation, slack), slack)


def total_epsilon(charges: Sequence[Charge] | Sums, delta: float) -> float:
    """ε at δ of these fits together; infinite if their slacks alone use up δ."""
    sums = charges if isinstance(charges, Sums) else Sums.of(charges)
    return _epsilon(sums, delta - sums.slack)


def judged_epsilon(charges: Sequence[Charge] | Sums, limit: Budget) -> float:
    """ε that is compared with the limit's: the whole share of δ for slacks counts as used, whether it is or not.

    Formal guarantees
    -----------------
    While this stays below `limit.epsilon`, all fits together are private to the limit, even if each fit was chosen
    after seeing the models of all earlier ones (docs/proofs/ledger.md, Claim 1).
    """
    sums = charges if isinstance(charges, Sums) else Sums.of(charges)
    if sums.slack > SLACK_SHARE * limit.delta:
        return math.inf
    return _epsilon(sums, limit.delta * (1.0 - SLACK_SHARE))


def _epsilon(sums: Sums, delta: float) -> float:
    if not sums.fits:
        return 0.0
    if delta <= 0 or not math.isfinite(sums.shift):
        return math.inf
    return gaussian_epsilon(max(sums.shift, profiles.SMALLEST_SHIFT), delta)


@lru_cache(maxsize=256)
def _dominating_shift(event: Event | Selection, relation: Relation, slack: float) -> float:
    """Smallest µ, to `ACCURACY`, with H ≤ (1 − s)·G_µ + s at every α ≥ 1, H the profile of the event."""
    profile = _search_profile if isinstance(event, Selection) else _sampled_profile
    grid, upper = profile(event, relation, slack)  # type: ignore[arg-type]
    # Beyond the last point the profile is below the slack, and so it may be taken to be there.
    upper[-1] = min(upper[-1], slack)
    needed = np.maximum(upper - slack, 0.0) / (1.0 - slack) * (1.0 + ROUNDING)
    low, high = profiles.SMALLEST_SHIFT, 1.0
    while not _dominates(high, grid, needed):
        low, high = high, 2.0 * high
    while high > low * (1.0 + ACCURACY):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if _dominates(middle, grid, needed) else (middle, high)
    return high


def _sampled_profile(event: Event, relation: Relation, slack: float) -> tuple[Floats, Floats]:
    """Points ε from 0 to where the profile of a mini-batch fit is below the slack, and upper bounds on it there."""
    judge = make_accountant(default_accountant(event))
    top = judge.epsilon(event, slack * (1.0 - 1e-3), relation)
    if not math.isfinite(top):
        raise CannotCertify(
            "Got a mini-batch fit that costs more than the delta which this limit keeps for such fits. Expected a "
            "limit with a larger delta. Raise the limit's delta, or use a full-data solver."
        )
    grid = np.linspace(0.0, max(top, 1e-6), POINTS)
    return grid, np.array([judge.delta(event, float(epsilon), relation) for epsilon in grid])


def _search_profile(event: Selection, relation: Relation, slack: float) -> tuple[Floats, Floats]:
    """The same for a search: each of its runs is first replaced by the Gaussian that stands for it."""
    law = event.repetitions
    # Half of the slack is left for the number of trials, and their mean number share the rest.
    runs = [charge(run, relation, slack / (2.0 * law.mean)) for run in event.alternatives]
    shift, rest = max(run.shift for run in runs), max(run.slack for run in runs)
    base = GaussianBase(shift, rest)
    top = log_slope_ratio(base, law) + base.epsilon(slack * (1.0 - 1e-3) / law.mean)
    grid = np.linspace(0.0, top, POINTS)
    return grid, gaussian_profile(shift, rest, law, grid)


def _dominates(shift: float, grid: Floats, needed: Floats) -> bool:
    """Whether the Gaussian profile lies above the polygon through (e^grid, needed), between its points too.

    Both are convex in α = e^ε. The Gaussian lies above its two tangents at the ends of a piece, and the larger of
    these comes closest to the chord where they meet.
    """
    alpha = np.exp(grid)
    value = profiles.gaussian(shift, grid)
    slope = -ndtr(-shift / 2.0 - grid / shift)
    if bool((value < needed).any()):
        return False
    left, right = slice(None, -1), slice(1, None)
    bend = slope[right] - slope[left]
    meeting = np.where(
        bend > 0.0,
        (value[left] - slope[left] * alpha[left] - value[right] + slope[right] * alpha[right])
        / np.where(bend > 0.0, bend, 1.0),
        alpha[left],
    )
    meeting = np.clip(meeting, alpha[left], alpha[right])
    tangent = np.maximum(
        value[left] + slope[left] * (meeting - alpha[left]), value[right] + slope[right] * (meeting - alpha[right])
    )
    part = (meeting - alpha[left]) / (alpha[right] - alpha[left])
    chord = needed[left] + part * (needed[right] - needed[left])
    return bool((tangent >= chord).all())
