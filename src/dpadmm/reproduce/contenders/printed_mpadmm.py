"""mpADMM as printed (Chen & Lee 2020, Algorithm 2): its sensitivities lack a factor η. NOT private for η > 1."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpadmm.privacy.accountants.gaussian import gaussian_shift
from dpadmm.reproduce.contenders.linear_panel import LinearPanel
from dpadmm.reproduce.contenders.printed_gradients import Array, PrintedGradients
from dpadmm.reproduce.contenders.public_splits import mapped_rows, signs
from dpadmm.reproduce.contenders.valid_solver import coverage
from dpadmm.reproduce.exhibit import Case, Numbers
from dpadmm.reproduce.true_epsilon import model_perturbation


@dataclass(frozen=True)
class PrintedModelPerturbation:
    """Noise on x, z and y after each step, by (24) to (26); the last x is released.

    Parameters
    ----------
    step_size : float
        η, which the paper does not give.
    steps : int
        T, which the paper does not give.
    beta : float
        ρ = 0.5, as in the paper.
    """

    step_size: float = 2.0
    steps: int = 30
    beta: float = 0.5

    def __call__(self, case: Case) -> Numbers:
        panel: LinearPanel = case.panel
        rows = panel.rows(case)
        rng = np.random.default_rng([case.seed, 4])
        gradients = PrintedGradients(panel.problem(rows), mapped_rows(rows)[0], signs(rows.y), rng)
        weights = self.run(gradients, self.noise_std(rows.n_rows, case.x, panel.delta))
        found = {**panel.judged(weights, case), "true_epsilon": model_perturbation(case.x, panel.delta, self.step_size)}
        return found if panel.split != "simulated" else {**found, **coverage(np.argsort(-np.abs(weights[:-1])))}

    def noise_std(self, n_rows: int, epsilon: float, delta: float) -> float:
        """σ for T releases of three blocks with the printed sensitivities, by exact composition."""
        sensitivity = 2 / (n_rows * (1 + self.step_size * self.beta))
        return sensitivity * math.sqrt(self.steps * (2 + self.beta**2)) / gaussian_shift(epsilon, delta)

    def run(self, gradients: PrintedGradients, sigma: float) -> Array:
        problem, eta, beta = gradients.problem, self.step_size, self.beta
        penalised = problem.constraint.n_rows
        x, z, dual = (np.zeros(problem.shape) for _ in range(3))
        for _ in range(self.steps):
            x = (x / eta + beta * z - dual - gradients.mean(x)) / (beta + 1 / eta)
            z = x + dual / beta
            z = np.concatenate([problem.regularizer.prox(z[:penalised], 1 / beta), z[penalised:]])
            dual = dual + beta * (x - z)
            x, z, dual = (block + gradients.noise(sigma) for block in (x, z, dual))
        return x
