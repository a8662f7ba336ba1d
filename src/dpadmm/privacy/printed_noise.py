"""The noise formula printed in the papers, for comparisons only. Nothing here is calibrated or certified by it."""

from __future__ import annotations

import math

import numpy as np

from dpadmm.errors import CannotCertify, InvalidParameter
from dpadmm.privacy.wording import rounded_up


def legacy_paper_sigma(n: int, b: int, steps: int, epsilon: float, delta: float, lipschitz: float = 1.0) -> float:
    """Noise standard deviation of Theorem 2 of Liu et al. 2022 (the same as Theorem 2 of Wang et al. 2020).

    σ² = 20αTl²/(θεn²), α = log(1/δ)/((1−θ)ε) + 1, minimised over those θ ∈ (0, 1) with

        α ≤ log(θεn³ / (5αb³T + θεbn²))   and   5αb²T/(θεn²) ≥ 1.5.

    Parameters
    ----------
    n, b, steps : int
        Rows, batch size and number T of steps.
    epsilon, delta : float
        The claim of the theorem, replace-one, fixed-size batches.
    lipschitz : float
        Bound l on the norm of one record's gradient.

    Returns
    -------
    float
        σ on the mean gradient.

    Formal guarantees
    -----------------
    None beyond the paper's. Raises `CannotCertify` unless both conditions hold for some θ; they hold for none of the
    24 settings published with it. No calibrator calls this function.

    Examples
    --------
    >>> f"{legacy_paper_sigma(1_000_000, 10, 3_000_000_000, 5.0, 5e-4):.2f}"
    '0.31'
    """
    for name, value in (("n", n), ("b", b), ("steps", steps), ("epsilon", epsilon), ("lipschitz", lipschitz)):
        if not (math.isfinite(value) and value > 0):
            raise InvalidParameter(f"{name}={value}", f"a finite {name} > 0", f"correct {name}")
    if not 0 < delta < 1 or b > n:
        raise InvalidParameter(f"delta={delta} and b={b} for n={n}", "0 < delta < 1 and b <= n", "correct them")
    theta = np.linspace(0.0, 1.0, 200_001)[1:-1]
    alpha = math.log(1.0 / delta) / ((1.0 - theta) * epsilon) + 1.0
    relative_variance = 5.0 * alpha * b**2 * steps / (theta * epsilon * float(n) ** 2)
    # θεn³/(5αb³T + θεbn²) is (n/b)/(1 + σ'²) with σ'² = 5αb²T/(θεn²), the variance relative to the sensitivity 2l/b.
    holds = (alpha <= np.log(n / b / (1.0 + relative_variance))) & (relative_variance >= 1.5)
    if not holds.any():
        raise CannotCertify(
            f"Got n={n}, b={b}, T={steps}, epsilon={rounded_up(epsilon)}, delta={rounded_up(delta)}. Expected both "
            "conditions of the theorem to hold for some theta, but they hold for none. "
            "Calibrate with accountant='pld' instead."
        )
    return float(lipschitz * 2.0 / b * math.sqrt(float(relative_variance[holds].min())))


def theorem2_sigma(n: int, b: int, steps: int, epsilon: float, delta: float) -> float:
    """σ of Theorem 2, minimised over θ, whether or not the conditions of the theorem hold; compare
    `legacy_paper_sigma`, which refuses."""
    theta = np.linspace(0.0, 1.0, 100_001)[1:-1]
    alpha = math.log(1.0 / delta) / ((1.0 - theta) * epsilon) + 1.0
    return float(np.sqrt(np.min(20.0 * alpha * steps / (theta * epsilon)) / n**2))
