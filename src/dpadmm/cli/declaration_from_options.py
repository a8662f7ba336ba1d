"""From options to a declaration or an estimator, every public choice checked before a table is opened."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dpadmm.cli.requests import FitRequest, ModelOptions, PlanRequest, TableOptions
from dpadmm.cli.structure_files import column_groups, read_graph, read_groups
from dpadmm.errors import InvalidParameter, InvalidSchema
from dpadmm.tables import Schema
from dpadmm.tables.columns import Numeric

if TYPE_CHECKING:
    from dpadmm.declare.declaration import Declaration
    from dpadmm.privacy.unit import Unit
    from dpadmm.problem.losses.base import Loss

OF_NUMBERS = {"regression": "squared", "huber": "huber"}
"""Models of a target that is a number, with the names of their losses."""
MODELS = ("logistic", "svm", *OF_NUMBERS)


def require_its_options(request: TableOptions) -> None:
    """Refuse what estimators refuse too, in the words of the command line."""
    if request.ledger is not None and request.dataset is None:
        raise InvalidParameter(
            "--ledger without --dataset", "--dataset NAME", "name the data set to charge, as the ledger names it"
        )
    _require_a_graph(request)


def _require_a_graph(request: ModelOptions) -> None:
    if request.penalty == "graph" and request.graph is None and request.private_graph is None:
        raise InvalidParameter(
            "--penalty graph without a graph",
            "--graph FILE, or --private-graph SHARE",
            "give a file of public edges, or the share of the budget with which the graph is learned",
        )


def require_its_number(request: TableOptions, found: int) -> None:
    """Refuse a declared number of rows or persons that is not that of the table, where that number is public."""
    from dpadmm.privacy.budget import Relation

    option, declared = ("--rows", request.rows) if request.persons is None else ("--persons", request.persons)
    if declared not in (None, found) and Relation.parse(request.relation) is Relation.REPLACE_ONE:
        raise InvalidParameter(
            f"a {option} that differs from the table under --relation replace-one",
            f"no {option}, or the number of {option.removeprefix('--')} of the table",
            f"drop or correct {option}; only under --relation add-remove may it differ from the table",
        )


def declared_number(request: TableOptions | PlanRequest, schema: Schema | None) -> tuple[int | None, Unit]:
    """The public number of rows, or of persons where they are protected, and which of the two it is."""
    from dpadmm.privacy.unit import Unit

    of_persons = request.persons is not None if schema is None else schema.person is not None
    if schema is not None and not of_persons and request.persons is not None:
        raise InvalidParameter(
            "--persons with a schema that names no column of persons",
            '--rows, or a schema with person = "NAME"',
            "name the column in the schema: without it a fit protects single rows",
        )
    if of_persons and request.rows is not None:
        raise InvalidParameter(
            "--rows for a table of persons", "--persons N, their public number", "replace --rows by --persons"
        )
    return (request.persons, Unit.PERSON) if of_persons else (request.rows, Unit.ROW)


def declared_schema(request: TableOptions) -> Schema:
    """The schema with its target chosen, which must suit the model."""
    require_its_options(request)
    return _schema_for(request, request.schema, request.target)


def _schema_for(request: ModelOptions, path: Path, target: str | None) -> Schema:
    schema = Schema.read(path)
    if target is not None:
        schema = schema.with_target(target)
    if schema.target is None:
        raise InvalidSchema("no target", "--target COLUMN, or [target] in the schema", "say which column to predict")
    _require_known(request.model)
    numeric = isinstance(schema.target.kind, Numeric)
    if numeric != (request.model in OF_NUMBERS):
        kind = "numeric" if numeric else "classes"
        fitting = "regression or huber" if numeric else "logistic or svm"
        raise InvalidSchema(
            f"--model {request.model} for the target {schema.target.column!r} of kind {kind}",
            f"--model {fitting}, or a target of the other kind",
            "change --model or the schema",
        )
    return schema


def declaration_of(request: PlanRequest) -> Declaration:
    """What `dpadmm fit` with the same options declares on a table of so many rows."""
    from dpadmm.declare.declaration import Declaration
    from dpadmm.privacy.budget import Budget, Relation

    schema = None if request.schema is None else _schema_for(request, request.schema, request.target)
    n_features, n_classes = _sizes(request, schema)
    budget = Budget(request.epsilon, request.delta, Relation.parse(request.relation))
    loss = loss_of(request.model, n_classes)
    number, unit = declared_number(request, schema)
    if number is None:
        option = f"--{unit.plural}"
        raise InvalidParameter(f"no {option}", f"{option} N, the public number of {unit.plural}", f"add {option}")
    chosen = model_parameters(request, schema)
    return Declaration(budget=budget, loss=loss, n_rows=number, n_features=n_features, unit=unit, **chosen)


def _sizes(request: PlanRequest, schema: Schema | None) -> tuple[int, int]:
    """Numbers of features and of classes."""
    _require_known(request.model)
    _require_a_graph(request)
    if schema is None:
        return _features_given(request), 2 if request.classes is None else request.classes
    given = {"--features": request.features, "--classes": request.classes}
    if named := [name for name, value in given.items() if value is not None]:
        raise InvalidParameter(f"{', '.join(named)} with --schema", "one of them", "drop one: the schema declares it")
    return schema.n_features, _classes_of(schema)


def _features_given(request: PlanRequest) -> int:
    """The number of features, where no schema tells it, of a plan that asks for nothing that only a schema tells."""
    if request.features is None:
        raise InvalidParameter(
            "neither --features nor --schema", "one of them", "give the number of features after encoding"
        )
    if request.classes is not None and request.model in OF_NUMBERS:
        raise InvalidParameter(f"--classes with --model {request.model}", "--model logistic or svm", "drop --classes")
    if request.graph is not None or request.groups is not None or request.penalty == "group":
        raise InvalidParameter(
            "a graph or groups of features without --schema",
            "--schema FILE, which names the features",
            "give the schema instead of --features",
        )
    return request.features


def _classes_of(schema: Schema) -> int:
    """How many classes the target has; of a number, the two sides that do not matter."""
    return len((schema.target.classes if schema.target else None) or ()) or 2


def _require_known(model: str) -> None:
    if model not in MODELS:
        raise InvalidParameter(f"--model {model}", "one of " + ", ".join(MODELS), "choose a known model")


def loss_of(model: str, n_classes: int) -> Loss:
    """The loss of a model of the command line."""
    from dpadmm.declare.target import hinge_loss, logistic_loss, regression_loss

    if model in OF_NUMBERS:
        return regression_loss(OF_NUMBERS[model])
    if model == "svm" and n_classes > 2:
        raise InvalidParameter("--model svm with more than two classes", "two classes", "use --model logistic")
    return logistic_loss(n_classes) if model == "logistic" else hinge_loss(n_classes)


def model_parameters(request: ModelOptions, schema: Schema | None) -> dict[str, Any]:
    """Parameters that decide the plan, by the names that estimators and declarations share."""
    return {**request.parameters(), "graph": _graph(request, schema), "groups": _groups(request, schema)}


def declared_model(request: TableOptions, schema: Schema, verbose: bool) -> Any:
    """The estimator, not yet fitted."""
    return model_of(
        request,
        schema,
        invalid_rows=request.invalid_rows,
        n_rows=declared_number(request, schema)[0],
        ledger=request.ledger,
        dataset=request.dataset,
        random_state=request.seed,
        verbose=int(verbose),
    )


def model_of(request: ModelOptions, schema: Schema, **more: Any) -> Any:
    """The estimator that a schema and these options declare, with `more` of its parameters."""
    from dpadmm.estimators import DPLinearRegression, DPLinearSVC, DPLogisticRegression

    assert schema.target is not None
    shared: dict[str, Any] = {**model_parameters(request, schema), "relation": request.relation, **more}
    if isinstance(schema.target.kind, Numeric):
        bounds, loss = (schema.target.kind.lower, schema.target.kind.upper), OF_NUMBERS[request.model]
        return DPLinearRegression(request.epsilon, request.delta, loss=loss, target_bounds=bounds, **shared)
    kind = DPLogisticRegression if request.model == "logistic" else DPLinearSVC
    return kind(request.epsilon, request.delta, classes=list(schema.target.kind.classes), **shared)


def check_public_choices(request: FitRequest, model: Any, schema: Schema) -> Declaration:
    """Refuse what can be refused without the table, a budget beyond what the ledger has left included.

    With `--rows` the plan that will be carried out is certified. Without it a plan for one row read in full stands in:
    it can always be certified, and its making looks at every other choice.
    """
    from dpadmm.estimators.standard_errors import why_no_spread, why_too_little
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
    loss_of(request.model, _classes_of(schema))  # refuses in the words of the command line
    number, unit = declared_number(request, schema)
    known, target = number is not None, model.declare_target(np.empty(0))
    declared: Declaration = model.declaration(number or 1, schema.n_features, target, unit=unit)
    declared.budgeted.require_usable(sparse_rows=False)
    checked = declared if known else declared.of_one_row()
    lacking = why_no_spread(checked.recipe.solver, checked.problem, prepared=bool(checked.budgeted.all))
    if known:
        lacking = lacking or why_too_little(checked.plan)
    if request.standard_errors and lacking:
        raise InvalidParameter(
            f"--standard-errors where there are none: {lacking}",
            "a fit of a kind that has them (docs/uncertainty.md)",
            "drop --standard-errors",
        )
    if known:
        payment.check(checked.plan)
    return checked


def _graph(request: ModelOptions, schema: Schema | None) -> Any:
    """Public edges from a file, or a step that learns them within the budget."""
    if request.private_graph is None:
        return None if request.graph is None or schema is None else read_graph(request.graph, schema)
    if request.graph is not None:
        raise InvalidParameter("--graph and --private-graph", "one of them", "say whether the graph is public")
    from dpadmm.preparation import PrivateGraph

    return PrivateGraph(share=request.private_graph)


def _groups(request: ModelOptions, schema: Schema | None) -> list[list[int]] | None:
    if schema is None:
        return None
    if request.groups is not None:
        return read_groups(request.groups, schema)
    return column_groups(schema) if request.penalty == "group" else None
