"""Exact minimisers for tests and the non-private baseline: THIS FILE READS ROWS, so nothing it returns is private.

======  =====================================================================================================
symbol  meaning
======  =====================================================================================================
F       smooth part, (1/n)Σ loss(⟨row, x⟩) + (ridge/2)‖x‖²
H       second derivative of F, or a bound on it, as a matrix on the flattened x
r       regulariser, at y = Ax − c
u       scaled dual of Ax − y = c
force   beta·u, which is a subgradient of r at y
======  =====================================================================================================
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import cho_factor, cho_solve

from dpadmm.errors import Diverged, UnsupportedProblem
from dpadmm.problem.checks import Array, leading_axis
from dpadmm.problem.constraints import Constraint
from dpadmm.problem.problem import Problem
from dpadmm.problem.spectral import squared_norm_bound

MOST_GRADIENT_STEPS = 200_000
MOST_NEWTON_STEPS = 100
MOST_INNER_STEPS = 20_000
REBALANCE_EVERY = 25
OVER_RELAXATION = 1.6
LEAST_CAUTION = 1e-5


def objective(problem: Problem, X: Any, target: Array, x: Array) -> float:
    """Return (1/n)Σ loss + penalty(x): what the problem minimises.

    Parameters
    ----------
    problem : Problem
        With B = −I.
    X : ndarray or sparse array of shape (n, d)
        Rows.
    target : ndarray of shape (n,) or (n, K)
        Targets in the coding of the loss.
    x : ndarray
        Coefficients of shape ``problem.shape``.

    Examples
    --------
    >>> import numpy as np
    >>> from dpadmm.problem import L1, Constraint, Squared
    >>> lasso = Problem(Squared(), L1(0.1), Constraint.identity(1))
    >>> objective(lasso, np.ones((2, 1)), np.array([1.0, 3.0]), np.zeros(1))
    2.5
    """
    return float(np.mean(problem.loss.value(X @ x, target))) + problem.penalty(x)


def solve_exactly(problem: Problem, X: Any, target: Array, tolerance: float = 1e-8) -> Array:
    """Minimise a convex problem to an objective gap of about `tolerance`.

    Accelerated proximal gradient with restarts where x = y, otherwise proximal Newton steps solved by ADMM.

    Parameters
    ----------
    problem, X, target
        As in `objective`.
    tolerance : float
        Objective gap at which to stop, estimated from the optimality conditions.

    Returns
    -------
    ndarray
        Coefficients of shape ``problem.shape``, with the exact structure of y (zeros, equal neighbours) where that
        does not raise the objective by more than `tolerance`.

    Examples
    --------
    >>> import numpy as np
    >>> from dpadmm.problem import L1, Constraint, Squared
    >>> lasso = Problem(Squared(), L1(0.1), Constraint.identity(1))
    >>> solve_exactly(lasso, np.ones((2, 1)), np.array([1.0, 3.0])).round(6).tolist()
    [1.9]
    """
    if not problem.convex:
        raise UnsupportedProblem(f"the penalty {problem.regularizer.name!r}", "a convex one", "use another penalty")
    leading_axis("transposed X", np.empty((X.shape[1], 0)), problem.constraint.n_features)
    X = sparse.csr_array(X, dtype=float) if sparse.issparse(X) else np.asarray(X, dtype=float)
    smooth = _SmoothPart(problem, X, np.asarray(target))
    if problem.constraint.is_identity:
        return _accelerated_proximal_gradient(smooth, tolerance / 10)
    x, y = _proximal_newton(smooth, tolerance / 10)
    structured = problem.constraint.recover(x, y)
    limit = objective(problem, X, target, x) + tolerance / 2
    return structured if objective(problem, X, target, structured) <= limit else x


@dataclass(frozen=True, eq=False)
class _SmoothPart:
    """F and its derivatives."""

    problem: Problem
    X: Any
    target: Array

    def value(self, x: Array) -> float:
        loss = float(np.mean(self.problem.loss.value(self.X @ x, self.target)))
        return loss + self.problem.ridge_value(x)

    def gradient(self, x: Array) -> Array:
        slope = self.problem.loss.slope(self.X @ x, self.target)
        gradient: Array = self.X.T @ slope / self.X.shape[0] + self.problem.public_gradient(x)
        return gradient

    def hessian(self, x: Array) -> Array:
        return self._weighted_gram(self.problem.loss.curvature(self.X @ x, self.target))

    def hessian_bound(self) -> Array:
        K = self.problem.loss.outputs
        largest = self.problem.loss.curvature_bound * (np.ones(1) if K == 1 else np.eye(K)[None])
        return self._weighted_gram(np.repeat(largest, self.X.shape[0], axis=0))

    @property
    def smoothness(self) -> float:
        curvature = self.problem.loss.curvature_bound / float(self.X.shape[0])
        return curvature * squared_norm_bound(self.X) + self.problem.ridge

    def _weighted_gram(self, weights: Array) -> Array:
        (n, d), K = self.X.shape, self.problem.loss.outputs
        blocks = np.empty((d, K, d, K))
        for k, l in np.ndindex(K, K):
            weight = weights.reshape(n, K, K)[:, k, l]
            gram = self.X.T @ (self.X * weight[:, None])
            blocks[:, k, :, l] = gram.toarray() if sparse.issparse(gram) else gram
        gram_of_all: Array = blocks.reshape(d * K, d * K) / n + np.diag(np.repeat(self.problem.ridge_weights, K))
        return gram_of_all


def _accelerated_proximal_gradient(smooth: _SmoothPart, tolerance: float) -> Array:
    """FISTA on x = y, restarted whenever momentum points uphill (O'Donoghue and Candès, 2015)."""
    problem, step = smooth.problem, 1 / max(smooth.smoothness, 1e-12)
    penalised = problem.constraint.n_rows
    x = problem.zeros()[0]
    ahead, momentum = x, 1.0
    for _ in range(MOST_GRADIENT_STEPS):
        descended = ahead - step * smooth.gradient(ahead)
        new = np.concatenate([problem.regularizer.prox(descended[:penalised], step), descended[penalised:]])
        if np.linalg.norm(ahead - new) / step * (1 + np.linalg.norm(new)) <= tolerance:
            return new
        uphill = np.sum((ahead - new) * (new - x)) > 0
        faster = 1.0 if uphill else (1 + math.sqrt(1 + 4 * momentum**2)) / 2
        ahead = new if uphill else new + (momentum - 1) / faster * (new - x)
        x, momentum = new, faster
    raise _no_minimum(tolerance)


def _proximal_newton(smooth: _SmoothPart, tolerance: float) -> tuple[Array, Array]:
    """Minimise a quadratic model of F plus r by ADMM, again and again; damp a step that does not descend."""
    problem, constraint = smooth.problem, smooth.problem.constraint
    x, y, force = problem.zeros()
    bound, caution, violation = smooth.hessian_bound(), 0.1, 1.0
    for _ in range(MOST_NEWTON_STEPS):
        H = (1 - caution) * smooth.hessian(x) + caution * bound
        model = _QuadraticModel(problem, H, smooth.gradient(x), x)
        new_x, new_y, force = model.minimise(y, force, max(tolerance / 2, violation / 100))
        violation = _violation(constraint, smooth.gradient(new_x), new_x, new_y, force)
        if violation <= tolerance:
            return new_x, new_y
        share = _share_of_step(smooth, (x, y), (new_x, new_y), 2 * float(np.linalg.norm(force)))
        x, y = x + share * (new_x - x), y + share * (new_y - y)
        caution = max(caution / 10, LEAST_CAUTION) if share == 1 else min(caution * 10, 1.0)
    raise _no_minimum(tolerance)


def _share_of_step(smooth: _SmoothPart, old: tuple[Array, Array], new: tuple[Array, Array], weight: float) -> float:
    """How far to go from `old` to `new` so that F + r + weight·infeasibility, an exact penalty, does not grow."""
    problem = smooth.problem

    def merit(share: float) -> float:
        x, y = ((1 - share) * before + share * after for before, after in zip(old, new, strict=True))
        infeasibility = float(np.linalg.norm(problem.constraint.residual(x, y)))
        return smooth.value(x) + problem.regularizer.value(y) + weight * infeasibility

    start = merit(0.0)
    return next((share for share in (1.0, 0.5, 0.25, 0.1, 0.02) if merit(share) <= start + 1e-13 * abs(start)), 0.0)


def _violation(constraint: Constraint, gradient: Array, x: Array, y: Array, force: Array) -> float:
    """Bound on the objective gap, up to the distance to the minimiser, from the optimality conditions."""
    stationarity = float(np.linalg.norm(gradient + constraint.adjoint(force)))
    infeasibility = float(np.linalg.norm(constraint.residual(x, y)))
    weight = max(2 * float(np.linalg.norm(force)), 1 / (1 + float(np.linalg.norm(y))))
    return stationarity * (1 + float(np.linalg.norm(x))) + infeasibility * weight


@dataclass(frozen=True, eq=False)
class _QuadraticModel:
    """F near `centre`: ⟨gradient, x − centre⟩ + ½(x − centre)ᵀH(x − centre), plus r(Ax − c)."""

    problem: Problem
    H: Array
    gradient: Array
    centre: Array

    def minimise(self, y: Array, force: Array, tolerance: float) -> tuple[Array, Array, Array]:
        """ADMM with over-relaxation and a penalty weight that balances the two residuals."""
        constraint, beta = self.problem.constraint, self._first_beta
        solve, x, u = self._x_step(beta), self.centre, force / beta
        for k in range(1, MOST_INNER_STEPS + 1):
            x = solve(x, y, u)
            old_y, reached = y, OVER_RELAXATION * constraint.feasible_auxiliary(x) + (1 - OVER_RELAXATION) * y
            y = self.problem.regularizer.prox(reached + u, 1 / beta)
            u = u + reached - y
            if k % REBALANCE_EVERY:
                continue
            gradient = self.gradient + self._curve(x - self.centre)
            if _violation(constraint, gradient, x, y, beta * u) <= tolerance:
                break
            primal = _relative(constraint.residual(x, y), y)
            dual = _relative(constraint.adjoint(y - old_y), constraint.adjoint(u))
            factor = min(max(math.sqrt(primal / dual), 0.1), 10.0)
            if not 0.5 < factor < 2 and k < MOST_INNER_STEPS // 10:
                beta, u = beta * factor, u / factor
                solve = self._x_step(beta)
        return x, y, beta * u

    @property
    def _first_beta(self) -> float:
        mean_curvature = float(np.trace(self.H)) / len(self.H)
        return max(mean_curvature, 1e-12) / max(self.problem.constraint.norm_squared, 1e-12)

    def _curve(self, v: Array) -> Array:
        return (self.H @ v.ravel()).reshape(v.shape)

    def _x_step(self, beta: float) -> Callable[[Array, Array, Array], Array]:
        constraint, A = self.problem.constraint, self.problem.constraint.A
        gram = A.T @ A
        gram = np.kron(gram.toarray() if sparse.issparse(gram) else gram, np.eye(self.problem.loss.outputs))
        matrix = self.H + beta * gram
        # A direction that neither rows nor A see has no gradient; a tiny proximal term keeps the step defined.
        proximal = 1e-13 * float(np.trace(matrix))
        factor = cho_factor(matrix + proximal * np.eye(len(matrix)))
        anchor = self._curve(self.centre) - self.gradient
        offset = constraint.feasible_auxiliary(np.zeros_like(self.centre))

        def solve(x: Array, y: Array, u: Array) -> Array:
            right = anchor + proximal * x + beta * constraint.adjoint(y - offset - u)
            solved: Array = cho_solve(factor, right.ravel()).reshape(right.shape)
            return solved

        return solve


def _relative(residual: Array, scale: Array) -> float:
    return max(float(np.linalg.norm(residual)) / max(float(np.linalg.norm(scale)), 1e-100), 1e-30)


def _no_minimum(tolerance: float) -> Diverged:
    return Diverged(
        f"no minimiser found to {tolerance:g}; the problem may have none "
        "(separable classes without a penalty, for instance), or it is ill-conditioned: scale the columns, "
        "add a penalty or a ridge, or ask for less accuracy"
    )
