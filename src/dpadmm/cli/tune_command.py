"""`dpadmm tune`: a private search over settings of `dpadmm fit`, its whole cost printed before it runs."""

from __future__ import annotations

import json as json_text
from contextlib import nullcontext, suppress
from typing import TYPE_CHECKING, Any

from dpadmm.cli.coefficient_effects import axis_label, coefficients_of, score_words
from dpadmm.cli.declaration_from_options import (
    declared_model,
    declared_number,
    declared_schema,
    require_its_number,
)
from dpadmm.cli.early_end import Training
from dpadmm.cli.model_folder import MODEL_FILES, features_of, read_encoded, weights_of, write_model_folder
from dpadmm.cli.outputs import held_space, new_folder, told
from dpadmm.cli.promise_in_short import promise_pairs
from dpadmm.cli.raw_columns import raw_columns
from dpadmm.cli.remarks_on_screen import remarks_told
from dpadmm.cli.requests import TuneRequest, taking
from dpadmm.cli.screen import print_json, print_line, print_pairs
from dpadmm.errors import BudgetExceeded, InvalidParameter
from dpadmm.privacy.wording import SPENT, pair, rounded_down, rounded_up
from dpadmm.report import Report
from dpadmm.tables import Schema

if TYPE_CHECKING:
    from dpadmm.estimators import DPSearchCV
    from dpadmm.privacy.selection import SearchPlan

HELP = """\
Choose settings on private rows, privately.

The search runs several trials. How many is random and stays secret. Each trial draws one setting from those given by \
--try, fits it on one part of the rows, and scores it with noise on the rest. Only the best model is written. \
--epsilon and --delta are the cost of the whole search. What is left for one trial is printed before the search runs. \
`dpadmm fit` without a search is often the better use of a budget. If a run ends early, the message says whether its \
budget was spent.

\b
Examples
  dpadmm tune patients.csv --schema patients.toml --target outcome \\
      --epsilon 1 --delta 1e-6 --try penalty=none,l1 --try alpha=1e-4,1e-3 --out model
  dpadmm tune patients.csv --schema patients.toml --target outcome --rows 50000 \\
      --epsilon 1 --delta 1e-6 --penalty l1 --try alpha=1e-4,1e-3 --dry-run --json
"""

SEARCHABLE = (
    "alpha",
    "batch_size",
    "clip_norm",
    "fit_intercept",
    "l1_ratio",
    "penalty",
    "row_norm",
    "sampler",
    "smoothing",
    "solver",
    "steps",
)


@taking(TuneRequest)
def tune(request: TuneRequest) -> None:
    """Read the command line."""
    if request.out is None and not request.dry_run:
        raise InvalidParameter(
            "no --out", "--out DIR, the folder to make", "add --out, or --dry-run for the cost alone"
        )
    carry_out(request, read_space(request.tried or []))


def read_space(tried: list[str]) -> dict[str, list[Any]]:
    """{name: values} from NAME=V1,V2,…

    Examples
    --------
    >>> read_space(["alpha=1e-4,1e-3", "penalty=l1,none", "fit_intercept=true"])
    {'alpha': [0.0001, 0.001], 'penalty': ['l1', 'none'], 'fit_intercept': [True]}
    """
    space: dict[str, list[Any]] = {}
    for text in tried:
        name, equals, values = text.partition("=")
        if name not in SEARCHABLE or not equals or not values or name in space:
            raise InvalidParameter(
                f"--try {text}", f"NAME=V1,V2,… once a name, of {', '.join(SEARCHABLE)}", "correct the option"
            )
        space[name] = [_value(word.strip()) for word in values.split(",")]
    if not space:
        raise InvalidParameter(
            "no --try", "at least one --try NAME=V1,V2,…", "say what may be tried, or use `dpadmm fit`"
        )
    return space


def _value(word: str) -> Any:
    try:
        return json_text.loads(word)
    except ValueError:
        return word


def carry_out(request: TuneRequest, space: dict[str, list[Any]]) -> None:
    """Declare, print the cost, search, write, tell."""
    with Training(request.folder, request.dataset) as training:
        _carry_out(request, space, training)


def _carry_out(request: TuneRequest, space: dict[str, list[Any]], training: Training) -> None:
    schema = declared_schema(request)
    search = _declared_search(request, space, schema)
    number, unit = declared_number(request, schema)
    # A dry run shows the cost first. What the ledger refuses here is refused again after the cost was printed.
    with suppress(BudgetExceeded) if request.dry_run else nullcontext():
        search.check(unit)
    classes = len((schema.target.classes if schema.target else None) or ()) or 2
    if number is not None:
        _tell_cost(request, search, search.plan(number, schema.n_features, classes, unit))
    if request.dry_run:
        if number is None:
            option = f"--{unit.plural}"
            expected = f"{option} N, the public number of {unit.plural}"
            raise InvalidParameter(f"--dry-run without {option}", expected, f"add {option}")
        return
    with new_folder(request.folder, MODEL_FILES, request.force, training.written) as folder:
        blank = request.invalid_rows == "zero"
        encoded = read_encoded(request.table, schema, with_target=True, blank_invalid=blank, with_person=True)
        require_its_number(request, encoded.units)
        if number is None:
            _tell_cost(request, search, search.plan(encoded.units, schema.n_features, classes, unit))
        with held_space(folder, request.folder, weights_of(schema)):
            with remarks_told() as remarks:
                search.fit(features_of(encoded), encoded.y, person=encoded.person)
            training.trained(search.best_estimator_)
        with told(request.folder):
            write_model_folder(folder, search.best_estimator_, _report(request, search, schema), schema)
    _tell(request, search, schema, remarks)


