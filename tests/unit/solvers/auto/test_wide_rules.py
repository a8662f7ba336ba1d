"""The wide regime of `auto`: its linear algebra against dense matrices, and models that learn."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from dpadmm import DPLinearRegression, DPLogisticRegression
from dpadmm.problem import Constraint
from dpadmm.solvers.auto.moment_cleaning import clean_mean
from dpadmm.solvers.auto.quadratics import quadratic
from dpadmm.solvers.auto.wide_coordinates import SpikedCoordinates

RNG = np.random.default_rng(0)


@pytest.fixture
def coordinates():
    bulk = RNG.uniform(0.5, 2, 8)
    return SpikedCoordinates.whiten(bulk / bulk.sum(), RNG.uniform(0, 0.5, 8), 2.0, crowding=3.0, visibility=5.0)


def test_coordinates_agree_with_the_matrix_they_stand_for(coordinates):
    P, x = coordinates.matrix @ np.eye(8), RNG.standard_normal((8, 3))
    np.testing.assert_allclose(coordinates.to_model(x), P @ x)
    np.testing.assert_allclose(coordinates.from_model(x), np.linalg.solve(P, x))
    np.testing.assert_allclose(coordinates.pull_back(x), P.T @ x)
    np.testing.assert_allclose(coordinates.scale, np.diag(P.T @ P))


@pytest.mark.parametrize(
    "constraint", [Constraint.identity(8, 1), Constraint.chain(8, 1), Constraint.stacked(np.eye(7), 1)]
)
def test_the_quadratic_is_solved_without_its_matrix(coordinates, constraint):
    curvature, v = RNG.uniform(0.1, 3, 8), RNG.standard_normal((8, 2))
    inverse = np.linalg.inv(coordinates.matrix @ np.eye(8))
    H = inverse.T @ np.diag(curvature) @ inverse
    model = quadratic(coordinates, curvature)
    gram = 0.7 * (constraint.A.T @ constraint.A)
    np.testing.assert_allclose(model.apply(v), H @ v)
    np.testing.assert_allclose(model.factorise(gram)(v), np.linalg.solve(H + gram.toarray(), v), rtol=1e-8)


def test_a_mean_row_lost_in_noise_keeps_its_intercept():
    noisy = np.concatenate([0.1 * RNG.standard_normal(10_000), [0.5]])
    clean = clean_mean(noisy, 0.1, 1)
    assert np.linalg.norm(clean[:-1]) < 3
    assert 0.45 < clean[-1] < 0.5


def table(n=4000, d=3200):
    X = sparse.random(n, d, 0.01, format="csr", random_state=1)
    X.data[:] = 1.0
    X = sparse.csr_matrix(sparse.hstack([RNG.integers(0, 2, (n, 6)), X]))
    return X, np.asarray(X[:, :6] @ [3.0, -3.0, 3.0, -3.0, 3.0, -3.0])


@pytest.mark.parametrize("penalty", ["none", "l1", "group"])
def test_wide_tables_are_learned_from(penalty):
    X, score = table()
    groups = np.arange(X.shape[1]) // 6 if penalty == "group" else None
    model = DPLogisticRegression(
        3.0, 1e-6, classes=[0, 1, 2], penalty=penalty, alpha=1e-4, groups=groups, steps=8, random_state=0
    )
    assert model.fit(X, np.digitize(score, [-0.1, 0.1])).score(X, np.digitize(score, [-0.1, 0.1])) > 0.6
    assert model.plan_.query("moments").question.name == "row-moments"


def test_wide_regression_learns():
    X, score = table()
    model = DPLinearRegression(3.0, 1e-6, target_bounds=(-9, 9), random_state=0).fit(X, score)
    assert model.score(X, score) > 0.3


def test_the_declared_norm_of_rows_need_not_be_tight():
    X, score = table()
    y = (score > 0).astype(int)
    model = DPLogisticRegression(3.0, 1e-6, classes=[0, 1], row_norm=30.0, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.75
