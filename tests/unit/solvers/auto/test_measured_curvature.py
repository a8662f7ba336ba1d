"""Curvature that faded along features: measured, never more than the model's, and what it does to the posterior."""

import sys

import numpy as np
import pytest

from dpadmm.problem import L1, Constraint, ElasticNet, Logistic, Problem, Softmax, SquaredL2
from dpadmm.solvers.auto.coordinates import Coordinates
from dpadmm.solvers.auto.curvature import Even, relaxed
from dpadmm.solvers.auto.gradient_evidence import Evidence, Track
from dpadmm.solvers.auto.measured_curvature import (
    LEAST_LEFT,
    LEAST_SQUARE,
    LIMIT,
    MeasuredCurvature,
    measured,
    question,
)
from dpadmm.solvers.auto.penalised_model import Model
from dpadmm.solvers.auto.quadratics import quadratic
from dpadmm.solvers.auto.rules import choose_rules, loss_model
from dpadmm.solvers.auto.solver import Auto
from dpadmm.solvers.base import Setting
from experiments import curvature

LEVEL = 0.1


@pytest.fixture
def rng():
    return np.random.default_rng(5)


@pytest.fixture
def coordinates(rng):
    rows = rng.standard_normal((400, 6)) * np.array([1.0, 1.0, 0.5, 0.5, 0.2, 2.0])
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return Coordinates.whiten(rows.T @ rows / len(rows), 1.0)


def second_moment(coordinates):
    inverse = coordinates.basis / np.sqrt(coordinates.scale)
    return (inverse * coordinates.energy) @ inverse.T


def in_features(matrix, coordinates):
    """A curvature in z as one in x."""
    inverse = coordinates.basis / np.sqrt(coordinates.scale)
    return inverse @ matrix @ inverse.T


def as_expected(coordinates):
    """The answer of rows whose curvature is that of the model."""
    return LEVEL * question(coordinates) * np.diag(second_moment(coordinates))


def test_nothing_fades_where_the_answer_is_as_expected(coordinates):
    found = measured(as_expected(coordinates), 0.0, coordinates, 0.0, LEVEL, 1)
    assert np.allclose(found.matrix, np.diag(LEVEL * coordinates.energy))


def test_what_has_faded_along_a_feature_is_gone_there_and_nowhere_else(coordinates):
    answer = as_expected(coordinates)
    answer[2] *= 0.25
    found = in_features(measured(answer, 0.0, coordinates, 0.0, LEVEL, 1).matrix, coordinates)
    expected = LEVEL * second_moment(coordinates)
    expected[2] *= 0.5
    expected[:, 2] *= 0.5
    assert np.allclose(found, expected)


def test_curvature_is_neither_raised_nor_taken_away_altogether(coordinates):
    answer = as_expected(coordinates) * np.array([50.0, -3.0, 1.0, 1.0, 1.0, 1.0])
    found = in_features(measured(answer, 0.0, coordinates, 0.0, LEVEL, 1).matrix, coordinates)
    squares = LEVEL * np.diag(second_moment(coordinates))
    assert np.allclose(np.diag(found) / squares, [1.0, LEAST_LEFT, 1.0, 1.0, 1.0, 1.0])


def test_an_answer_counts_as_far_as_it_rises_above_its_noise(coordinates):
    expected = as_expected(coordinates)
    noise, answer = float(expected.max()), expected.copy()
    answer[2] = 0.0
    found = in_features(measured(answer, noise, coordinates, 0.0, LEVEL, 1).matrix, coordinates)
    left = np.diag(found) / (LEVEL * np.diag(second_moment(coordinates)))
    assert left[2] == pytest.approx(noise**2 / (noise**2 + expected[2] ** 2))
    assert np.allclose(np.delete(left, 2), 1.0)


def test_half_of_what_all_features_have_lost_is_given_back(coordinates):
    answer = 0.5 * as_expected(coordinates)
    answer[2] *= 0.64
    found = in_features(measured(answer, 0.0, coordinates, 0.0, LEVEL, 1).matrix, coordinates)
    left = np.diag(found) / (LEVEL * np.diag(second_moment(coordinates)))
    assert left[2] == pytest.approx(0.64 * np.sqrt(0.5))
    assert np.allclose(np.delete(left, 2), np.sqrt(0.5))


