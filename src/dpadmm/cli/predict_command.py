"""`dpadmm predict`: score the rows of a raw table."""

from __future__ import annotations

import csv
import io
from typing import Annotated, Any

import numpy as np
import typer

from dpadmm.cli import options
from dpadmm.cli.model_folder import features_of, read_encoded, read_model_with_schema
from dpadmm.cli.outputs import check_new_file, write_new_file
from dpadmm.cli.screen import print_json, print_line
from dpadmm.errors import InvalidParameter
from dpadmm.report.spreadsheet_text import as_text

HELP = """\
Write one prediction for each row of a table, in its order.

A prediction tells about the row it was made from, so treat the output like the table. The files score.py and \
score.sql in the model folder make the same predictions without dpadmm.

\b
Examples
  dpadmm predict model new.csv --out predictions.csv
  dpadmm predict model new.parquet --out predictions.csv --proba
  dpadmm predict model new.csv --out predictions.csv --std   # how far the noise moves each score
"""


def predict(
    model_dir: options.ModelFolder,
    table: options.TableFile,
    out: options.OutFile,
    proba: Annotated[bool, typer.Option("--proba", help="Add the probability of each class.")] = False,
    std: Annotated[bool, typer.Option("--std", help="Add how far the privacy noise moves each score.")] = False,
    invalid_rows: Annotated[
        str,
        typer.Option(
            "--invalid-rows",
            help="What to do with rows that do not fit the schema: error, or blank (their predictions stay empty).",
        ),
    ] = "error",
    force: options.Force = False,
    json: options.Json = False,
) -> None:
    if invalid_rows not in ("error", "blank"):
        raise InvalidParameter(f"--invalid-rows {invalid_rows}", "error or blank", "choose one of these")
    model, schema = read_model_with_schema(model_dir)
    if proba and not hasattr(model, "predict_proba"):
        raise InvalidParameter(
            f"--proba with {type(model).__name__}, which has no probabilities", "a logistic model", "drop --proba"
        )
    if std and not model.noise_was_replayed:
        raise _no_errors(model)
    check_new_file(out, force)
    encoded = read_encoded(table, schema, with_target=False, blank_invalid=invalid_rows == "blank")
    head, columns = _predictions(model, features_of(encoded)[encoded.valid], proba, std)
    write_new_file(out, _csv(head, columns, encoded.valid))
    if json:
        print_json({"out": str(out), "columns": head})
    else:
        print_line(f"Wrote {out} with the column{'s' if head[1:] else ''} {', '.join(head)}.")


def _no_errors(model: Any) -> InvalidParameter:
    from dpadmm.estimators.standard_errors import NOT_COMPUTED

    why = model.why_no_noise
    return InvalidParameter(
        "--std with a model that has no standard errors" + ("" if why == NOT_COMPUTED else f": {why}"),
        "a model that was saved with them",
        "drop --std"
        + (", or train with `dpadmm fit --standard-errors`" if why == NOT_COMPUTED else "")
        + "; a new fit costs its whole budget again",
    )


def _predictions(model: Any, features: Any, proba: bool, std: bool) -> tuple[list[str], list[list[Any]]]:
    """Names and columns of the output, for the valid rows."""
    if len(features) == 0:
        return ["prediction"], [[]]
    head, columns = ["prediction"], [model.predict(features).tolist()]
    if proba:
        head += [f"probability={label}" for label in model.classes_]
        columns += [[f"{chance:.6g}" for chance in each] for each in model.predict_proba(features).T]
    if std:
        errors = model.decision_std(features) if hasattr(model, "decision_std") else model.predict_std(features)
        of = "score" if hasattr(model, "decision_std") else "prediction"
        head += [f"std of {of}"] if errors.ndim == 1 else [f"std of {of}={label}" for label in model.classes_]
        columns += [[f"{error:.6g}" for error in each] for each in np.atleast_2d(errors.T)]
    return head, columns


def _cell(value: Any) -> Any:
    """A label as text that no spreadsheet computes; numbers, and what was made of numbers, as they are."""
    if not isinstance(value, str):
        return value
    try:
        float(value)
    except ValueError:
        return as_text(value)
    return value


def _csv(head: list[str], columns: list[list[Any]], valid: Any) -> bytes:
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(map(as_text, head))
    # A comma-free blank line would be read as no row at all where there is one column, so blanks are quoted.
    rows = iter(zip(*columns, strict=True))
    for usable in np.asarray(valid):
        writer.writerow(map(_cell, next(rows)) if usable else [""] * len(head))
    return stream.getvalue().encode("utf-8")
