"""What a budget can buy at best: a public rule on rows, ε, δ and relation, known before any data is touched."""

from __future__ import annotations

from dpadmm.privacy.accountants.gaussian import gaussian_shift
from dpadmm.privacy.budget import Budget
from dpadmm.privacy.facts import Outlook

LEAST_SIGNAL = 8.0
"""nμ below which a fit is called hopeless. Noise on a mean of n rows of length one is then at least a quarter of the
largest value that mean can have, in every direction, if the whole budget is spent on it alone."""


def signal(budget: Budget, n_rows: int) -> float:
    """nμ: rows times the μ of the one Gaussian release that spends the budget, as under replace-one.

    Under add-remove a record moves a sum half as far, so that it counts twice.

    Examples
    --------
    >>> round(signal(Budget(1.0, 1e-5), 1000), 1)
    268.1
    """
    return n_rows * gaussian_shift(budget.epsilon, budget.delta) * 2.0 / budget.relation.record_distance


def outlook(budget: Budget, n_rows: int) -> Outlook | None:
    """What to say where nothing can be learned, else nothing."""
    reached = signal(budget, n_rows)
    return Outlook(reached, LEAST_SIGNAL) if reached < LEAST_SIGNAL else None
