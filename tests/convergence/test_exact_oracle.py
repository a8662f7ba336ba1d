"""Without noise every convex algorithm reaches the optimum: signs, indices and step sizes are right (T7)."""

from __future__ import annotations

import numpy as np
import pytest

from dpadmm.oracles.noiseless import NoiselessOracle
from dpadmm.privacy.sampling import WithoutReplacement
from dpadmm.problem.constraints import Constraint
from dpadmm.problem.losses import Huber, HuberisedHinge, Logistic, Softmax, Squared
from dpadmm.problem.problem import Problem
from dpadmm.problem.regularizers import L1, ElasticNet, GroupL2, Nuclear
from dpadmm.problem.smoothers import RingLaplacian
from dpadmm.rows.local import LocalRows
from dpadmm.solvers import run
from dpadmm.solvers.baselines.proximal import ProximalGD, ProximalSGD
from dpadmm.solvers.exact_minimiser import objective, solve_exactly
from dpadmm.solvers.full_admm import FullADMM
from dpadmm.solvers.mpadmm import MPADMM
from dpadmm.solvers.sadmm import SADMM
from dpadmm.solvers.ssadmm import SSADMM
from dpadmm.solvers.vradmm import VRADMM

N_ROWS, N_FEATURES, N_CLASSES = 120, 8, 3
EDGES = [(0, 1), (1, 2), (0, 2), (3, 4), (5, 6), (2, 7)]


def rows(random_state: int = 0) -> np.ndarray:
    rng = np.random.default_rng(random_state)
    X = rng.standard_normal((N_ROWS, N_FEATURES))
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def binary(X: np.ndarray) -> np.ndarray:
    truth = np.array([3.0, 3.0, 0.0, -2.0, -2.0, 0.0, 0.0, 1.0])
    return np.where(X @ truth + np.random.default_rng(1).logistic(size=len(X)) > 0, 1.0, -1.0)


def numeric(X: np.ndarray) -> np.ndarray:
    return X @ np.array([1.0, 1.0, 0.0, -1.0, -1.0, 0.0, 0.0, 0.5]) + 0.1 * np.random.default_rng(2).normal(size=len(X))


def classes(X: np.ndarray) -> np.ndarray:
    scores = X @ np.random.default_rng(3).normal(size=(N_FEATURES, N_CLASSES)) * 3
    return scores.argmax(axis=1)


graph = Constraint.graph(EDGES, N_FEATURES)
PROBLEMS = {
    "lasso": (Problem(Squared(), L1(0.01), Constraint.identity(N_FEATURES)), numeric),
    "elastic net": (Problem(Squared(), ElasticNet(0.02, 0.5), Constraint.identity(N_FEATURES)), numeric),
    "huber lasso": (Problem(Huber(0.2), L1(0.01), Constraint.identity(N_FEATURES)), numeric),
    "fused chain": (Problem(Squared(), L1(0.01), Constraint.chain(N_FEATURES)), numeric),
    "graph-guided logistic": (Problem(Logistic(), L1(0.005), Constraint.stacked(graph.A)), binary),
    "group": (
        Problem(Logistic(), GroupL2(0.01, ((0, 1, 2), (3, 4), (5, 6, 7))), Constraint.identity(N_FEATURES)),
        binary,
    ),
    "nuclear softmax": (Problem(Softmax(N_CLASSES), Nuclear(0.01), Constraint.identity(N_FEATURES)), classes),
    "huberised SVM": (Problem(HuberisedHinge(), L1(0.01), Constraint.identity(N_FEATURES, free=1)), binary),
}
STEPS = 6_000
SOLVERS = {
    "dp-sadmm": SADMM(STEPS, 1e9, averaging="last"),
    "dp-sadmm, smoothed": SADMM(2 * STEPS, 1e9, averaging="last", smoother=RingLaplacian(1.0)),
    "dp-vradmm": VRADMM(60, STEPS // 60, 1e9, rate=1.0, gradient_clip=1.0, averaging="last"),
    "ssadmm": SSADMM(STEPS, 1e9, epoch_steps=STEPS, averaging="last"),
    "mpadmm": MPADMM(STEPS, 1e9, averaging="last"),
    "full-admm": FullADMM(STEPS // 4, 1e9, averaging="last"),
    "dp-gd": ProximalGD(STEPS, 1e9, averaging="last"),
    "dp-sgd": ProximalSGD(STEPS, 1e9, averaging="last"),
}


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("solver", SOLVERS)
def test_reaches_the_optimum_with_an_exact_oracle(solver: str, name: str) -> None:
    problem, targets = PROBLEMS[name]
    if solver in ("dp-gd", "dp-sgd") and not problem.constraint.is_identity:
        pytest.skip("a proximal baseline takes penalties on the coefficients only")
    X, y = rows(), targets(rows())
    optimum = objective(problem, X, y, solve_exactly(problem, X, y))
    solution = run(SOLVERS[solver], problem, NoiselessOracle(LocalRows(X, y, problem.loss)))
    assert objective(problem, X, y, solution.coefficients) - optimum < 1e-6


STRONG = {
    "dp-sadmm": SADMM(STEPS, 1.0, averaging="last", convexity="strong"),
    "dp-vradmm": VRADMM(100, 60, 1e9, rate=1.0, gradient_clip=1.0, averaging="last", convexity="strong"),
}


@pytest.mark.parametrize("solver", STRONG)
@pytest.mark.parametrize("constraint", [Constraint.identity(N_FEATURES), Constraint.chain(N_FEATURES)])
def test_strongly_convex_schedules_reach_the_optimum(solver: str, constraint: Constraint) -> None:
    problem = Problem(Logistic(), L1(0.01), constraint, ridge=0.1)
    X, y = rows(), binary(rows())
    optimum = objective(problem, X, y, solve_exactly(problem, X, y))
    solution = run(STRONG[solver], problem, NoiselessOracle(LocalRows(X, y, problem.loss)))
    assert objective(problem, X, y, solution.coefficients) - optimum < 1e-6


def test_svrg_admm_beats_stoc_admm_on_mini_batches() -> None:
    """With an exact oracle on mini-batches the same files are STOC-ADMM and SVRG-ADMM."""
    problem, targets = PROBLEMS["lasso"]
    X, y = rows(), targets(rows())
    optimum = objective(problem, X, y, solve_exactly(problem, X, y))
    gaps = {}
    for name, solver in (
        ("stoc", SADMM(6000, 0.5, averaging="tail")),
        ("svrg", VRADMM(100, 60, 0.5, rate=1 / 12, gradient_clip=1.0, averaging="last")),
    ):
        oracle = NoiselessOracle(LocalRows(X, y, problem.loss), WithoutReplacement(10, N_ROWS), random_state=0)
        gaps[name] = objective(problem, X, y, run(solver, problem, oracle).coefficients) - optimum
    assert gaps["stoc"] < 1e-2
    assert gaps["svrg"] < 1e-6
