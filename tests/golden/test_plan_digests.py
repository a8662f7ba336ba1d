"""Plans are those of earlier versions; `python -m tests.golden.test_plan_digests` records those that are new.

Each model, solver, penalty, sampler, relation, arithmetic and accountant takes part, whether it gives a plan or a
refusal. The noise of plans that draw rows is found by Fourier transforms, whose last digits differ between
processors. It is compared to a thousandth, and everything else of such a plan by its digest.
"""

from __future__ import annotations

import hashlib
import json
import warnings
from functools import cache, lru_cache
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


MEASURED = ("noise_multiplier", "noise_std", "epsilon_achieved")
"""What Fourier transforms decide of a plan."""


@cache
def outcome(case: str) -> tuple[str, tuple[float, ...]]:
    """The beginning of the plan's digest, or the name of the refusal; and the noise, where transforms decide it."""
    model, chosen = cases()[case]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            plan = MODELS[model](**chosen).plan(ROWS, FEATURES)
    except DpadmmError as refusal:
        return type(refusal).__name__, ()
    if plan.accountant != "pld":
        return str(plan.digest)[:12], ()
    fields = plan.to_dict()
    fixed = [{key: value for key, value in each.items() if key not in MEASURED} for each in fields["queries"]]
    rest = {key: value for key, value in fields.items() if key not in MEASURED} | {"queries": fixed}
    digest = hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()
    return f"pld {digest[:12]}", tuple(query.noise_multiplier for query in plan.queries)


def recorded() -> tuple[dict[str, str], dict[str, list[float]]]:
    """Outcomes by case, which the file has the other way round, and the noise of plans that draw rows."""
    stored = json.loads(RECORDED.read_text())
    plans = {case: found for found, together in stored["plans"].items() for case in together}
    return plans, {case: noise for *noise, together in stored["noise"] for case in together}


@pytest.mark.parametrize("solver", [*WHOLE, *SAMPLED])
def test_plans_are_those_of_earlier_versions(solver: str) -> None:
    plans, noise = recorded()
    earlier = {case: found for case, found in plans.items() if solver in case.split(", ")}
    assert {case: outcome(case)[0] for case in earlier} == earlier
    for case in earlier:
        assert outcome(case)[1] == pytest.approx(noise.get(case, ()), rel=1e-3), case


def test_every_plan_is_recorded() -> None:
    assert set(recorded()[0]) == set(cases())


if __name__ == "__main__":
    plans, noise = recorded() if RECORDED.exists() else ({}, {})
    together: dict[str, list[str]] = {}
    alike: dict[tuple[float, ...], list[str]] = {}
    for each in cases():
        found, measured = (plans[each], noise.get(each, ())) if each in plans else outcome(each)
        together.setdefault(found, []).append(each)
        if measured:
            alike.setdefault(tuple(measured), []).append(each)
    stored = {"plans": together, "noise": [[*measured, names] for measured, names in alike.items()]}
    RECORDED.write_text(json.dumps(stored, indent=1) + "\n")
