"""The reference solver against cvxpy, scikit-learn and skglm: the same optimum to 1e-6, or better, in the objective."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from scipy import sparse
from skglm import GroupLasso
from sklearn import linear_model

from dpadmm.errors import Diverged, InvalidParameter, UnsupportedProblem
from dpadmm.problem import (
    L1,
    SCAD,
    Ball,
    Box,
    Constraint,
    ElasticNet,
    GroupL2,
    Huber,
    HuberisedHinge,
    Logistic,
    Nuclear,
    Problem,
    Simplex,
    Softmax,
    Squared,
    SquaredL2,
    Zero,
)
from dpadmm.solvers.exact_minimiser import objective, solve_exactly

N, D, K = 200, 20, 3
GROUPS = tuple(tuple(range(i, i + 4)) for i in range(0, D, 4))
EDGES = [(i, (3 * i + 1) % D, 1.0 + i / D) for i in range(D) if i != (3 * i + 1) % D]
TIGHT = {"tol_gap_abs": 1e-8, "tol_gap_rel": 1e-8, "tol_feas": 1e-8}


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, D))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    truth = np.repeat(rng.normal(size=D // 4), 4) * (np.arange(D) % 8 < 4)
    score = X @ truth + 0.3 * rng.normal(size=N)
    several = X @ np.outer(truth, [1.0, -1.0, 0.5]) + 0.3 * rng.normal(size=(N, K))
    return {
        "X": X,
        "binary": np.sign(score),
        "real": score,
        "several": several,
        "class": several.argmax(axis=1),
    }


def huberised_hinges(margin, target):
    """Σ (1.5 − z)₊²/2 for (1.5 − z)₊ ≤ 1, linear beyond: h = 0.5 in terms of cvxpy's own Huber function."""
    return cp.sum(cp.huber(cp.pos(1.5 - cp.multiply(target, margin)), 1.0)) / 2


LOSSES = {
    "squared": (Squared(), "real", lambda m, t: cp.sum_squares(m - t) / 2),
    "huber": (Huber(0.2), "real", lambda m, t: cp.sum(cp.huber(m - t, 0.2)) / 2),
    "logistic": (Logistic(), "binary", lambda m, t: cp.sum(cp.logistic(-cp.multiply(t, m)))),
    "huberised svm": (HuberisedHinge(), "binary", huberised_hinges),
    "softmax": (Softmax(K), "class", lambda m, t: cp.sum(cp.log_sum_exp(m, axis=1)) - cp.sum(m[np.arange(N), t])),
    "multi-task": (Squared(K), "several", lambda m, t: cp.sum_squares(m - t) / 2),
}


PENALTIES = {
    "lasso": (L1(0.01), Constraint.identity(D), lambda x: 0.01 * cp.sum(cp.abs(x))),
    "elastic net": (
        ElasticNet(0.01, 0.3),
        Constraint.identity(D),
        lambda x: 0.01 * (0.3 * cp.sum(cp.abs(x)) + 0.35 * cp.sum_squares(x)),
    ),
    "fused chain": (
        L1(0.01),
        Constraint.chain(D),
        lambda x: 0.01 * cp.sum(cp.abs(x[1:] - x[:-1])),
    ),
    "graph-guided": (
        L1(0.01),
        Constraint.stacked(Constraint.graph(EDGES, D).A),
        lambda x: 0.01 * (cp.sum(cp.abs(x)) + sum(w * cp.norm1(x[i] - x[j]) for i, j, w in EDGES)),
    ),
    "graph": (
        L1(0.01),
        Constraint.graph(EDGES, D),
        lambda x: 0.01 * sum(w * cp.norm1(x[i] - x[j]) for i, j, w in EDGES),
    ),
    "group": (
        GroupL2(0.004, GROUPS),
        Constraint.identity(D),
        lambda x: 0.004 * sum(2 * cp.norm(cp.vec(x[list(g)], order="C"), 2) for g in GROUPS),
    ),
}
NUCLEAR = (Nuclear(0.01), Constraint.identity(D), lambda x: 0.01 * cp.normNuc(x))
FREE = (L1(0.01), Constraint.chain(D, free=1), lambda x: 0.01 * cp.sum(cp.abs(x[1:-1] - x[:-2])))
CASES = [
    *((loss, penalty) for loss in ("squared", "logistic", "huberised svm", "huber") for penalty in PENALTIES),
    ("softmax", "lasso"),
    ("softmax", "fused chain"),
    ("softmax", "group"),
    ("softmax", "nuclear"),
    ("multi-task", "nuclear"),
    ("multi-task", "graph-guided"),
    ("logistic", "free"),
]


def cvxpy_optimum(problem, X, target, cvxpy_loss, cvxpy_penalty, ridge=0.0):
    x = cp.Variable(problem.shape)
    total = cvxpy_loss(X @ x, target) / N + cvxpy_penalty(x) + ridge / 2 * cp.sum_squares(x)
    model = cp.Problem(cp.Minimize(total))
    return float(model.solve(solver=cp.CLARABEL, **TIGHT))


@pytest.mark.parametrize(("loss_name", "penalty_name"), CASES)
def test_same_optimum_as_cvxpy(table, loss_name, penalty_name):
    loss, target_name, cvxpy_loss = LOSSES[loss_name]
    named = {**PENALTIES, "nuclear": NUCLEAR, "free": FREE}
    regularizer, constraint, cvxpy_penalty = named[penalty_name]
    problem = Problem(loss, regularizer, constraint)
    X, target = table["X"], table[target_name]
    x = solve_exactly(problem, X, target)
    optimum = cvxpy_optimum(problem, X, target, cvxpy_loss, cvxpy_penalty)
    assert -1e-7 <= objective(problem, X, target, x) - optimum <= 1e-7


