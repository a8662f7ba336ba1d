"""`dpadmm audit`: attack a solver, a saved model or one fit, and print the smallest ε consistent with the attack."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpadmm.cli import options
from dpadmm.cli.audit_results import (
    check_picture,
    draw_picture,
    entry,
    print_all,
    print_one_run,
    print_two_tables,
    tell_checked,
    tell_model,
)
from dpadmm.cli.declaration_from_options import check_public_choices, declared_model, declared_schema
from dpadmm.cli.model_folder import features_of, read_encoded, read_model
from dpadmm.cli.requests import FitRequest
from dpadmm.cli.screen import print_json, print_line, working
from dpadmm.errors import InvalidParameter, SchemeMismatch, UnsupportedProblem

if TYPE_CHECKING:
    from dpadmm.audit import AuditResult, OneRunResult

HELP = """\
Attack a solver, a saved model, or one fit: find the smallest ε that is consistent with the attack.

--solver NAME needs no data. The solver trains --runs times on each of two made-up tables, which differ in one row as \
much as the claim allows. An attacker who knows both tables guesses from the noisy answers which one was used. If the \
lower bound on ε is above the claim, the claim is refuted. If it is below, nothing is proved. Mini-batch solvers need \
more runs than full-data solvers.

MODEL_DIR needs no data either. The statement is compared with the plan, and the accountant is run again. Then the \
attacker asks the queries of the plan where one row shows most. This works for every kind of model: searches, hidden \
passes, exact arithmetic, private bounds, private graphs. Plans of earlier versions are checked but not attacked; \
then there is no lower bound, and the exit code is 0.

--one-run TABLE adds made-up rows, the canaries, to a private table and trains once. A coin has decided about each \
canary, and the attacker's right guesses of these coins are counted. The fit spends its whole budget, and its model \
is thrown away.

\b
Examples
  dpadmm audit --solver auto --epsilon 1
  dpadmm audit --solver all --epsilon 1 --runs 5000 --picture audit.svg
  dpadmm audit model --json                 # as written by `dpadmm fit`
  dpadmm audit --one-run people.csv --schema people.toml --target income \\
      --epsilon 1 --delta 1e-6 --ledger team.db --dataset people
