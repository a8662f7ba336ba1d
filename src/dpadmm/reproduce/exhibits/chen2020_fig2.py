"""Fig. 2 of Chen & Lee 2020: the huberised SVM with L1 on Adult and IPUMS-BR."""

from dpadmm.reproduce.chen2020_settings import (
    ACCURACY,
    EPSILONS,
    FOLDS_SETTING,
    OBJECTIVE,
    PRIVACY,
    SETTING,
    curves,
    most_cases,
    table_panels,
)
from dpadmm.reproduce.exhibit import PlottedExhibit

EXHIBIT = PlottedExhibit(
    name="chen2020-fig2",
    paper="chen2020",
    number="Fig. 2",
    title="huberised SVM with L1",
    shows="ssADMM is the most accurate in most cases; DP-ADMM and ADMM-objP are behind for small ε; the objective of "
    "DP-SGD is usually higher than that of mpADMM.",
    promise="valid in part",
    privacy=PRIVACY,
    setting=SETTING + FOLDS_SETTING,
    panels=table_panels("hinge"),
    x=EPSILONS,
    metrics=(ACCURACY, OBJECTIVE),
    curves=curves(),
    seeds=10,
    claims=most_cases(),
    best=("auto", "accuracy", "test_objective"),
)
