"""The graph-guided SVM that Liu 2022 names as an application: no figure there."""

from dpadmm.reproduce.contenders.valid_solver import ValidSolver
from dpadmm.reproduce.exhibit import Better, Curve, PaperClaim, PlottedExhibit
from dpadmm.reproduce.liu2022_settings import EPSILONS, GRAPH_SETTING, METRICS, minimum, panels

EXHIBIT = PlottedExhibit(
    name="liu2022-svm",
    paper="liu2022",
    number="Application",
    title="graph-guided SVM",
    shows="The algorithms can be used for graph-guided support vector machines; there is no figure.",
    promise="invalid",
    privacy="The same as in Fig. 2. Only valid lines are shown.",
    setting="The hinge is huberised with h = 0.5, because the algorithms need a smooth loss; otherwise as in Fig. 2, "
    "with the public defaults of this library's solvers at δ = 1/n²." + GRAPH_SETTING,
    panels=panels("graph", loss="hinge", tables=("mushrooms", "w8a")),
    x=EPSILONS,
    metrics=METRICS,
    curves=(
        Curve("auto", ValidSolver("auto")),
        Curve("DP-SADMM", ValidSolver("dp-sadmm")),
        Curve("DP-VRADMM", ValidSolver("dp-vradmm")),
        minimum(),
    ),
    claims=(PaperClaim("DP-VRADMM has the smaller objective gap", Better("DP-VRADMM", "DP-SADMM", "objective")),),
    best=("auto", "objective", "accuracy", "auc"),
)
