"""`dpadmm fit`: from a raw table and its schema to a private model, its statement and a report."""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import Any

from dpadmm.cli.coefficient_effects import axis_label, coefficients_of, scale_pair, score_words
from dpadmm.cli.declaration_from_options import (
    check_public_choices,
    declared_model,
    declared_schema,
    require_its_number,
)
from dpadmm.cli.early_end import Training
from dpadmm.cli.model_folder import MODEL_FILES, features_of, training_rows, weights_of, write_model_folder
from dpadmm.cli.outputs import held_space, new_folder, told
from dpadmm.cli.promise_in_short import promise_pairs
from dpadmm.cli.raw_columns import raw_columns
from dpadmm.cli.remarks_on_screen import remarks_told
from dpadmm.cli.requests import FitRequest, taking
from dpadmm.cli.screen import print_json, print_line, print_pairs
from dpadmm.errors import Diverged
from dpadmm.report import Report
from dpadmm.tables import Schema

HELP = """\
Train a private model on a table.

The schema declares kinds, ranges, categories and classes, so that none of them is measured from the rows. All \
options are checked before the table is opened. Each run spends its whole budget.

The output folder appears complete or not at all. If a run ends early (a full disk, Ctrl-C, termination), the message \
says whether the budget was spent; with --json this is "budget_spent". A ledger never takes a charge back. If a \
trained model cannot be written to --out, it is saved in a folder for temporary files, which the message names.

\b
Examples
  dpadmm schema patients.csv --out patients.toml   # then fill it in
  dpadmm fit patients.csv --schema patients.toml --target outcome \\
      --epsilon 1 --delta 1e-6 --penalty l1 --alpha 1e-4 --out model
  dpadmm fit bills.parquet --schema bills.toml --model regression \\
      --epsilon 2 --delta 1e-6 --out model
  dpadmm fit patients.csv --schema patients.toml --epsilon 1 --delta 1e-6 \\
      --penalty graph --private-graph 0.2 --out model   # the graph is learned with a fifth of the budget
"""


@taking(FitRequest)
def fit(request: FitRequest) -> None:
    """Read the command line."""
    carry_out(request)


def carry_out(request: FitRequest) -> None:
    """Declare, check, train, write, tell."""
    with Training(request.out, request.dataset) as training:
        schema = declared_schema(request)
        model = declared_model(request, schema, verbose=not request.quiet and sys.stderr.isatty())
        check_public_choices(request, model, schema)
        with new_folder(request.out, MODEL_FILES, request.force, training.written) as folder:
            with training_rows(request, schema) as encoded, held_space(folder, request.out, weights_of(schema)):
                require_its_number(request, encoded.units)
                with remarks_told() as remarks:
                    model.fit(features_of(encoded), encoded.y, person=encoded.person)
                training.trained(model)
            _replay_noise(request, model)
            with told(request.out):
                write_model_folder(folder, model, _report(request, model, schema), schema)
        _tell(request, model, schema, remarks)


def _replay_noise(request: FitRequest, model: Any) -> None:
    """Standard errors where they are asked for, or where they are there for little."""
    wanted = model.quick_to_replay if request.standard_errors is None else request.standard_errors
    if wanted and not model.why_no_noise:
        # The budget is spent: a replay that overflows must not lose the model.
        with suppress(Diverged):
            model.replay_noise()


def _about_errors(request: FitRequest, model: Any) -> str:
    """Whether there are standard errors; if not, why not and what would bring them."""
    if model.noise_was_replayed:
        return "in the report and in coefficients.csv"
    if why := model.why_no_noise:
        return f"none: {why}"
    if request.standard_errors is None:
        return (
            "not computed, because they take longer than the fit. --standard-errors computes them, but a new fit "
            "spends the whole budget again"
        )
    return "none: their computation overflowed" if request.standard_errors else "none, as asked"


def _report(request: FitRequest, model: Any, schema: Schema) -> Report:
    assert schema.target is not None
    coefficients = coefficients_of(model, schema.feature_names, raw_columns(schema))
    return Report(
        title=f"Private model of {schema.target.column}",
        subtitle=f"{type(model).__name__}, penalty {request.penalty}, solver {model.privacy_.solver}",
        results=(),
        statement=model.privacy_,
        plan=model.plan_,
        coefficients=coefficients,
        edges=getattr(model, "graph_", None),
        axis_label=axis_label(model, coefficients),
        score=score_words(model),
    )


def _tell(request: FitRequest, model: Any, schema: Schema, told: list[dict[str, str]]) -> None:
    coefficients = coefficients_of(model, schema.feature_names, raw_columns(schema))
    if request.json:
        print_json(
            {
                "out": str(request.out),
                "model": type(model).__name__,
                "features": schema.n_features,
                "nonzero": coefficients.nonzero,
                "typical_row_scale": coefficients.scale,
                "steps": model.n_iter_,
                "standard_errors": model.noise_was_replayed,
                "privacy": model.privacy_.to_dict(),
                "warnings": told,
                "files": [name for name in MODEL_FILES if (request.out / name).exists()],
            }
        )
        return
    if request.quiet:
        return
    print_pairs(
        f"Model written to {request.out}",
        [
            ("model", f"{type(model).__name__}, penalty {request.penalty}"),
            ("coefficients", f"{coefficients.nonzero} of {schema.n_features} are not zero"),
            scale_pair(coefficients),
            ("solver", f"{model.privacy_.solver}, {model.n_iter_:,} steps"),
            ("standard errors", _about_errors(request, model)),
            *promise_pairs(model.privacy_, request.out, request.dataset),
            ("report", str(request.out / "report.html")),
        ],
    )
    print_line(
        "How well the model fits its training rows is private. Measure it on a test table with `dpadmm evaluate`.",
        style="dim",
    )
