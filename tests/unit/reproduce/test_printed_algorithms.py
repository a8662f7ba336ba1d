"""The algorithms as printed and the baselines: without noise they find the minimum, and their noise is as printed."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from dpadmm.problem import L1, Constraint, Logistic, Problem
from dpadmm.reproduce.contenders.linear_panel import LinearPanel, data_graph
from dpadmm.reproduce.contenders.objective_perturbation import ObjectivePerturbation, linear_term, minimise
from dpadmm.reproduce.contenders.printed_gradients import PrintedGradients
from dpadmm.reproduce.contenders.printed_mpadmm import PrintedModelPerturbation
from dpadmm.reproduce.contenders.printed_sadmm import stochastic_admm
from dpadmm.reproduce.contenders.printed_steps import PrintedSteps
from dpadmm.reproduce.contenders.printed_vradmm import theorem1_sigma, variance_reduced_admm
from dpadmm.reproduce.contenders.public_splits import public_rows
from dpadmm.reproduce.contenders.two_party_admm import TwoPartyADMM
from dpadmm.reproduce.contenders.valid_solver import ValidSolver
from dpadmm.reproduce.exhibit import Case
from dpadmm.solvers.exact_minimiser import objective, solve_exactly
from tests.unit.reproduce.test_true_epsilon import gaussian

PANEL = LinearPanel("simulated", "demo", split="simulated", alpha=1e-3, delta=1e-8)
CASE = Case(PANEL, 1.0, 0, True)


@pytest.fixture(scope="module")
def small():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 5))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y = np.where(X @ [3.0, -2.0, 1.0, 0.0, 0.0] + 0.3 * rng.normal(size=400) > 0, 1.0, -1.0)
    return X.astype(np.float32), y


def gradients(small, problem, seed=0):
    return PrintedGradients(problem, *small, np.random.default_rng(seed))


def gap(problem, small, weights):
    X, y = small
    return objective(problem, X, y, weights) - objective(problem, X, y, solve_exactly(problem, X, y))


LASSO = Problem(Logistic(), L1(0.01), Constraint.identity(5, 1))
GRAPH = Problem(Logistic(), L1(0.01), Constraint.stacked(np.array([[1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, -1.0]]), 1))


@pytest.mark.parametrize("problem", [LASSO, GRAPH, replace(GRAPH, ridge=0.05)], ids=["lasso", "graph", "strong"])
def test_without_noise_the_printed_algorithms_come_near_the_minimum(small, problem):
    start = gap(problem, small, np.zeros(5))
    plain = gap(problem, small, stochastic_admm(gradients(small, problem), 20, 1000, 0.0, 0.0))
    reduced = gap(problem, small, variance_reduced_admm(gradients(small, problem), 20, 40, 15, 0.0, 0.0))
    assert plain < 0.5 * start
    assert reduced < 0.25 * start


def test_a_batch_has_distinct_rows_and_a_difference_is_one(small):
    made = gradients(small, LASSO)
    for size in (3, 200):
        assert len(set(made.batch(size).tolist())) == size
    x, anchor, rows = np.arange(5.0), np.ones(5), made.batch(30)
    assert made.mean_difference(x, anchor, rows) == pytest.approx(
        made.mean(x, rows) - made.mean(anchor, rows), abs=1e-6
    )


def test_the_noise_of_theorem_1():
    assert theorem1_sigma(1000, 500, 0.5, 1e-4) == pytest.approx(math.sqrt(500 * math.log(1e4)) / (1000 * 0.5))


def test_consensus_finds_the_minimum_without_noise_and_splits_the_budget_by_rows(small):
    X, y = small
    halves = [
        PrintedGradients(LASSO, X[half], y[half], np.random.default_rng(0)) for half in (slice(200), slice(200, 400))
    ]
    weights = TwoPartyADMM(rounds=3000).run(halves, math.inf)
    assert gap(LASSO, small, weights) < 1e-3


def test_the_noise_of_each_party_keeps_epsilon_over_all_its_rounds(small, monkeypatch):
    """One row of a party of 200 moves its mean gradient by at most 2/200, in each of 7 rounds: one Gaussian shift."""
    X, y = small
    drawn = []
    monkeypatch.setattr(PrintedGradients, "noise", lambda self, deviation: drawn.append(deviation) or np.zeros(5))
    parties = [PrintedGradients(LASSO, X[:200], y[:200], np.random.default_rng(0))] * 2
    shift = 0.3
    TwoPartyADMM(rounds=7).run(parties, shift)
    assert len(drawn) == 14
    assert math.sqrt(sum((2 / 200 / deviation) ** 2 for deviation in drawn[::2])) == pytest.approx(shift)


def test_model_perturbation_finds_the_minimum_without_noise_and_prints_its_noise(small):
    printed = PrintedModelPerturbation(steps=2000)
    assert gap(LASSO, small, printed.run(gradients(small, LASSO), 0.0)) < 1e-3
    # σ² = T(2 + ρ²)Δ²/μ² with Δ = 2/(n(1 + ηρ)).
    noise = PrintedModelPerturbation(step_size=2.0, steps=10, beta=0.5).noise_std(100, 1.0, 1e-5)
    shift = 2 / (100 * (1 + 2 * 0.5)) * math.sqrt(10 * 2.25) / noise
    assert gaussian(shift, 1e-5) == pytest.approx(1.0, rel=1e-3)


def test_objective_perturbation_adds_a_linear_term_of_the_stated_length(small):
    lengths = [np.linalg.norm(linear_term(LASSO, 2.0, np.random.default_rng(seed))) for seed in range(4000)]
    assert np.mean(lengths) == pytest.approx(5 * 4 / 2.0, rel=0.05)
    assert gap(LASSO, small, minimise(gradients(small, LASSO), np.zeros(5), 1e9, 500)) < 1e-5


@pytest.mark.parametrize("penalty", ["l1", "graph"])
@pytest.mark.parametrize(
    "algorithm",
    [ValidSolver("full-admm"), TwoPartyADMM(), ObjectivePerturbation(20), PrintedModelPerturbation(steps=5)],
    ids=lambda algorithm: type(algorithm).__name__,
)
def test_every_algorithm_gives_the_numbers_that_are_judged(algorithm, penalty):
    if penalty == "graph" and not isinstance(algorithm, ValidSolver):
        pytest.skip("for coefficients alone")
    numbers = algorithm(replace(CASE, panel=replace(PANEL, penalty=penalty)))
    assert {"objective", "test_objective", "accuracy", "auc"} <= set(numbers)
    assert 0.4 < numbers["accuracy"] <= 1.0


def test_printed_steps_keep_the_stated_epsilon():
    numbers = PrintedSteps()(CASE)
    again = PrintedSteps()(CASE)
    assert numbers["plan"] == again["plan"]
    assert numbers["objective"] == again["objective"]


def test_the_ridge_is_in_the_problem_of_a_strongly_convex_solver():
    panel = replace(PANEL, penalty="graph", ridge=1e-2)
    model = ValidSolver("dp-sadmm", options=(("convexity", "strong"),)).model(panel, replace(CASE, panel=panel))
    declared = model.declaration(4000, 100, model.declare_target(np.array([-1, 1])))
    assert declared.problem.ridge == 1e-2
    assert declared.recipe.problem.ridge == 1e-2
    assert ValidSolver("dp-sadmm").model(PANEL, CASE).ridge == 0.0


def test_a_graph_from_the_data_has_signed_edges_and_few_of_them():
    rows = public_rows("demo", "simulated", 0, True)
    edges = data_graph(rows)
    assert 0 < len(edges) <= 2 * rows.n_features
    assert {abs(weight) for _, _, weight in edges} == {1.0}


def test_quick_rows_are_few_and_seeds_draw_their_own_tables():
    assert public_rows("demo", "simulated", 0, True).n_rows == 4000
    assert not np.array_equal(public_rows("demo", "simulated", 0, True).y, public_rows("demo", "simulated", 1, True).y)
