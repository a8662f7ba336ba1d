"""What perturbed objectives cost: a Rényi bound for exact minima, and the price of the papers, which is too low.

One answer is argmin f(w) + (μ/2)‖w − a‖² + ⟨N, w⟩ with N of standard deviation σ. With ρ = 2C/(mσ), Z standard normal
and κ = (largest curvature of one row's loss)/(mμ), one replaced row changes it by a Rényi divergence of at most

    log(1 + κ) + ρ²/2 + log E exp((α − 1)ρ|Z|) / (α − 1)        (docs/proofs/decentralised.md, Claim 4)

The mean of |Z| is not zero, so answers add up in proportion to their number, where Gaussian noise on an answer adds up
by its square root. The papers charge the latter: `optimistic_noise`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq
from scipy.stats import norm

from dpadmm.errors import CannotCertify
from dpadmm.privacy.accountants.gaussian import gaussian_shift
from dpadmm.privacy.budget import Budget
from dpadmm.privacy.wording.rounding import rounded_up

ORDERS = 1.0 + np.logspace(-3, 4, 400)
QUIETEST, LOUDEST = 1e-6, 1e9


@dataclass(frozen=True)
class PerturbedObjective:
    """Public numbers of one node.

    Parameters
    ----------
    answers : int
        How many perturbed minima it answers.
    clip_norm : float
        C: bound on one row's gradient.
    n_rows : int
        m.
    row_curvature : float
        Bound on the curvature of one row's loss.
    curvature : float
        μ > 0: least curvature that is added to the mean loss.
    """

    answers: int
    clip_norm: float
    n_rows: int
    row_curvature: float
    curvature: float

    @property
    def log_volume(self) -> float:
        """log(1 + κ): what one row can do to the volume that the map from noise to minimum stretches."""
        return math.log1p(self.row_curvature / (self.n_rows * self.curvature))

    def shift(self, noise_std: float) -> float:
        """ρ: how far one replaced row moves the noise, in standard deviations."""
        return 2.0 * self.clip_norm / (self.n_rows * noise_std)

    def epsilon(self, noise_std: float, delta: float) -> float:
        """ε of all answers at δ, if minima were exact."""
        shift, above = self.shift(noise_std), ORDERS - 1.0
        folded = math.log(2.0) + (above * shift) ** 2 / 2.0 + norm.logcdf(above * shift)
        renyi = self.answers * (self.log_volume + shift**2 / 2.0 + folded / above)
        bounds = renyi + np.log(above / ORDERS) - (math.log(delta) + np.log(ORDERS)) / above
        return max(0.0, float(np.min(bounds)))

    def noise(self, budget: Budget) -> float:
        """The least noise for a budget by this bound; refused where the volumes alone cost more."""

        def surplus(log_multiple: float) -> float:
            return self.epsilon(math.exp(log_multiple) * self._unit, budget.delta) - budget.epsilon

        if surplus(math.log(LOUDEST)) >= 0:
            raise CannotCertify(
                f"Got {self.answers} perturbed minima with curvature {self.curvature:.2g} at a node of {self.n_rows} "
                f"rows: they cost more than epsilon={rounded_up(budget.epsilon)} "
                "whatever the noise. Expected fewer of them. "
                "Use fewer rounds, a larger rho, or algorithm 'pvp' or 'ipadmm'."
            )
        return math.exp(float(brentq(surplus, math.log(QUIETEST), math.log(LOUDEST), xtol=1e-6)) + 1e-6) * self._unit

    def optimistic_noise(self, budget: Budget) -> float:
        """The noise that the papers would take: as if each answer were a mean gradient with Gaussian noise."""
        return self._unit * math.sqrt(self.answers) / gaussian_shift(budget.epsilon, budget.delta)

    @property
    def _unit(self) -> float:
        return 2.0 * self.clip_norm / self.n_rows
