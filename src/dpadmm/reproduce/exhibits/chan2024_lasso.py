"""The general lasso of Chan 2024: how strong convexity and noise change the way to the minimum."""

from dpadmm.reproduce.contenders.general_lasso import LassoPanel, NoisyPasses
from dpadmm.reproduce.exhibit import Axis, Better, Curve, Metric, PaperClaim, PlottedExhibit

EXHIBIT = PlottedExhibit(
    name="chan2024-lasso",
    paper="chan2024",
    number="Experiment",
    title="general lasso, strong convexity and noise",
    shows="Strong convexity speeds up convergence, and the variance of the noise decides how close to the minimum it "
    "gets.",
    promise="none",
    privacy="No promise is made: the noise is given, and not found for an ε.",
    setting="The experiment is in the full version of the paper, which is not at hand; this is one of our own in its "
    "spirit: 20 coefficients in four constant pieces, A their differences, 5,000 simulated rows, noise on one row's "
    "gradient. Bands are ± one standard error over seeds.",
    panels=tuple(LassoPanel(f"ridge {ridge:g}", ridge) for ridge in (0.0, 0.05, 0.5)),
    x=Axis("passes over the rows", (1.0, 2.0, 3.0, 5.0, 10.0), (1.0, 3.0), logarithmic=False),
    metrics=(Metric("distance", "‖x − x*‖", lower_is_better=True, logarithmic=True),),
    curves=tuple(
        Curve(f"noise {noise:g}", NoisyPasses(noise), "private" if noise else "open") for noise in (0.0, 1.0, 4.0)
    ),
    claims=(
        PaperClaim("Less noise ends nearer to the minimum (1 against 4)", Better("noise 1", "noise 4", "distance")),
        PaperClaim("No noise ends nearest (0 against 1)", Better("noise 0", "noise 1", "distance")),
    ),
)