def test_less_is_left_of_squares_that_may_be_noise_but_never_nothing(coordinates):
    squares = np.diag(second_moment(coordinates))
    gone = np.full(6, -1.0)
    for square_std, certain in ((0.3 * squares.min(), 1 - 0.3 * squares.min() / squares), (1e9, LEAST_SQUARE)):
        found = in_features(measured(gone, 0.0, coordinates, square_std, LEVEL, 1).matrix, coordinates)
        assert np.allclose(np.diag(found) / (LEVEL * squares), LEAST_LEFT * certain)


def test_weights_are_such_that_all_features_together_reach_the_limit(coordinates):
    squares = np.diag(second_moment(coordinates))
    assert float(question(coordinates) @ squares) == pytest.approx(1 / LIMIT)


def test_a_diagonal_faded_curvature_has_the_posterior_of_an_even_one(rng):
    values, prior = rng.uniform(0.5, 2.0, 5), rng.uniform(0.5, 2.0, 5)
    evidence = Evidence(0.1 * rng.standard_normal(5), rng.uniform(0.5, 2.0, 5))
    for faded, even in zip(
        MeasuredCurvature(np.diag(values), np.eye(5), 1).posterior(evidence, prior),
        Even(values).posterior(evidence, prior),
        strict=True,
    ):
        assert np.allclose(faded if faded.ndim == 1 else np.diag(faded), even)


def test_the_posterior_mean_is_that_of_gaussians(rng):
    root = rng.standard_normal((5, 5))
    matrix, prior, variance = root @ root.T + np.eye(5), rng.uniform(0.5, 2.0, 5), rng.uniform(0.5, 2.0, 5)
    pull = 0.1 * rng.standard_normal(5)
    mean, _ = MeasuredCurvature(matrix, np.eye(5), 0).posterior(Evidence(pull, variance), prior)
    gain = np.diag(prior) @ matrix @ np.linalg.inv(matrix @ np.diag(prior) @ matrix + np.diag(variance))
    assert np.allclose(mean, gain @ pull)


def test_a_coefficient_far_beyond_the_prior_is_no_longer_shrunk():
    curvature, prior = MeasuredCurvature(np.eye(4), np.eye(4), 1), np.full(4, 0.01)
    shrunk, _ = curvature.posterior(Evidence(np.array([0.3, 0.0, 0.0, 0.0]), np.full(4, 0.01)), prior)
    freed, _ = curvature.posterior(Evidence(np.array([3.0, 0.1, 0.0, 0.0]), np.full(4, 0.01)), prior)
    assert shrunk[0] == pytest.approx(0.15)
    assert freed[0] == pytest.approx(3.0)
    assert freed[1] == pytest.approx(0.05)


def test_an_intercept_is_never_freed():
    curvature, prior = MeasuredCurvature(np.eye(3), np.eye(3), 1), np.full(3, 0.01)
    mean, _ = curvature.posterior(Evidence(np.array([0.0, 0.0, 3.0]), np.full(3, 0.01)), prior)
    assert mean[2] == pytest.approx(1.5)


def test_less_stiffness_by_a_factor_by_coordinate_and_a_lighter_penalty_where_it_was_measured(rng):
    root = rng.standard_normal((3, 3))
    stiff, factor = root @ root.T, np.array([0.5, 0.25, 1.0])
    assert np.allclose(relaxed(np.diag(stiff).copy(), factor), np.diag(stiff) / factor)
    assert np.allclose(relaxed(stiff, 0.5), stiff / 0.25)
    assert np.allclose(np.diag(relaxed(stiff, factor)), np.diag(stiff) / factor**2)


def test_a_track_tells_the_same_whenever_the_curvature_becomes_known(rng):
    points, gradients, curvature = rng.standard_normal((4, 3)), rng.standard_normal((4, 3)), rng.uniform(1, 2, 3)
    track = Track()
    for point, gradient in zip(points, gradients, strict=True):
        track = track.add(point, gradient, 0.5)
    weights = np.arange(1, 5) ** 0.5
    found = track.evidence(Even(curvature).apply, 2.0)
    assert np.allclose(found.mean, weights @ (curvature * points - gradients) / weights.sum())
    assert float(found.variance) == pytest.approx(2.0 * float(weights @ weights) / weights.sum() ** 2)


