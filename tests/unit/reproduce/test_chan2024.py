"""Chan 2024: the plain passes are those of the library, and the bounds are above the exact divergence."""

from __future__ import annotations

import numpy as np
import pytest

from dpadmm.problem import Squared
from dpadmm.problem.hidden_pass_program import FINEST_GRID, Program
from dpadmm.reproduce import Case, find_exhibit
from dpadmm.reproduce.contenders.gaussian_amplification import BoundOnDivergence, ExactDivergence, GaussianPanel
from dpadmm.reproduce.contenders.general_lasso import FEATURES, LassoPanel, lasso_rows, noisy_passes
from dpadmm.rows.local import LocalRows


def test_a_pass_without_noise_is_that_of_the_library():
    problem, (Z, b) = LassoPanel("", ridge=0.05).problem, lasso_rows(300)
    step = 20.0 / len(b)
    program = Program(problem, step, 0.2 / (step * problem.constraint.norm_squared))
    rng = np.random.default_rng(3)
    rng.standard_normal((len(b), FEATURES))
    order = rng.permutation(len(b))
    state = LocalRows(Z, b, Squared()).noisy_pass(
        program, program.start(), np.inf, order, lambda visits: np.zeros((visits, FEATURES)), FINEST_GRID
    )
    assert noisy_passes(problem, Z, b, 1, 0.0, 3) == pytest.approx(state[0], abs=1e-10)


@pytest.mark.parametrize("title", ["convex", "strongly convex"])
@pytest.mark.parametrize("later", [2, 10, 100])
def test_exact_is_below_ours_is_below_the_papers(title, later):
    case = Case(GaussianPanel(title), later, 0, False)
    exact, ours, theirs = (
        algorithm(case)["divergence"]
        for algorithm in (ExactDivergence(), BoundOnDivergence("iteration"), BoundOnDivergence("iteration-paper"))
    )
    assert exact <= ours <= theirs


def test_a_tall_matrix_has_no_bound_and_an_infinite_divergence_by_later_noise():
    case = Case(GaussianPanel("tall A"), 2, 0, False)
    assert BoundOnDivergence("iteration")(case)["divergence"] is None
    assert ExactDivergence(own_noise=False)(case)["divergence"] is None


def test_the_figures_of_the_paper_read_no_data():
    assert not find_exhibit("chan2024-lasso").tables
