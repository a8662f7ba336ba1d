"""Known attacks on floating-point noise: they read a naive implementation like a book, and learn nothing from ours.

*Precision* (Haney et al. 2022): a double near zero has finer digits than one near the true sum, so digits of an answer
tell whether the sum was zero. *Support* (Mironov 2012; Jin et al. 2022): a sampler reaches few of the doubles in its
tails, so an answer minus a suspected sum is possible noise for the true suspect only.
"""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.special import ndtr, ndtri

from dpadmm.oracles.mechanisms import Granular
from dpadmm.privacy.arithmetic import Arithmetic
from dpadmm.privacy.budget import Budget
from dpadmm.privacy.plan import Plan, Query
from dpadmm.privacy.questions import GRADIENT, ClippedGradient
from dpadmm.privacy.sampling import Everything
from dpadmm.randomness import make_streams
from dpadmm.rows.lattice_sum import LatticeSum
from tests.asking import answering, private, private_with

N, D, GAMES = 16, 2000, 100
MULTIPLIER = 0.5
SUSPECTS = np.zeros(D), np.full(D, 1 / math.sqrt(D))
"""Neighbouring sums: a row contributes nothing, or a vector of norm 1."""


class Textbook(Granular):
    """The float sum plus float noise."""

    def release(self, total, query, clip, gate):
        return (total + query.noise_multiplier * clip * self._noise.standard_normal(total.shape)) / query.denominator


naive = private_with(Textbook)


class InverseNormal:
    """Noise by inversion of 53-bit uniforms, the textbook sampler with the most visible gaps."""

    def __init__(self, seed):
        self._rng = np.random.default_rng(seed)

    def standard_normal(self, shape):
        return ndtri((self._rng.integers(1, 1 << 53, shape)) * 2.0**-53)


def answer(oracle, suspect, streams, arithmetic=Arithmetic.GRANULAR):
    query = Query("gradient", 1, 1.0, Everything(), float(N), MULTIPLIER, ClippedGradient(1.0))
    plan = Plan(Budget(1.0, 1e-5), N, (query,), "gaussian", 1.0, "none", arithmetic)
    total = SUSPECTS[suspect]
    if arithmetic is Arithmetic.EXACT:
        total = LatticeSum(np.trunc(total * 2.0**40).astype(np.int64), 2.0**-40)
    return (
        oracle(answering(total, N), plan, streams).ask(GRADIENT, np.zeros(D)) * N
    )  # N is a power of two: no digit is lost


def precision_attack(answers):
    """Guess 1 where no answer near zero has digits that a sum with 1/√D would have rounded away."""
    near = np.abs(answers[np.abs(answers) < 2.0**-8])
    return int(np.all(np.ldexp(near, 58) == np.rint(np.ldexp(near, 58))))


def support_attack(answers):
    """Guess the suspect for whom more answers in the upper tail are values the sampler can reach."""
    scale = MULTIPLIER
    reached = []
    for suspect in SUSPECTS:
        tail = (answers - suspect) / scale > 2.5
        cells = np.rint(ndtr((answers[tail] - suspect[tail]) / scale) * 2.0**53)
        nearby = ndtri((cells[:, None] + np.arange(-3, 4)) * 2.0**-53)
        made = suspect[tail][:, None] + scale * nearby
        reached.append((made == answers[tail][:, None]).any(axis=1).mean() if tail.any() else 0.5)
    return int(reached[1] > reached[0]) if reached[0] != reached[1] else None


def success(attack, oracle, make, arithmetic=Arithmetic.GRANULAR):
    """Share of games won by an attacker who tosses a coin where the attack is silent."""
    rng, won = np.random.default_rng(0), 0
    for game in range(GAMES):
        truth = int(rng.integers(2))
        guess = attack(answer(oracle, truth, make(game), arithmetic))
        won += (int(rng.integers(2)) if guess is None else guess) == truth
    return won / GAMES


def own_streams(game):
    return make_streams(None)


def weak_streams(game):
    return SimpleNamespace(noise=InverseNormal(game), sampling=None)


CHANCE = 0.5 + 6 * 0.5 / math.sqrt(GAMES)
"""Six standard deviations above a coin."""


class TestPrecision:
    def test_reads_the_naive_implementation(self):
        assert success(precision_attack, naive, own_streams) >= 0.97

    @pytest.mark.parametrize("arithmetic", [Arithmetic.GRANULAR, Arithmetic.EXACT])
    def test_learns_nothing_from_ours(self, arithmetic):
        assert success(precision_attack, private, own_streams, arithmetic) <= CHANCE


class TestSupport:
    def test_reads_the_naive_implementation(self):
        assert success(support_attack, naive, weak_streams) >= 0.97

    def test_learns_nothing_from_our_grid_even_with_the_weak_sampler(self):
        assert success(support_attack, private, weak_streams) <= CHANCE

    @pytest.mark.parametrize("arithmetic", [Arithmetic.GRANULAR, Arithmetic.EXACT])
    def test_learns_nothing_from_ours(self, arithmetic):
        assert success(support_attack, private, own_streams, arithmetic) <= CHANCE

    def test_on_the_grid_every_answer_is_possible_for_both_suspects(self):
        """The set of possible answers does not depend on the table: whole numbers of one public unit."""
        for suspect in (0, 1):
            counts = np.ldexp(answer(private, suspect, own_streams(0)), 25)
            np.testing.assert_array_equal(counts, np.rint(counts))
