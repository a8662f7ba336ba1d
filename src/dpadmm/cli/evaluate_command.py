"""`dpadmm evaluate`: metrics on rows whose metrics may be published."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from dpadmm.cli import options
from dpadmm.cli.header import column_names
from dpadmm.cli.model_folder import features_of, read_encoded, read_model_with_schema
from dpadmm.cli.screen import print_json, print_pairs
from dpadmm.errors import InvalidSchema, PrivacyError
from dpadmm.report import classification_metrics, regression_metrics
from dpadmm.tables import EncodedTable, Schema

HELP = """\
Measure a model on a public or test table: accuracy, AUC and log-loss, or R² and mean absolute error.

Metrics carry no noise. To print them for training rows would break the promise. So you declare with --public-or-test \
that this table is public, or that it holds test rows whose metrics may be printed.

\b
Examples
  dpadmm evaluate model test.csv --public-or-test
"""

NAMES = {
    "rows": "rows",
    "accuracy": "accuracy",
    "largest_class": "share of the largest class",
    "auc": "area under the ROC curve",
    "log_loss": "log-loss",
    "r2": "R²",
    "mean_absolute_error": "mean absolute error",
}


def evaluate(
    model_dir: options.ModelFolder,
    table: options.TableFile,
    public_or_test: Annotated[
        bool, typer.Option("--public-or-test", help="I declare that these rows are public, or held out for a test.")
    ] = False,
    json: options.Json = False,
) -> None:
    if not public_or_test:
        raise PrivacyError(
            "Got a table that was not declared public or test data. Expected the flag --public-or-test: metrics carry "
            "no noise, so those of training rows would leak. Add it only if metrics of this table may be printed."
        )
    model, schema = read_model_with_schema(model_dir)
    _require_target(table, schema)
    encoded = read_encoded(table, schema, with_target=True, blank_invalid=False)
    metrics = _metrics(model, encoded)
    if json:
        print_json(metrics)
    else:
        print_pairs(f"{type(model).__name__} on a public or test table", [_pair(*each) for each in metrics.items()])


def _require_target(table: Path, schema: Schema) -> None:
    """Refuse a table without the column that predictions are compared with."""
    names = column_names(table)
    if schema.target is not None and schema.target.column not in names and set(names) & set(schema.columns):
        raise InvalidSchema(
            f"the table {table} without the target column {schema.target.column!r}",
            "a table that holds what the model predicts, to compare predictions with",
            "add that column, or use `dpadmm predict`, which needs none",
        )


def _metrics(model: Any, encoded: EncodedTable) -> dict[str, float | int | None]:
    assert encoded.y is not None
    features = features_of(encoded)
    predicted = model.predict(features)
    if not hasattr(model, "classes_"):
        return regression_metrics(encoded.y, predicted)
    proba = model.predict_proba(features) if hasattr(model, "predict_proba") else None
    return classification_metrics(encoded.y, model.classes_, predicted, model.decision_function(features), proba)


def _pair(name: str, value: float | int | None) -> tuple[str, str]:
    text = "not defined here" if value is None else f"{value:,}" if isinstance(value, int) else f"{value:.4f}"
    return NAMES[name], text
