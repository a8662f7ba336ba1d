"""The terms of the proofs, written out from docs/proofs and computed without the code they guard: charged in full, and
not much more than in full."""

from __future__ import annotations

import math
from fractions import Fraction
from types import SimpleNamespace
from unittest import mock

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import log_ndtr

from dpadmm.errors import QueryRefused
from dpadmm.exact_samplers.discrete_gaussian import exponential_bounds
from dpadmm.oracles.gate import Gate
from dpadmm.oracles.private import PrivateOracle
from dpadmm.preparation.moments import NoisyMoment
from dpadmm.privacy import arithmetic
from dpadmm.privacy.accountants.lattice import Composition, LossPmf
from dpadmm.privacy.arithmetic import Arithmetic
from dpadmm.privacy.budget import Budget, Relation
from dpadmm.privacy.calibration import calibrate
from dpadmm.privacy.passage import Passage
from dpadmm.privacy.plan import Plan, Query, Request
from dpadmm.privacy.questions import GRADIENT, ClippedGradient
from dpadmm.privacy.sampling import Everything
from dpadmm.privacy.state_grid import Footing
from dpadmm.privacy.unit import Unit
from dpadmm.problem import L1, Box, Constraint, HuberisedHinge, Logistic, Problem, Zero
from dpadmm.problem.hidden_pass_program import Program
from dpadmm.randomness import make_streams
from dpadmm.rows.lattice_sum import LatticeSum
from tests.asking import answering


class TestRounding:
    """docs/proofs/float.md, Lemmas 1 and 2 and Theorem 1."""

    @pytest.mark.parametrize("rounding", [0.0, 3e-9, 0.2])
    @pytest.mark.parametrize("grid", [0.0, 2.0**-20, 0.25])
    def test_the_slack_is_twice_the_sums_error_a_cell_and_the_scale(self, rounding, grid):
        entries, clip = 9, 0.5
        expected = 2 * Fraction(rounding) + Fraction(grid) * 3 / Fraction(clip) + Fraction(1, 2**40)
        assert arithmetic.slack(rounding, grid, entries, clip) == pytest.approx(float(expected), rel=1e-14, abs=0)

    @pytest.mark.parametrize(
        ("rows", "features", "blocks"),
        [(1000, 7, 1), (10**6, 7, 62), (10**6, 700, 2681), (5, 10**6, 5)],
        ids=["one block", "long blocks", "short blocks", "wide"],
    )
    @pytest.mark.parametrize("condition", [1.0, 37.0])
    def test_the_error_of_a_sum_is_that_of_the_lemma(self, rows, features, blocks, condition):
        """E = 1.01·h·u·2·κ·n with h = min(n, 2¹⁴) + blocks + 8(d + 8)^{3/2}; blocks of min(2¹⁴, ⌊2¹⁸/(d + 1)⌋) rows."""
        depth = min(rows, 16384) + blocks + 8 * (features + 8) ** 1.5
        expected = 1.01 * depth * 2.0**-53 * 2 * condition * rows
        assert arithmetic.summation_error(rows, features, condition) == pytest.approx(expected, rel=1e-12, abs=0)

    @pytest.mark.parametrize("actual", [3, 4000])
    def test_the_grid_comes_from_the_planned_number_of_rows(self, actual):
        """Add-remove allows four times 10⁹ rows, so γ = 2⌊log₂(2·4·10⁹·2⁻⁵¹)⌋ = 2⁻¹⁹; from the true number: 2⁻²³."""
        n, total = 10**9, np.random.default_rng(0).uniform(size=300)
        query = Query("gradient", 1, 1.0, Everything(), float(n), 2.0, ClippedGradient(1.0))
        plan = Plan(Budget(1.0, 1e-10, Relation.ADD_REMOVE), n, (query,), "gaussian", 1.0, "none")
        rows = answering(total, actual)
        counts = PrivateOracle(rows, Gate(plan), make_streams(0)).ask(GRADIENT, np.zeros(300)) * n * 2.0**19
        np.testing.assert_allclose(counts, np.rint(counts), atol=1e-5)
        assert (np.rint(counts) % 2 == 1).any()

    def test_the_noise_of_a_release_is_enlarged_by_the_slack(self):
        """Sizes at which each part of the slack is visible; the deviation is z·C·(1 + s)."""
        clip, multiplier, rows, rounding, entries = 0.5, 1e5, 64, 0.03, 400
        grid, deviation = arithmetic.granularity(clip, multiplier, rows, rounding, entries)
        assert grid == 2.0 ** math.floor(math.log2(clip * multiplier * 2.0**-24))
        slack = 2 * 0.03 + grid * 20 / 0.5 + 2.0**-40
        assert slack > 0.1
        assert deviation == pytest.approx(1e5 * 0.5 * (1 + slack), rel=1e-12, abs=0)


