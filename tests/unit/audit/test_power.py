"""The power of an audit, computed: simulated audits agree with it."""

from __future__ import annotations

import numpy as np
import pytest

from dpadmm.audit import (
    epsilon_lower_bound,
    gaussian_lower_bound,
    power_of_guesses,
    power_of_pairs,
    power_of_threshold,
)
from dpadmm.audit.lower_bound import right_pairs_needed
from dpadmm.audit.power import _right_extremes
from dpadmm.privacy.accountants.gaussian import gaussian_shift

EPSILON, DELTA = 1.0, 0.05
MU = gaussian_shift(EPSILON, DELTA)


def scores(mu, runs, seed):
    rng = np.random.default_rng(seed)
    return rng.normal(size=runs), rng.normal(mu, size=runs)


@pytest.mark.parametrize("runs", [500, 5000])
def test_pairs_are_seen_as_often_as_promised(runs):
    noise = power_of_pairs(EPSILON, DELTA, runs).noise
    seen = [gaussian_lower_bound(*scores(MU / noise, runs, seed), DELTA).epsilon > EPSILON for seed in range(200)]
    assert 0.90 <= np.mean(seen) <= 0.99
    missed = [gaussian_lower_bound(*scores(MU, runs, seed), DELTA).epsilon > EPSILON for seed in range(200)]
    assert np.mean(missed) <= 0.02


def test_thresholds_are_seen_nearly_as_often_as_promised():
    """The threshold is learned from half of the runs, not known: a little is lost."""
    noise = power_of_threshold(EPSILON, DELTA, 4000).noise
    seen = [epsilon_lower_bound(*scores(MU / noise, 4000, seed), DELTA).epsilon > EPSILON for seed in range(40)]
    assert np.mean(seen) >= 0.7
    quieter = [
        epsilon_lower_bound(*scores(1.1 * MU / noise, 4000, seed), DELTA).epsilon > EPSILON for seed in range(40)
    ]
    assert np.mean(quieter) >= 0.95


@pytest.mark.parametrize("power", [power_of_pairs, power_of_threshold])
def test_more_runs_see_more(power):
    found = [power(EPSILON, DELTA, runs) for runs in (300, 3000, 30_000)]
    assert [p.noise for p in found] == sorted(p.noise for p in found)
    assert [p.expected for p in found] == sorted(p.expected for p in found)
    assert all(p.noise < 1 and p.expected < EPSILON for p in found)


def test_the_expected_bound_is_the_middle_of_simulated_ones():
    expected = power_of_pairs(EPSILON, DELTA, 2000).expected
    bounds = [gaussian_lower_bound(*scores(MU, 2000, seed), DELTA).epsilon for seed in range(100)]
    assert np.median(bounds) == pytest.approx(expected, abs=0.03)


def test_the_number_of_pairs_needed_is_the_first_that_refutes():
    needed = right_pairs_needed(MU, 1000)
    order = np.arange(1000.0)
    for right, refutes in ((needed, True), (needed - 1, False)):
        b = np.where(order < right, 1.0, -1.0)
        assert (gaussian_lower_bound(np.zeros(1000), b, DELTA).mu > MU) is refutes
    assert right_pairs_needed(100.0, 1000) == 1001


def test_nothing_is_seen_of_a_claim_too_large_for_the_runs():
    assert power_of_pairs(30.0, 1e-5, 200).noise == 0
    assert power_of_guesses(20.0, 1e-5, 50, 50).noise == 0


def test_extreme_scores_are_right_as_often_as_simulated():
    rng, mu, share = np.random.default_rng(0), 0.8, 0.54
    coins = rng.random(400_000) < 0.5
    score = rng.normal(np.where(coins, mu / 2, -mu / 2))
    low, high = np.quantile(score, [share / 2, 1 - share / 2])
    said = np.concatenate([coins[score > high], ~coins[score < low]])
    assert _right_extremes(mu, share) == pytest.approx(said.mean(), abs=0.003)
    assert _right_extremes(mu, 1.0) == pytest.approx(((score > 0) == coins).mean(), abs=0.003)


def test_more_canaries_see_more():
    found = [power_of_guesses(1.0, 1e-5, coins, coins // 2) for coins in (100, 1000, 10_000)]
    assert [p.noise for p in found] == sorted(p.noise for p in found)
    assert [p.expected for p in found] == sorted(p.expected for p in found)
