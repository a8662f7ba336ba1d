"""A statistically certified lower bound on ε from the scores an attacker gives to many runs on two neighbouring tables.

An audit is a smoke alarm: a bound above the claim refutes the claim, a bound below it proves nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpadmm.errors import InvalidParameter
from dpadmm.privacy.accountants.gaussian import gaussian_epsilon

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]

THRESHOLDS = 400
FEWEST = 100


@dataclass(frozen=True)
class LowerBound:
    """The event that separates the tables best, and what it certifies.

    Attributes
    ----------
    epsilon : float
        With probability at least `confidence` over the runs, no (ε, δ) claim with ε below this is true; 0 if the
        runs refute nothing.
    delta, confidence : float
        As asked.
    threshold : float
        The attacker's event compares the score with this number.
    above : bool
        True if the event is "score > threshold", False if it is "score ≤ threshold".
    likelier : {"a", "b"}
        Under which table the event is more frequent.
    hits, false_alarms, trials : int
        How often the event happened under that table and under the other, out of how many test runs each.
    """

    epsilon: float
    delta: float
    confidence: float
    threshold: float
    above: bool
    likelier: str
    hits: int
    false_alarms: int
    trials: int


@dataclass(frozen=True)
class GaussianBound:
    """What the order of paired scores certifies about a mechanism that claims to be one Gaussian.

    Attributes
    ----------
    mu, epsilon : float
        With probability at least `confidence` the mechanism is not μ'-Gaussian private for any μ' below `mu`, whose
        (ε, δ) is `epsilon`; 0 if the runs refute nothing.
    delta, confidence : float
        As asked.
    right, pairs : int
        How often the run on the second table scored higher, out of how many pairs.
    """

    mu: float
    epsilon: float
    delta: float
    confidence: float
    right: int
    pairs: int


def epsilon_lower_bound(
    scores_a: ArrayLike, scores_b: ArrayLike, delta: float, confidence: float = 0.999
) -> LowerBound:
    """Lower bound on ε at `delta` by the best threshold on the attacker's score.

    The first half of the runs chooses threshold and direction, the second half, which the choice has not seen, tests
    them: log((p̲ − δ)/q̄) with p̲ and q̄ the one-sided Clopper–Pearson bounds on the two frequencies of the event.

    Parameters
    ----------
    scores_a, scores_b : (N,) array_like
        Scores of independent runs on the two tables. Infinite scores are allowed, NaN is not.
    delta : float
        δ of the claim under test.
    confidence : float
        Joint confidence of both frequency bounds.

    Returns
    -------
    LowerBound

    Formal guarantees
    -----------------
    If the mechanism is (ε, δ)-private for the two tables, the returned `epsilon` exceeds ε with probability at most
    1 − `confidence`, for any score and any number of runs.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> bound = epsilon_lower_bound(rng.normal(size=20000), rng.normal(3.0, size=20000), delta=1e-5)
    >>> bound.epsilon > 3
    True
    """
    a, b = _checked(scores_a, scores_b, delta, confidence)
    half_a, half_b = a.size // 2, b.size // 2
    threshold, above, b_likelier = _choose(a[:half_a], b[:half_b], delta, confidence)
    test_a, test_b = a[half_a:], b[half_b:]
    hits_a, hits_b = (_hits(np.sort(test), np.array([threshold]), above) for test in (test_a, test_b))
    likelier, rarer = ((hits_b, test_b.size), (hits_a, test_a.size))[:: 1 if b_likelier else -1]
    epsilon = float(log_ratio(*likelier, *rarer, delta, confidence)[0])
    return LowerBound(
        epsilon=max(epsilon, 0.0),
        delta=delta,
        confidence=confidence,
        threshold=threshold,
        above=above,
        likelier="b" if b_likelier else "a",
        hits=int(likelier[0][0]),
        false_alarms=int(rarer[0][0]),
        trials=min(test_a.size, test_b.size),
    )


def gaussian_lower_bound(
    scores_a: ArrayLike, scores_b: ArrayLike, delta: float, confidence: float = 0.999
) -> GaussianBound:
    """Lower bound on μ, and on ε at `delta`, for a mechanism that claims Gaussian differential privacy.

    Runs are paired and only the order in each pair counts: right if the run on the second table scores higher. The
    number of right pairs is binomial, so that its Clopper–Pearson bound is exact; no threshold is chosen.

    Parameters
    ----------
    scores_a, scores_b : (N,) array_like
        Scores of independent runs, meant to be larger under b. Infinite scores are allowed, NaN is not.
    delta, confidence : float
        δ of the claim under test, and the confidence of the bound.

    Formal guarantees
    -----------------
    If the mechanism is μ-Gaussian private for the two tables, P(S_b > S_a) ≤ Φ(μ/√2) for independent runs and any
    score: it is the mean, over tests "s > S_a", of a power that is at most Φ(Φ⁻¹(size) + μ), and the size of such a
    test is uniform or stochastically smaller. So the returned `mu` exceeds μ with probability at most 1 − `confidence`.
    For mechanisms that only claim (ε, δ), such as sampled ones, use `epsilon_lower_bound`.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> bound = gaussian_lower_bound(rng.normal(size=20000), rng.normal(0.5, size=20000), delta=0.05)
    >>> 0.45 < bound.mu < 0.5
    True
    """
    a, b = _checked(scores_a, scores_b, delta, confidence)
    if a.size != b.size:
        raise InvalidParameter("unequal numbers of scores", "one score a pair each", "score as many runs on both")
    return _from_pairs(int(np.sum(b > a)), a.size, delta, confidence)


def gaussian_power(mu: float, pairs: int, delta: float, confidence: float = 0.999) -> GaussianBound:
    """What `gaussian_lower_bound` is expected to say of a mechanism that is exactly one Gaussian of this μ.

    Examples
    --------
    >>> 0.4 < gaussian_power(0.5, 10_000, delta=0.05).mu < 0.5
    True
    """
    return _from_pairs(int(_right_share(mu) * pairs), pairs, delta, confidence)


def right_pairs_needed(mu: float, pairs: int, confidence: float = 0.999) -> int:
    """How many of the pairs must be right for `gaussian_lower_bound` to refute μ; `pairs` + 1 if all are too few."""
    counts = np.arange(pairs + 1)
    refuting = _least_share(counts, pairs, confidence) > _right_share(mu)
    return int(np.argmax(refuting)) if refuting.any() else pairs + 1


def _right_share(mu: float) -> float:
    """Probability of a right pair for a mechanism that is exactly one Gaussian of this μ."""
    from scipy.stats import norm

    return float(norm.cdf(mu / np.sqrt(2.0)))


def _least_share(right: Counts, pairs: int, confidence: float) -> Floats:
    """One-sided Clopper–Pearson bound on the share of right pairs."""
    from scipy.stats import beta

    return np.where(right == 0, 0.0, beta.ppf(1 - confidence, np.maximum(right, 1), pairs - right + 1))


def _from_pairs(right: int, pairs: int, delta: float, confidence: float) -> GaussianBound:
    from scipy.stats import norm

    least = float(_least_share(np.array([right]), pairs, confidence)[0])
    mu = max(0.0, float(np.sqrt(2.0) * norm.ppf(least)))
    epsilon = gaussian_epsilon(mu, delta) if mu > 0 else 0.0
    return GaussianBound(mu, epsilon, delta, confidence, right, pairs)


def _checked(scores_a: ArrayLike, scores_b: ArrayLike, delta: float, confidence: float) -> tuple[Floats, Floats]:
    require_probabilities(delta, confidence)
    return _scores("scores_a", scores_a), _scores("scores_b", scores_b)


def require_probabilities(delta: float, confidence: float) -> None:
    """Refuse a δ or a confidence that is none."""
    if not (0 <= delta < 1 and 0 < confidence < 1):
        raise InvalidParameter(f"delta={delta} and confidence={confidence}", "probabilities", "correct them")


def _scores(name: str, scores: ArrayLike) -> Floats:
    array = np.asarray(scores, dtype=np.float64)
    if array.ndim != 1 or array.size < FEWEST or np.isnan(array).any():
        raise InvalidParameter(
            f"{name} of shape {array.shape}", f"one column of at least {FEWEST} numbers, no NaN", "score more runs"
        )
    return array


def _choose(a: Floats, b: Floats, delta: float, confidence: float) -> tuple[float, bool, bool]:
    """Threshold, direction and orientation with the largest bound on these runs."""
    levels = np.concatenate([np.linspace(0.0005, 0.9995, THRESHOLDS), [0.0, 1e-4, 1 - 1e-4, 1.0]])
    # Order statistics rather than interpolated quantiles: scores may be infinite.
    thresholds = np.unique(np.quantile(np.concatenate([a, b]), levels, method="inverted_cdf"))
    sorted_a, sorted_b = np.sort(a), np.sort(b)
    best: tuple[float, float, bool, bool] = (-np.inf, float(thresholds[0]), True, True)
    for above in (True, False):
        hits_a, hits_b = _hits(sorted_a, thresholds, above), _hits(sorted_b, thresholds, above)
        for b_likelier in (True, False):
            likelier, rarer = ((hits_b, b.size), (hits_a, a.size))[:: 1 if b_likelier else -1]
            values = log_ratio(*likelier, *rarer, delta, confidence)
            i = int(np.argmax(values))
            best = max(best, (float(values[i]), float(thresholds[i]), above, b_likelier))
    return best[1:]


def _hits(ordered: Floats, thresholds: Floats, above: bool) -> Counts:
    at_most = np.searchsorted(ordered, thresholds, side="right").astype(np.int64)
    return ordered.size - at_most if above else at_most


def log_ratio(hits: Counts, runs: int, alarms: Counts, others: int, delta: float, confidence: float) -> Floats:
    """log((lower bound on hits/runs − δ)/(upper bound on alarms/others)), −∞ where nothing is left."""
    from scipy.stats import beta

    miss = (1.0 - confidence) / 2.0
    lower = np.where(hits == 0, 0.0, beta.ppf(miss, np.maximum(hits, 1), runs - hits + 1))
    upper = np.where(alarms == others, 1.0, beta.isf(miss, alarms + 1, np.maximum(others - alarms, 1)))
    ratio = np.maximum(lower - delta, 0.0) / upper
    return np.asarray(np.log(ratio, where=ratio > 0, out=np.full(ratio.shape, -np.inf)))