class TestExactNoise:
    """docs/proofs/float.md, Theorem 2: (1 + e^ε) times the distance of all releases together is reserved."""

    @pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
    @pytest.mark.parametrize("entries", [1, 4])
    def test_as_many_releases_as_the_reserve_allows_and_no_more(self, epsilon, entries):
        delta, deviation = 1e-3, 2**17
        distance = Fraction(entries, 24 * deviation**2)
        allowed = int(Fraction(1e-6) * Fraction(delta) / (Fraction(1 + math.exp(epsilon)) * distance))
        assert 3 < allowed < 9000
        query = Query("gradient", allowed + 1, 1.0, Everything(), 64.0, 2.0, ClippedGradient(1.0))
        budget = Budget(epsilon, delta)
        plan = Plan(budget, 64, (query,), "gaussian", epsilon, "none", Arithmetic.EXACT)
        # A deviation of 2·1 in units of 2⁻¹⁶, and a hair less so that it is rounded up to 2¹⁷ and not beyond.
        total = LatticeSum(np.zeros(entries, dtype=np.int64), 2.0**-16 * (1 + 2.0**-30))
        rows = answering(total, 64)
        oracle, point = PrivateOracle(rows, Gate(plan), make_streams(0)), np.zeros(entries)
        drawn = np.zeros(entries, dtype=np.int64)
        with mock.patch.object(type(oracle._streams.noise), "discrete_gaussian", return_value=drawn):
            for _ in range(allowed):
                oracle.ask(GRADIENT, point)
            with pytest.raises(QueryRefused, match="reserved"):
                oracle.ask(GRADIENT, point)

    @pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-5), (0.3, 1e-3)])
    def test_calibration_spends_only_what_the_reserve_leaves_of_delta(self, epsilon, delta):
        requests = [Request("gradient", 3, ClippedGradient(1.0), full_data=True)]
        plan = calibrate(Budget(epsilon, delta), requests, Everything(), 64, arithmetic=Arithmetic.EXACT)
        shift = math.sqrt(3) * 2 / plan.queries[0].noise_multiplier
        assert plan.epsilon_achieved == pytest.approx(epsilon_of_gaussian(shift, delta * (1 - 1e-6)), rel=2e-8)
        # Without the reserve it would be less, and visibly so.
        assert epsilon_of_gaussian(shift, delta) < plan.epsilon_achieved * (1 - 6e-8)


def epsilon_of_gaussian(shift: float, delta: float) -> float:
    """ε with Φ(µ/2 − ε/µ) − e^ε Φ(−µ/2 − ε/µ) = δ."""

    def excess(epsilon: float) -> float:
        first, second = log_ndtr(shift / 2 - epsilon / shift), log_ndtr(-shift / 2 - epsilon / shift)
        return float(np.exp(first) - np.exp(epsilon + second)) / delta - 1

    return float(brentq(excess, 1e-9, 100.0, xtol=1e-14, rtol=1e-14))


