"""DP-VRADMM exactly as printed (Liu 2022, Algorithm 1), with the σ of its Theorem 1. NOT private as claimed.

Its snapshot gradient is exact; with a ridge it also resets the dual, which then is an exact function of the rows.
Without noise this is SVRG-ADMM.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpadmm.problem.smoothers import RingLaplacian
from dpadmm.reproduce.contenders.linear_panel import LinearPanel
from dpadmm.reproduce.contenders.printed_gradients import Array, PrintedGradients
from dpadmm.reproduce.contenders.printed_sadmm import BETA, released
from dpadmm.reproduce.contenders.public_splits import mapped_rows, signs
from dpadmm.reproduce.exhibit import Case, Numbers
from dpadmm.reproduce.true_epsilon import INFINITE, exact_snapshots


@dataclass(frozen=True)
class PrintedVarianceReducedADMM:
    """m = 2n/b steps an epoch, constant η, means of the epochs.

    Parameters
    ----------
    epochs : int
        S, which the paper does not give.
    constant : float
        c₂ of Theorem 1, which the paper does not give.
    private : bool
        Whether noise is added.
    smoothing : float
        ν.
    """

    epochs: int = 5
    constant: float = 1.0
    private: bool = True
    smoothing: float = 2.0

    def __call__(self, case: Case) -> Numbers:
        panel: LinearPanel = case.panel
        rows = panel.rows(case)
        batch = panel.batch(rows)
        inner = max(1, 2 * rows.n_rows // batch)
        steps = self.epochs * inner
        sigma = theorem1_sigma(rows.n_rows, steps, case.x, panel.delta, self.constant) if self.private else 0.0
        rng = np.random.default_rng([case.seed, 1])
        gradients = PrintedGradients(panel.problem(rows), mapped_rows(rows)[0], signs(rows.y), rng)
        weights = variance_reduced_admm(gradients, batch, inner, self.epochs, sigma, self.smoothing)
        found = panel.judged(weights, case)
        if not self.private:
            return found
        true = INFINITE if panel.ridge else exact_snapshots(rows.n_rows, batch, steps, sigma, panel.delta)
        return {**found, "true_epsilon": true}


def theorem1_sigma(n_rows: int, steps: int, epsilon: float, delta: float, constant: float = 1.0) -> float:
    """σ² = c₂ l² S m log(1/δ)/(n²ε²), l = 1."""
    return math.sqrt(constant * steps * math.log(1 / delta)) / (n_rows * epsilon)


def variance_reduced_admm(
    gradients: PrintedGradients, batch: int, inner: int, epochs: int, sigma: float, smoothing: float
) -> Array:
    """Means of the snapshots; with a ridge the last snapshot."""
    problem = gradients.problem
    constraint, strong = problem.constraint, problem.ridge > 0
    smooth, beta = RingLaplacian(smoothing, free=1), BETA / constraint.norm_squared
    step = 1 / ((16 if strong else 2) * problem.smoothness)
    x, y, dual = problem.zeros()
    snapshot, x_sum, y_sum = x, x, y
    for _ in range(epochs):
        exact = gradients.mean(snapshot)
        if strong:
            x, dual = snapshot, -constraint.adjoint_pinv(exact) / beta
        x_epoch, y_epoch = np.zeros_like(x), np.zeros_like(y)
        for _ in range(inner):
            y = constraint.auxiliary_update(problem.regularizer, x, y, dual, beta)
            rows = gradients.batch(batch)
            estimate = gradients.mean_difference(x, snapshot, rows) + exact + gradients.noise(sigma)
            pull = beta * constraint.adjoint(constraint.residual(x, y) + dual)
            x = x - step * smooth(estimate + pull)
            dual = dual + constraint.residual(x, y)
            x_epoch, y_epoch = x_epoch + x / inner, y_epoch + y / inner
        snapshot, x_sum, y_sum = x_epoch, x_sum + x_epoch / epochs, y_sum + y_epoch / epochs
    return released(problem, x_epoch, y_epoch) if strong else released(problem, x_sum, y_sum)
