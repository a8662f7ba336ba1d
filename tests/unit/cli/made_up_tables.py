"""Small made-up tables for the tests of the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dpadmm.tables import Schema

SECRET = "SECRET-7431"
SCHEMA = """\
[columns.age]
kind = "numeric"
lower = 0
upper = 100

[columns.work]
kind = "categorical"
categories = ["private", "state"]

[columns.married]
kind = "boolean"

[columns.id]
kind = "ignore"

[columns.outcome]
kind = "categorical"
categories = ["well", "ill"]
"""


def make_frame(rows: int = 400, seed: int = 0) -> pd.DataFrame:
    """Rows whose outcome follows the age; the ignored column is a secret."""
    rng = np.random.default_rng(seed)
    age = rng.integers(0, 100, rows)
    return pd.DataFrame(
        {
            "age": age,
            "work": rng.choice(["private", "state"], rows),
            "married": rng.choice(["yes", "no"], rows),
            "id": [f"{SECRET}-{i}" for i in range(rows)],
            "outcome": np.where(age + rng.normal(0, 10, rows) > 50, "ill", "well"),
        }
    )


def write_inputs(folder: Path, schema: str = SCHEMA, **changes: Any) -> tuple[str, str]:
    """Write table and schema; `changes` replace the first cell of a column."""
    frame = make_frame().astype(object)
    for column, value in changes.items():
        frame.loc[0, column] = value
    table, declared = folder / "train.csv", folder / "schema.toml"
    frame.to_csv(table, index=False)
    declared.write_text(schema)
    return str(table), str(declared)


def fit_arguments(folder: Path, *more: str, table: str = "", schema: str = "", out: str = "") -> list[str]:
    """A `fit` command line that works, with `more` appended: of an option given twice the last one counts."""
    table = table or str(folder / "train.csv")
    schema = schema or str(folder / "schema.toml")
    options = ["--target", "outcome", "--epsilon", "1", "--delta", "1e-5", "--steps", "20", "--quiet"]
    return ["fit", table, "--schema", schema, *options, "--out", out or str(folder / "model"), *more]


def tree(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def features() -> Schema:
    return Schema.from_toml(SCHEMA).with_target("outcome")
