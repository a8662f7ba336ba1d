"""The number of trials of a search is drawn with its law to the last bits, tails and all."""

from __future__ import annotations

from types import SimpleNamespace

import mpmath
import numpy as np
import pytest
from scipy import stats

from dpadmm.exact_samplers.trial_numbers import _negative_binomial, _poisson
from dpadmm.privacy.selection import Repetitions
from dpadmm.randomness import SelectionStream, make_selection_stream

from .alarms import require

TOP = 2**64 - 1
LAWS = [
    Repetitions("geometric", 10.0),
    Repetitions("geometric", 1.001),
    Repetitions("logarithmic", 10.0),
    Repetitions("logarithmic", 1.5),
    Repetitions("negative-binomial", 6.0, 0.5),
    Repetitions("negative-binomial", 1.2, 1e-3),
    Repetitions("negative-binomial", 40.0, 2.5),
    Repetitions("negative-binomial", 1000.0, 100.0),
    Repetitions("poisson", 1.01),
    Repetitions("poisson", 10.0),
    Repetitions("poisson", 1000.0),
]


def table(law):
    return _poisson(law.mean) if law.law == "poisson" else _negative_binomial(law.eta, law.stopping)


def chance(law, k):
    """In closed form, with a normalisation that no sum was made for."""
    if law.law == "poisson":
        return mpmath.mpf(law.mean) ** k * mpmath.exp(-mpmath.mpf(law.mean)) / mpmath.factorial(k)
    eta, gamma = mpmath.mpf(law.eta), mpmath.mpf(law.stopping)
    if not eta:
        return -((1 - gamma) ** k) / k / mpmath.log(gamma)
    return (1 - gamma) ** k * mpmath.rf(eta, k) / mpmath.factorial(k) / (gamma**-eta - 1)


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.text)
def test_the_table_is_the_law(law):
    with mpmath.workdps(90):
        found = table(law)
        ends = [0, *found.ends, 2**128]
        exact = [chance(law, found.first + j) for j in range(len(ends) - 1)]
        apart = sum(abs(mpmath.mpf(b - a) / 2**128 - p) for a, b, p in zip(ends[:-1], ends[1:], exact, strict=True))
        assert (apart + 1 - mpmath.fsum(exact)) / 2 < mpmath.mpf(2) ** -100


@pytest.mark.slow
def test_the_longest_table_is_within_its_claim():
    assert len(table(Repetitions("logarithmic", 1000.0)).ends) < 2**21


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.text)
def test_searches_draw_from_it(law):
    """Words of ones alone but for the last bit give the number that is exceeded with a chance of about 2⁻⁶⁴."""
    generator = SimpleNamespace(integers=lambda low, high, size, dtype: np.full(size, TOP - 1, dtype=dtype))
    drawn = law.draw(SelectionStream(lambda: generator))
    with mpmath.workdps(90):
        beyond = 1 - mpmath.fsum(chance(law, k) for k in range(law.law != "poisson", drawn + 1))
        assert beyond < mpmath.mpf(2) ** -63
        assert beyond + chance(law, drawn) > mpmath.mpf(2) ** -64


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.text)
def test_numbers_have_the_law(law):
    stream, draws, chances = make_selection_stream(0), 10_000, law.chances()
    drawn = np.array([law.draw(stream) for _ in range(draws)])
    sums = np.cumsum(chances)
    cuts = np.unique(np.searchsorted(sums, np.linspace(0, 1, 21)[1:-1]))
    cuts = cuts[draws * (1 - sums[cuts]) > 5]
    expected = np.diff(np.concatenate([[0], sums[cuts], [1]])) * draws
    counts = np.bincount(np.searchsorted(cuts, drawn), minlength=len(cuts) + 1)
    require(stats.chisquare(counts, expected).pvalue, "numbers of trials")