def test_ridge_and_offset_against_cvxpy(table):
    A, c = np.random.default_rng(1).normal(size=(7, D)), np.arange(7.0)
    problem = Problem(Logistic(), L1(0.02), Constraint.general(A, c=c), ridge=0.05)
    x = solve_exactly(problem, table["X"], table["binary"])
    optimum = cvxpy_optimum(
        problem,
        table["X"],
        table["binary"],
        LOSSES["logistic"][2],
        lambda x: 0.02 * cp.sum(cp.abs(A @ x - c)),
        ridge=0.05,
    )
    assert objective(problem, table["X"], table["binary"], x) == pytest.approx(optimum, abs=1e-7)


@pytest.mark.parametrize(
    ("regularizer", "limits"),
    [
        (Box(-0.1, 0.3), lambda y: [y >= -0.1, y <= 0.3]),
        (Ball(0.5), lambda y: [cp.norm(y, 2) <= 0.5]),
        (Simplex(), lambda y: [y >= 0, cp.sum(y) == 1]),
    ],
    ids=["box", "ball", "simplex"],
)
@pytest.mark.parametrize("constraint", [Constraint.identity(D), Constraint.chain(D)], ids=["identity", "chain"])
def test_hard_constraints_against_cvxpy(table, regularizer, limits, constraint):
    problem = Problem(Squared(), regularizer, constraint)
    X, target = table["X"], table["real"]
    x = cp.Variable(D)
    model = cp.Problem(cp.Minimize(cp.sum_squares(X @ x - target) / (2 * N)), limits(constraint.A @ x))
    optimum = model.solve(solver=cp.CLARABEL, **TIGHT)
    assert objective(problem, X, target, solve_exactly(problem, X, target)) == pytest.approx(optimum, abs=1e-7)


def test_same_coefficients_as_scikit_learn(table):
    X, real, binary = table["X"], table["real"], table["binary"]
    lasso = linear_model.Lasso(alpha=0.01, fit_intercept=False, tol=1e-12, max_iter=100_000).fit(X, real).coef_
    np.testing.assert_allclose(
        solve_exactly(Problem(Squared(), L1(0.01), Constraint.identity(D)), X, real), lasso, atol=1e-6
    )
    net = linear_model.ElasticNet(alpha=0.01, l1_ratio=0.3, fit_intercept=False, tol=1e-12, max_iter=100_000)
    problem = Problem(Squared(), ElasticNet(0.01, 0.3), Constraint.identity(D))
    np.testing.assert_allclose(solve_exactly(problem, X, real), net.fit(X, real).coef_, atol=1e-6)
    logistic = linear_model.LogisticRegression(C=1 / (0.01 * N), fit_intercept=False, tol=1e-12, max_iter=10_000)
    problem = Problem(Logistic(), SquaredL2(0.01), Constraint.identity(D))
    np.testing.assert_allclose(solve_exactly(problem, X, binary), logistic.fit(X, binary).coef_[0], atol=1e-5)


@pytest.mark.slow
def test_same_coefficients_as_skglm_group_lasso(table):
    X, real = table["X"], table["real"]
    weights = np.full(len(GROUPS), 2.0)
    peer = GroupLasso(groups=[list(g) for g in GROUPS], alpha=0.01, weights=weights, fit_intercept=False, tol=1e-10)
    problem = Problem(Squared(), GroupL2(0.01, GROUPS), Constraint.identity(D))
    np.testing.assert_allclose(solve_exactly(problem, X, real), peer.fit(X, real).coef_, atol=1e-6)


def test_the_intercept_is_not_penalised(table):
    with_ones = np.column_stack([table["X"], np.ones(N)])
    shifted = table["real"] + 5
    x = solve_exactly(Problem(Squared(), L1(10.0), Constraint.identity(D + 1, free=1)), with_ones, shifted)
    assert not x[:-1].any()
    assert x[-1] == pytest.approx(shifted.mean(), abs=1e-6)


def test_released_structure_is_exact(table):
    fused = solve_exactly(Problem(Squared(), L1(0.01), Constraint.chain(D)), table["X"], table["real"])
    assert len(np.unique(fused)) < D
    both = Problem(Squared(), L1(0.01), Constraint.stacked(Constraint.chain(D).A))
    assert (solve_exactly(both, table["X"], table["real"]) == 0).any()


@pytest.mark.parametrize("constraint", [Constraint.identity(D), Constraint.chain(D)], ids=["identity", "chain"])
def test_sparse_rows_give_the_same_answer(table, constraint):
    problem = Problem(Logistic(), L1(0.01), constraint)
    for make in (sparse.csr_array, sparse.csr_matrix):
        x = solve_exactly(problem, make(table["X"]), table["binary"])
        np.testing.assert_allclose(x, solve_exactly(problem, table["X"], table["binary"]), atol=1e-6)


def test_what_cannot_be_solved_is_refused(table):
    X, target = table["X"], table["real"]
    with pytest.raises(UnsupportedProblem, match="scad"):
        solve_exactly(Problem(Squared(), SCAD(0.1), Constraint.identity(D)), X, target)
    with pytest.raises(UnsupportedProblem):
        solve_exactly(Problem(Squared(), L1(0.1), Constraint.general(np.eye(D), np.ones((D, 2)))), X, target)
    with pytest.raises(InvalidParameter):
        solve_exactly(Problem(Squared(), L1(0.1), Constraint.identity(D + 1)), X, target)
    separable = np.array([[1.0], [-1.0]])
    without_minimum = Problem(Logistic(), Zero(), Constraint.general(np.ones((1, 1))))
    with pytest.raises(Diverged, match="add a penalty"):
        solve_exactly(without_minimum, separable, separable[:, 0])
