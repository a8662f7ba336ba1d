"""Exact divergences of noisy gradient ADMM where all is linear: quadratic losses, quadratic penalty, Gaussian noise.

In the coordinates of Chan, Xie & Zhao 2024: a state is (x, λ), one iteration is z ← Mz + constant + (noise, 0), and
what a replaced row changes at its own visit is (ηH⁻¹g, 0) with ‖g‖ ≤ Δ. So the last state is Gaussian, and its
zero-concentrated divergence is ½dᵀΣ⁺d, infinite where d leaves the range of Σ.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

RANK = 1e-12
LEFTOVER = 1e-9


@dataclass(frozen=True)
class Linear:
    """½xᵀ(hessian)x for every row and ½yᵀ(stiffness)y, Ax = y, step η and β.

    `hessian` is (d, d), `stiffness` (m, m), both positive semidefinite; nothing about the shape of A is asked.
    """

    A: np.ndarray
    hessian: np.ndarray
    stiffness: np.ndarray
    step: float
    beta: float

    @property
    def metric_inverse(self) -> np.ndarray:
        """(I + ηβAᵀA)⁻¹."""
        d = self.A.shape[1]
        return np.linalg.inv(np.eye(d) + self.step * self.beta * self.A.T @ self.A)

    @property
    def iteration(self) -> np.ndarray:
        """M, on (x, λ): w = λ − βAx, λ⁺ = w + βy, x⁺ = H⁻¹(x − η∇f + ηAᵀ(2λ⁺ − w))."""
        m, d = self.A.shape
        to_w = np.hstack([-self.beta * self.A, np.eye(m)])
        prox = np.eye(m) - self.beta * np.linalg.inv(self.stiffness + self.beta * np.eye(m))
        dual = prox @ to_w
        primal = np.hstack([np.eye(d) - self.step * self.hessian, np.zeros((d, m))])
        return np.vstack([self.metric_inverse @ (primal + self.step * self.A.T @ (2 * dual - to_w)), dual])

    @property
    def norm(self) -> np.ndarray:
        """The matrix P with ‖(x, λ)‖² = zᵀPz = ‖x‖² + (η/β)‖λ − βAx‖²."""
        m, d = self.A.shape
        to_w = np.hstack([-self.beta * self.A, np.eye(m)])
        only_x = np.hstack([np.eye(d), np.zeros((d, m))])
        return only_x.T @ only_x + (self.step / self.beta) * to_w.T @ to_w

    def law(self, later: int, sigma: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
        """(B, Σ): the shift of the last state is Bg after `later` more iterations, and Σ the covariance of its noise.

        The noise of the row's own visit counts, so that B and Σ after none of them are those of the visit alone.
        """
        m, d = self.A.shape
        noise = np.zeros((d + m, d + m))
        noise[:d, :d] = sigma**2 * np.eye(d)
        shift = np.vstack([self.step * self.metric_inverse, np.zeros((m, d))])
        covariance, M = noise.copy(), self.iteration
        for _ in range(later):
            shift, covariance = M @ shift, M @ covariance @ M.T + noise
        return shift, covariance

    def divergence(self, later: int, sigma: float = 1.0, own_noise: bool = True) -> float:
        """sup of ½dᵀΣ⁺d over ‖g‖ ≤ 1, with or without the noise of the row's own visit."""
        shift, covariance = self.law(later, sigma)
        if not own_noise:
            d = self.A.shape[1]
            first = np.vstack([np.eye(d), np.zeros((len(covariance) - d, d))])
            for _ in range(later):
                first = self.iteration @ first
            covariance = covariance - sigma**2 * first @ first.T
        values, vectors = np.linalg.eigh(covariance)
        kept = values > RANK * max(float(values[-1]), 1e-300)
        seen = vectors.T @ shift
        if np.abs(seen[~kept]).max(initial=0.0) > LEFTOVER * max(1e-300, float(np.abs(shift).max())):
            return float("inf")
        whitened = seen[kept] / np.sqrt(values[kept])[:, None]
        return 0.5 * float(np.linalg.norm(whitened, 2) ** 2)
