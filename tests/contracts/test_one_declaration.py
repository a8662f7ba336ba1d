"""Whoever plans a fit plans the same: `dpadmm plan`, `dpadmm fit` before it reads the table, the estimator, the fit.

Over the registries of models, solvers, penalties and samplers, under both relations: one digest, or one refusal.
"""

from __future__ import annotations

import json
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpadmm import DPLinearRegression, DPLogisticRegression, DPSearchCV
from dpadmm.cli.app import run
from dpadmm.cli.declaration_from_options import (
    MODELS,
    OF_NUMBERS,
    check_public_choices,
    declared_model,
    declared_schema,
)
from dpadmm.cli.plan_command import make_plan
from dpadmm.cli.requests import FitRequest, PlanRequest
from dpadmm.declare.declaration import Declaration
from dpadmm.declare.penalties import PENALTIES
from dpadmm.errors import DpadmmError, InvalidParameter
from dpadmm.privacy.budget import Budget
from dpadmm.privacy.sampling import SAMPLERS
from dpadmm.problem.losses import Logistic
from dpadmm.solvers.base import SOLVERS

ROWS = 400
NAMES = ("age", "weight", "height", "pulse")
RELATIONS = ("replace-one", "add-remove")
NUMBER = 'kind = "numeric"\nlower = 0\nupper = 10\n'
TARGETS = {
    "two": 'kind = "categorical"\ncategories = ["well", "ill"]\n',
    "three": 'kind = "categorical"\ncategories = ["well", "ill", "gone"]\n',
    "number": NUMBER,
}
SHORT: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-5, "steps": 3, "batch_size": 20}
KINDS = [(model, "number" if model in OF_NUMBERS else "two") for model in MODELS] + [("logistic", "three")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A schema and a table for each kind of target, and a graph."""
    made = tmp_path_factory.mktemp("declared")
    rng = np.random.default_rng(0)
    features = {name: rng.uniform(0, 10, ROWS) for name in NAMES}
    for kind, target in TARGETS.items():
        columns = {**dict.fromkeys(NAMES, NUMBER), "target": target}
        (made / f"{kind}.toml").write_text("\n".join(f"[columns.{name}]\n{text}" for name, text in columns.items()))
        labels = rng.choice(["well", "ill", "gone"][: 3 if kind == "three" else 2], ROWS)
        values = rng.uniform(0, 10, ROWS) if kind == "number" else labels
        pd.DataFrame({**features, "target": values}).to_csv(made / f"{kind}.csv", index=False)
    (made / "graph.csv").write_text("age,weight\nheight,pulse,2\n")
    return made


def asked(folder: Path, kind: str, **chosen: Any) -> tuple[PlanRequest, FitRequest]:
    """The options of the two commands; what the table decides is left to the schema."""
    if chosen.get("penalty") == "graph" and "private_graph" not in chosen:
        chosen["graph"] = folder / "graph.csv"
    shared = {**SHORT, **chosen, "schema": folder / f"{kind}.toml", "target": "target", "rows": ROWS}
    return PlanRequest(**shared), FitRequest(**shared, table=folder / f"{kind}.csv", out=folder / "out")


def outcome(plan: Callable[[], Any]) -> str:
    """The digest of a plan, or the name of its refusal."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return str(plan().digest)
    except DpadmmError as refusal:
        return type(refusal).__name__


def planned(folder: Path, kind: str, **chosen: Any) -> dict[str, str]:
    """What each of those who plan says, none of whom reads the table."""
    to_plan, to_fit = asked(folder, kind, **chosen)

    def before_reading() -> Any:
        schema = declared_schema(to_fit)
        return check_public_choices(to_fit, declared_model(to_fit, schema, verbose=False), schema).plan

    def of_the_estimator() -> Any:
        schema = declared_schema(to_fit)
        return declared_model(to_fit, schema, verbose=False).plan(ROWS, schema.n_features)

    return {
        "dpadmm plan": outcome(lambda: make_plan(to_plan).plan),
        "dpadmm fit": outcome(before_reading),
        "estimator.plan": outcome(of_the_estimator),
    }


def fitted(folder: Path, kind: str, **chosen: Any) -> str:
    """The plan in a model fitted on the table, which did not declare its number of rows."""
    _, request = asked(folder, kind, **chosen)
    model = declared_model(request, declared_schema(request), verbose=False).set_params(n_rows=None, random_state=0)
    table = pd.read_csv(folder / f"{kind}.csv")
    return outcome(lambda: model.fit(table[list(NAMES)] / 10, table["target"]).plan_)


def require_one(found: dict[str, str]) -> None:
    assert len(set(found.values())) == 1, found
    # What is refused at all is refused as too much for a scheme or a solver, not for a wrong option.
    assert set(found.values()).isdisjoint({"InvalidParameter", "InvalidSchema", "InvalidData"}), found


@pytest.mark.parametrize("solver", list(SOLVERS))
@pytest.mark.parametrize(("model", "kind"), KINDS)
def test_every_model_and_solver_with_every_penalty(folder, model, kind, solver):
    for penalty in PENALTIES:
        for relation in RELATIONS:
            chosen = {"model": model, "solver": solver, "penalty": penalty, "relation": relation}
            found = planned(folder, kind, **chosen)
            require_one(found)
            if (penalty, relation) == ("l1", "replace-one"):
                refused = SOLVERS[solver].hidden and kind == "three"
                assert (found["dpadmm plan"] == "UnsupportedProblem") == refused, found


@pytest.mark.parametrize("solver", [name for name in SOLVERS if SOLVERS[name].samples])
@pytest.mark.parametrize("sampler", list(SAMPLERS))
def test_every_sampler(folder, sampler, solver):
    for relation in RELATIONS:
        require_one(planned(folder, "two", solver=solver, sampler=sampler, relation=relation))


@pytest.mark.parametrize(
    "chosen",
    [
        {"clip_norm": 0.3},
        {"row_norm": 3.0},
        {"smoothing": 1.0},
        {"no_intercept": True},
        {"arithmetic": "exact"},
        {"steps": None, "batch_size": None},
        {"accountant": "pld"},
        {"penalty": "graph", "private_graph": 0.2},
        {"epsilon": 0.05},
    ],
    ids=str,
)
@pytest.mark.parametrize(("model", "kind"), KINDS)
def test_every_other_choice(folder, model, kind, chosen):
    for solver in ("auto", "full-admm", "dp-sadmm"):
        require_one(planned(folder, kind, model=model, solver=solver, **chosen))


@pytest.mark.parametrize("solver", list(SOLVERS))
@pytest.mark.parametrize(("model", "kind"), KINDS)
def test_a_fitted_model_has_that_plan(folder, model, kind, solver):
    chosen = {"model": model, "solver": solver}
    require_one({**planned(folder, kind, **chosen), "fit": fitted(folder, kind, **chosen)})


@pytest.mark.parametrize("penalty", list(PENALTIES))
def test_a_fitted_model_of_each_penalty_has_that_plan(folder, penalty):
    require_one({**planned(folder, "two", penalty=penalty), "fit": fitted(folder, "two", penalty=penalty)})


@pytest.mark.parametrize(("model", "kind"), KINDS)
@pytest.mark.parametrize("declared", [True, False])
def test_the_commands_themselves_show_one_digest(folder, model, kind, declared, tmp_path, capsys):
    shared = ["--schema", str(folder / f"{kind}.toml"), "--target", "target", "--epsilon", "1", "--delta", "1e-5"]
    shared += ["--model", model, "--penalty", "l1", "--alpha", "1e-3", "--json"]
    assert run(["plan", *shared, "--rows", str(ROWS)]) == 0
    shown = json.loads(capsys.readouterr().out)["digest"]
    rows = ["--rows", str(ROWS)] if declared else []
    assert run(["fit", str(folder / f"{kind}.csv"), *shared, *rows, "--out", str(tmp_path / "model")]) == 0
    assert json.loads(capsys.readouterr().out)["privacy"]["plan_digest"] == shown


def test_what_decides_a_plan_is_an_option_of_both_commands():
    """All but the table's size, which a fit reads from the table and its schema."""
    of_a_plan = set(PlanRequest.__dataclass_fields__) - {"features", "classes"}
    assert of_a_plan <= set(FitRequest.__dataclass_fields__)
    chosen = set(Declaration.__dataclass_fields__) - {"budget", "loss", "n_rows", "n_features", "counted", "weighted"}
    # What a federation adds is asked for by `dpadmm network plan`.
    chosen -= {"spares", "surplus"}
    # Bounds come with the schema, which maps every column by itself, and so does the unit, with a column of persons;
    # solver options are for Python.
    named = {*FitRequest.__dataclass_fields__, "fit_intercept", "bounds", "unit", "solver_options"}
    assert chosen <= named


def test_a_plan_by_sizes_is_that_of_a_schema_of_that_size(folder):
    for (model, kind), solver in zip(KINDS, ("auto", "dp-gd", "full-admm", "dp-sadmm", "auto"), strict=True):
        by_schema, _ = asked(folder, kind, model=model, solver=solver)
        sizes = {"features": len(NAMES), "classes": 3 if kind == "three" else None}
        by_size = PlanRequest(**SHORT, rows=ROWS, model=model, solver=solver, **sizes)
        assert make_plan(by_schema).plan == make_plan(by_size).plan


@pytest.mark.parametrize(
    ("chosen", "words"),
    [
        ({}, "neither --features nor --schema"),
        ({"features": 4, "penalty": "group"}, "--schema"),
        ({"features": 4, "penalty": "graph"}, "without a graph"),
        ({"features": 4, "penalty": "graph", "graph": Path("edges.csv")}, "--schema"),
        ({"features": 4, "model": "huber", "classes": 2}, "--classes"),
        ({"features": 4, "model": "svm", "classes": 3}, "two classes"),
        ({"features": 4, "model": "magic"}, "logistic"),
    ],
    ids=str,
)
def test_a_plan_refuses_what_it_cannot_know(chosen, words):
    with pytest.raises(InvalidParameter, match=words):
        make_plan(PlanRequest(**SHORT, rows=ROWS, **chosen))


def test_a_schema_has_the_sizes(folder):
    request, _ = asked(folder, "two")
    with pytest.raises(InvalidParameter, match="--features"):
        make_plan(PlanRequest(**SHORT, rows=ROWS, features=4, schema=request.schema, target="target"))


class TestEstimators:
    def test_classes_that_were_not_declared_are_counted(self):
        model = DPLogisticRegression(1.0, 1e-5)
        assert model.plan(ROWS, 4) == model.plan(ROWS, 4, n_classes=2) != model.plan(ROWS, 4, n_classes=3)
        assert model.plan(ROWS, 4, n_classes=3) == DPLogisticRegression(1.0, 1e-5, classes=list("abc")).plan(ROWS, 4)

    def test_a_nominal_number_of_rows_is_the_one_that_is_planned_for(self):
        model = DPLogisticRegression(1.0, 1e-5, relation="add-remove", n_rows=ROWS)
        assert model.plan(37, 4).n_rows == ROWS
        with pytest.raises(InvalidParameter, match="replace-one"):
            model.set_params(relation="replace-one").plan(37, 4)

    @pytest.mark.parametrize(
        "sizes", [(0, 4), (10.5, 4), (10, 0), (10, "4"), (10, 4, 1), (10, 10**400), (10**400, 4)], ids=range(7)
    )
    def test_sizes_are_whole_numbers(self, sizes):
        with pytest.raises(InvalidParameter):
            DPLinearRegression(1.0, 1e-5).plan(*sizes)

    def test_a_search_plans_the_fits_of_its_candidates(self):
        model = DPLogisticRegression(1.0, 1e-5, penalty="l1", classes=[0, 1])
        search = DPSearchCV(model, {"solver": ["auto", "full-admm"]}).plan(ROWS, 4)
        single = {"epsilon": search.base_budget.epsilon, "delta": search.base_budget.delta}
        trained = round(0.8 * ROWS)
        for base, solver in zip(search.bases, ("auto", "full-admm"), strict=True):
            assert base == model.set_params(**single, solver=solver).plan(trained, 4)


def test_planning_needs_no_scikit_learn():
    """In an interpreter that cannot import it."""
    program = """
import sys
sys.modules["sklearn"] = None
from dpadmm.cli.app import run
from dpadmm.cli.declaration_from_options import MODELS
from dpadmm.solvers.base import SOLVERS
sizes = "--rows 400 --features 4 --epsilon 1 --delta 1e-5 --steps 3 --json".split()
assert all(run(["plan", *sizes, "--model", model]) == 0 for model in MODELS)
assert all(run(["plan", *sizes, "--solver", solver, "--penalty", "l1"]) == 0 for solver in SOLVERS)
"""
    subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)


def test_a_declaration_is_the_whole_story():
    declared = Declaration(budget=Budget(1.0, 1e-5), loss=Logistic(), n_rows=ROWS, n_features=4, penalty="l1")
    assert declared.plan == DPLogisticRegression(1.0, 1e-5, penalty="l1").plan(ROWS, 4)
    assert declared.of_one_row().plan.n_rows == 1


@pytest.mark.parametrize("solver", list(SOLVERS))
def test_who_stands_in_for_a_solver_takes_what_it_does_not(solver):
    kind = SOLVERS[solver]
    if kind.stand_in is None:
        assert kind.takes_clip
        assert kind.takes_smoother
    else:
        other = SOLVERS[kind.stand_in]
        assert (other.takes_clip, other.takes_smoother, other.stand_in) == (True, True, None)
