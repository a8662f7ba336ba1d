"""How one budget is shared between the budgeted steps before training and the training itself.

A *share* s of the budget (ε, δ) is the Gaussian of size √s·μ, where μ is that of the one Gaussian release that spends
the whole budget. Full-data releases add up exactly, so that training in full batches gets the share 1 − Σ s; mini-batch
training gets what the accountant certifies beside the steps.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from dpadmm.errors import InvalidParameter, shown
from dpadmm.privacy.accountants.gaussian import gaussian_shift
from dpadmm.privacy.budget import Budget
from dpadmm.privacy.plan import Plan, Request
from dpadmm.privacy.questions import CountsBelow, FeatureMoment

LARGEST_SHARE = 0.9
"""Of all steps together: beyond it nothing worth the name is left for training."""

STEPS = (CountsBelow, FeatureMoment)


@dataclass(frozen=True)
class BudgetPart:
    """One line of the split."""

    name: str
    share: float


def with_share(request: Request, share: float, budget: Budget) -> Request:
    """The request with the noise that makes all its releases together cost `share` of the budget.

    Examples
    --------
    >>> round(with_share(Request("feature moment", 1, FeatureMoment()), 1.0, Budget(1.0, 1e-5)).noise_multiplier, 2)
    7.46
    """
    mu = gaussian_shift(budget.epsilon, budget.delta)
    noise = budget.relation.record_distance * math.sqrt(request.count / _proper(share)) / mu
    return replace(request, full_data=True, noise_multiplier=noise)


def remaining(shares: Sequence[float]) -> float:
    """What the steps leave for training."""
    total = math.fsum(_proper(share) for share in shares)
    if total > LARGEST_SHARE:
        raise InvalidParameter(
            f"steps with {total:g} of the budget",
            f"at most {LARGEST_SHARE:g} together",
            "choose smaller shares",
        )
    return 1.0 - total


def split_of(plan: Plan) -> tuple[BudgetPart, ...]:
    """The steps of a plan and what is left for training; nothing where there is no training, or no step."""
    steps = [query for query in plan.queries if isinstance(query.question, STEPS)]
    if not steps or len(steps) == len(plan.queries):
        return ()
    mu = gaussian_shift(plan.budget.epsilon, plan.budget.delta)
    distance = plan.budget.relation.record_distance
    parts = [BudgetPart(q.kind, q.count * (distance / q.noise_multiplier / mu) ** 2) for q in steps]
    return (*parts, BudgetPart("training", 1.0 - math.fsum(part.share for part in parts)))


def _proper(share: float) -> float:
    if isinstance(share, bool) or not isinstance(share, (int, float)) or not 0 < share <= 1:
        raise InvalidParameter(
            f"share={shown(share)}", "a number above 0 and below 1", "choose a share, for instance 0.2"
        )
    return float(share)
