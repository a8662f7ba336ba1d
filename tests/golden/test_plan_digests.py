"""Plans are those of earlier versions; `python -m tests.golden.test_plan_digests` records those that are new.

Each model, solver, penalty, sampler, relation, arithmetic and accountant takes part, whether it gives a plan or a
refusal.
"""

from __future__ import annotations

import json
import warnings
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from dpadmm import DPLinearRegression, DPLinearSVC, DPLogisticRegression
from dpadmm.errors import DpadmmError
from dpadmm.preparation import PrivateGraph, PrivateQuantileClipper

RECORDED = Path(__file__).parent / "plan_digests.json"
ROWS, FEATURES = 2000, 5
RELATIONS = ("replace-one", "add-remove")
PENALTIES = ("none", "l1", "l2", "elasticnet", "group", "fused", "graph", "nuclear", "scad", "mcp")
SAMPLED = ("dp-sadmm", "dp-sgd", "dp-vradmm", "mpadmm", "ssadmm")
WHOLE = ("auto", "dp-gd", "full-admm", "noisy-admm")
SHORT = {"steps": 3, "batch_size": 40}
OF_A_PENALTY = {"graph": {"graph": [(0, 1), (2, 3, 2.0)]}, "group": {"groups": [0, 0, 1, 1, 2]}}


def logistic(**chosen: Any) -> Any:
    return DPLogisticRegression(**{"classes": [0, 1], **chosen})


MODELS = {
    "logistic": logistic,
    "softmax": lambda **chosen: logistic(**chosen, classes=["a", "b", "c"]),
    "svm": lambda **chosen: DPLinearSVC(**chosen, classes=[0, 1]),
    "squared": DPLinearRegression,
    "huber": lambda **chosen: DPLinearRegression(**chosen, loss="huber"),
}

FURTHER: dict[str, dict[str, Any]] = {
    "clip": {"clip_norm": 0.7},
    "row norm": {"row_norm": 2.5},
    "no intercept": {"fit_intercept": False},
    "bounds": {"bounds": (0.0, 1.0)},
    "smoothing": {"smoothing": 1.5},
    "default steps": {"steps": None, "batch_size": None},
    "default steps of a lasso": {"penalty": "l1", "steps": None, "batch_size": None},
    "smaller budget": {"epsilon": 0.1},
    "larger budget": {"epsilon": 4.0},
    "nominal rows": {"relation": "add-remove", "n_rows": ROWS},
    "invalid rows": {"invalid_rows": "zero"},
    "private bounds": {"bounds": PrivateQuantileClipper((0.0, 1.0), share=0.1)},
    "private graph": {"penalty": "graph", "graph": PrivateGraph(share=0.2)},
    "exact": {"arithmetic": "exact"},
    "exact, add-remove": {"arithmetic": "exact", "relation": "add-remove"},
    "rdp": {"accountant": "rdp"},
    "gaussian": {"accountant": "gaussian"},
    "iteration": {"accountant": "iteration"},
    "iteration-paper": {"accountant": "iteration-paper"},
}


@lru_cache
def cases() -> dict[str, tuple[str, dict[str, Any]]]:
    """The model and its parameters, by a name."""
    found = {}
    for model, solver, penalty, relation in product(MODELS, (*WHOLE, *SAMPLED), PENALTIES, RELATIONS):
        chosen = {"solver": solver, "penalty": penalty, "alpha": 1e-3, "relation": relation, **SHORT}
        found[f"{model}, {solver}, {penalty}, {relation}"] = model, {**chosen, **OF_A_PENALTY.get(penalty, {})}
    for model, solver, further in product(MODELS, (*WHOLE, *SAMPLED), FURTHER):
        found[f"{model}, {solver}, {further}"] = model, {"solver": solver, **SHORT, **FURTHER[further]}
    for solver, sampler, relation, accountant in product(
        SAMPLED, ("full", "truncated-poisson", "poisson", "fixed", "shuffle"), RELATIONS, ("pld", "rdp")
    ):
        chosen = {"solver": solver, "sampler": sampler, "relation": relation, "accountant": accountant, **SHORT}
        found[f"{solver}, {sampler}, {relation}, {accountant}"] = "logistic", chosen
    return found


def outcome(case: str) -> str:
    """The beginning of the plan's digest, or the name of the refusal."""
    model, chosen = cases()[case]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return str(MODELS[model](**chosen).plan(ROWS, FEATURES).digest)[:12]
    except DpadmmError as refusal:
        return type(refusal).__name__


def recorded() -> dict[str, str]:
    """Outcomes by case, which the file has the other way round."""
    return {case: found for found, together in json.loads(RECORDED.read_text()).items() for case in together}


@pytest.mark.parametrize("solver", [*WHOLE, *SAMPLED])
def test_plans_are_those_of_earlier_versions(solver: str) -> None:
    earlier = {case: found for case, found in recorded().items() if solver in case.split(", ")}
    assert {case: outcome(case) for case in earlier} == earlier


def test_every_plan_is_recorded() -> None:
    assert set(recorded()) == set(cases())


if __name__ == "__main__":
    known = recorded() if RECORDED.exists() else {}
    together: dict[str, list[str]] = {}
    for each in cases():
        together.setdefault(known.get(each) or outcome(each), []).append(each)
    RECORDED.write_text(json.dumps(together, indent=1) + "\n")