def _declared_search(request: TuneRequest, space: dict[str, list[Any]], schema: Schema) -> DPSearchCV:
    from dpadmm.estimators import DPSearchCV

    return DPSearchCV(
        declared_model(request, schema, verbose=False),
        space,
        trials=request.trials,
        mean_trials=request.mean_trials,
        shape=request.shape,
        validation=request.validation,
        scoring=request.scoring,
        score_bound=request.score_bound,
        accountant=request.accountant,
    )


def summarise(plan: SearchPlan, charged: float | None = None) -> dict[str, Any]:
    """What a search costs, as `--json` prints it, with what its data set will have spent if a ledger counts that."""
    return {
        **({} if charged is None else {"dataset_spent": charged, "spent_means": SPENT}),
        "epsilon": plan.budget.epsilon,
        "delta": plan.budget.delta,
        "relation": str(plan.budget.relation),
        "epsilon_achieved": plan.epsilon_achieved,
        "accountant": plan.accountant,
        "proof_status": plan.proof_status,
        "trials": plan.repetitions.to_dict(),
        "base_epsilon": plan.base_budget.epsilon,
        "base_delta": plan.base_budget.delta,
        "training_rows": plan.bases[0].n_rows,
        "validation_rows": plan.score.n_rows,
        "score_noise_std": plan.score.queries[0].noise_std,
        "digest": plan.digest,
    }


def _charged(request: TuneRequest, plan: SearchPlan) -> float | None:
    """ε of the data set with this search, as its ledger counts; refused if that is too much."""
    if request.ledger is None:
        return None
    from dpadmm.privacy.ledger import Ledger

    ledger = Ledger(request.ledger)
    ledger.check(request.dataset, plan, seeded=request.seed is not None)
    return ledger.price(request.dataset, plan)


def _tell_cost(request: TuneRequest, search: DPSearchCV, plan: SearchPlan) -> None:
    """Print what a search costs, then what its data set will have spent; refused if that is too much.

    What speaks against the search is told here by a dry run, and by the search itself where there is one.
    """
    from dpadmm.declare.remarks import announce

    shown = not request.json and (request.dry_run or not request.quiet)
    if shown:
        _print_cost(plan)
    charged = _charged(request, plan)
    with remarks_told() as told:
        announce(search.remarks(plan) if request.dry_run else ())
    if request.json and request.dry_run:
        print_json({**summarise(plan, charged), "warnings": told})
    elif shown and charged is not None:
        print_line(f"Ledger: {request.dataset} will have spent ε = {rounded_up(charged)}. {SPENT}")


def _print_cost(plan: SearchPlan) -> None:
    print_pairs(
        "What this search costs",
        [
            ("total", f"{pair(plan.budget.epsilon, plan.budget.delta)}, {plan.budget.relation}"),
            ("certified", f"ε = {rounded_up(plan.epsilon_achieved)} by the {plan.accountant} accountant"),
            ("trials", f"{plan.repetitions.text}; how many there are stays secret"),
            ("each trial", pair(plan.base_budget.epsilon, plan.base_budget.delta)),
            (plan.unit.plural, f"{plan.bases[0].n_rows:,} train, {plan.score.n_rows:,} score"),
            ("noise on a score", f"{rounded_down(plan.score.queries[0].noise_std, 3)} (standard deviation)"),
        ],
    )


def _outcome(search: DPSearchCV) -> list[tuple[str, str]]:
    """What the search released beside the model, for the screen and the report."""
    chosen, score = search.best_params_, search.best_score_
    return [
        ("chosen", ", ".join(f"{k}={v}" for k, v in chosen.items()) if chosen else "nothing: no trial was made"),
        ("noisy score", "none" if score is None else f"{score:.4f}, the best of several noisy ones"),
    ]


def _report(request: TuneRequest, search: DPSearchCV, schema: Schema) -> Report:
    assert schema.target is not None
    best = search.best_estimator_
    coefficients = coefficients_of(best, schema.feature_names, raw_columns(schema))
    return Report(
        title=f"Private model of {schema.target.column}",
        subtitle=f"{type(best).__name__}, winner of a private search, solver {best.privacy_.solver}",
        results=_outcome(search),
        statement=search.privacy_,
        plan=search.plan_,
        coefficients=coefficients,
        edges=getattr(best, "graph_", None),
        axis_label=axis_label(best, coefficients),
        score=score_words(best),
    )


def _tell(request: TuneRequest, search: DPSearchCV, schema: Schema, told: list[dict[str, str]]) -> None:
    if request.json:
        print_json(
            {
                "out": str(request.folder),
                "model": type(search.best_estimator_).__name__,
                "features": schema.n_features,
                "best_params": search.best_params_,
                "best_score": search.best_score_,
                "cost": summarise(search.plan_),
                "privacy": search.privacy_.to_dict(),
                "warnings": told,
                "files": [name for name in MODEL_FILES if (request.folder / name).exists()],
            }
        )
        return
    if request.quiet:
        return
    print_pairs(
        f"Model written to {request.folder}",
        [
            *_outcome(search),
            *promise_pairs(search.privacy_, request.folder, request.dataset),
            ("report", str(request.folder / "report.html")),
        ],
    )
