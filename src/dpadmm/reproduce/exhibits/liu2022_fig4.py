"""Fig. 4 of Liu 2022: the lasso, where the DP-ADMM it cites can be compared with."""

from dpadmm.reproduce.contenders.printed_sadmm import PrintedStochasticADMM
from dpadmm.reproduce.contenders.printed_steps import PrintedSteps
from dpadmm.reproduce.contenders.two_party_admm import TwoPartyADMM
from dpadmm.reproduce.contenders.valid_solver import ValidSolver
from dpadmm.reproduce.exhibit import Better, Curve, PaperClaim, PlottedExhibit
from dpadmm.reproduce.liu2022_settings import EPSILONS, METRICS, PRIVACY, SETTING, floors, panels, published

EXHIBIT = PlottedExhibit(
    name="liu2022-fig4",
    paper="liu2022",
    number="Fig. 4",
    title="lasso, with DP-ADMM",
    shows="DP-VRADMM and DP-SADMM are significantly better than DP-ADMM in objective gap and test accuracy, and "
    "DP-VRADMM is the best.",
    promise="invalid",
    privacy=PRIVACY,
    setting=SETTING
    + " λ₁ = 10⁻⁴ on every table. The paper cites Chen & Lee 2020 for “DP-ADMM” and says nothing about how "
    "it was run. Both readings are shown: ssADMM of that paper, and the DP-ADMM of two parties that it compares with. "
    "Because T is not given, DP-SADMM as published is shown for one pass and for ten.",
    panels=panels("l1", alpha=1e-4),
    x=EPSILONS,
    metrics=METRICS,
    curves=(
        Curve("auto", ValidSolver("auto")),
        Curve("DP-SADMM", ValidSolver("dp-sadmm")),
        Curve("DP-VRADMM", ValidSolver("dp-vradmm")),
        Curve("DP-ADMM (ssADMM)", ValidSolver("ssadmm")),
        Curve("DP-ADMM (two parties)", TwoPartyADMM()),
        Curve("DP-SADMM, printed steps", PrintedSteps()),
        *floors(),
        *published(),
        Curve("DP-SADMM, ten passes (printed)", PrintedStochasticADMM(10.0), "published"),
    ),
    claims=(
        PaperClaim("DP-VRADMM beats DP-ADMM (ssADMM), gap", Better("DP-VRADMM", "DP-ADMM (ssADMM)", "objective")),
        PaperClaim("DP-SADMM beats DP-ADMM (ssADMM), gap", Better("DP-SADMM", "DP-ADMM (ssADMM)", "objective")),
        PaperClaim(
            "DP-VRADMM beats DP-ADMM (two parties), gap", Better("DP-VRADMM", "DP-ADMM (two parties)", "objective")
        ),
        PaperClaim(
            "DP-SADMM beats DP-ADMM (two parties), gap", Better("DP-SADMM", "DP-ADMM (two parties)", "objective")
        ),
        PaperClaim("DP-VRADMM beats DP-SADMM, gap", Better("DP-VRADMM", "DP-SADMM", "objective")),
        PaperClaim("DP-VRADMM beats DP-SADMM, accuracy", Better("DP-VRADMM", "DP-SADMM", "accuracy")),
    ),
    best=("auto", "objective", "accuracy", "auc"),
)
