"""What else a promise would buy: the noise of hidden passes beside that of three other ways to certify one.

Each number is the noise on one row's gradient divided by how far replacing the row can move it, so that less is
better. All of them visit every row as often.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache, partial

from dpadmm.errors import CannotCertify, InvalidParameter
from dpadmm.privacy import profiles
from dpadmm.privacy.accountants.gaussian import gaussian_shift
from dpadmm.privacy.accountants.library import profile_epsilon
from dpadmm.privacy.budget import Budget
from dpadmm.privacy.calibration import calibrate
from dpadmm.privacy.passage import NOISY_PASS, Passage
from dpadmm.privacy.plan import Plan, Request
from dpadmm.privacy.questions import HiddenWalk
from dpadmm.privacy.sampling import Everything

ACCURACY = 0.02
"""Relative, of the ε of subsampling, from below; its noise is then too large by less than half a percent."""
MOST_STEPS = 60
LATTICE, FINEST = 2e-4, 1e-5
"""Spacing of privacy losses for one pass at ε = 1, and at its finest; its error is upwards, too."""


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


@lru_cache(maxsize=32)
def compare(budget: Budget, passage: Passage, passes: int = 1) -> Comparison:
    """The four noises for one budget.

    Examples
    --------
    >>> small = compare(Budget(1.0, 1e-4), Passage(2000, 1.0, 1.0, 1.0))
    >>> small.subsampling < small.iteration < small.paper < small.composition
    True
    """
    request = Request(NOISY_PASS, passes, HiddenWalk(1.0, passage))
    distance = budget.relation.record_distance

    def hidden(accountant: str) -> float:
        plan = calibrate(budget, [request], Everything(), passage.n_rows, accountant)
        return plan.queries[0].noise_multiplier / distance

    return Comparison(
        hidden("iteration"),
        hidden("iteration-paper"),
        math.sqrt(passes) / gaussian_shift(budget.epsilon, budget.delta),
        _subsampled(budget, passage.n_rows, passes),
    )


def compare_plan(plan: Plan) -> Comparison:
    """The noises beside those of a plan of hidden passes."""
    query = next((query for query in plan.queries if isinstance(query.question, HiddenWalk)), None)
    if query is None or not isinstance(query.question, HiddenWalk):
        raise InvalidParameter("a plan without hidden passes", "a plan of solver 'noisy-admm'", "plan that solver")
    found = compare(plan.budget, query.question.passage, query.count)
    return replace(found, iteration=query.noise_multiplier / plan.budget.relation.record_distance)


def _subsampled(budget: Budget, n_rows: int, passes: int) -> float:
    """Noise for as many steps as passes make visits, each on one row drawn afresh, under replace-one."""
    interval = max(LATTICE * min(1.0, budget.epsilon) / math.sqrt(passes), FINEST)

    def excess(log_noise: float) -> float:
        profile = partial(profiles.without_replacement, 1.0 / n_rows, math.exp(-log_noise))
        epsilon = profile_epsilon(profile, passes * n_rows, budget.delta, interval)
        return math.log(max(epsilon, 1e-9) / budget.epsilon)

    # Where a central limit theorem would put it, and a fifth more: there the tails count, and larger is cheaper.
    shift = gaussian_shift(budget.epsilon, budget.delta)
    start = 1.2 / math.sqrt(math.log1p(n_rows * shift * shift / passes))
    return math.exp(_root(excess, math.log(start)))


def _root(excess: Callable[[float], float], x: float) -> float:
    """A point of a decreasing function with −`ACCURACY` ≤ excess ≤ 0, by short secant steps: far left is costly."""
    slope, last = -8.0, None
    for _ in range(MOST_STEPS):
        value = excess(x)
        if -ACCURACY <= value <= 0:
            return x
        if last is not None:
            slope = min(max((value - last[1]) / (x - last[0]), -20.0), -1.0)
        last = x, value
        x += min(max((-ACCURACY / 2 - value) / slope, -0.2), 0.5)
    raise CannotCertify(
        "Got a budget for which the noise of subsampling was not found. Expected a usual one. Use another epsilon."
    )