@pytest.mark.parametrize(
    ("constraint", "squared"),
    [
        (Constraint.chain(4), 2 + math.sqrt(2)),
        (Constraint.general(np.array([[3.0, 0.0, 4.0], [0.0, 0.2, 0.0]])), 25.0),
        (Constraint.identity(3), 1.0),
    ],
    ids=["chain", "dense", "identity"],
)
class TestHiddenPasses:
    """docs/proofs/float.md, "Hidden passes", for ‖A‖ = 1.85, 5 and 1."""

    def test_the_noise_on_the_dual_is_an_eighth_of_that_on_x_times_the_norm_of_A(self, constraint, squared):
        footing = footing_of(constraint)
        noise = footing.noise(7.0)
        assert noise.deviation == pytest.approx(7.0 * 0.3 * footing.program.step, rel=1e-11, abs=0)
        assert noise.dual_deviation == pytest.approx(noise.deviation * math.sqrt(squared) / 8, rel=1e-9, abs=0)
        assert noise.dual_deviation >= noise.deviation * math.sqrt(squared) / 8 * (1 - 1e-14)

    def test_the_reach_is_that_of_the_lemma(self, constraint, squared):
        """R = 1.01·(V(ηC + D₀) + σ√(1 + k)·√V·(1.5√d + 100)), V = (n + 1)E visits, k = ηβ‖A‖²."""
        footing, d = footing_of(constraint), constraint.n_features
        step, visits = footing.program.step, 41 * 2
        stretch = step * footing.program.beta * squared
        by_noise = 1.01 * math.sqrt(1 + stretch) * math.sqrt(visits) * (1.5 * math.sqrt(d) + 100)
        by_clip = 1.01 * visits * (1 + footing.program.public_drift / (step * 0.3))
        assert footing.reach.by_noise == pytest.approx(by_noise, rel=1e-9, abs=0)
        assert footing.reach.by_clip == pytest.approx(by_clip, rel=1e-9, abs=0)

    def test_grids_are_below_the_noise_or_as_fine_as_the_reach_allows(self, constraint, squared):
        """γ ≤ max(σ·2⁻³², R·2⁻⁵¹) and γ_λ ≤ max(τ·2⁻³², (1 + √k)(R/q)·2⁻⁵¹), each more than half of it."""
        footing = footing_of(constraint)
        noise, program = footing.noise(7.0), footing.program
        coupling = program.step * program.beta
        reach = footing.reach.by_noise * noise.deviation + footing.reach.by_clip * program.step * 0.3
        further = (1 + math.sqrt(coupling * squared)) * reach / math.sqrt(coupling)
        for grid, deviation, furthest in (
            (noise.grid, noise.deviation, reach),
            (noise.dual_grid, noise.dual_deviation, further),
        ):
            largest = max(deviation * 2.0**-32, furthest * 2.0**-51)
            assert largest / 2 < grid <= largest * (1 + 1e-9)

    def test_what_rounding_leaves_in_the_dual_is_that_of_the_theorem(self, constraint, squared):
        """r̂·(4·8/√k + 1) with r̂ = r/σ at this noise."""
        passage = Passage(40, 0.7, squared / 9, squared, rounding=3e-6, clip_rounding=5e-6)
        expected = (3e-6 + 5e-6 / 0.25) * (32 / math.sqrt(0.7 * squared) + 1)
        assert passage.leftover_of(0.25) == pytest.approx(expected, rel=1e-12, abs=0)


