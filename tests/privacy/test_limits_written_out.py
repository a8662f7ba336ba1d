"""Sums of charges, tails and refusals at their very limits: what docs/proofs says, on either side of each."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats
from scipy.special import ndtr

from dpadmm.errors import InvalidParameter, PromiseBroken, SchemeMismatch
from dpadmm.exact_samplers.discrete_gaussian import below_exponential, discrete_gaussian, exponential_bounds
from dpadmm.privacy import arithmetic, profiles
from dpadmm.privacy.accountants.lattice import Composition, LossPmf, _folded, connect_dots
from dpadmm.privacy.arithmetic import Arithmetic
from dpadmm.privacy.budget import Budget
from dpadmm.privacy.calibration import calibrate, verify_plan
from dpadmm.privacy.composition import _set_aside
from dpadmm.privacy.ledger.charge import Charge, _dominates, next_slack, total_epsilon
from dpadmm.privacy.plan import Request
from dpadmm.privacy.questions import CentredScore, ClippedGradient, FeatureMoment
from dpadmm.privacy.sampling import Everything, TruncatedPoisson
from dpadmm.privacy.selection import Repetitions
from dpadmm.randomness import make_selection_stream, make_streams

from .test_written_out import epsilon_of_gaussian

# --- composition on a lattice: docs/proofs/composition.md -----------------------------------------------------------


@pytest.mark.parametrize(("chance", "size", "count"), [(0.05, 10, 200), (1e-4, 400, 50), (0.5, 3, 1000)])
@pytest.mark.parametrize("tilt", [0.3, 2.0, 9.0])
def test_what_lies_above_the_window_is_no_more_than_is_added(chance, size, count, tilt):
    """Sums of losses that are either nothing or `size` steps: their tail is that of a binomial law."""
    logs = np.full(size + 1, -690.0)
    logs[[0, -1]] = math.log(1 - chance), math.log(chance)
    composed = Composition([(LossPmf(0.02, 0, logs, 0.0), count)])
    _, last, beyond = composed._window(tilt, math.log(1e-6), math.inf)
    assert beyond == pytest.approx(1e-6 * math.exp(-20.0), rel=1e-9, abs=0)
    law = stats.binom(count, chance)
    assert law.sf(last // size) <= beyond
    enough = next(k for k in range(count + 1) if law.sf(k) <= beyond)
    if tilt < 1:  # a tilt that is far too large is sound, but wasteful
        assert last <= 4 * max(enough, law.mean()) * size + 8


def test_masses_beyond_the_window_are_added_where_they_wrap_to():
    np.testing.assert_array_equal(_folded(np.arange(10.0), 4), [0 + 4 + 8, 1 + 5 + 9, 2 + 6, 3 + 7])
    np.testing.assert_array_equal(_folded(np.arange(8.0), 4), [0 + 4, 1 + 5, 2 + 6, 3 + 7])
    np.testing.assert_array_equal(_folded(np.arange(3.0), 4), [0, 1, 2, 0])


def test_the_lattice_pair_is_a_law_with_what_is_left_at_infinity():
    profile = profiles.gaussian(1.0, 0.25 * np.arange(8))
    pmf = connect_dots(profile, profile, 0.25)
    assert 1e-3 < pmf.infinity == pytest.approx(profile[-1] * (1 + 1e-9), rel=1e-12)
    assert math.fsum(np.exp(pmf.log_mass)) + pmf.infinity == pytest.approx(1.0, rel=1e-12)


# --- sums of charges ------------------------------------------------------------------------------------------------


def test_slacks_are_taken_off_delta_when_fits_are_added_up():
    together = total_epsilon([Charge(0.3, 2e-6), Charge(0.4, 3e-6)], 1e-5)
    assert together == pytest.approx(epsilon_of_gaussian(0.5, 5e-6), rel=1e-8)
    assert total_epsilon([Charge(0.3, 2e-6), Charge(0.4, 9e-6)], 1e-5) == math.inf
    assert total_epsilon([], 1e-5) == 0.0


def test_a_gaussian_is_compared_with_chords_between_its_points_too():
    """Above a chord in between if the larger of its tangents at the two ends is: looked for at two thousand places."""
    rng, outcomes = np.random.default_rng(8), []
    for _ in range(300):
        grid = np.sort(rng.uniform(0.0, 3.0, 2))
        shift = float(rng.uniform(0.3, 2.0))
        value = np.array([gaussian_delta(shift, epsilon) for epsilon in grid])
        chord = value * rng.uniform(0.9, 1.0, 2)
        alpha, slope = np.exp(grid), -ndtr(-shift / 2 - grid / shift)
        part = np.linspace(0.0, 1.0, 2001)
        at = alpha[0] + part * (alpha[1] - alpha[0])
        tangent = np.maximum(*(value[k] + slope[k] * (at - alpha[k]) for k in (0, 1)))
        room = float(np.min(tangent - (chord[0] + part * (chord[1] - chord[0]))))
        if abs(room) > 1e-5:
            outcomes.append(room > 0)
            assert _dominates(shift, grid, chord) == outcomes[-1]
    assert 30 < sum(outcomes) < len(outcomes) - 30


def gaussian_delta(shift: float, epsilon: float) -> float:
    """Φ(µ/2 − ε/µ) − e^ε Φ(−µ/2 − ε/µ)."""
    return float(ndtr(shift / 2 - epsilon / shift) - math.exp(epsilon) * ndtr(-shift / 2 - epsilon / shift))


@pytest.mark.parametrize(("earlier", "power"), [(0, 0), (1, 1), (2, 1), (3, 2), (6, 2), (7, 3), (1022, 9), (1023, 10)])
def test_slacks_are_halves_of_halves(earlier, power):
    assert next_slack(Budget(1.0, 1e-5), earlier) == pytest.approx(0.05 * 1e-5 / 2 ** (2 * power + 1), rel=1e-12)


@pytest.mark.parametrize("epsilon", [0.2, 4.0])
def test_distances_of_exact_fits_are_set_aside_together(epsilon):
    """float.md, Theorem 2: (1 + e^ε)·Σ 10⁻⁶·δ/(1 + e^(own ε)), or the reserve of one fit if that is more."""
    budgets = [Budget(0.5, 1e-5), Budget(2.0, 3e-5)]
    plans = [SimpleNamespace(budget=budget, arithmetic=Arithmetic.EXACT) for budget in budgets]
    plans.append(SimpleNamespace(budget=Budget(1.0, 1.0 - 1e-9), arithmetic=Arithmetic.GRANULAR))
    distances = 1e-6 * (1e-5 / (1 + math.exp(0.5)) + 3e-5 / (1 + math.exp(2.0)))
    for delta in (1e-6, 1e-2):
        expected = max(1e-6 * delta, (1 + math.exp(epsilon)) * distances)
        assert _set_aside(plans, epsilon, delta) == pytest.approx(expected, rel=1e-12, abs=0)


# --- refusals at their limits ---------------------------------------------------------------------------------------


def test_every_query_of_a_plan_is_verified():
    """The last one too, whose noise is as stated, but which could move further."""
    requests = [
        Request("gradient", 3, ClippedGradient(1.0), full_data=True),
        Request("feature moment", 1, FeatureMoment()),
    ]
    plan = calibrate(Budget(1.0, 1e-5), requests, Everything(), 100)
    verify_plan(plan)
    first, last = plan.queries
    with pytest.raises(PromiseBroken, match="further"):
        verify_plan(replace(plan, queries=(first, replace(last, clip_norm=0.9 * last.clip_norm))))


def test_exact_arithmetic_ends_where_its_proof_does():
    arithmetic.require_exact_fits(2048, [1.0, 4096.0], weighted=False)
    for width, multiplier, weighted in ((2049, 1.0, False), (2048, 4096.1, False), (2048, 1.0, True)):
        with pytest.raises(InvalidParameter, match="exact"):
            arithmetic.require_exact_fits(width, [1.0, multiplier], weighted)


@pytest.mark.parametrize(
    "change",
    [{"relative_noise": 0.0}, {"relative_noise": -1.0}, {"count": 0}, {"question": ClippedGradient(0.0)}],
)
def test_requests_without_noise_count_or_clip_are_refused(change):
    request = replace(Request("gradient", 1, ClippedGradient(1.0), full_data=True), **change)
    with pytest.raises(InvalidParameter, match="gradient"):
        calibrate(Budget(1.0, 1e-5), [request, Request("score", 1, CentredScore(1.0))], Everything(), 100)


def test_a_sampler_of_another_table_is_refused():
    with pytest.raises(SchemeMismatch, match="another number of rows"):
        calibrate(
            Budget(1.0, 1e-5), [Request("gradient", 2, ClippedGradient(1.0))], TruncatedPoisson(0.05, 500, 8000), 8001
        )


@pytest.mark.parametrize("cap", [0, 8001])
def test_a_batch_of_nobody_or_of_more_than_all_is_refused(cap):
    TruncatedPoisson(0.05, 1, 8000)
    TruncatedPoisson(0.05, 8000, 8000)
    with pytest.raises(InvalidParameter):
        TruncatedPoisson(0.05, cap, 8000)


def test_laws_of_the_number_of_trials_end_where_they_were_checked():
    Repetitions("geometric", 1000.0)
    Repetitions("negative-binomial", 5.0, 1e-3)
    for law, mean, shape in (("geometric", 1000.5, None), ("negative-binomial", 5.0, 0.00099)):
        with pytest.raises(InvalidParameter):
            Repetitions(law, mean, shape)


# --- chance ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("share", "asked"), [(2.0**-41, True), (-(2.0**-41), True), (2.0**-39, False), (-(2.0**-39), False)]
)
def test_a_coin_in_doubt_is_settled_by_rational_arithmetic(share, asked):
    """64 bits within 2⁻⁴⁰ of e⁻¹ on either side are not left to double precision."""
    word, calls = int(exponential_bounds(Fraction(1), 64)[0] * (1 + Fraction(share))), []
    heads = below_exponential(
        np.ones(1), lambda place: calls.append(place) or Fraction(1), lambda count: np.array([word], dtype=np.uint64)
    )
    assert bool(heads[0]) == (share < 0)
    assert bool(calls) == asked


@pytest.mark.parametrize(("word", "asked"), [(1 << 3, True), (1 << 5, False)])
def test_a_coin_of_hardly_any_chance_is_in_doubt_below_its_last_bits(word, asked):
    """e⁻⁶⁰ is far below 2⁻⁶⁰, under which no relative error means anything."""
    calls = []
    heads = below_exponential(
        np.full(1, 60.0), lambda p: calls.append(p) or Fraction(60), lambda count: np.array([word], dtype=np.uint64)
    )
    assert not heads[0]
    assert bool(calls) == asked


@pytest.mark.parametrize("sigma", [3, 1000, (1 << 30) + 5])
def test_rational_arithmetic_alone_draws_the_same_numbers(sigma, monkeypatch):
    def drawn():
        words = np.random.default_rng(6)
        return discrete_gaussian(np.full(200, sigma), lambda n: words.integers(0, 1 << 64, n, dtype=np.uint64))

    fast = drawn()
    monkeypatch.setattr("dpadmm.exact_samplers.discrete_gaussian.DOUBT", 1e9)
    np.testing.assert_array_equal(drawn(), fast)


def test_all_64_bits_of_a_seeded_word_are_drawn():
    """Each is set in half of the words, within six standard deviations."""
    count = 20_000
    words = make_streams(3).noise._bits(count)
    for place in range(64):
        assert abs(int(((words >> np.uint64(place)) & np.uint64(1)).sum()) - count / 2) < 6 * math.sqrt(count) / 2


def test_a_set_of_judging_rows_has_the_size_that_was_asked():
    chosen = make_selection_stream(0).subset(50, 12)
    assert chosen.sum() == 12
    assert chosen.size == 50
