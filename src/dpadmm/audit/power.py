"""What an audit of a given size can see, computed without running it: for mechanisms that are one Gaussian.

`expected` is what an honest mechanism that spends its whole claim shows; `noise` is how far the noise may fall short
before the audit notices. Both are exact up to the choice of a threshold, which an audit learns from half of its runs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpadmm.audit.canary_guesses import guess_lower_bound
from dpadmm.audit.lower_bound import gaussian_power, log_ratio, right_pairs_needed
from dpadmm.privacy.accountants.gaussian import gaussian_shift
from dpadmm.privacy.selection import Repetitions

Floats = NDArray[np.float64]

CERTAINTY = 0.95
LEAST_NOISE = 1e-3
STEPS = 40


@dataclass(frozen=True)
class Power:
    """The reach of an audit.

    Attributes
    ----------
    expected : float
        Lower bound on ε that a mechanism with exactly the claimed privacy is expected to show.
    noise : float
        An audit of this size refutes, with probability at least `certainty`, a mechanism whose noise is at most this
        multiple of what its claim needs. 0.8: a fifth of the noise missing is seen, a tenth may pass. 0 if not even
        a thousandth of the noise would be seen as too little.
    certainty : float
    """

    expected: float
    noise: float
    certainty: float = CERTAINTY


def power_of_pairs(
    epsilon: float, delta: float, pairs: int, confidence: float = 0.999, certainty: float = CERTAINTY
) -> Power:
    """Power of `gaussian_lower_bound` with this many pairs of runs against the Gaussian that spends (ε, δ).

    Examples
    --------
    >>> power_of_pairs(1.0, 0.05, 2000).noise < power_of_pairs(1.0, 0.05, 20_000).noise < 1
    True
    """
    from scipy.stats import binom, norm

    mu = gaussian_shift(epsilon, delta)
    needed = right_pairs_needed(mu, pairs, confidence)

    def seen(noise: float) -> bool:
        return bool(binom.sf(needed - 1, pairs, norm.cdf(mu / noise / np.sqrt(2.0))) >= certainty)

    return Power(gaussian_power(mu, pairs, delta, confidence).epsilon, _largest(seen), certainty)


def power_of_threshold(
    epsilon: float,
    delta: float,
    runs: int,
    confidence: float = 0.999,
    certainty: float = CERTAINTY,
    shift: float | None = None,
    repetitions: Repetitions | None = None,
) -> Power:
    """Power of `epsilon_lower_bound` with this many runs a table against a mechanism that claims (ε, δ).

    Half of the runs choose the threshold, taken to be the best one, the other half test it. Mechanisms that sample
    rows are not Gaussian, and no closed form is known for them: this is what the same number of runs sees of one.

    Parameters
    ----------
    shift : float, optional
        By how many of its standard deviations the score of one run moves between the tables; if left out, by as much
        as (ε, δ) lets one Gaussian.
    repetitions : Repetitions, optional
        Law of the number of runs of which the largest score is seen.

    Examples
    --------
    >>> weak = power_of_threshold(1.0, 0.05, 2000, shift=0.1)
    >>> weak.expected < power_of_threshold(1.0, 0.05, 2000).expected and 0 < weak.noise < 0.1
    True
    """
    mu, tested = gaussian_shift(epsilon, delta) if shift is None else shift, runs - runs // 2
    slack = (1.0 - certainty) / 2.0

    def seen(noise: float) -> bool:
        return _best_threshold(mu / noise, tested, delta, confidence, slack, repetitions) > epsilon

    expected = max(0.0, _best_threshold(mu, tested, delta, confidence, 0.5, repetitions))
    return Power(expected, _largest(seen), certainty)


def power_of_guesses(
    epsilon: float, delta: float, coins: int, guesses: int, confidence: float = 0.99, certainty: float = CERTAINTY
) -> Power:
    """Power of a one-run audit whose canaries do not disturb each other, against the Gaussian that spends (ε, δ).

    Each canary then shifts a standard normal score by μ; the `guesses` most extreme scores are guessed.
    """
    from scipy.stats import binom

    mu = gaussian_shift(epsilon, delta)

    def bound(noise: float, level: float) -> float:
        right = int(binom.ppf(level, guesses, _right_extremes(mu / noise, guesses / coins)))
        return guess_lower_bound(right, guesses, coins, delta, confidence)

    def seen(noise: float) -> bool:
        return bound(noise, 1.0 - certainty) > epsilon

    return Power(bound(1.0, 0.5), _largest(seen), certainty)


def _right_extremes(mu: float, share: float) -> float:
    """Probability that an extreme score is on its side when scores are N(±μ/2, 1) by a fair coin."""
    from scipy.optimize import brentq
    from scipy.stats import norm

    def beyond(threshold: float) -> float:
        return float(norm.sf(threshold - mu / 2) + norm.sf(threshold + mu / 2))

    threshold = 0.0 if share >= 1 else float(brentq(lambda t: beyond(t) - share, 0.0, mu + 40.0))
    return float(norm.sf(threshold - mu / 2)) / beyond(threshold)


def _best_threshold(
    mu: float, runs: int, delta: float, confidence: float, slack: float, repetitions: Repetitions | None = None
) -> float:
    """Largest bound over thresholds when hits lie at their lower and false alarms at their upper `slack` quantile."""
    from scipy.stats import binom, norm

    def largest_below(thresholds: Floats) -> Floats:
        """P[the largest of the scores is below], for standard normal ones."""
        below = np.asarray(norm.cdf(thresholds))
        if repetitions is None:
            return below
        return np.clip(np.polynomial.polynomial.polyval(below, repetitions.chances()), 0.0, 1.0)

    thresholds = np.linspace(-4.0, mu + 4.0, 400)
    moved, still = largest_below(thresholds - mu), largest_below(thresholds)
    found = -np.inf
    # Either the second table is named above the threshold, or the first below it.
    for likelier, rarer in ((1 - moved, 1 - still), (still, moved)):
        hits = binom.ppf(slack, runs, likelier).astype(np.int64)
        alarms = binom.isf(slack, runs, rarer).astype(np.int64)
        found = max(found, float(np.max(log_ratio(hits, runs, alarms, runs, delta, confidence))))
    return found


def _largest(seen: Callable[[float], bool]) -> float:
    """The largest noise below 1 that is seen, by bisection; 0 if not even the least is."""
    if not seen(LEAST_NOISE):
        return 0.0
    low, high = LEAST_NOISE, 1.0
    for _ in range(STEPS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if seen(middle) else (low, middle)
    return low
