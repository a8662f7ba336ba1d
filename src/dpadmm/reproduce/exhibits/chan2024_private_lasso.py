"""What is left of amplification by iteration at an ε: the general lasso by hidden passes and by other solvers."""

from dpadmm.reproduce.contenders.general_lasso import LassoMinimum, LassoPanel, NothingLearned, ValidRegression
from dpadmm.reproduce.exhibit import Axis, Better, Curve, Metric, PaperClaim, PlottedExhibit

EXHIBIT = PlottedExhibit(
    name="chan2024-private-lasso",
    paper="chan2024",
    number="Experiment at one promise",
    title="general lasso at one promise",
    shows="Amplification by iteration gives every row a guarantee through a random order, “by very simple techniques”.",
    promise="valid",
    privacy="Valid for the last state. All lines are valid at (ε, 10⁻⁵), replace-one.",
    setting="The paper does not compare at one promise. 20,000 simulated rows, fused penalty; solvers with their "
    "public defaults. Bands are ± one standard error over seeds.",
    panels=(LassoPanel("general lasso"),),
    x=Axis("privacy budget ε", (0.5, 1.0, 2.0, 4.0, 8.0), (1.0, 8.0)),
    metrics=(
        Metric("objective", "objective gap F − F*", above="exact minimum", lower_is_better=True, logarithmic=True),
    ),
    curves=(
        Curve("auto", ValidRegression("auto")),
        Curve("full-admm", ValidRegression("full-admm")),
        Curve("hidden passes (noisy-admm)", ValidRegression("noisy-admm")),
        Curve("all coefficients zero", NothingLearned(), "open", flat=True, repeated=False),
        Curve("exact minimum", LassoMinimum(), "open", flat=True, repeated=False),
    ),
    claims=(
        PaperClaim(
            "Hidden passes pay off at one promise",
            Better("hidden passes (noisy-admm)", "full-admm", "objective"),
        ),
    ),
    best=("auto", "objective"),
)