@pytest.mark.parametrize(("penalty", "in_prox"), [(L1(0.1), 4), (Box(0.2, 0.7), 3 + 8)], ids=["l1", "box"])
def test_what_rounding_moves_in_a_visit_is_that_of_the_lemma(penalty, in_prox):
    """Lemma 5 of docs/proofs/float.md, for a chain of four with an offset and a hinge: d = 4, m = 2, p = 3, w = 2."""
    A, c, h, clip, d = np.diff(np.eye(4), axis=0), np.array([0.5, -0.3, 0.2]), 0.5, 0.3, 4
    problem = Problem(HuberisedHinge(h), penalty, Constraint.general(A, None, c), row_norm=0.8)
    step = 0.9 / problem.smoothness
    program = Program(problem, step, 0.4 / step)
    beta, q = program.beta, math.sqrt(0.4)
    footing = Footing.of(program, 40, 2, clip)

    def prox(v):
        cut = np.clip(v, 0.2, 0.7) if isinstance(penalty, Box) else v - np.clip(v, -0.1 / beta, 0.1 / beta)
        return np.asarray(cut)

    y = prox(-c)
    dual = -c - y
    x = np.linalg.solve(np.eye(4) + 0.4 * A.T @ A, 0.4 * A.T @ (y + c - dual))
    drift = math.hypot(np.linalg.norm(x), q * np.linalg.norm(dual + A @ x))
    assert drift > 0.1
    assert program.public_drift == pytest.approx(1.01 * drift, rel=1e-9)
    size = q * (np.linalg.norm(c) + np.linalg.norm(prox(np.zeros(3)))) + (1 + h) / 0.8
    assert program.public_size == pytest.approx(1.01 * size, rel=1e-9)

    k = 0.4 * (2 + math.sqrt(2))
    computing = 2.0**-53 * ((1 + k) * (1.1 * d + 6 * 2**1.5 + 3 * in_prox + 64) + (1 + k) ** 1.5 * 5 * 2 * 3)
    by_noise, by_clip = footing.reach
    expected = math.sqrt((1 + k) * d) * (2.0**-32 + 2.0**-51 * by_noise) + computing * by_noise
    assert footing.rounding.by_noise == pytest.approx(expected, rel=1e-9, abs=0)
    more = 1 + 1.01 * (drift + size) / (step * clip)
    expected = math.sqrt((1 + k) * d) * 2.0**-51 * by_clip + computing * (by_clip + more)
    assert footing.rounding.by_clip == pytest.approx(expected, rel=1e-9, abs=0)


def footing_of(constraint: Constraint) -> Footing:
    """Of two passes over forty rows, with a clip of 0.3."""
    problem = Problem(Logistic(), Zero(), constraint)
    step = 0.9 / problem.smoothness
    return Footing.of(Program(problem, step, 0.4 / step), 40, 2, 0.3)


# --- composition: docs/proofs/composition.md, section 5 ---------------------------------------------------------------


class Known(Composition):
    """A composition whose convolved masses, and the bound on what lies above them, are given."""

    def _convolve(self, tilt, log_delta, keep=math.inf):
        return 2, np.array([0.3, 0.2, 0.05, 0.01]), 0.004


def known() -> Known:
    part = LossPmf(0.5, 0, np.log([0.9, 0.1 - 1e-3]), 1e-3)
    return Known([(part, 3)])


class TestInversion:
    """Losses 1, 1.5, 2 and 2.5; mass at infinity 3·10⁻³, the bound above the window 4·10⁻³; both are part of δ."""

    def test_delta_counts_infinity_what_lies_above_and_the_sums(self):
        losses, mass = np.array([1.0, 1.5, 2.0, 2.5]), np.array([0.3, 0.2, 0.05, 0.01])
        for epsilon in (0.7, 1.2, 1.5, 2.2):
            above = losses > epsilon
            inside = math.fsum(mass[above] * (1 - np.exp(epsilon - losses[above])))
            assert known().delta(epsilon) == pytest.approx((inside + 0.004 + 0.003) * (1 + 1e-6), rel=1e-12, abs=0)
        assert known().delta(9.0) == pytest.approx(0.007 * (1 + 1e-6), rel=1e-12, abs=0)

    def test_epsilon_leaves_them_out_of_what_may_be_spent(self):
        """Where ε lies between 1.5 and 2: A − e^ε·B = rest, with A and B over the two losses above."""
        for delta in (0.015, 0.02, 0.03):
            rest = delta * (1 - 1e-6) - 0.003 - 0.004
            total, tilted = 0.05 + 0.01, 0.05 * math.exp(-2.0) + 0.01 * math.exp(-2.5)
            expected = math.log((total - rest) / tilted)
            assert 1.5 < expected < 2.0
            assert known().epsilon(delta) == pytest.approx(expected, rel=1e-12, abs=0)

    def test_no_epsilon_where_they_use_up_delta(self):
        assert known().epsilon(0.007 * (1 - 1e-9)) == math.inf
        assert known().epsilon(0.007 * (1 + 1e-3)) < 2.5


