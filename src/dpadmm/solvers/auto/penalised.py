"""The released quadratic model with any penalty and constraint, solved by ADMM: no data access, so no privacy cost."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpadmm.problem.problem import Problem
from dpadmm.solvers import admm
from dpadmm.solvers.auto.coordinates import Coordinates

Array = NDArray[np.float64]

ITERATIONS = 300


@dataclass(frozen=True, eq=False)
class Model:
    """½(z − ẑ)ᵀ diag(curvature) (z − ẑ) in whitened coordinates."""

    coordinates: Coordinates
    curvature: Array
    centre: Array

    def minimise(self, problem: Problem, start: admm.Iterate) -> admm.Iterate:
        """argmin of the model plus r(y), Ax + By = c, from a warm start."""
        stiffness = self.curvature / self.coordinates.scale
        beta = float(np.exp(np.mean(np.log(stiffness)))) * min(1.0, 2.0 / problem.constraint.norm_squared)
        x_step = self._x_step(problem, stiffness, beta)
        point = start
        for _ in range(ITERATIONS):
            point = admm.Iterate(x_step(point), point.y, point.dual)
            point = admm.dual_ascent(problem, admm.auxiliary(problem, point, beta))
        return point

    def _x_step(self, problem: Problem, stiffness: Array, beta: float):  # type: ignore[no-untyped-def]
        """x ← argmin of the model plus (β/2)‖Ax + By − c + λ‖², by one factorisation."""
        from scipy.linalg import cho_factor, cho_solve

        basis, constraint = self.coordinates.basis, problem.constraint
        hessian = (basis * stiffness) @ basis.T
        pull = hessian @ self.coordinates.to_model(self.centre)
        gram = constraint.A.T @ constraint.A
        dense = gram.toarray() if hasattr(gram, "toarray") else np.asarray(gram)
        factor = cho_factor(hessian + beta * dense)
        offset = constraint.residual(np.zeros_like(pull), np.zeros(problem.zeros()[1].shape))

        def step(point: admm.Iterate) -> Array:
            target = constraint.apply_B(point.y) + offset + point.dual
            return np.asarray(cho_solve(factor, pull - beta * constraint.adjoint(target)))

        return step
