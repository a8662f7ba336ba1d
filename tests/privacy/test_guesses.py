"""The theorem behind one-run audits (docs/proofs/audit.md): exact mechanisms never beat it, and it is near them."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from scipy.stats import binom

from dpadmm.audit import guess_lower_bound, guess_tail
from dpadmm.errors import InvalidParameter


def published_tail(correct, guesses, coins, epsilon, delta):
    """Of Steinke, Nasr & Jagielski 2023."""
    luck = 1 / (1 + math.exp(-epsilon))
    below = np.cumsum(binom.pmf(correct - np.arange(1, correct + 1), guesses, luck))
    steepest = np.max(below / np.arange(1, correct + 1))
    return min(1.0, binom.sf(correct - 1, guesses, luck) + 2 * coins * delta * steepest)


def worst_delta(law, coins, epsilon):
    """Smallest δ of a mechanism given as {signs: {guess: probability}}."""
    worst = 0.0
    for signs in law:
        for i in range(coins):
            other = tuple(-s if j == i else s for j, s in enumerate(signs))
            loss = sum(max(0.0, p - math.exp(epsilon) * law[other].get(guess, 0.0)) for guess, p in law[signs].items())
            worst = max(worst, loss)
    return worst


def right(signs, guess):
    return sum(s == g for s, g in zip(signs, guess, strict=True))


def tail_of(law, correct):
    return np.mean([sum(p for guess, p in row.items() if right(signs, guess) >= correct) for signs, row in law.items()])


def every(coins):
    return list(product((-1, 1), repeat=coins))


def randomised_response(coins, luck):
    return {
        signs: {
            guess: luck ** right(signs, guess) * (1 - luck) ** (coins - right(signs, guess)) for guess in every(coins)
        }
        for signs in every(coins)
    }


@pytest.mark.parametrize("epsilon", [0.0, 0.2, 1.0, 4.0])
def test_randomised_response_attains_it(epsilon):
    law = randomised_response(4, 1 / (1 + math.exp(-epsilon)))
    for correct in range(5):
        assert tail_of(law, correct) == pytest.approx(guess_tail(correct, 4, 4, epsilon, 0.0), abs=1e-12)


@pytest.mark.parametrize("leak", [1e-3, 0.02, 0.2])
@pytest.mark.parametrize("epsilon", [0.2, 1.0])
def test_mechanisms_that_sometimes_tell_all(epsilon, leak):
    """With probability `leak` every guess is right: (ε, δ)-private for δ ≤ leak, and far from pure."""
    coins = 5
    honest = randomised_response(coins, 1 / (1 + math.exp(-epsilon)))
    law = {
        signs: {guess: (1 - leak) * p + leak * (guess == signs) for guess, p in row.items()}
        for signs, row in honest.items()
    }
    delta = worst_delta(law, coins, epsilon)
    assert 0 < delta <= leak + 1e-9
    for correct in range(coins + 1):
        assert tail_of(law, correct) <= guess_tail(correct, coins, coins, epsilon, delta) + 1e-12


@pytest.mark.parametrize("seed", range(20))
def test_random_mechanisms(seed):
    """Any law at all, at the δ it has."""
    rng, coins, epsilon = np.random.default_rng(seed), 3, float(np.random.default_rng(seed).uniform(0, 2))
    signs = every(coins)
    honest = randomised_response(coins, 1 / (1 + math.exp(-epsilon)))
    law = {}
    for own in signs:
        weights = np.array([honest[own][guess] for guess in signs]) * rng.uniform(0.5, 2, len(signs))
        law[own] = dict(zip(signs, weights / weights.sum(), strict=True))
    delta = worst_delta(law, coins, epsilon)
    for correct in range(coins + 1):
        assert tail_of(law, correct) <= guess_tail(correct, coins, coins, epsilon, delta) + 1e-12


@pytest.mark.parametrize("target", [2, 3, 4])
def test_mechanisms_that_help_where_it_counts(target):
    """One wrong guess is put right just where that reaches the target: the adversary of the proof."""
    coins, epsilon, chance = 4, 0.5, 0.3
    honest, law = randomised_response(coins, 1 / (1 + math.exp(-epsilon))), {}
    for signs, row in honest.items():
        law[signs] = dict.fromkeys(row, 0.0)
        for guess, p in row.items():
            short = right(signs, guess) == target - 1
            wrong = [i for i in range(coins) if guess[i] != signs[i]]
            law[signs][guess] += p * (1 - chance * short)
            for i in wrong if short else ():
                law[signs][tuple(-g if j == i else g for j, g in enumerate(guess))] += p * chance / len(wrong)
    delta = worst_delta(law, coins, epsilon)
    assert tail_of(law, target) > tail_of(honest, target)
    assert tail_of(law, target) <= guess_tail(target, coins, coins, epsilon, delta) + 1e-12


@pytest.mark.parametrize(("coins", "guesses"), [(200, 200), (1000, 540), (1000, 100)])
@pytest.mark.parametrize("epsilon", [0.2, 1.0, 3.0])
def test_is_never_above_the_published_bound(coins, guesses, epsilon):
    luck = 1 / (1 + math.exp(-epsilon))
    for level in (0.05, 0.01, 0.001):
        correct = min(guesses, int(binom.isf(level, guesses, luck)) + 1)
        ours = guess_tail(correct, guesses, coins, epsilon, 1e-5)
        assert ours <= published_tail(correct, guesses, coins, epsilon, 1e-5)


@pytest.mark.statistical
@pytest.mark.parametrize("epsilon", [0.2, 1.0, 3.0])
def test_the_lower_bound_keeps_its_confidence(epsilon):
    """Against the mechanism that attains the theorem, exactly: the bound exceeds ε at most as often as it may."""
    luck, guesses = 1 / (1 + math.exp(-epsilon)), 300
    for confidence in (0.9, 0.99):
        too_high = [v for v in range(guesses + 1) if guess_lower_bound(v, guesses, guesses, 0.0, confidence) > epsilon]
        assert too_high, "a bound that never errs is of no use"
        chance = float(binom.sf(min(too_high) - 1, guesses, luck))
        assert 0.1 * (1 - confidence) < chance <= 1 - confidence


def test_more_right_guesses_prove_more_and_a_larger_delta_less():
    bounds = [guess_lower_bound(v, 100, 100, 1e-5) for v in range(0, 101, 10)]
    assert bounds == sorted(bounds)
    assert guess_lower_bound(90, 100, 100, 1e-3) < guess_lower_bound(90, 100, 100, 1e-6)
    assert guess_lower_bound(90, 100, 2000, 1e-5) < guess_lower_bound(90, 100, 100, 1e-5)


@pytest.mark.parametrize("counts", [(5, 4, 10), (-1, 4, 10), (5, 20, 10), (0, 0, 10)])
def test_impossible_counts_are_refused(counts):
    with pytest.raises(InvalidParameter):
        guess_lower_bound(*counts, 1e-5)


@pytest.mark.parametrize(("delta", "confidence"), [(-0.1, 0.9), (1.0, 0.9), (0.1, 1.0)])
def test_impossible_probabilities_are_refused(delta, confidence):
    with pytest.raises(InvalidParameter):
        guess_lower_bound(5, 10, 10, delta, confidence)