class TestTransform:
    """Every mass of the window is raised by c·u·log₂N·Σ T_k|ĝ|^(T_k − 1), c·u = 16·2⁻⁵², averaged over the spectrum."""

    @pytest.mark.parametrize("count", [1, 2, 5])
    def test_masses_of_points_that_cannot_be_reached_are_the_bound_on_rounding(self, count):
        """Of a law on two far points only their sums can be reached; every other mass is pure rounding."""
        pmf = LossPmf(0.01, 0, np.log(np.array([0.5, *[1e-300] * 99, 0.5])), 0.0)
        composed, tilt = Composition([(pmf, count)]), 0.5
        first, mass, _ = composed._convolve(tilt, math.log(1e-6))
        weights = np.array([1.0, math.exp(tilt)]) / (1 + math.exp(tilt))
        size = mass.size
        spectrum = np.abs(weights[0] + weights[1] * np.exp(-2j * np.pi * 100 * np.arange(size // 2 + 1) / size))
        raised = 16 * 2.0**-52 * math.log2(size + 2) * count * np.mean(spectrum ** (count - 1))
        points = first + np.arange(size)
        exponent = count * math.log(0.5 * (1 + math.exp(tilt))) - tilt * 0.01 * points
        empty = (points % 100 != 0) & (points > 0) & (points < 100 * count)
        assert empty.any()
        ratio = mass[empty] / (raised * np.exp(exponent[empty]))
        assert ratio.min() > 0.999
        assert ratio.max() < 1.25

    def test_reachable_masses_are_those_of_the_binomial_and_not_less(self):
        pmf = LossPmf(0.01, 0, np.log(np.array([0.5, *[1e-300] * 99, 0.5])), 0.0)
        first, mass, _ = Composition([(pmf, 5)])._convolve(0.5, math.log(1e-6))
        for k in range(6):
            exact = math.comb(5, k) / 32
            assert exact * (1 - 1e-13) <= mass[100 * k - first] <= exact * (1 + 1e-11)


# --- the discrete Gaussian and the second moment --------------------------------------------------------------------


@pytest.mark.parametrize("places", [64, 192])
def test_bounds_of_an_exponential_are_a_step_apart_even_where_it_is_a_whole_number(places):
    """e⁰·2^places is whole, and rational arithmetic is trusted to its error and no further."""
    assert exponential_bounds(Fraction(0), places) == (2**places - 1, 2**places + 1)


@pytest.mark.parametrize("spread", [0.3, 7.0])
def test_the_noise_of_a_symmetric_moment_is_stated_as_it_is(spread):
    """The mean of two independent entries: the deviation over √2 beside the diagonal, as it was on it."""
    d, chance = 400, np.random.default_rng(0)
    oracle = SimpleNamespace(
        ask=lambda question: spread * chance.standard_normal((d, d)), noise_std=lambda question: spread, public_rows=9
    )
    moment = NoisyMoment.ask(oracle, intercept=True)
    beside = moment.matrix[np.triu_indices(d, 1)]
    # Six standard errors of a deviation estimated from so many numbers: 1.5 % and 21 %.
    assert beside.std() == pytest.approx(moment.noise, rel=6 / math.sqrt(2 * beside.size))
    assert np.diag(moment.matrix).std() == pytest.approx(math.sqrt(2) * moment.noise, rel=6 / math.sqrt(2 * d))
    assert moment.noise == pytest.approx(spread / math.sqrt(2), rel=1e-12, abs=0)


@pytest.mark.parametrize(("persons", "features", "condition"), [(1, 1, 1.0), (20_000, 51, 30.0), (10**7, 3000, 2.0)])
def test_the_rounding_of_sums_over_persons(persons, features, condition):
    run = max(1, min(2**14, 2**18 // (features + 1)))
    depth = 2**16 + 2**14 + -(-max(persons, 2**22) // run) + 96 + 16 * (features + 8) ** 1.5
    expected = 1.01 * depth * 2.0**-53 * 2 * condition * persons
    assert arithmetic.summation_error(persons, features, condition, Unit.PERSON) == pytest.approx(expected, rel=1e-12)