def test_a_matrix_of_stiffness_is_minimised_like_the_diagonal_it_is(coordinates, rng):
    problem = Problem(Logistic(), L1(0.01), Constraint.identity(6, 1))
    stiff, centre = rng.uniform(0.5, 2.0, 6), rng.standard_normal(6)
    start = Auto(choose_rules(1e4, 6, 2, loss_model(Logistic()))).init(problem).point
    diagonal = Model(coordinates, stiff, centre).minimise(problem, start)
    matrix = Model(coordinates, np.diag(stiff), centre).minimise(problem, start)
    assert np.allclose(diagonal.x, matrix.x)
    same = [quadratic(coordinates, each).stiffness for each in (stiff, np.diag(stiff))]
    assert np.allclose(np.sort(same[0]), np.sort(same[1]))


SETTING = Setting(n_rows=30_000, gaussian_mu=0.25, record_distance=2.0, clip_norm=1.0, sampling_rate=1.0)


@pytest.mark.parametrize(
    ("regularizer", "asked"),
    [
        (L1(1e-4), True),
        (ElasticNet(1e-4, 0.5), True),
        (ElasticNet(1e-4, 0.0), False),
        (SquaredL2(1e-4), False),
    ],
)
def test_curvature_is_asked_where_a_penalty_chooses_features(regularizer, asked):
    problem = Problem(Logistic(), regularizer, Constraint.identity(50, 1))
    solver = Auto.default(problem, SETTING, 0)
    kinds = [request.kind for request in solver.requests(problem, 1.0)]
    assert ("curvature" in kinds) is asked


def test_it_is_not_asked_in_strong_noise_of_many_classes_or_on_a_chain():
    def asks(problem, n_rows=30_000):
        solver = Auto.default(problem, Setting(n_rows, 0.25, 2.0, 1.0, 1.0), 0)
        return any(request.kind == "curvature" for request in solver.requests(problem, 1.0))

    lasso = Problem(Logistic(), L1(1e-4), Constraint.identity(50, 1))
    assert asks(lasso)
    assert not asks(lasso, 1000)
    assert not asks(Problem(Softmax(3), L1(1e-4), Constraint.identity(50, 1)))
    assert not asks(Problem(Logistic(), L1(1e-4), Constraint.chain(50, 1)))


def test_steps_of_the_users_choice_follow_the_plain_schedule():
    plain, lasso = (
        Auto.default(Problem(Logistic(), penalty, Constraint.identity(50, 1)), SETTING, 0, steps=20).rules
        for penalty in (SquaredL2(1e-4), L1(1e-4))
    )
    assert lasso == plain


def test_more_rounds_are_made_where_curvature_is_asked():
    with_it, without = (choose_rules(1e4, 50, 2, loss_model(Logistic()), sparse) for sparse in (True, False))
    assert with_it.curvature_share > 0
    assert with_it.final_rounds == 2 * without.final_rounds


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("signal", [1e2, 1e4, 1e6])
def test_shares_of_the_budget_sum_to_one(sparse, signal):
    rules = choose_rules(signal, 50, 2, loss_model(Logistic()), sparse)
    shares = rules.moment_share + rules.refine_share + rules.spectrum_share + rules.final_share + rules.curvature_share
    assert shares == pytest.approx(1.0)


@pytest.mark.parametrize("options", [[], ["--sharper"]])
def test_the_experiment_prints_its_tables(options, monkeypatch, capsys):
    monkeypatch.setattr(curvature, "EPSILONS", (1.0,))
    monkeypatch.setattr(curvature, "MOST_ROWS", 3000)
    monkeypatch.setattr(curvature, "rows_of", lambda name: curvature.rare_levels())
    monkeypatch.setattr(sys, "argv", ["curvature", "--seeds", "1", "--only", "rare levels", *options])
    curvature.main()
    assert "| rare levels | 1.0 |" in capsys.readouterr().out