"""

ALL = "all"
SOLVER_RUNS = 2000
DEFAULTS = {
    "relation": "replace-one",
    "unit": "row",
    "canaries": 500,
    "invalid_rows": "error",
    "model": "logistic",
    "row_norm": 1.0,
    "no_intercept": False,
}
"""Of options that do not start as None."""
ONLY_OF_A_TABLE = (
    *("schema", "target", "canaries", "guesses", "rows", "invalid_rows", "ledger", "dataset", "model", "batch_size"),
    *("sampler", "accountant", "clip_norm", "row_norm", "no_intercept"),
)
SOLVER_CONFIDENCE, ONE_RUN_CONFIDENCE = 0.999, 0.99


def _one_run(*names: str, **more: Any) -> Any:
    return typer.Option(*names, rich_help_panel="One run on a real table", **more)


def _attack(*names: str, **more: Any) -> Any:
    return typer.Option(*names, rich_help_panel="Attack", **more)


AuditedModel = Annotated[
    Path | None, typer.Argument(metavar="MODEL_DIR", help="Folder written by `dpadmm fit` or `tune`.")
]
AuditedSolver = Annotated[
    str | None, _attack("--solver", "-s", metavar="NAME", help=f"all, {options.SOLVERS} auto if left out.")
]
AuditEpsilon = Annotated[float | None, _attack("--epsilon", "-e", metavar="X", help="ε of the claim.")]
AuditDelta = Annotated[float | None, _attack("--delta", "-d", metavar="X", help="δ of the claim; 0.05 if left out.")]
Runs = Annotated[
    int | None,
    _attack(
        *("--runs", "-r"),
        metavar="N",
        min=200,
        help=f"Runs on each of the two tables; if left out {SOLVER_RUNS}, of a model 200 to 20000 in about 90 s.",
    ),
]
Confidence = Annotated[
    float | None,
    _attack("--confidence", metavar="X", help="Confidence of the lower bound; if left out 0.999, with --one-run 0.99."),
]
AuditSteps = Annotated[int | None, _attack("--steps", "-t", metavar="N", min=2, help="Solver steps of each fit.")]
AuditUnit = Annotated[
    str,
    _attack("--unit", metavar="NAME", help="What the two tables differ in: a row, or a person with fifty rows."),
]
Picture = Annotated[
    Path | None,
    options.output("--picture", metavar="FILE", help="Draw claimed, proven and audited ε as .png or .svg."),
]
OneRunTable = Annotated[Path | None, _one_run("--one-run", metavar="TABLE", help="Private table to train on once.")]
OneRunSchema = Annotated[Path | None, _one_run("--schema", metavar="FILE", help="TOML file that declares the columns.")]
CanaryCount = Annotated[int, _one_run("--canaries", metavar="N", min=20, help="Number of canaries.")]
Guesses = Annotated[int | None, _one_run("--guesses", metavar="N", min=2, help="Number of guesses about the canaries.")]


def audit(
    *,
    model_dir: AuditedModel = None,
    solver: AuditedSolver = None,
    epsilon: AuditEpsilon = None,
    delta: AuditDelta = None,
    relation: options.Relation = "replace-one",
    runs: Runs = None,
    confidence: Confidence = None,
    steps: AuditSteps = None,
    unit: AuditUnit = "row",
    one_run: OneRunTable = None,
    schema: OneRunSchema = None,
    target: options.Target = None,
    canaries: CanaryCount = 500,
    guesses: Guesses = None,
    rows: options.NominalRows = None,
    invalid_rows: options.InvalidRows = "error",
    ledger: options.LedgerPlace = None,
    dataset: options.LedgerDataset = None,
    model: options.Model = "logistic",
    batch_size: options.BatchSize = None,
    sampler: options.SamplerName = None,
    accountant: options.Accountant = None,
    clip_norm: options.ClipNorm = None,
    row_norm: options.RowNorm = 1.0,
    no_intercept: options.NoIntercept = False,
    seed: options.Seed = None,
    picture: Picture = None,
    force: options.Force = False,
    json: options.Json = False,
) -> None:
    """Read the command line."""
    if picture is not None:
        check_picture(picture, force)
    of_a_table = {name: value for name, value in locals().items() if name in ONLY_OF_A_TABLE}
    if model_dir is not None:
        claim = {
            "solver": solver,
            "epsilon": epsilon,
            "delta": delta,
            "relation": relation,
            "steps": steps,
            "unit": unit,
        }
        _refuse_together("a model folder", one_run=one_run, **claim, **of_a_table)
        results: dict[str, Any] = _audited_model(model_dir, runs, confidence, seed, picture, json)
    elif epsilon is None:
        raise InvalidParameter(
            "no --epsilon and no model",
            "a claim to attack",
            "give the folder of a model; or --epsilon X with --solver NAME, which needs no data; or --one-run TABLE "
            "with --schema, --epsilon and --delta, which trains once on a private table",
        )
    elif one_run is not None:
        _refuse_together("--one-run", runs=runs, unit=unit)
        request = _request(locals())
        results = {str(one_run): _audited_once(request, canaries, guesses, confidence or ONE_RUN_CONFIDENCE, json)}
    else:
        _refuse_together("no --one-run", **of_a_table)
        results = _audited_solvers(
            solver or "auto", epsilon, delta, runs, confidence, relation, steps, seed, unit, json
        )
    if picture is not None:
        draw_picture(picture, results)


def _audited_solvers(
    name: str,
    epsilon: float,
    delta: float | None,
    runs: int | None,
    confidence: float | None,
    relation: str,
    steps: int | None,
    seed: int | None,
    unit: str,
    json: bool,
) -> dict[str, AuditResult]:
    from dpadmm.audit import audit_solver
    from dpadmm.audit.end_to_end import AUDIT_DELTA, AUDIT_STEPS
    from dpadmm.solvers.base import SOLVERS

    results, unproved = {}, []
    for each in SOLVERS if name == ALL else (name,):
        try:
            with working(f"attacking {each}", visible=not json):
                results[each] = audit_solver(
                    each,
                    epsilon,
                    AUDIT_DELTA if delta is None else delta,
                    runs or SOLVER_RUNS,
                    confidence or SOLVER_CONFIDENCE,
                    relation,
                    steps or AUDIT_STEPS,
                    seed,
                    unit,
                )
        except (SchemeMismatch, UnsupportedProblem):
            if name != ALL:
                raise
            unproved.append(each)
    entries = [{"solver": each, "relation": relation, **entry(result)} for each, result in results.items()]
    if json:
        print_json({"audits": entries, "unproved": unproved} if name == ALL else entries[0])
    elif name == ALL:
        print_all(results, relation)
        for each in unproved:
            under = relation if unit == "row" else f"{relation} for {unit}s"
            print_line(f"{each} refuses to train under {under}, so there is no claim to audit.")
    else:
        print_two_tables(f"Audit of {name}", results[name], relation)
    return results


def _audited_model(
    folder: Path, runs: int | None, confidence: float | None, seed: int | None, picture: Path | None, json: bool
) -> dict[str, Any]:
    """The audit by its name, or nothing where statement and plan were verified but no attack could be made."""
    from dpadmm.audit import NoAttack, audit_model

    model, confidence = read_model(folder), confidence or SOLVER_CONFIDENCE
    try:
        with working("attacking the plan of the model", visible=not json):
            result = audit_model(model, runs, confidence, seed)
    except NoAttack as refusal:
        if picture is not None:
            raise
        tell_checked(folder, refusal, confidence, json)
        return {}
    tell_model(folder, result, json)
    return {str(folder): result}


def _audited_once(
    request: FitRequest, canaries: int, guesses: int | None, confidence: float, json: bool
) -> OneRunResult:
    from dpadmm.audit import audit_one_run

    declared = declared_schema(request)
    if declared.person is not None:
        raise InvalidParameter(
            "--one-run with a schema that names a column of persons",
            "a schema without one: canaries are single rows",
            'remove person = "…" to audit the promise to single rows, or attack a solver with --unit person',
        )
    model = declared_model(request, declared, verbose=False)
    check_public_choices(request, model, declared)
    table = read_encoded(request.table, declared, with_target=True, blank_invalid=request.invalid_rows == "zero")
    with working("training once, with canaries", visible=not json):
        result = audit_one_run(model, features_of(table), table.y, canaries, guesses, confidence)
    if json:
        print_json(entry(result))
        return result
    print_one_run(result, charged=request.ledger is not None)
    return result


def _request(given: dict[str, Any]) -> FitRequest:
    """The options as `dpadmm fit` would have them; penalties are left out, because they cost no privacy."""
    if given["schema"] is None or given["delta"] is None:
        raise InvalidParameter("--one-run without --schema or --delta", "both, as for `dpadmm fit`", "add them")
    if given["solver"] == ALL:
        raise InvalidParameter(
            "--one-run with --solver all", "one solver", "name one: every fit spends its whole budget"
        )
    shared = {name: value for name, value in given.items() if name in FitRequest.__dataclass_fields__}
    chosen = {"table": given["one_run"], "solver": given["solver"] or "auto"}
    return FitRequest(**{**shared, **chosen}, out=Path(), quiet=True)


def _refuse_together(what: str, **others: Any) -> None:
    given = ["--" + name.replace("_", "-") for name, value in others.items() if value != DEFAULTS.get(name)]
    if given:
        raise InvalidParameter(f"{', '.join(given)} with {what}", "options of one kind of audit", "drop one of them")
