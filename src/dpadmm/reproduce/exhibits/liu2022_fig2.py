"""Fig. 2 of Liu 2022: graph-guided fused lasso, general convex, on four tables."""

from dpadmm.reproduce.contenders.printed_steps import PrintedSteps
from dpadmm.reproduce.contenders.valid_solver import ValidSolver
from dpadmm.reproduce.exhibit import Better, Curve, PaperClaim, PlottedExhibit
from dpadmm.reproduce.liu2022_settings import (
    EPSILONS,
    GRAPH_SETTING,
    METRICS,
    PRIVACY,
    SETTING,
    floors,
    panels,
    published,
)

EXHIBIT = PlottedExhibit(
    name="liu2022-fig2",
    paper="liu2022",
    number="Fig. 2",
    title="graph-guided fused lasso",
    shows="DP-VRADMM is much better than DP-SADMM in objective gap and test accuracy, at every ε and on all four "
    "tables.",
    promise="invalid",
    privacy=PRIVACY,
    setting=SETTING + GRAPH_SETTING,
    panels=panels("graph"),
    x=EPSILONS,
    metrics=METRICS,
    curves=(
        Curve("auto", ValidSolver("auto")),
        Curve("DP-SADMM", ValidSolver("dp-sadmm")),
        Curve("DP-VRADMM", ValidSolver("dp-vradmm")),
        Curve("auto, graph from the data", ValidSolver("auto", graph="data"), "open"),
        Curve("DP-SADMM, printed steps", PrintedSteps()),
        *floors(),
        *published(),
    ),
    claims=(
        PaperClaim("DP-VRADMM has the smaller objective gap, both valid", Better("DP-VRADMM", "DP-SADMM", "objective")),
        PaperClaim("DP-VRADMM is more accurate, both valid", Better("DP-VRADMM", "DP-SADMM", "accuracy")),
        PaperClaim(
            "DP-VRADMM has the smaller objective gap, both with the noise as printed",
            Better("DP-VRADMM (printed)", "DP-SADMM (printed)", "objective"),
        ),
    ),
    best=("auto", "objective", "accuracy", "auc"),
)
