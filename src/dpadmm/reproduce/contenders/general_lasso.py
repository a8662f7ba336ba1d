"""The general lasso (1/2n)‖Zx − b‖² + α‖Ax‖₁, A the differences along a chain, on simulated rows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpadmm.estimators.linear import DPLinearRegression
from dpadmm.problem import L1, Constraint, Problem, Squared
from dpadmm.problem.rowmap import RowMap
from dpadmm.reproduce.exhibit import Case, Numbers
from dpadmm.solvers.exact_minimiser import objective, solve_exactly

Array = NDArray[np.float64]
FEATURES, STRENGTH, DELTA = 20, 0.005, 1e-5
ROWS, QUICK_ROWS = 20_000, 2_000


@dataclass(frozen=True)
class LassoPanel:
    """With a ridge, which makes it strongly convex."""

    title: str
    ridge: float = 0.0

    @property
    def tables(self) -> tuple[str, ...]:
        return ()

    @property
    def problem(self) -> Problem:
        return Problem(Squared(), L1(STRENGTH), Constraint.chain(FEATURES), ridge=self.ridge)


@dataclass(frozen=True)
class NoisyPasses:
    """Chan 2024, Algorithm 1, over all rows in a random order, x passes of it; `noise` is on one row's gradient."""

    noise: float

    def __call__(self, case: Case) -> Numbers:
        Z, b = lasso_rows(_size(case) // 4)
        best = minimiser(case.panel, len(b))
        last = noisy_passes(case.panel.problem, Z, b, int(case.x), self.noise, case.seed)
        return {"distance": float(np.linalg.norm(last - best))}


@dataclass(frozen=True)
class ValidRegression:
    """A solver of this library at (ε, 10⁻⁵), by the objective."""

    solver: str

    def __call__(self, case: Case) -> Numbers:
        Z, b = lasso_rows(_size(case))
        model = DPLinearRegression(
            case.x,
            DELTA,
            penalty="fused",
            alpha=STRENGTH,
            solver=self.solver,
            fit_intercept=False,
            target_bounds=(-1, 1),
            random_state=case.seed,
        )
        weights = model.fit(Z, b).weights_
        return {"objective": objective(case.panel.problem, _mapped(Z), b, weights)}


@dataclass(frozen=True)
class LassoMinimum:
    """The exact minimum."""

    def __call__(self, case: Case) -> Numbers:
        Z, b = lasso_rows(_size(case))
        mapped = _mapped(Z)
        return {"objective": objective(case.panel.problem, mapped, b, solve_exactly(case.panel.problem, mapped, b))}


@dataclass(frozen=True)
class NothingLearned:
    """The objective of coefficients that are all zero."""

    def __call__(self, case: Case) -> Numbers:
        Z, b = lasso_rows(_size(case))
        return {"objective": objective(case.panel.problem, _mapped(Z), b, np.zeros(FEATURES))}


@lru_cache(maxsize=4)
def lasso_rows(n_rows: int, seed: int = 0) -> tuple[Array, Array]:
    """Rows of norm at most one; targets within ±1 from coefficients in four constant pieces."""
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n_rows, FEATURES))
    Z /= np.maximum(np.linalg.norm(Z, axis=1, keepdims=True), 1.0)
    truth = np.repeat([1.0, -1.0, 0.5, 0.0], FEATURES // 4)
    return Z, np.clip(Z @ truth + 0.2 * rng.normal(size=n_rows), -1.0, 1.0)


@lru_cache(maxsize=8)
def minimiser(panel: LassoPanel, n_rows: int) -> Array:
    Z, b = lasso_rows(n_rows)
    return solve_exactly(panel.problem, Z, b, 1e-8)


def noisy_passes(problem: Problem, Z: Array, b: Array, passes: int, noise: float, seed: int) -> Array:
    """The last x. NOT private: the order is not secret, and floating point is not cared for."""
    rng, constraint = np.random.default_rng(seed), problem.constraint
    A = constraint.A.toarray()
    step = 20.0 / len(b)
    beta = 0.2 / (step * constraint.norm_squared)
    metric_inverse = np.linalg.inv(np.eye(FEATURES) + step * beta * A.T @ A)
    x, dual, threshold = np.zeros(FEATURES), np.zeros(len(A)), STRENGTH / beta
    for _ in range(passes):
        noises = step * noise * rng.standard_normal((len(b), FEATURES))
        for row, drawn in zip(rng.permutation(len(b)), noises, strict=True):
            v = A @ x + dual
            y = np.sign(v) * np.maximum(np.abs(v) - threshold, 0.0)
            dual = v - y
            gradient = (Z[row] @ x - b[row]) * Z[row] + problem.ridge * x
            x = metric_inverse @ (x - step * gradient + step * beta * (A.T @ (y - dual))) + drawn
    return x


def _size(case: Case) -> int:
    return QUICK_ROWS if case.quick else ROWS


def _mapped(Z: Array) -> Any:
    return RowMap(1.0, intercept=False).apply(Z)
