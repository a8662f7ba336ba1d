"""Every constant of the tuning-free solver, from public numbers alone: rows, features, classes and budget.

`nu` is the noise-to-signal index: features per unit of nμ, times √(K/2) for K classes where the size of the whole
coefficient matrix matters (`spread`). All rules are functions of these two. The constants were chosen on
adult, a9a, mushrooms, ipums_br, w8a and covtype (docs/accuracy.md), those of regression on simulated tables
(`experiments/regression.py`): a capped squared loss estimates medians, so its cap opens faster as noise allows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from dpadmm.errors import InvalidParameter
from dpadmm.problem.checks import count, number
from dpadmm.problem.losses import Huber, HuberisedHinge, Logistic, Softmax, Squared
from dpadmm.problem.losses.base import Loss
from dpadmm.solvers.auto.coordinates import FLATTENING

SUFFICIENT_STATISTICS_UP_TO = 3000
"""Largest number of features for which a d × d second moment is asked."""

USUAL_PRIOR_SCALE = 3.0
"""Where noise does not call for a wider prior."""


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
        Shares of μ²: joint moments, refining gradients, clipped second moment, final gradients. With `curvature_share`
        they sum to one.
    balance : float
        kM, the weight of the second moment in the joint query.
    curvature : float
        Curvature of the model loss in the margin.
    slope_unit : float
        Largest descent slope at zero.
    prior_scale : float
        Variance of the margins under the prior: tiny budgets do better with a wide one, which keeps what is seen,
        unless labels are nearly all alike.
    alike_prior_scale : float
        The same, at most, as far as labels are nearly all alike (`alike.usual_prior`).
    calibrated : bool
        Whether margins mean probabilities: those of a rare class may then be lengthened (`alike.lengthening`).
    recency : float
        Estimate number t of a phase weighs t^recency: later ones are nearer the optimum, but averages need them all.
    confidence : float
        Factor on the released margins: minimising a capped loss overstates them, the more so the smaller the cap.
    curvature_share : float
        Share of μ² for the curvature along single features, asked once if it is not zero.
    doubt : float or None
        Standard deviations beyond the noise up to which the first release counts as labels without signal
        (`doubt.doubted`). The release is a quarter of the budget: where noise is strong it proves nothing, and little
        or nothing is doubted.
    flattening : float
        Energy of a direction of eigenvalue λ in whitened coordinates is proportional to λ^flattening.
    label_noise : float
        One over the public number of rows: what chance leaves of a correlation with labels that have no signal, in
        units of their variance.
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
    slope_unit: float
    prior_scale: float = USUAL_PRIOR_SCALE
    alike_prior_scale: float = USUAL_PRIOR_SCALE
    calibrated: bool = False
    recency: float = 0.5
    confidence: float = 1.0
    doubt: float | None = None
    curvature_share: float = 0.0
    flattening: float = FLATTENING
    label_noise: float = 0.0

    def __post_init__(self) -> None:
        for name in (
            "cap",
            "moment_share",
            "final_share",
            "balance",
            "curvature",
            "slope_unit",
            "prior_scale",
            "alike_prior_scale",
            "confidence",
        ):
            number(name, getattr(self, name), strict=True)
        number("recency", self.recency)
        number("curvature_share", self.curvature_share)
        number("flattening", self.flattening)
        number("label_noise", self.label_noise)
        count("final_rounds", self.final_rounds, minimum=1)
        if count("refine_rounds", self.refine_rounds):
            number("refine_share", self.refine_share, strict=True)
            number("spectrum_share", self.spectrum_share, strict=True)
        if not 1e-6 <= self.cap <= 1e6:
            raise InvalidParameter(f"cap={self.cap}", "1e-6 <= cap <= 1e6", "leave the rules to the library")


@dataclass(frozen=True)
class LossModel:
    """How a quadratic model follows a loss of one margin.

    Attributes
    ----------
    slope_unit : float
        Largest slope at zero, over the targets.
    curvature : float
        Curvature at zero, or that of the chord to the usual optimum where the loss is flat or kinked there.
    exact : bool
        Whether the loss is quadratic, so that the moments are all there is to know.
    calibrated : bool
        Whether margins mean probabilities that a cap is known to overstate.
    two_classes : bool
        Whether targets are two classes, so that one of them may be the better guess for all rows.
    shows_curvature : bool
        Whether its curvature along single features can be asked for.
    prior_factor, alike_prior_factor : float
        Variance of the margins against those of the logistic loss: of all labels, and of labels nearly all alike.
    """

    slope_unit: float
    curvature: float
    exact: bool = False
    calibrated: bool = False
    two_classes: bool = False
    shows_curvature: bool = False
    prior_factor: float = 1.0
    alike_prior_factor: float = 1.0


def _of_one_task(loss: Squared | Huber, model: LossModel) -> LossModel | None:
    return model if loss.n_tasks == 1 else None


LOSS_MODELS: dict[type[Any], Callable[[Any], LossModel | None]] = {
    Logistic: lambda loss: LossModel(0.5, 0.25, calibrated=True, two_classes=True, shows_curvature=True),
    Softmax: lambda loss: LossModel(1.0, (1 - 1 / loss.n_classes) / loss.n_classes),
    HuberisedHinge: lambda loss: LossModel(1.0, 0.5, two_classes=True, prior_factor=0.5, alike_prior_factor=0.25),
    Squared: lambda loss: _of_one_task(loss, LossModel(1.0, 1.0, exact=True)),
    Huber: lambda loss: _of_one_task(loss, LossModel(min(1.0, loss.threshold), 0.8)),
}
"""What there is to know of each loss; a loss that is not here has no model."""


def loss_model(loss: Loss) -> LossModel | None:
    """The model of a loss, or None where there is none."""
    return LOSS_MODELS[type(loss)](loss) if type(loss) in LOSS_MODELS else None


CURVATURE_SHARE, CURVED_MOMENT_SHARE = 0.04, 0.16
"""Of the budget, where curvature is asked for; the moments, which then matter less, pay for it."""

CURVED_ROUNDS, CURVED_RECENCY = 2, 0.4
"""Where curvature is asked for, twice as many final rounds, because a coefficient that was freed has far to go; their
estimates are averaged more evenly, as more of them are late."""

WEAK_NOISE, NO_WEAK_NOISE = 0.04, 0.12
"""nu up to which noise is weak, and from which it is not."""

WEAK_CAP, WEAK_CURVATURE, WEAK_FLATTENING = 0.8, 0.8, 0.4
"""Factors on cap, curvature and flattening where noise is weak, which gain only together
(`experiments/weak_noise.py`)."""

CURVATURE_UP_TO = 1000
"""Features of a table whose curvature is asked for: solving with it takes the cube of them in every round."""


def choose_rules(signal: float, n_features: int, n_classes: int, model: LossModel, sparse: bool = False) -> Rules:
    """Rules for `signal` = nμ (replace-one; twice that under add-remove, where a record moves a sum half as far).

    With a `sparse` penalty of the logistic loss some of the budget goes to the curvature along single features, where
    noise lets it be seen.
    """
    nu = n_features / signal
    spread = nu * math.sqrt(n_classes / 2)
    rounds = int(min(max(round(9 * spread**-0.25), 8), 32))
    refine = 9 * math.sqrt(n_features) * spread < 1
    first = max(2, rounds // 4) if refine else 0
    floor = 0.4 if model.calibrated else 0.6
    curved = sparse and n_features <= CURVATURE_UP_TO and 3.5 * math.sqrt(n_features) * spread < 1
    moment = CURVED_MOMENT_SHARE if curved else 0.20 if refine else 0.25
    final = (CURVED_ROUNDS if curved else 1) * (rounds - first)
    curvature_share = CURVATURE_SHARE if curved else 0.0
    return Rules(
        cap=min(max(0.1 * nu**-0.45, 0.4), 2.0) if model.exact else min(max(0.24 * nu**-0.2, 0.32), 1.0),
        refine_rounds=first,
        final_rounds=final,
        moment_share=moment,
        refine_share=0.17 if refine else 0.0,
        spectrum_share=0.04 if refine else 0.0,
        final_share=0.79 - moment - curvature_share if refine else 1 - moment - curvature_share,
        balance=0.5 if n_classes == 2 else 0.25,
        curvature=model.curvature if model.exact else min(max(0.4 + spread, floor), 1.25) * model.curvature,
        slope_unit=model.slope_unit,
        prior_scale=model.prior_factor * min(max(10 * nu - 2, USUAL_PRIOR_SCALE), 5.0),
        alike_prior_scale=model.alike_prior_factor * USUAL_PRIOR_SCALE,
        calibrated=model.calibrated,
        recency=CURVED_RECENCY if curved else min(max(0.1 / math.sqrt(nu), 0.2), 1.0),
        confidence=min(0.6 * spread**-0.1, 1.0) if model.calibrated else 1.0,
        doubt=1.5 - 10 * max(nu - 0.4, 0.0) if model.two_classes else None,
        curvature_share=curvature_share,
    )


def for_weak_noise(rules: Rules, nu: float) -> Rules:
    """The rules of a logistic loss without a penalty, where noise is weak: whiter coordinates, a smaller cap and a
    flatter model."""
    weak = min(max((NO_WEAK_NOISE - nu) / (NO_WEAK_NOISE - WEAK_NOISE), 0.0), 1.0)
    return replace(
        rules,
        cap=rules.cap * (1 - weak * (1 - WEAK_CAP)),
        curvature=rules.curvature * (1 - weak * (1 - WEAK_CURVATURE)),
        flattening=rules.flattening * (1 - weak * (1 - WEAK_FLATTENING)),
    )
