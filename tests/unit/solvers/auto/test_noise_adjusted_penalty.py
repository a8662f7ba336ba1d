"""A penalty that chooses features is raised by the noise of each."""

from unittest import mock

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from dpadmm import DPLogisticRegression
from dpadmm.problem import L1, Constraint, ElasticNet, Logistic, Problem
from dpadmm.solvers.auto import penalised_model
from dpadmm.solvers.auto.coordinates import Coordinates
from dpadmm.solvers.auto.gradient_evidence import Evidence
from dpadmm.solvers.auto.noise_adjusted_penalty import SCREENING, NoiseAdjustedPenalty, screened


@pytest.fixture
def coordinates():
    rows = np.random.default_rng(3).standard_normal((400, 5)) * np.array([1.0, 0.5, 0.5, 0.2, 2.0])
    return Coordinates.whiten(rows.T @ rows / np.trace(rows.T @ rows), 1.0)


@pytest.mark.parametrize("penalty", [L1(0.3), ElasticNet(0.4, 0.5)])
@pytest.mark.parametrize("v", [-2.0, -0.4, 0.0, 0.1, 0.9, 3.0])
def test_the_prox_is_exact(penalty, v):
    both, step = NoiseAdjustedPenalty(penalty, np.array([0.2])), 0.7
    found = minimize_scalar(
        lambda w: both.value(np.array([w])) + (w - v) ** 2 / (2 * step), bounds=(-5, 5), options={"xatol": 1e-10}
    )
    assert both.prox(np.array([v]), step)[0] == pytest.approx(found.x, abs=1e-5)


def test_the_threshold_is_a_share_of_the_noise_of_a_gradient_along_the_feature(coordinates):
    variance = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    problem = Problem(Logistic(), L1(0.01), Constraint.identity(5, 1))
    raised = screened(problem, Evidence(np.zeros(5), variance), coordinates).regularizer
    noise = np.random.default_rng(0).standard_normal((200_000, 5)) * np.sqrt(variance)
    in_features = noise @ (coordinates.basis / np.sqrt(coordinates.scale)).T
    assert raised.thresholds.shape == (4,)
    assert np.allclose(raised.thresholds, SCREENING * in_features.std(axis=0)[:4], rtol=0.02)


def test_a_feature_without_a_penalty_gets_none(coordinates):
    problem = Problem(Logistic(), L1(0.01, (1.0, 0.0, 2.0, 1.0)), Constraint.identity(5, 1))
    raised = screened(problem, Evidence(np.zeros(5), np.ones(5)), coordinates).regularizer
    assert np.array_equal(raised.thresholds > 0, [True, False, True, True])


def test_a_penalty_of_the_users_own_is_left_as_it_is(coordinates):
    class Own(L1):
        pass

    problem = Problem(Logistic(), Own(0.01), Constraint.identity(5, 1))
    assert screened(problem, Evidence(np.zeros(5), np.ones(5)), coordinates) is problem


def table():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((3000, 12))
    return X, np.where(X[:, 0] + 0.5 * rng.standard_normal(3000) > 0, 1, -1)


def fitted(**options):
    return DPLogisticRegression(1.0, 1e-6, random_state=0, **options).fit(*table())


def test_a_lasso_keeps_fewer_features_that_are_only_noise():
    now = fitted(penalty="l1", alpha=1e-4)
    with mock.patch("dpadmm.solvers.auto.noise_adjusted_penalty.SCREENING", 0.0):
        before = fitted(penalty="l1", alpha=1e-4)
    assert np.count_nonzero(now.coef_) < np.count_nonzero(before.coef_)
    assert now.coef_[0, 0] > 0


@pytest.mark.parametrize("options", [{}, {"penalty": "l2", "alpha": 1e-3}, {"penalty": "fused", "alpha": 1e-3}])
def test_other_penalties_are_left_alone(options):
    before = fitted(**options)
    with mock.patch("dpadmm.solvers.auto.noise_adjusted_penalty.SCREENING", 10.0):
        assert np.array_equal(fitted(**options).coef_, before.coef_)


@pytest.mark.parametrize("penalty", ["l1", "fused"])
def test_iterations_end_where_nothing_changes_any_more(penalty):
    settled = fitted(penalty=penalty, alpha=1e-3)
    with mock.patch.object(penalised_model, "SETTLED", 0.0):
        all_of_them = fitted(penalty=penalty, alpha=1e-3)
    assert np.allclose(settled.coef_, all_of_them.coef_, rtol=1e-4, atol=1e-5 * np.abs(all_of_them.coef_).max())
