"""Fig. 1 of Chen & Lee 2020: L1 logistic regression on Adult and IPUMS-BR."""

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
    name="chen2020-fig1",
    paper="chen2020",
    number="Fig. 1",
    title="L1 logistic regression",
    shows="ssADMM is the most accurate in most cases; DP-ADMM and ADMM-objP are behind for small ε; the objective of "
    "DP-SGD is usually higher than that of mpADMM.",
    promise="valid in part",
    privacy=PRIVACY,
    setting=SETTING + FOLDS_SETTING,
    panels=table_panels("logistic"),
    x=EPSILONS,
    metrics=(ACCURACY, OBJECTIVE),
    curves=curves(),
    seeds=10,
    claims=most_cases(),
    best=("auto", "accuracy", "test_objective"),
)
