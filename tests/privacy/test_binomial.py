"""The number of coins that show heads is drawn with its law to the last bits, tails and all."""

from __future__ import annotations

from fractions import Fraction
from math import comb
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from dpadmm.exact_samplers.binomial import _law, binomial
from dpadmm.randomness import SamplingStream, make_streams

from .alarms import require

TOP = 2**64 - 1
LAWS = [(1, 0.5), (12, 0.3), (12, 1.0), (40, 0.97), (300, 0.01), (200, 0.3), (90, 1e-9), (3, 5e-324)]


def chances(trials, rate, numbers):
    p = Fraction(rate)
    return [comb(trials, k) * p**k * (1 - p) ** (trials - k) for k in numbers]


@pytest.mark.parametrize(("trials", "rate"), LAWS)
def test_the_table_is_the_law(trials, rate):
    """In fractions, which err nowhere."""
    law = _law(trials, rate)
    numbers = range(law.first, law.first + len(law.ends) + 1)
    ends = [0, *law.ends, 2**128]
    exact = chances(trials, rate, numbers)
    apart = sum(abs(Fraction(b - a, 2**128) - p) for a, b, p in zip(ends[:-1], ends[1:], exact, strict=True))
    assert (apart + 1 - sum(exact)) / 2 < Fraction(1, 2**110)


def _words(*words):
    source = iter(words)
    return lambda count: np.array([next(source) for _ in range(count)], dtype=np.uint64)


def test_words_are_compared_with_the_table():
    law = _law(40, 0.3)
    for j, end in enumerate(law.ends):
        word, more = end >> 64, end & TOP
        assert binomial(40, 0.3, 1, _words(word, more)) == [law.first + j + 1]
        if more:
            assert binomial(40, 0.3, 1, _words(word, more - 1)) == [law.first + j]


def test_tails_are_drawn():
    """More than ten standard deviations above the mean, where other samplers never come."""
    trials, rate = 1000, 0.002
    assert binomial(trials, rate, 1, _words(0)) == [0]
    (far,) = binomial(trials, rate, 1, _words(TOP, TOP))
    assert far > trials * rate + 10 * np.sqrt(trials * rate + 1)


def test_batch_sizes_are_drawn_so():
    generator = SimpleNamespace(integers=lambda low, high, size, dtype: np.full(size, TOP - 1, dtype=dtype))
    drawn = SamplingStream(lambda: generator).binomial(30_000, 1e-3)
    assert stats.binom.sf(drawn, 30_000, 1e-3) < 2.0**-63
    assert stats.binom.sf(drawn - 1, 30_000, 1e-3) > 2.0**-64


@pytest.mark.parametrize(("trials", "rate"), [(50, 0.1), (32_561, 1 / 512), (10_000, 0.1), (10_000_000, 0.1), (9, 1.0)])
def test_numbers_have_the_law(trials, rate):
    stream, draws = make_streams(0).sampling, 20_000
    drawn = np.array([stream.binomial(trials, rate) for _ in range(draws)])
    cuts = np.unique(stats.binom.ppf(np.linspace(0, 1, 21)[1:-1], trials, rate))
    if rate == 1.0:
        assert (drawn == trials).all()
        return
    expected = np.diff(np.concatenate([[0], stats.binom.cdf(cuts, trials, rate), [1]])) * draws
    counts = np.bincount(np.searchsorted(cuts, drawn), minlength=len(cuts) + 1)
    require(stats.chisquare(counts, expected).pvalue, "sizes")
