"""DP-SADMM exactly as printed (Liu 2022, Algorithm 2), with the σ of its Theorem 2. NOT private as claimed.

Without noise this is STOC-ADMM.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpadmm.privacy.printed_noise import theorem2_sigma
from dpadmm.problem import Problem
from dpadmm.problem.smoothers import RingLaplacian
from dpadmm.reproduce.contenders.linear_panel import LinearPanel
from dpadmm.reproduce.contenders.printed_gradients import Array, PrintedGradients
from dpadmm.reproduce.contenders.public_splits import mapped_rows, signs
from dpadmm.reproduce.exhibit import Case, Numbers
from dpadmm.reproduce.true_epsilon import sampled

BETA = 0.1
"""β‖A‖², which the paper does not give."""


@dataclass(frozen=True)
class PrintedStochasticADMM:
    """η_t = 1/√t and uniform averages; with a ridge η_t as repaired here, since the printed rule has no solution.

    Parameters
    ----------
    passes : float
        T·b/n. The paper gives neither T nor passes.
    private : bool
        Whether the noise of Theorem 2 is added, for the claim (ε, δ) and whether or not its conditions hold.
    smoothing : float
        ν.
    """

    passes: float = 1.0
    private: bool = True
    smoothing: float = 2.0

    def __call__(self, case: Case) -> Numbers:
        panel: LinearPanel = case.panel
        rows = panel.rows(case)
        batch = panel.batch(rows)
        steps = max(1, round(self.passes * rows.n_rows / batch))
        sigma = theorem2_sigma(rows.n_rows, batch, steps, case.x, panel.delta) if self.private else 0.0
        rng = np.random.default_rng([case.seed, 2])
        gradients = PrintedGradients(panel.problem(rows), mapped_rows(rows)[0], signs(rows.y), rng)
        found = panel.judged(stochastic_admm(gradients, batch, steps, sigma, self.smoothing), case)
        if not self.private:
            return found
        low, high = sampled(rows.n_rows, batch, steps, sigma, panel.delta)
        return {**found, "true_epsilon": low, "true_epsilon_at_most": high}


def stochastic_admm(gradients: PrintedGradients, batch: int, steps: int, sigma: float, smoothing: float) -> Array:
    """Averages of x and y; what is released are the coefficients that the average of y has."""
    problem = gradients.problem
    constraint = problem.constraint
    smooth, beta = RingLaplacian(smoothing, free=1), BETA / constraint.norm_squared
    x, y, dual = problem.zeros()
    x_sum, y_sum, weights = x, y, 0.0
    for t in range(1, steps + 1):
        y = constraint.auxiliary_update(problem.regularizer, x, y, dual, beta)
        gradient = gradients.mean(x, gradients.batch(batch)) + gradients.noise(sigma)
        pull = beta * constraint.adjoint(constraint.residual(x, y) + dual)
        x = x - step_of(t, problem, smooth) * smooth(gradient + pull)
        dual = dual + constraint.residual(x, y)
        weight = float(t) if problem.ridge else 1.0
        x_sum, y_sum, weights = x_sum + weight * x, y_sum + weight * y, weights + weight
    return released(problem, x_sum / weights, y_sum / weights)


def step_of(t: int, problem: Problem, smooth: RingLaplacian) -> float:
    """η_t: 1/√t, or min(1/(2g), 2‖Q‖/(μ(t + t₀))) with a ridge (docs/paper-map.md, E7)."""
    if not problem.ridge:
        return 1.0 / math.sqrt(t)
    norm, longest = smooth.norm_inverse(problem.shape[0]), 1 / (2 * problem.smoothness)
    return min(longest, 2 * norm / (problem.ridge * (t + 4 * problem.smoothness * norm / problem.ridge)))


def released(problem: Problem, x: Array, y: Array) -> Array:
    """The coefficients that both blocks stand for."""
    return problem.constraint.recover(x, y)
