"""A model with its schema and report in one folder, so that raw tables can be scored later."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dpadmm.cells.holders import NamedArray
from dpadmm.cli.raw_columns import raw_columns
from dpadmm.errors import FileProblem, InvalidSchema
from dpadmm.report import REPORT_FILES, Report, promise_texts, write_report
from dpadmm.scoring import SCORE_FILES
from dpadmm.stored_json import parse, read_words
from dpadmm.tables import EncodedTable, Schema, encode, encoded_on_disk, read_table
from dpadmm.tables.encode import Policy

if TYPE_CHECKING:
    from dpadmm.cli.requests import FitRequest

SCHEMA_FILE = "schema.toml"
MODEL_FILES = ("model.npz", "model.json", *SCORE_FILES, SCHEMA_FILE, *REPORT_FILES)
"""What a folder may hold; a model whose names or size SQL cannot take has no `score.sql`."""


def write_model_folder(folder: Path, model: Any, report: Report, schema: Schema | None) -> None:
    """Write everything into an existing folder, which `new_folder` flushes to the disk."""
    from dpadmm.estimators.persistence import model_files

    for name, content in model_files(model, None if schema is None else raw_columns(schema)).items():
        (folder / name).write_bytes(content)
    if schema is not None:
        (folder / SCHEMA_FILE).write_text(schema.to_toml(), encoding="utf-8")
    write_report(folder, report)


def read_model(folder: Path) -> Any:
    """The model of a folder, its statement checked against its plan and against the files that repeat them."""
    from dpadmm.estimators.persistence import changed_score_files, load_model

    model = load_model(folder)
    wrong = [name for name, text in _promised(folder, model).items() if not _says(folder / name, text)]
    wrong += changed_score_files(folder)
    if wrong:
        raise FileProblem(
            f"{folder}, whose {' and '.join(wrong)} contradict{'s' if len(wrong) == 1 else ''} its model",
            "the files as they were written with the model",
            "trust none of them; restore the folder or train the model again",
        )
    return model


def stored_words(folder: Path) -> str | None:
    """The paragraph that was stored with a model; what is printed follows from facts instead."""
    found = _stored(folder)["privacy"].get("statement")
    return None if found is None else str(found)


def _promised(folder: Path, model: Any) -> dict[str, str]:
    """What statement and plan files must say: what `model.json` stores, whose facts were compared with the plan."""
    stored, words = _stored(folder), stored_words(folder)
    statement = {**stored["privacy"], "statement": model.privacy_.text if words is None else words}
    return promise_texts(statement, stored["plan"], model.plan_.digest)


def _stored(folder: Path) -> dict[str, Any]:
    return parse(read_words(folder / "model.json"), f"{folder}/model.json")


def _says(path: Path, text: str) -> bool:
    """Whether a file is absent or holds this text."""
    expected = text.encode()
    try:
        return read_words(path, len(expected)) == expected
    except FileNotFoundError:
        return True
    except (OSError, FileProblem):
        return False


def read_model_with_schema(folder: Path) -> tuple[Any, Schema]:
    """The model and the schema it was trained with."""
    model = read_model(folder)
    path = folder / SCHEMA_FILE
    if not path.is_file():
        raise FileProblem(
            f"{folder}, which holds a model without {SCHEMA_FILE}",
            "a model made by `dpadmm fit`",
            "score arrays in Python with dpadmm.load_model, or train with `dpadmm fit`",
        )
    try:
        schema = Schema.read(path)
    except InvalidSchema:
        schema = None
    if schema is None or schema.target is None or schema.feature_names != tuple(model.feature_names_in_):
        raise FileProblem(
            f"{folder}, whose {SCHEMA_FILE} does not belong to its model",
            "the files as `dpadmm fit` wrote them",
            "restore the folder or train the model again",
        )
    return model, schema


def read_encoded(table: Path, schema: Schema, *, with_target: bool, blank_invalid: bool) -> EncodedTable:
    """Read a raw table and encode it by the declared constants."""
    frame = read_table(table)
    declared = {*schema.columns, *(() if schema.target is None else (schema.target.column,))}
    if declared.isdisjoint(map(str, frame.columns)):
        # Without a header the first row would be taken for names, and names are printed.
        raise InvalidSchema(
            f"the table {table}, whose first line names none of the schema's columns",
            "a header line with the column names",
            "add the header, or give the schema of this table",
        )
    return encode(frame, schema, with_target=with_target, invalid_rows="zero" if blank_invalid else "error")


@contextmanager
def training_rows(request: FitRequest, schema: Schema) -> Iterator[EncodedTable]:
    """The rows to train on, in memory or, if asked for, in a file."""
    blank = request.invalid_rows == "zero"
    if request.on_disk is None:
        yield read_encoded(request.table, schema, with_target=True, blank_invalid=blank)
        return
    policy: Policy = "zero" if blank else "error"
    with encoded_on_disk(request.table, schema, request.on_disk, with_target=True, invalid_rows=policy) as encoded:
        yield encoded


def weights_of(schema: Schema) -> int:
    """How many numbers a model of this schema has."""
    classes = len((schema.target.classes if schema.target else None) or ())
    return (schema.n_features + 1) * (classes if classes > 2 else 1)


def features_of(encoded: EncodedTable) -> Any:
    """The encoded rows with the feature names, in the precision they were encoded in."""
    import pandas as pd

    if encoded.X.dtype == np.float32:
        return NamedArray(encoded.X, encoded.feature_names)
    return pd.DataFrame(encoded.X, columns=list(encoded.feature_names), copy=False)
