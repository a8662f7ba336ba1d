"""The released quadratic model with any penalty and constraint, solved by ADMM: no data access, so no privacy cost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpadmm.problem.problem import Problem
from dpadmm.problem.regularizers.base import checked_prox
from dpadmm.solvers import admm
from dpadmm.solvers.auto.coordinates import Coordinates
from dpadmm.solvers.auto.quadratics import Quadratic, quadratic
from dpadmm.solvers.auto.wide_coordinates import SpikedCoordinates

Array = NDArray[np.float64]

ITERATIONS = 300
SETTLED = 1e-7
"""Largest change of an iteration, relative to the largest entry, after which no further one is made."""


@dataclass(frozen=True, eq=False)
class Model:
    """½(z − ẑ)ᵀ diag(curvature) (z − ẑ) in whitened coordinates."""

    coordinates: Coordinates | SpikedCoordinates
    curvature: Array
    centre: Array

    def minimise(self, problem: Problem, start: admm.Iterate) -> admm.Iterate:
        """argmin of the model plus r(y), Ax + By = c, from a warm start."""
        model = quadratic(self.coordinates, self.curvature)
        beta = float(np.exp(np.mean(np.log(model.stiffness)))) * min(1.0, 2.0 / problem.constraint.norm_squared)
        x_step, y_step, point = self._x_step(problem, model, beta), _y_step(problem, beta), start
        for _ in range(ITERATIONS):
            last = point
            x = x_step(last.y, last.dual)
            point = y_step(x, last.y, last.dual)
            if _is_near(point.x, last.x) and _is_near(point.y, last.y) and _is_near(point.dual, last.dual):
                break
        return point

    def _x_step(self, problem: Problem, model: Quadratic, beta: float) -> Callable[[Array, Array], Array]:
        """x ← argmin of the model plus (β/2)‖Ax + By − c + λ‖², by one factorisation."""
        constraint = problem.constraint
        adjoint, B = constraint.maps[1], constraint.B_matrix
        pull = model.apply(self.coordinates.to_model(self.centre))
        solve = model.factorise(beta * (constraint.A.T @ constraint.A))
        offset = constraint.residual(np.zeros_like(pull), np.zeros(problem.zeros()[1].shape))

        def step(y: Array, dual: Array) -> Array:
            target = (-y if B is None else B @ y) + offset + dual
            return solve(pull - beta * adjoint(target))

        return step


def _y_step(problem: Problem, beta: float) -> Callable[[Array, Array, Array], admm.Iterate]:
    """y ← argmin_y r(y) + (β/2)‖Ax + By − c + λ‖², then λ ← λ + Ax + By − c."""
    constraint, penalty = problem.constraint, problem.regularizer
    if constraint.B_matrix is not None or constraint.offset is not None:
        return lambda x, y, dual: admm.dual_ascent(problem, admm.auxiliary(problem, admm.Iterate(x, y, dual), beta))
    apply = constraint.maps[0]

    def step(x: Array, y: Array, dual: Array) -> admm.Iterate:
        reached = apply(x)
        y = checked_prox(penalty, reached + dual, 1 / beta)
        return admm.Iterate(x, y, dual + (reached - y))

    return step


def _is_near(values: Array, others: Array) -> bool:
    return bool(np.abs(values - others).max(initial=0.0) <= SETTLED * np.abs(values).max(initial=0.0))
