"""NOT private: the leaky algorithms exactly as printed, in one dimension, as positive controls of the audits.

Every class is a toy whose `release(flipped, trials, rng)` runs the printed algorithm `trials` times at once, on a table
whose records all have gradient −1 (`flipped=0`) or all but one of them (`flipped=1`): two replace-one neighbours with
Lipschitz constant 1. Nothing outside the audits imports this module.

| symbol | meaning |
|---|---|
| n, b | rows, batch size |
| S, m | epochs, inner steps of an epoch |
| x, y, lam | primal block, auxiliary block, scaled dual (`dual` = β·lam in Chen & Lee) |
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpadmm.errors import InvalidParameter
from dpadmm.privacy.printed_noise import theorem2_sigma

Floats = NDArray[np.float64]


def _soft(v: Floats, threshold: float) -> Floats:
    return np.asarray(np.sign(v) * np.maximum(np.abs(v) - threshold, 0.0))


def _mean_gradient(n: int, flipped: int) -> float:
    if flipped not in (0, 1):
        raise InvalidParameter(f"flipped={flipped!r}", "0 or 1", "name one of the two neighbouring tables")
    return -(n - 2 * flipped) / n


@dataclass(frozen=True)
class PrintedVRADMM:
    """NOT private. Algorithm 1 of Liu et al. 2022, strongly convex branch: snapshot gradient and dual reset are exact.

    b = n, so that the mini-batch term is exact and the printed noise is provably enough for the gradients alone; all
    that leaks is λ₀ = −(1/β)∇f(x̃).

    Parameters
    ----------
    noise_std : float
        σ on the mean gradient.
    rows, epochs, inner_steps : int
        n, S, m.
    step_size, beta, l1, ridge : float
        η, β, strength of the L1 penalty, public strong convexity.
    """

    noise_std: float
    rows: int = 20
    epochs: int = 3
    inner_steps: int = 2
    step_size: float = 0.1
    beta: float = 0.2
    l1: float = 0.01
    ridge: float = 0.1

    def release(self, flipped: int, trials: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """(x̃, ỹ) of the last epoch, one entry a trial."""
        data, step = _mean_gradient(self.rows, flipped), self.step_size / (1 + self.step_size * self.beta)
        x_snapshot, y_mean = np.zeros(trials), np.zeros(trials)
        for _ in range(self.epochs):
            exact = data + self.ridge * x_snapshot
            lam, x = -exact / self.beta, x_snapshot.copy()
            x_sum, y_sum = np.zeros(trials), np.zeros(trials)
            for _ in range(self.inner_steps):
                y = _soft(x + lam, self.l1 / self.beta)
                noise = self.noise_std * rng.standard_normal(trials)
                gradient = self.ridge * (x - x_snapshot) + exact + noise
                x = x - step * (gradient + self.beta * (x - y + lam))
                lam = lam + x - y
                x_sum, y_sum = x_sum + x, y_sum + y
            x_snapshot, y_mean = x_sum / self.inner_steps, y_sum / self.inner_steps
        return x_snapshot, y_mean


@dataclass(frozen=True)
class PrintedMPADMM:
    """NOT private for η > 1. Algorithm 2 of Chen & Lee 2020: (24)–(26) calibrate the noise without the factor η.

    Parameters
    ----------
    noise_multiplier : float
        Noise of one release over its sensitivity; the printed composition of the three blocks is applied on top.
    step_size : float
        η.
    rows, steps : int
        n, T.
    beta, l1 : float
        β and the strength of the L1 penalty.
    """

    noise_multiplier: float
    step_size: float = 5.0
    rows: int = 50
    steps: int = 1
    beta: float = 0.5
    l1: float = 1e-3

    @property
    def printed_sensitivity(self) -> float:
        """2l/(n(1 + ηβ)): the true one is η times this."""
        return 2.0 / (self.rows * (1 + self.step_size * self.beta))

    @property
    def noise_std(self) -> float:
        return self.noise_multiplier * math.sqrt(self.steps * (2 + self.beta**2)) * self.printed_sensitivity

    def release(self, flipped: int, trials: int, rng: np.random.Generator) -> tuple[Floats, Floats, Floats]:
        """(x, y, dual) after the last step, one entry a trial."""
        data, eta, beta = _mean_gradient(self.rows, flipped), self.step_size, self.beta
        x, y, dual = np.zeros(trials), np.zeros(trials), np.zeros(trials)
        for _ in range(self.steps):
            x_new = (-data - dual + beta * y + x / eta) / (beta + 1 / eta)
            y_new = _soft(x_new + dual / beta, self.l1 / beta)
            dual_new = dual + beta * (x_new - y_new)
            x, y, dual = (block + self.noise_std * rng.standard_normal(trials) for block in (x_new, y_new, dual_new))
        return x, y, dual


@dataclass(frozen=True)
class PrintedSADMM:
    """NOT private. Algorithm 2 of Liu et al. 2022 with the σ of its first line, used where the theorem does not hold.

    Parameters
    ----------
    epsilon, delta : float
        What the algorithm box claims.
    rows, batch_size, steps : int
        n, b, T.
    beta, l1 : float
        β and the strength of the L1 penalty.
    """

    epsilon: float = 1.0
    delta: float = 5e-4
    rows: int = 1000
    batch_size: int = 10
    steps: int = 1
    beta: float = 1.0
    l1: float = 1e-4

    @property
    def noise_std(self) -> float:
        return theorem2_sigma(self.rows, self.batch_size, self.steps, self.epsilon, self.delta)

    def release(self, flipped: int, trials: int, rng: np.random.Generator) -> Floats:
        """The averaged x, one entry a trial."""
        _mean_gradient(self.rows, flipped)
        x, lam, total = np.zeros(trials), np.zeros(trials), np.zeros(trials)
        for t in range(1, self.steps + 1):
            y = _soft(x + lam, self.l1 / self.beta)
            drawn = rng.random(trials) < flipped * self.batch_size / self.rows
            gradient = -1.0 + 2.0 * drawn / self.batch_size + self.noise_std * rng.standard_normal(trials)
            eta = 1.0 / math.sqrt(t)
            x = x - eta / (1 + eta * self.beta) * (gradient + self.beta * (x - y + lam))
            lam, total = lam + x - y, total + x
        return total / self.steps
