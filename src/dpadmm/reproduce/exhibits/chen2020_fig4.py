"""Fig. 4 of Chen & Lee 2020: how many relevant features are among the k largest coefficients."""

from dpadmm.reproduce.chen2020_settings import EPSILONS, PRIVACY, SETTING, curves, simulated_panels
from dpadmm.reproduce.exhibit import Better, Metric, PaperClaim, PlottedExhibit
from dpadmm.reproduce.exhibits.chen2020_fig3 import SIMULATED

EXHIBIT = PlottedExhibit(
    name="chen2020-fig4",
    paper="chen2020",
    number="Fig. 4",
    title="selection of features",
    shows="mpADMM finds the most relevant features, above all for small ε; there ADMM-objP is ahead of ssADMM and "
    "DP-SGD.",
    promise="valid in part",
    privacy=PRIVACY,
    setting=SETTING + SIMULATED + " ξₖ is the share of the 20 relevant features among the k largest coefficients.",
    panels=simulated_panels(),
    x=EPSILONS,
    metrics=tuple(Metric(f"xi_{k}", f"ξ, k = {k}") for k in (20, 25, 30, 40)),
    curves=curves(),
    seeds=10,
    claims=(
        PaperClaim("mpADMM finds more than ssADMM (ξ, k = 20)", Better("mpADMM", "ssADMM", "xi_20")),
        PaperClaim("mpADMM finds more than DP-SGD (ξ, k = 20)", Better("mpADMM", "DP-SGD", "xi_20")),
        PaperClaim("mpADMM finds more than ADMM-objP (ξ, k = 20)", Better("mpADMM", "ADMM-objP", "xi_20")),
        PaperClaim("mpADMM with η = 2, valid, finds more than ssADMM", Better("mpADMM, η = 2", "ssADMM", "xi_20")),
        PaperClaim("mpADMM as published finds more than ssADMM", Better("mpADMM, η = 2 (printed)", "ssADMM", "xi_20")),
        PaperClaim("ADMM-objP finds more than ssADMM (ξ, k = 20)", Better("ADMM-objP", "ssADMM", "xi_20")),
    ),
    best=("auto", "xi_20"),
)
