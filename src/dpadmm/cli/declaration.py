"""From the options of `dpadmm fit` to an estimator, every public choice checked before the table is opened."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpadmm.cli.structure import column_groups, read_graph, read_groups
from dpadmm.errors import InvalidParameter, InvalidSchema
from dpadmm.tables import Schema
from dpadmm.tables.columns import Numeric

MODELS = ("logistic", "svm", "regression", "huber")


@dataclass(frozen=True)
class FitRequest:
    """The options of one `dpadmm fit`."""

    table: Path
    schema: Path
    out: Path
    target: str | None
    epsilon: float
    delta: float
    relation: str
    rows: int | None
    accountant: str | None
    arithmetic: str
    ledger: str | None
    dataset: str | None
    model: str
    penalty: str
    alpha: float
    l1_ratio: float
    graph: Path | None
    private_graph: float | None
    groups: Path | None
    solver: str
    steps: int | None
    batch_size: int | None
    sampler: str | None
    clip_norm: float | None
    row_norm: float
    smoothing: float | None
    no_intercept: bool
    invalid_rows: str
    on_disk: Path | None
    seed: int | None
    force: bool
    json: bool
    quiet: bool
    standard_errors: bool | None = None


def require_its_options(request: FitRequest) -> None:
    """Refuse what estimators refuse too, in the words of the command line."""
    if request.ledger is not None and request.dataset is None:
        raise InvalidParameter(
            "--ledger without --dataset", "--dataset NAME", "name the data set to charge, as the ledger names it"
        )
    if request.penalty == "graph" and request.graph is None and request.private_graph is None:
        raise InvalidParameter(
            "--penalty graph without a graph",
            "--graph FILE, or --private-graph SHARE",
            "give a file of public edges, or the share of the budget with which the graph is learned",
        )


def require_its_rows(request: FitRequest, found: int) -> None:
    """Refuse a declared number of rows that is not that of the table, where that number is public."""
    from dpadmm.privacy.budget import Relation

    if request.rows not in (None, found) and Relation.parse(request.relation) is Relation.REPLACE_ONE:
        raise InvalidParameter(
            "a --rows that differs from the table under --relation replace-one",
            "no --rows, or the number of rows of the table",
            "drop or correct --rows; only under --relation add-remove may it differ from the table",
        )


def declared_schema(request: FitRequest) -> Schema:
    """The schema with its target chosen, which must suit the model."""
    require_its_options(request)
    schema = Schema.read(request.schema)
    if request.target is not None:
        schema = schema.with_target(request.target)
    if schema.target is None:
        raise InvalidSchema("no target", "--target COLUMN, or [target] in the schema", "say which column to predict")
    if request.model not in MODELS:
        raise InvalidParameter(f"--model {request.model}", "one of " + ", ".join(MODELS), "choose a known model")
    numeric = isinstance(schema.target.kind, Numeric)
    if numeric != (request.model in ("regression", "huber")):
        kind = "numeric" if numeric else "classes"
        fitting = "regression or huber" if numeric else "logistic or svm"
        raise InvalidSchema(
            f"--model {request.model} for the target {schema.target.column!r} of kind {kind}",
            f"--model {fitting}, or a target of the other kind",
            "change --model or the schema",
        )
    return schema


def declared_model(request: FitRequest, schema: Schema, verbose: bool) -> Any:
    """The estimator, not yet fitted."""
    from dpadmm.estimators import DPLinearRegression, DPLinearSVC, DPLogisticRegression

    assert schema.target is not None
    shared: dict[str, Any] = {
        "relation": request.relation,
        "penalty": request.penalty,
        "alpha": request.alpha,
        "l1_ratio": request.l1_ratio,
        "graph": _graph(request, schema),
        "groups": _groups(request, schema),
        "solver": request.solver,
        "smoothing": request.smoothing,
        "fit_intercept": not request.no_intercept,
        "row_norm": request.row_norm,
        "clip_norm": request.clip_norm,
        "steps": request.steps,
        "batch_size": request.batch_size,
        "sampler": request.sampler,
        "accountant": request.accountant,
        "arithmetic": request.arithmetic,
        "invalid_rows": request.invalid_rows,
        "n_rows": request.rows,
        "ledger": request.ledger,
        "dataset": request.dataset,
        "random_state": request.seed,
        "verbose": int(verbose),
    }
    if isinstance(schema.target.kind, Numeric):
        bounds = (schema.target.kind.lower, schema.target.kind.upper)
        loss = "squared" if request.model == "regression" else "huber"
        return DPLinearRegression(request.epsilon, request.delta, loss=loss, target_bounds=bounds, **shared)
    kind = DPLogisticRegression if request.model == "logistic" else DPLinearSVC
    return kind(request.epsilon, request.delta, classes=list(schema.target.kind.classes), **shared)


def check_public_choices(request: FitRequest, model: Any, schema: Schema) -> None:
    """Refuse what can be refused without the table, a budget beyond what the ledger has left included.

    With `--rows` the whole plan is certified. Without it a plan for one row read in full stands in: it is always
    certifiable, and its making looks at every other choice.
    """
    from dpadmm.estimators.recipe import Choices, make_recipe, solver_class
    from dpadmm.estimators.steps import Steps
    from dpadmm.estimators.uncertainty import why_no_spread, why_too_little
    from dpadmm.privacy.accountants import make_accountant
    from dpadmm.privacy.budget import Budget, Relation
    from dpadmm.privacy.ledger import Payment
    from dpadmm.privacy.sampling import make_sampler
    from dpadmm.randomness import make_streams

    budget = Budget(request.epsilon, request.delta, Relation.parse(request.relation))
    payment = Payment(request.ledger, request.dataset, seeded=not make_streams(request.seed).secret)
    payment.check(budget)
    if request.invalid_rows not in ("error", "zero"):
        raise InvalidParameter(f"--invalid-rows {request.invalid_rows}", "error or zero", "choose one of these")
    if request.accountant is not None:
        make_accountant(request.accountant)
    if request.sampler is not None:
        make_sampler(request.sampler, 1, 1)
    steps = Steps.of(None, model.graph, request.penalty, schema.n_features)
    steps.require_usable(sparse_rows=False)
    problem = _problem(request, steps.public_graph, model.groups, schema)
    known = request.rows is not None
    samples = solver_class(request.solver, problem, request.smoothing, request.clip_norm).samples
    choices = Choices(
        solver=request.solver,
        sampler="full" if samples and not known else request.sampler,
        batch_size=request.batch_size if known else 1,
        steps=request.steps,
        clip_norm=request.clip_norm,
        accountant=request.accountant if known else None,
        smoothing=request.smoothing,
        arithmetic=request.arithmetic,
    )
    recipe = make_recipe(problem, budget, request.rows or 1, choices, steps.requests)
    lacking = why_no_spread(recipe.solver, problem, prepared=bool(steps.all))
    if known:
        lacking = lacking or why_too_little(recipe.plan)
    if request.standard_errors and lacking:
        raise InvalidParameter(
            f"--standard-errors where there are none: {lacking}",
            "a fit of a kind that has them (docs/uncertainty.md)",
            "drop --standard-errors",
        )
    if known:
        payment.check(recipe.plan)


def _problem(request: FitRequest, graph: Any, groups: Any, schema: Schema) -> Any:
    from dpadmm.estimators.penalties import PenaltyChoice, build_penalty
    from dpadmm.problem.losses import HuberisedHinge, Logistic, Softmax, Squared
    from dpadmm.problem.problem import Problem
    from dpadmm.problem.rowmap import RowMap

    assert schema.target is not None
    n_classes = len(schema.target.classes or ())
    if request.model == "svm" and n_classes > 2:
        raise InvalidParameter("--model svm with more than two classes", "two classes", "use --model logistic")
    rowmap = RowMap.declare(request.row_norm, not request.no_intercept, None, schema.n_features)
    choice = PenaltyChoice(request.alpha, request.l1_ratio, graph, groups, schema.n_features, int(rowmap.intercept))
    regularizer, constraint = build_penalty(request.penalty, choice)
    losses = {"svm": HuberisedHinge(), "logistic": Softmax(n_classes) if n_classes > 2 else Logistic()}
    return Problem(losses.get(request.model, Squared()), regularizer, constraint, row_norm=request.row_norm)


def _graph(request: FitRequest, schema: Schema) -> Any:
    """Public edges from a file, or a step that learns them within the budget."""
    if request.private_graph is None:
        return None if request.graph is None else read_graph(request.graph, schema)
    if request.graph is not None:
        raise InvalidParameter("--graph and --private-graph", "one of them", "say whether the graph is public")
    from dpadmm.preparation import PrivateGraph

    return PrivateGraph(share=request.private_graph)


def _groups(request: FitRequest, schema: Schema) -> list[list[int]] | None:
    if request.groups is not None:
        return read_groups(request.groups, schema)
    return column_groups(schema) if request.penalty == "group" else None
