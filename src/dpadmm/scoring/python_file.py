"""`score.py`: a released model as a Python program that needs NumPy alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dpadmm.scoring.linear_score import REGRESSION, LinearScore

_HEAD = '''\
"""Predictions of a linear model, from raw rows: needs NumPy, not the library that trained the model.

    python score.py TABLE.csv > predictions.csv

or in Python, with rows as dicts by column name (or as lists in the order of COLUMNS):

    from score import predict, scores
    predict([{{"name of a column": "a cell", ...}}])

score = s * (features of the row, and 1 if there is an intercept) times WEIGHTS and INTERCEPT, where
s = min(1, ROW_NORM / norm of these features) is the row's own scale.{regression}

Scores equal those of the model but for the last bits of double precision, and so do predicted numbers. A predicted
class is that of `dpadmm predict`, unless two classes tie but for these bits. A row that
`dpadmm predict` refuses as invalid gets a blank line. Columns that the model does not use are not looked at.

{promise}
"""
'''


def python_file(model: LinearScore) -> str:
    """The text of `score.py`, in ASCII: names and labels are literals, and cannot end the string they stand in."""
    features = model.weights[:-1] if model.intercept else model.weights
    labels = None if model.labels is None or model.target_range is not None else list(model.labels)
    values = {
        "COLUMNS": _listed([each.python() for each in model.inputs]),
        "WEIGHTS": _listed(features.tolist()),
        "INTERCEPT": ascii(model.weights[-1].tolist() if model.intercept else None),
        "ROW_NORM": ascii(model.row_norm),
        "LABELS": ascii(labels),
        "TARGET_RANGE": ascii(model.target_range),
    }
    said = "" if model.target_range is None else f"\n{REGRESSION}"
    head = _HEAD.format(promise="\n".join(model.promise.lines), regression=said)
    return head + _with_constants(_program(), values)


def _program() -> str:
    """The source of `standalone.py` after its own first lines."""
    source = Path(__file__).with_name("standalone.py").read_text(encoding="utf-8")
    return source[source.index("\nfrom __future__") :]


def _with_constants(program: str, values: dict[str, str]) -> str:
    """The program, with these values in place of the empty model."""
    made = []
    for line in program.splitlines():
        constant = line.partition(":")[0]
        made.append(f"{constant} = {values[constant]}\n" if constant in values else line + "\n")
    return "".join(made)


def _listed(values: list[Any]) -> str:
    """A list with a line for each entry."""
    return "[\n" + "".join(f"    {value!a},\n" for value in values) + "]"
