"""Theorem 5.1 of Chan 2024 and its strongly convex case, beside exact divergences and the bounds of this library."""

from dpadmm.reproduce.contenders.gaussian_amplification import BoundOnDivergence, ExactDivergence, GaussianPanel
from dpadmm.reproduce.exhibit import Axis, Better, Curve, Metric, PaperClaim, PlottedExhibit

EXHIBIT = PlottedExhibit(
    name="chan2024-amplification",
    paper="chan2024",
    number="Theorem 5.1",
    title="amplification by iteration",
    shows="The divergence of the last state falls like 1/T with T later iterations; with strong convexity "
    "exponentially.",
    promise="valid",
    privacy="Valid for the last state if A has full row rank. For a tall A, such as the A = [φ; I] of graph "
    "penalties, the noise of two later iterations alone gives an infinite divergence (no line), and only the noise of "
    "the row's own visit protects it.",
    setting="The paper has a theorem and no such figure. All is linear and Gaussian here, η = β = 1, so that the "
    "exact divergence is known. It is zero-concentrated, in units of (ηΔ)²/σ²; both bounds include the local one, "
    "1/2. The library refuses a tall A, so that no bound is drawn there. The paper's bound for strongly convex losses "
    "is in its full version, which is not at hand; drawn is that of Theorem 5.1, which holds for them, too.",
    panels=tuple(GaussianPanel(title) for title in ("convex", "strongly convex", "tall A")),
    x=Axis("later iterations", (2.0, 4.0, 6.0, 10.0, 20.0, 40.0, 100.0), (2.0, 10.0, 100.0)),
    metrics=(Metric("divergence", "divergence ρ / (ηΔ/σ)²", lower_is_better=True, logarithmic=True),),
    curves=(
        Curve("exact", ExactDivergence()),
        Curve("exact, noise of later iterations only", ExactDivergence(own_noise=False)),
        Curve("this library's bound", BoundOnDivergence("iteration")),
        Curve("the paper's bound", BoundOnDivergence("iteration-paper")),
    ),
    seeds=1,
    quick_seeds=1,
    claims=(
        PaperClaim("The paper's bound holds", Better("exact", "the paper's bound", "divergence")),
        PaperClaim(
            "The paper's bound can be sharpened", Better("this library's bound", "the paper's bound", "divergence")
        ),
    ),
)
