"""The constants for wide tables, from public numbers alone: rows, features, classes and budget.

`nu`, features per unit of nμ, is the noise-to-signal index of `rules.py`. The constants were chosen on pair products of
a9a, mushrooms, adult and w8a and on simulated sparse text, training rows only (ADR 0016, `experiments/wide.py`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from dpadmm.errors import InvalidParameter
from dpadmm.problem.checks import number
from dpadmm.solvers.auto.rules import LossModel, Rules


@dataclass(frozen=True)
class WideRules(Rules):
    """A schedule without a second moment: `balance` is the weight of the mean row in the joint query.

    Attributes
    ----------
    diagonal, length : float
        Weights of row∘row and of ‖row‖² in the joint query; a diagonal of zero is not asked for.
    crowding : float
        Curvature of the model relative to features without correlation.
    visibility : float
        Expected size of the signal relative to features without correlation.
    """

    diagonal: float = 0.0
    length: float = 0.1
    crowding: float = 1.0
    visibility: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.refine_rounds:
            raise InvalidParameter("refine_rounds with a wide table", "refine_rounds=0", "leave the rules alone")
        number("diagonal", self.diagonal)
        for name in ("length", "crowding", "visibility"):
            number(name, getattr(self, name), strict=True)


DIAGONAL_BELOW = 0.5
"""nu up to which the diagonal of the second moment rises enough above its noise to help."""


SMALL_MARGINS_FROM = 0.5
"""Curvature beyond which a loss is one of regression: margins stay within ±1, as targets do, and ask for a tighter
model (`experiments/wide.py --regression`)."""


def choose_wide_rules(signal: float, n_features: int, n_classes: int, model: LossModel) -> WideRules:
    """Rules for `signal` = nμ, as in `choose_rules`."""
    nu = n_features / signal * math.sqrt(n_classes / 2)
    small_margins = model.curvature > SMALL_MARGINS_FROM
    seen = nu < DIAGONAL_BELOW and not small_margins
    free = (1.0 if n_classes == 2 else 1.0 - 1.0 / n_classes) / 2
    return WideRules(
        cap=min(max(0.1 * nu**-0.45, 0.4), 2.0) if model.exact else min(max(0.24 * nu**-0.2, 0.25), 1.0),
        refine_rounds=0,
        final_rounds=32,
        moment_share=0.25,
        refine_share=0.0,
        spectrum_share=0.0,
        final_share=0.75,
        balance=0.5,
        curvature=model.curvature if model.exact else 1.2 * model.curvature,
        slope_unit=model.slope_unit,
        confidence=0.75 if model.calibrated else 1.0,
        diagonal=0.8 * free if seen else 0.0,
        length=0.15 * free,
        crowding=40.0 if small_margins else 1.0 if seen else 4.0,
        visibility=0.3 if small_margins else 1.0 if seen else max(0.8 * nu, 1.0),
    )
