"""Fig. 3 of Chen & Lee 2020: accuracy on simulated data with 20 relevant features of 100."""

from dpadmm.reproduce.chen2020_settings import ACCURACY, EPSILONS, PRIVACY, SETTING, curves, simulated_panels
from dpadmm.reproduce.exhibit import Better, PaperClaim, PlottedExhibit

SIMULATED = (
    "Each seed draws a table of 40,000 rows and one to test on (`make_demo`), whose features are cut at ±4, a public "
    "range, and not scaled by their own extremes. Bands are ± one standard error over tables."
)

EXHIBIT = PlottedExhibit(
    name="chen2020-fig3",
    paper="chen2020",
    number="Fig. 3",
    title="classification of simulated data",
    shows="ssADMM, mpADMM and DP-SGD are about equally accurate; ADMM-objP is behind.",
    promise="valid in part",
    privacy=PRIVACY,
    setting=SETTING + SIMULATED,
    panels=simulated_panels(),
    x=EPSILONS,
    metrics=(ACCURACY,),
    curves=curves(),
    seeds=10,
    claims=(
        PaperClaim("ssADMM is more accurate than ADMM-objP", Better("ssADMM", "ADMM-objP", "accuracy")),
        PaperClaim("mpADMM is more accurate than ADMM-objP", Better("mpADMM", "ADMM-objP", "accuracy")),
        PaperClaim("DP-SGD is more accurate than ADMM-objP", Better("DP-SGD", "ADMM-objP", "accuracy")),
    ),
    best=("auto", "accuracy"),
)
