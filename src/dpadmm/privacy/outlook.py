"""What a budget can buy at best: a public rule on rows, ε, δ and relation, known before any data is touched."""

from __future__ import annotations

from dpadmm.privacy.accountants.gaussian import gaussian_shift
from dpadmm.privacy.budget import Budget
from dpadmm.privacy.wording import SAFE, Sides

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


def outlook(budget: Budget, n_rows: int, sides: Sides = SAFE) -> str:
    """A sentence for the privacy statement where nothing can be learned, else nothing."""
    reached = signal(budget, n_rows)
    if reached >= LEAST_SIGNAL:
        return ""
    return (
        f"The budget is too small for the number of rows to learn from them (n mu = {sides.down(reached, 2)}, below "
        f"{LEAST_SIGNAL:g}): expect accuracy no better than predicting the commonest class or a constant."
    )
