"""What else a promise would buy: the noise of hidden passes beside that of three other ways to certify one.

Each number is the noise on one row's gradient divided by how far replacing the row can move it, so that less is
better. All of them visit every row as often.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from dpadmm.errors import InvalidParameter
from dpadmm.privacy import profiles
from dpadmm.privacy.accountants.gaussian import gaussian_shift
from dpadmm.privacy.accountants.library import profile_epsilon
from dpadmm.privacy.budget import Budget
from dpadmm.privacy.calibration import calibrate
from dpadmm.privacy.passage import Passage
from dpadmm.privacy.plan import Plan, Request
from dpadmm.privacy.sampling import Everything

ACCURACY = 3e-3
LATTICE = 2e-4
"""Relative accuracy of the noise for subsampling, and the spacing of privacy losses in its search; both err upwards."""


@dataclass(frozen=True)
class Comparison:
    """Noise over sensitivity that keeps one promise.

    Attributes
    ----------
    iteration : float
        Of the plan, or by its accountant's rules; covers the last state only.
    paper : float
        With the constants of Chan, Xie & Zhao 2024; covers the last state only.
    composition : float
        Without amplification, by exact composition: covers every state, in any public order.
    subsampling : float
        One row drawn afresh at each step: covers every state, if the draws stay secret.
    """

    iteration: float
    paper: float
    composition: float
    subsampling: float


def compare(budget: Budget, passage: Passage, passes: int = 1) -> Comparison:
    """The four noises for one budget.

    Examples
    --------
    >>> small = compare(Budget(1.0, 1e-4), Passage(2000, 1.0, 1.0, 1.0))
    >>> small.subsampling < small.iteration < small.paper < small.composition
    True
    """
    request = Request("noisy pass", passes, 1.0, full_data=True, passage=passage)
    distance = budget.relation.record_distance

    def hidden(accountant: str) -> float:
        plan = calibrate(budget, [request], Everything(), passage.n_rows, accountant)
        return plan.queries[0].noise_multiplier / distance

    return Comparison(
        hidden("iteration"),
        hidden("iteration-paper"),
        math.sqrt(passes) / gaussian_shift(budget.epsilon, budget.delta),
        _subsampled(budget, passage.n_rows, passes * passage.n_rows),
    )


def compare_plan(plan: Plan) -> Comparison:
    """The noises beside those of a plan of hidden passes."""
    query = next((query for query in plan.queries if query.passage is not None), None)
    if query is None or query.passage is None:
        raise InvalidParameter("a plan without hidden passes", "a plan of solver 'noisy-admm'", "plan that solver")
    found = compare(plan.budget, query.passage, query.count)
    return replace(found, iteration=query.noise_multiplier / plan.budget.relation.record_distance)


def _subsampled(budget: Budget, n_rows: int, steps: int) -> float:
    """Noise for steps on one row each, drawn without replacement within the step, under replace-one."""

    def enough(noise: float) -> bool:
        profile = partial(profiles.without_replacement, 1.0 / n_rows, 1.0 / noise)
        return profile_epsilon(profile, steps, budget.delta, LATTICE) <= budget.epsilon

    return _least(enough, 0.6)


def _least(enough: Callable[[float], bool], start: float) -> float:
    """Smallest argument, to `ACCURACY`, that a monotone test accepts. Small arguments are the costly ones."""
    high = start
    while not enough(high):
        high *= 1.3
    low = high / 1.15
    while enough(low):
        low, high = low / 1.15, low
    while high > low * (1.0 + ACCURACY):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
