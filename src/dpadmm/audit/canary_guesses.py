"""What counting right guesses about many coins proves about the one run that saw them (docs/proofs/audit.md)."""

from __future__ import annotations

import math

import numpy as np

from dpadmm.audit.lower_bound import require_probabilities
from dpadmm.errors import InvalidParameter

LARGEST_EPSILON = 50.0
PRECISION = 1e-6


def guess_tail(correct: int, guesses: int, coins: int, epsilon: float, delta: float) -> float:
    """Largest probability with which an (ε, δ)-private run lets anyone guess so many coins right.

    Parameters
    ----------
    correct : int
        Right guesses.
    guesses : int
        Guesses made, a number fixed in advance; about the other coins the attacker said nothing.
    coins : int
        Independent fair coins that decided over one record each.
    epsilon, delta : float
        The claim.

    Formal guarantees
    -----------------
    docs/proofs/audit.md, Claim 4: an upper bound on P[right guesses ≥ correct] for every mechanism that is
    (ε, δ)-private under a relation whose neighbours differ in one coin, every attacker, any other records. For δ = 0
    it is the binomial tail of Steinke, Nasr & Jagielski 2023.

    Examples
    --------
    >>> guess_tail(10, 10, 10, epsilon=0.0, delta=0.0) == 0.5**10
    True
    """
    from scipy.stats import binom

    luck = 1.0 / (1.0 + math.exp(-epsilon))
    tail = float(binom.sf(correct - 1, guesses, luck))
    if delta == 0:
        return tail
    left = np.arange(guesses)
    # A binomial law is largest at ⌊(k + 1)q⌋.
    swing = float(np.mean(binom.pmf(np.minimum(np.floor((left + 1) * luck), left), left, luck)))
    return min(1.0, tail + coins * delta * (1.0 - luck) * swing)


def guess_lower_bound(correct: int, guesses: int, coins: int, delta: float, confidence: float = 0.99) -> float:
    """Lower bound on ε at `delta` from right guesses in one run; 0 if they refute nothing.

    Formal guarantees
    -----------------
    If the run is (ε, δ)-private, the bound exceeds ε with probability at most 1 − `confidence` over the coins and the
    run (docs/proofs/audit.md, Claim 5).

    Examples
    --------
    >>> guess_lower_bound(50, 100, 100, 1e-5)
    0.0
    >>> 2.5 < guess_lower_bound(100, 100, 100, 1e-5) < 3.5
    True
    """
    require_probabilities(delta, confidence)
    if not 0 <= correct <= guesses <= coins or guesses < 1:
        raise InvalidParameter(
            f"{correct} right of {guesses} guesses about {coins} coins",
            "0 <= correct <= guesses <= coins and at least one guess",
            "count them again",
        )

    def refuted(epsilon: float) -> bool:
        return guess_tail(correct, guesses, coins, epsilon, delta) <= 1.0 - confidence

    low, high = 0.0, LARGEST_EPSILON
    if not refuted(low):
        return 0.0
    while high - low > PRECISION:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if refuted(middle) else (low, middle)
    return low
