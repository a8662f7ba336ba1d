"""The discrete Gaussian sampler: its law, its coins, and OpenDP's sampler as a second opinion."""

from __future__ import annotations

import math
from fractions import Fraction
from unittest import mock

import numpy as np
import pytest
from scipy import stats

from dpadmm.errors import InvalidParameter
from dpadmm.exact_samplers import discrete_gaussian as module
from dpadmm.exact_samplers.discrete_gaussian import (
    LARGEST_SIGMA,
    below_exponential,
    discrete_gaussian,
    exponential_bounds,
)
from dpadmm.privacy.arithmetic import variation
from dpadmm.randomness import make_streams

from .alarms import Law, require

COUNT = 40_000


def bits(seed):
    rng = np.random.default_rng(seed)
    return lambda count: rng.integers(0, 1 << 64, count, dtype=np.uint64)


def probabilities(sigma, reach):
    weights = np.exp(-(np.arange(-reach, reach + 1) ** 2) / (2 * sigma**2))
    return weights / weights.sum()


def check_law(drawn, sigma):
    """Chi-square over the integers, cells of fewer than ten expected values joined with the tails."""
    reach = math.ceil(8 * sigma)
    expected = probabilities(sigma, reach) * drawn.size
    found = np.bincount(np.clip(drawn, -reach, reach) + reach, minlength=2 * reach + 1)
    kept = expected >= 10
    observed = np.append(found[kept], found[~kept].sum())
    wanted = np.append(expected[kept], expected[~kept].sum())
    statistic = ((observed - wanted) ** 2 / wanted).sum()
    require(stats.chi2(len(wanted) - 1).sf(statistic), f"law at sigma {sigma}")


class TestLaw:
    @pytest.mark.parametrize("sigma", [1, 2, 3, 5, 17, 64])
    @pytest.mark.parametrize("source", ["seeded", "system"])
    def test_small_deviations(self, sigma, source):
        draw = bits(sigma) if source == "seeded" else make_streams().noise._bits
        check_law(discrete_gaussian(np.full(COUNT, sigma), draw), sigma)

    @pytest.mark.parametrize("sigma", [10**6 + 3, (1 << 41) + 12345, LARGEST_SIGMA])
    def test_large_deviations_are_gaussian(self, sigma):
        drawn = discrete_gaussian(np.full(COUNT, sigma), bits(1)).astype(float) / sigma
        require(stats.kstest(drawn, "norm").pvalue, "shape")
        require(2 * min(stats.chi2(COUNT).cdf((drawn**2).sum()), stats.chi2(COUNT).sf((drawn**2).sum())), "variance")

    def test_last_bits_of_large_deviations_are_uniform(self):
        drawn = discrete_gaussian(np.full(COUNT, (1 << 40) + 7), bits(2))
        require(stats.chisquare(np.bincount(drawn % 32, minlength=32)).pvalue, "last bits")

    def test_each_entry_has_its_own_deviation(self):
        sigma = np.tile([1, 40], COUNT)
        drawn = discrete_gaussian(sigma, bits(3))
        check_law(drawn[::2], 1)
        check_law(drawn[1::2], 40)
        assert abs(np.corrcoef(drawn[::2], drawn[1::2])[0, 1]) < 6 / math.sqrt(COUNT)

    def test_short_arrays_have_the_same_law(self):
        """They are drawn by several tries at once, of which the first that stands counts."""
        source = bits(7)
        check_law(np.concatenate([discrete_gaussian(np.full(30, 3), source) for _ in range(400)]), 3)

    def test_shapes(self):
        assert discrete_gaussian(np.full((3, 2), 4), bits(0)).shape == (3, 2)
        assert discrete_gaussian(np.zeros(0, dtype=np.int64), bits(0)).size == 0

    @pytest.mark.parametrize("bad", [0, -3, LARGEST_SIGMA + 1])
    def test_deviations_outside_are_refused(self, bad):
        with pytest.raises(InvalidParameter):
            discrete_gaussian(np.array([5, bad]), bits(0))

    @pytest.mark.parametrize("mutant", ["rounded", "wider", "no-rejection", "twice-zero"])
    def test_mutants_are_caught(self, mutant):
        sigma, rng = 2, np.random.default_rng(0)
        drawn = {
            "rounded": lambda: np.rint(sigma * rng.standard_normal(400_000)).astype(np.int64),
            "wider": lambda: discrete_gaussian(np.full(COUNT, 3), bits(0)),
            "no-rejection": lambda: module._proposals(np.full(COUNT, sigma), bits(0))[0],
            "twice-zero": lambda: np.where(rng.random(COUNT) < 0.03, 0, discrete_gaussian(np.full(COUNT, 2), bits(0))),
        }[mutant]()
        with pytest.raises(Law):
            check_law(drawn, sigma)


