"""Every constant of the tuning-free solver, from public numbers alone: rows, features, classes and budget.

`nu` is the noise-to-signal index: features per unit of nμ. All rules are functions of it. The constants were chosen on
adult, a9a, mushrooms, ipums_br, w8a and covtype (docs/accuracy.md).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

SUFFICIENT_STATISTICS_UP_TO = 3000
"""Largest number of features for which a d × d second moment is asked."""


@dataclass(frozen=True)
class Rules:
    """The schedule.

    Attributes
    ----------
    cap : float
        κ, the clip of one record's gradient in whitened coordinates.
    refine_rounds, final_rounds : int
        Gradient rounds before and after the second moment is refined; no refinement if the first is zero.
    moment_share, refine_share, spectrum_share, final_share : float
        Shares of μ²: joint moments, refining gradients, clipped second moment, final gradients. They sum to one.
    balance : float
        kM, the weight of the second moment in the joint query.
    curvature : float
        Curvature of the model loss in the margin.
    """

    cap: float
    refine_rounds: int
    final_rounds: int
    moment_share: float
    refine_share: float
    spectrum_share: float
    final_share: float
    balance: float
    curvature: float


def choose_rules(signal: float, n_features: int, n_classes: int) -> Rules:
    """Rules for `signal` = nμ (replace-one; twice that under add-remove, where a record moves a sum half as far)."""
    nu = n_features / signal * math.sqrt(n_classes / 2)
    rounds = int(min(max(round(9 * nu**-0.25), 8), 32))
    refine = 9 * math.sqrt(n_features) * nu < 1
    first = max(2, rounds // 4) if refine else 0
    at_zero = (1 - 1 / n_classes) / n_classes
    return Rules(
        cap=min(max(0.3 * nu**-0.2, 0.4), 1.0),
        refine_rounds=first,
        final_rounds=rounds - first,
        moment_share=0.20 if refine else 0.25,
        refine_share=0.17 if refine else 0.0,
        spectrum_share=0.04 if refine else 0.0,
        final_share=0.59 if refine else 0.75,
        balance=0.5 if n_classes == 2 else 0.25,
        curvature=min(max(0.4 + nu, 0.6), 1.0) * at_zero,
    )
