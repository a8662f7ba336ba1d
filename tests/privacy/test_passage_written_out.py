"""The numbers by which hidden passes are accounted for, written out from docs/proofs/iteration.md and float.md."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from dpadmm.errors import InvalidParameter
from dpadmm.privacy.accountants.iteration import ORDERS, log_mean_exp, positions, with_rounding
from dpadmm.privacy.passage import Passage
from dpadmm.privacy.state_grid import Footing
from dpadmm.problem import L1, Constraint, Logistic, Problem, Simplex
from dpadmm.problem.hidden_pass_program import Program

from .test_written_out import footing_of


class TestPassage:
    """ηβ = 0.7, s² = 0.25, ‖A‖² = 9: none of them is one."""

    def passage(self, convexity: float = 0.0) -> Passage:
        return Passage(40, 0.7, 0.25, 9.0, convexity)

    def test_what_two_iterations_cost_for_each_squared_distance_of_their_starts(self):
        kappa = 1 / (0.7 * 0.25)
        expected = ((1 + 2 * kappa) + math.sqrt(1 + 4 * kappa**2)) / 2
        assert self.passage().blow_up == pytest.approx(expected, rel=1e-12)

    def test_what_they_cost_in_print(self):
        """max(2, 3/(ηβs²))·(1 + ηβ‖A‖²), s at most one; Λ is never above it."""
        assert self.passage().printed_blow_up == pytest.approx(3 / (0.7 * 0.25) * (1 + 0.7 * 9), rel=1e-12)
        assert Passage(40, 2.0, 4.0, 9.0).printed_blow_up == pytest.approx(2 * (1 + 2 * 9), rel=1e-12)
        assert self.passage().blow_up <= self.passage().printed_blow_up

    @pytest.mark.parametrize("convexity", [0.0, 0.01, 0.5, 1.0])
    def test_how_much_an_iteration_forgets(self, convexity):
        primal, dual = (1 - (1 - convexity) ** 2) / (1 + 0.7 * 9), 0.7 * 0.25 / (1 + 0.7 * 0.25)
        assert self.passage(convexity).contraction == pytest.approx(1 - min(primal, dual), rel=1e-12)

    def test_convexity_beyond_one_is_refused(self):
        with pytest.raises(InvalidParameter, match="convexity"):
            self.passage(1.01)


@pytest.mark.parametrize(("rounding", "leftover"), [(0.0, 0.0), (0.01, 0.2), (0.002, 0.0)])
def test_rounding_of_later_visits_is_added_to_what_a_record_moves(rounding, leftover):
    """Claim 8: (√share·(Δ + 4r) + 10r·√(Λ·pairs))² + leftover², or at most (Δ + 2r)², halved."""
    shares, spread, distance = np.array([1.0, 0.3, 0.01]), np.array([0.0, 5.0, 90.0]), 0.8
    expected = [
        min((distance + 2 * rounding) ** 2, (root * (distance + 4 * rounding) + more) ** 2 + leftover**2) / 2
        for root, more in zip(np.sqrt(shares), 10 * rounding * np.sqrt(spread), strict=True)
    ]
    np.testing.assert_allclose(with_rounding(shares, spread, distance, rounding, leftover), expected, rtol=1e-12)


def test_a_program_passes_its_numbers_on_as_they_are():
    """A ridge so strong that ημ is almost one; ‖A‖² and s² of a chain of four, 2 ± √2."""
    problem = Problem(Logistic(), L1(0.1), Constraint.chain(4), ridge=100.0)
    program = Program(problem, 1 / problem.smoothness, 0.3)
    footing = Footing.of(program, 40, 2, 0.3)
    found, step = Passage.of(footing), program.step
    assert 0.99 < 100.0 * step < 1.0
    assert found.convexity == pytest.approx(100.0 * step, rel=1e-9)
    assert found.coupling == pytest.approx(0.3 * step, rel=1e-12)
    assert (found.weakest, found.strongest) == pytest.approx((2 - math.sqrt(2), 2 + math.sqrt(2)), rel=1e-9)
    assert (found.rounding, found.clip_rounding) == tuple(footing.rounding)
    assert found.n_rows == 40


def test_rounding_is_written_down_where_there_is_some():
    """And left out where there is none, so that digests of older plans stay what they were."""
    for rounding, clip_rounding in ((1e-9, 0.0), (0.0, 1e-9), (1e-9, 2e-9)):
        fields = Passage(40, 0.7, 0.25, 9.0, 0.0, rounding, clip_rounding).to_dict()
        assert (fields["rounding"], fields["clip_rounding"]) == (rounding, clip_rounding)
    assert not {"rounding", "clip_rounding"} & set(Passage(40, 0.7, 0.25, 9.0).to_dict())


@pytest.mark.parametrize("n_rows", [1, 2, 9, 5001, 20_000])
@pytest.mark.parametrize("contraction", [1.0, 0.999])
def test_a_record_is_at_every_position_with_the_same_chance(n_rows, contraction):
    """Share min(1, Λ/Σ_{i<⌊k/2⌋} c^(−4i)) with k later iterations, c² given; in a group, that of the dearest."""
    shares, weights = positions(n_rows, 3.0, contraction)
    sums = np.cumsum(contraction ** (-2.0 * np.arange(n_rows // 2 + 1)))
    each = [min(1.0, 3.0 / sums[k // 2 - 1]) if k > 1 else 1.0 for k in range(n_rows)]
    assert math.fsum(weights) == pytest.approx(1.0, rel=1e-12)
    assert np.mean(each) * (1 - 1e-9) <= shares @ weights <= np.mean(each) * 1.001
    assert shares.size <= 2600


def test_a_mixture_over_secret_positions_costs_the_mean_of_exponentials():
    costs, weights = np.array([0.02, 0.0005, 0.0]), np.array([0.1, 0.6, 0.3])
    found = log_mean_exp(costs, weights)
    for at in (0, 200, 479):
        order = float(ORDERS[at])
        exponents = (order - 1) * order * costs
        peak = exponents.max()
        expected = (peak + math.log(float(weights @ np.exp(exponents - peak)))) / (order - 1)
        assert found[at] == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(
    ("constraint", "most", "width"),
    [
        (Constraint.chain(5), 2, 2),
        (Constraint.general(np.array([[1.0, 0.5, 2.0, 1.0], [0.0, 0.2, 0.1, 3.0]])), 4, 4),
        (Constraint.identity(5), 1, 1),
    ],
    ids=["chain", "dense", "identity"],
)
@pytest.mark.parametrize("penalty", [L1(0.1), Simplex(1.0)], ids=["entrywise", "simplex"])
def test_roundings_of_a_visit_are_counted_as_in_the_lemma(constraint, most, width, penalty):
    """Lemma 5: Q = 1.1d + 6m^{3/2} + 3P + 64 and Q_H = 5w(w + 1), none for a diagonal factor."""
    problem = Problem(Logistic(), penalty, constraint)
    program = Program(problem, 0.5 / problem.smoothness, 0.3)
    prox = 4 * constraint.n_rows**2 + 16 if isinstance(penalty, Simplex) else 4
    expected = 1.1 * constraint.n_features + 6 * most**1.5 + 3 * prox + 64
    assert program.operations == pytest.approx(expected, rel=1e-12)
    assert program.solving_operations == (5 * width * (width + 1) if width > 1 else 0)


def test_the_noise_of_a_visit_covers_the_rounding_of_its_own_scale():
    footing = footing_of(Constraint.chain(4))
    exact = Fraction(7) * Fraction(0.3) * Fraction(footing.program.step) * (1 + Fraction(1, 2**40))
    assert footing.noise(7.0).deviation == pytest.approx(float(exact), rel=1e-14, abs=0)
