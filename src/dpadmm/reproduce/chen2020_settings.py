"""What the figures of Chen & Lee 2020 share: tables, budgets and curves."""

from __future__ import annotations

from typing import Literal

from dpadmm.reproduce.contenders.exact_minimum import ExactMinimum
from dpadmm.reproduce.contenders.linear_panel import LinearPanel
from dpadmm.reproduce.contenders.objective_perturbation import ObjectivePerturbation
from dpadmm.reproduce.contenders.printed_mpadmm import PrintedModelPerturbation
from dpadmm.reproduce.contenders.two_party_admm import TwoPartyADMM
from dpadmm.reproduce.contenders.valid_solver import ValidSolver
from dpadmm.reproduce.exhibit import Axis, Better, Curve, Metric, PaperClaim

EPSILONS = Axis("privacy budget ε", (0.05, 0.1, 0.2, 0.4, 0.8, 1.0), (0.1, 1.0))
STRENGTHS = (1e-4, 1e-3)
TABLES = ("adult", "ipums_br")
NON_PRIVATE = "non-private"
ETA = 2.0
"""η = 1/(2g) of mpADMM as published; the paper does not give it."""
PRINTED_STEPS = (("step_size", ETA), ("steps", 30), ("beta", 0.5), ("averaging", "last"))
"""The steps of mpADMM as published, with noise that keeps ε."""
PRIVACY = (
    "ssADMM and DP-SGD are valid as stated. The sensitivity of mpADMM lacks the factor η, so that its noise is too "
    "small for η > 1 (grey: η = 2). ADMM-objP is private only if each minimiser is exact, which the paper says "
    "itself. Numbers are scaled by the minimum and maximum of the private rows, which is a leak of its own."
)
SETTING = (
    "The values of ε are not printed; those of Liu 2022 are used. T is set “by the budget”, η is not given. All "
    "private lines are valid at (ε, 10⁻⁸), replace-one, with the public defaults of this library's solvers, which are "
    "not tuned; DP-ADMM has two parties and 60 rounds. Ranges of features are taken as known. Rows have norm one; an "
    "intercept is free. "
)
FOLDS_SETTING = (
    "Adult has 45,222 complete rows here (48,842 with missing cells in the paper). Seed k leaves out fold k of ten and "
    "draws its own noise; `--seeds 100` is the paper's protocol of ten folds, ten times each. Bands are ± one standard "
    "error over seeds."
)
MOST_CASES = "ssADMM beats {}, accuracy"


def table_panels(loss: Literal["logistic", "hinge"]) -> tuple[LinearPanel, ...]:
    return tuple(
        LinearPanel(f"{table}, λ = {strength:g}", table, split="folds", alpha=strength, loss=loss, delta=1e-8)
        for table in TABLES
        for strength in STRENGTHS
    )


def simulated_panels() -> tuple[LinearPanel, ...]:
    return tuple(
        LinearPanel(f"λ = {strength:g}", "demo", split="simulated", alpha=strength, delta=1e-8)
        for strength in STRENGTHS
    )


def curves() -> tuple[Curve, ...]:
    return (
        Curve("auto", ValidSolver("auto")),
        Curve("ssADMM", ValidSolver("ssadmm")),
        Curve("mpADMM", ValidSolver("mpadmm")),
        Curve(f"mpADMM, η = {ETA:g}", ValidSolver("mpadmm", options=PRINTED_STEPS)),
        Curve("DP-SGD", ValidSolver("dp-sgd")),
        Curve("DP-ADMM", TwoPartyADMM()),
        Curve("ADMM-objP", ObjectivePerturbation()),
        Curve(NON_PRIVATE, ExactMinimum(), "open", flat=True),
        Curve(f"mpADMM, η = {ETA:g} (printed)", PrintedModelPerturbation(ETA), "published"),
    )


ACCURACY = Metric("accuracy", "test accuracy")
OBJECTIVE = Metric("test_objective", "objective on test rows", lower_is_better=True, logarithmic=True)


def most_cases() -> tuple[PaperClaim, ...]:
    rivals = ("mpADMM", "DP-SGD", "DP-ADMM", "ADMM-objP")
    accuracy = [PaperClaim(MOST_CASES.format(rival), Better("ssADMM", rival, "accuracy")) for rival in rivals]
    return (
        *accuracy,
        PaperClaim("mpADMM has a lower objective than DP-SGD", Better("mpADMM", "DP-SGD", "test_objective")),
    )
