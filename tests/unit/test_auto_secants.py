"""Curvature learned from answers: seen where it is, not where it is not, and solved for exactly."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dpadmm import DPLogisticRegression
from dpadmm.privacy.accountants.gaussian import gaussian_shift
from dpadmm.problem import Logistic
from dpadmm.solvers.auto.coordinates import Coordinates
from dpadmm.solvers.auto.penalised import Model
from dpadmm.solvers.auto.quadratics import quadratic
from dpadmm.solvers.auto.rules import Rules, choose_rules, loss_model
from dpadmm.solvers.auto.secants import FEWEST, LARGEST_SOFTENING, Along, Secants, eased, easing

D, SKEWED = 6, 2


@pytest.fixture
def coordinates():
    root = np.random.default_rng(0).standard_normal((40, D))
    moment = root.T @ root
    return Coordinates.whiten(moment / np.trace(moment), 1.0)


@pytest.fixture
def curvature(coordinates):
    return 0.1 * coordinates.energy


@pytest.fixture
def along(coordinates, curvature):
    return Along.of(coordinates, curvature, 3.0)


def hessian(coordinates, curvature):
    inverse = coordinates.basis / np.sqrt(coordinates.scale)
    return (inverse * curvature) @ inverse.T


def secants_of(coordinates, along, true_hessian, model_hessian, noise_std, seed=0):
    """Rounds of answers with a known Hessian, at points that move along the skewed feature."""
    rng, found = np.random.default_rng(seed), Secants()
    inverse = coordinates.basis / np.sqrt(coordinates.scale)
    points = np.cumsum(np.abs(rng.standard_normal((12, D))), axis=0) * 0.01 * np.sqrt(along.prior)
    points[:, SKEWED] = np.sqrt(along.prior[SKEWED]) * np.linspace(0, 2, 12)
    for x in points:
        gradient = true_hessian @ (x - 1.0) + inverse @ (noise_std * rng.standard_normal(D))
        found = found.add(x, model_hessian @ x - gradient, 0.5)
    return found, points[-1]


def test_along_a_feature_is_the_inverse_of_the_inverse(coordinates, curvature, along):
    inverse = np.linalg.inv(hessian(coordinates, curvature))
    np.testing.assert_allclose(along.curvature, 1 / np.diag(inverse))
    covariance = coordinates.matrix @ np.diag(3.0 * coordinates.prior) @ coordinates.matrix.T
    np.testing.assert_allclose(along.prior, np.diag(covariance))


@pytest.mark.parametrize("share", [0.3, 0.6, 0.99])
def test_missing_curvature_is_found(coordinates, curvature, along, share):
    model = hessian(coordinates, curvature)
    missing = np.zeros(D)
    missing[SKEWED] = share * along.curvature[SKEWED]
    moved = along.curvature[SKEWED] * np.sqrt(along.prior[SKEWED])
    noise = 1e-3 * moved / np.sqrt(along.noise[SKEWED])
    secants, x = secants_of(coordinates, along, model - np.diag(missing), model, noise)
    found = secants.softening(along, noise, x, 4.0)
    assert np.flatnonzero(found).tolist() == [SKEWED]
    assert found[SKEWED] == pytest.approx(min(share, LARGEST_SOFTENING) * along.curvature[SKEWED], rel=0.05)


def test_noise_and_too_much_curvature_are_not_taken_for_missing_curvature(coordinates, curvature, along):
    model = hessian(coordinates, curvature)
    noise = 0.3 * along.curvature[SKEWED] * np.sqrt(along.prior[SKEWED] / along.noise[SKEWED])
    for seed in range(50):
        for true in (model, 1.5 * model):
            secants, x = secants_of(coordinates, along, true, model, noise, seed)
            assert not secants.softening(along, noise, 0 * x, 4.0).any()


def test_a_coefficient_far_out_needs_less_proof(coordinates, along):
    x, slope = np.zeros((FEWEST, D)), 0.5 * along.curvature
    x[:, SKEWED] = np.linspace(0, 1, FEWEST)
    secants = Secants()
    for point in x:
        secants = secants.add(point, slope * point, 0.0)
    moved = float(np.sum((x[:, SKEWED] - x[:, SKEWED].mean()) ** 2))
    noise = float(slope[SKEWED] * np.sqrt(moved / along.noise[SKEWED]) / 3)
    far = np.zeros(D)
    far[SKEWED] = 3 * np.sqrt(along.prior[SKEWED])
    assert not secants.softening(along, noise, np.zeros(D), 4.0).any()
    assert np.flatnonzero(secants.softening(along, noise, far, 4.0)).tolist() == [SKEWED]


def test_few_answers_tell_nothing(along):
    secants = Secants()
    for x in np.linspace(0, 1, FEWEST - 1):
        secants = secants.add(np.full(D, x), along.curvature * x, 0.0)
    assert not secants.softening(along, 1e-12, np.ones(D), 4.0).any()


def test_a_softened_posterior_is_that_of_the_feature_alone(coordinates, curvature, along):
    softening, x = np.zeros(D), np.zeros(D)
    softening[SKEWED], x[SKEWED] = 0.8 * along.curvature[SKEWED], 5 * np.sqrt(along.prior[SKEWED])
    variance, stiff = np.asarray(1e-4), curvature + 1e-4 / (curvature * 3.0 * coordinates.prior)
    added = easing(coordinates, along, softening, stiff, variance, x)
    whole = hessian(coordinates, stiff) + np.diag(added)
    seen = 0.2 * along.curvature[SKEWED]
    expected = seen + 1e-4 * along.noise[SKEWED] / (seen * x[SKEWED] ** 2)
    assert 1 / np.linalg.inv(whole)[SKEWED, SKEWED] == pytest.approx(expected)


def test_the_whole_stays_positive_when_all_features_are_softened(coordinates, curvature, along):
    softening = LARGEST_SOFTENING * along.curvature
    added = easing(coordinates, along, softening, curvature, np.asarray(1e-12), 100 * np.sqrt(along.prior))
    assert np.linalg.eigvalsh(hessian(coordinates, curvature) + np.diag(added)).min() > 0


def test_easing_by_few_features_is_the_dense_solution(coordinates, curvature):
    added = np.zeros(D)
    added[[1, 4]] = -0.2 * Along.of(coordinates, curvature, 3.0).curvature[[1, 4]]
    z = np.random.default_rng(1).standard_normal(D)
    matrix = coordinates.matrix
    dense = np.linalg.solve(np.diag(curvature) + matrix.T @ np.diag(added) @ matrix, curvature * z)
    np.testing.assert_allclose(eased(coordinates, curvature, added, z), dense)
    np.testing.assert_array_equal(eased(coordinates, curvature, np.zeros(D), z), z)


def test_the_penalised_model_has_the_same_hessian(coordinates, curvature):
    added = 0.3 * np.arange(D)
    model = quadratic(coordinates, curvature, added)
    x = np.random.default_rng(2).standard_normal(D)
    np.testing.assert_allclose(model.apply(x), (hessian(coordinates, curvature) + np.diag(added)) @ x)
    assert Model(coordinates, curvature, x, added).added is added


def skewed_table(seed=0, rows=20_000):
    """Binary features, and one with few large values: its coefficient is large, its curvature soon gone."""
    rng = np.random.default_rng(seed)
    X = (rng.random((rows, 20)) < 0.3).astype(float)
    gain = np.where(rng.random(rows) < 0.1, rng.lognormal(-3.5, 1.0, rows), 0.0).clip(max=1)
    scores = X[:, :5].sum(axis=1) - 2.5 + 60 * gain
    y = (rng.random(rows) < 1 / (1 + np.exp(-scores))).astype(int)
    return np.column_stack([X, gain]), y


def test_a_skewed_column_is_learned():
    X, y = skewed_table()
    rules = choose_rules(len(y) * gaussian_shift(2.0, 1e-6), X.shape[1] + 1, 2, loss_model(Logistic()))

    def loss(rules: Rules) -> float:
        losses = []
        for seed in range(3):
            model = DPLogisticRegression(2.0, 1e-6, random_state=seed, solver_options={"rules": rules}).fit(X, y)
            losses.append(-np.log(model.predict_proba(X)[np.arange(len(y)), y]).mean())
        return float(np.mean(losses))

    assert loss(rules) < loss(replace(rules, contradiction=None)) - 0.002
