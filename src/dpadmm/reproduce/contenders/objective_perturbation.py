"""ADMM-objP: the exact minimiser of an objective with a random linear term (Chaudhuri 2011, Kifer 2012). Pure ε-DP
only if the minimiser is exact, which no program is: a baseline as in Chen & Lee 2020, heuristic.

min (1/n)[Σ loss + bᵀx + (Δ/2)‖x‖²] + penalty, Δ = 2c/ε for a loss of curvature at most c, and b with density
∝ exp(−(ε/2)‖b‖/2) under replace-one for rows of norm and slopes at most one: half of ε pays for b, half for Δ.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpadmm.problem import Problem
from dpadmm.reproduce.contenders.linear_panel import LinearPanel
from dpadmm.reproduce.contenders.printed_gradients import Array, PrintedGradients
from dpadmm.reproduce.contenders.public_splits import mapped_rows, signs
from dpadmm.reproduce.contenders.valid_solver import coverage
from dpadmm.reproduce.exhibit import Case, Numbers


@dataclass(frozen=True)
class ObjectivePerturbation:
    """`steps` accelerated proximal gradient steps stand for the exact minimiser."""

    steps: int = 150

    def __call__(self, case: Case) -> Numbers:
        panel: LinearPanel = case.panel
        rows = panel.rows(case)
        rng = np.random.default_rng([case.seed, 5])
        problem = panel.problem(rows)
        gradients = PrintedGradients(problem, mapped_rows(rows)[0], signs(rows.y), rng)
        weights = minimise(gradients, linear_term(problem, case.x, rng), case.x, self.steps)
        found = panel.judged(weights, case)
        return found if panel.split != "simulated" else {**found, **coverage(np.argsort(-np.abs(weights[:-1])))}


def linear_term(problem: Problem, epsilon: float, rng: np.random.Generator) -> Array:
    """b: a direction at random, and a length that is Gamma(d, 4/ε)."""
    direction = rng.standard_normal(problem.shape)
    length: float = rng.gamma(direction.size, 4 / epsilon)
    return length * direction / np.linalg.norm(direction)


def minimise(gradients: PrintedGradients, linear: Array, epsilon: float, steps: int) -> Array:
    """FISTA with restarts on the perturbed objective."""
    problem, n_rows = gradients.problem, gradients.n_rows
    ridge = 2 * problem.loss.curvature_bound / epsilon / n_rows
    step, penalised = 1 / (problem.smoothness + ridge), problem.constraint.n_rows
    x, momentum = problem.zeros()[0], 1.0
    ahead = x
    for _ in range(steps):
        descended = ahead - step * (gradients.mean(ahead) + linear / n_rows + ridge * ahead)
        new = np.concatenate([problem.regularizer.prox(descended[:penalised], step), descended[penalised:]])
        uphill = float(np.sum((ahead - new) * (new - x))) > 0
        faster = 1.0 if uphill else (1 + math.sqrt(1 + 4 * momentum**2)) / 2
        ahead = new if uphill else new + (momentum - 1) / faster * (new - x)
        x, momentum = new, faster
    return x