class TestCoins:
    @pytest.mark.parametrize("x", [Fraction(0), Fraction(1, 3), Fraction(1), Fraction(5), Fraction(60), Fraction(2000)])
    def test_bounds_hold_the_exponential(self, x):
        low, high = exponential_bounds(x, 64)
        coarse = math.exp(-x) * 2.0**64
        assert high - low <= 2
        assert low - 1 <= coarse * (1 + 1e-12)
        assert high + 1 >= coarse * (1 - 1e-12)
        finer_low, finer_high = exponential_bounds(x, 192)
        assert low <= finer_high >> 128
        assert finer_low >> 128 <= high

    @pytest.mark.parametrize("x", [0.0, 0.25, 1.0, 4.0])
    def test_probability(self, x):
        heads = below_exponential(np.full(COUNT, x), lambda place: Fraction(x), bits(4)).sum()
        require(stats.binomtest(int(heads), COUNT, math.exp(-x)).pvalue, "coin")

    def test_rational_arithmetic_decides_as_the_fast_path_does(self):
        """With nothing trusted to double precision the same bits give the same samples, but for bits drawn in doubt."""
        sigma = np.full(300, 1000)
        x = np.random.default_rng(0).exponential(size=300)
        fast = below_exponential(x, lambda place: Fraction(x[place]), bits(5))
        with mock.patch.object(module, "DOUBT", 1e9):
            slow = below_exponential(x, lambda place: Fraction(x[place]), bits(5))
            check = discrete_gaussian(sigma, bits(6))
        np.testing.assert_array_equal(fast, slow)
        assert 800 < check.std() < 1200

    def test_a_tie_is_settled_by_further_bits(self):
        """64 bits that agree with e⁻¹ to the last: what follows decides, and is drawn."""
        tie = exponential_bounds(Fraction(1), 64)[0]
        rest = (exponential_bounds(Fraction(1), 128)[0]) - (tie << 64)
        for following, below in ((rest - 5, True), (rest + 5, False)):
            supply = iter([tie, following])
            heads = below_exponential(
                np.ones(1), lambda place: Fraction(1), lambda n, s=supply: np.array([next(s)], dtype=np.uint64)
            )
            assert heads[0] == below
            assert next(supply, None) is None


class TestDistanceFromTheGaussian:
    @pytest.mark.parametrize("sigma", [1, 2, 3, 10, 100])
    def test_the_charge_covers_it(self, sigma):
        """Total variation between the discrete and the rounded Gaussian, summed over all integers that matter."""
        reach = 40 * sigma
        k = np.arange(-reach, reach + 1)
        rounded = stats.norm.cdf((k + 0.5) / sigma) - stats.norm.cdf((k - 0.5) / sigma)
        distance = 0.5 * np.abs(probabilities(sigma, reach) - rounded).sum()
        charged = variation(np.array([sigma]))
        assert distance <= charged
        assert charged <= 3 * distance

    def test_the_charge_adds_up(self):
        assert variation(np.array([2, 2, 4])) == pytest.approx((1 / 4 + 1 / 4 + 1 / 16) / 24)
        assert variation(np.full(10**6, 1 << 39)) < 2e-19


class TestSecondOpinion:
    @pytest.mark.parametrize("sigma", [1, 3, 8])
    def test_opendp_samples_the_same_law(self, sigma):
        dp = pytest.importorskip("opendp.prelude", reason="OpenDP is not installed: pip install 'dpadmm[dev]'")
        dp.enable_features("contrib")
        space = dp.vector_domain(dp.atom_domain(T=int)), dp.l2_distance(T=int)
        theirs = np.array(dp.m.make_gaussian(*space, scale=float(sigma))([0] * 20_000))
        ours = discrete_gaussian(np.full(20_000, sigma), make_streams().noise._bits)
        check_law(theirs, sigma)
        reach = 3 * sigma
        table = [
            np.bincount(np.clip(drawn, -reach, reach) + reach, minlength=2 * reach + 1) for drawn in (ours, theirs)
        ]
        require(stats.chi2_contingency(np.array(table)).pvalue, "two samplers of one law")

    def test_large_deviations_as_the_library_uses_them(self):
        dp = pytest.importorskip("opendp.prelude", reason="OpenDP is not installed: pip install 'dpadmm[dev]'")
        dp.enable_features("contrib")
        sigma = (1 << 41) + 1
        space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T="i64")
        theirs = np.array(dp.m.make_gaussian(*space, scale=float(sigma))([0] * 5_000))
        ours = discrete_gaussian(np.full(5_000, sigma), make_streams().noise._bits)
        require(stats.ks_2samp(ours, theirs).pvalue, "two samplers of one law")
