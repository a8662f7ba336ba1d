"""The program of `score.py`: this file is written there, with the model in place of the constants below."""

from __future__ import annotations

import csv
import gzip
import math
import sys
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

COLUMNS: list[dict[str, Any]] = []
WEIGHTS: list[list[float]] = []
INTERCEPT: list[float] | None = None
ROW_NORM: float = 1.0
LABELS: list[Any] | None = None
TARGET_RANGE: tuple[float, float] | None = None

TRUE, FALSE = ("true", "t", "yes", "y", "1", "1.0"), ("false", "f", "no", "n", "0", "0.0")
MISSING = ("", "na", "n/a", "<na>", "nan", "null", "none")
BLOCK = 10_000


# What a cell says, looked at by itself; None: nothing.


def real(cell: Any) -> Any:
    """Of a complex or short real number: the float that it is, or NaN. Any other cell as it is."""
    if isinstance(cell, (complex, np.complexfloating)):
        cell = cell.real if cell.imag == 0 else math.nan
    return float(cell) if isinstance(cell, np.floating) else cell


def number_of(cell: Any) -> float | None:
    try:
        value = float(real(cell))
    except (TypeError, ValueError, OverflowError):
        return None
    return value if math.isfinite(value) else None


def text_of(cell: Any) -> str | None:
    if isinstance(cell, str):
        return cell.strip()
    cell = real(cell)
    if cell is None or type(cell).__name__ in ("NAType", "NaTType") or (isinstance(cell, float) and math.isnan(cell)):
        return None
    return str(int(cell)) if isinstance(cell, float) and cell.is_integer() else str(cell)


def truth_of(cell: Any) -> bool | None:
    word = (text_of(cell) or "").lower()
    return True if word in TRUE else False if word in FALSE else None


def spelled_number(text: str) -> Any:
    """The exact number that a text spells; None for any other text."""
    try:
        value = Decimal(text)
    except ArithmeticError:
        return None
    return value if value.is_finite() else None


def called(cell: Any, values: list[str]) -> str | None:
    """Which of the declared texts a cell is: a text by its letters, a number or truth value by its value alone."""
    cell = real(cell)
    if not isinstance(cell, (int, float, Decimal, Fraction, np.integer, np.bool_)) or number_of(cell) is None:
        return text_of(cell)
    exact, rounded = int(cell) if cell == int(cell) else cell, float(cell)
    plainly = sorted(values, key=lambda text: text_of(number_of(text)) != text)
    spelled = [(spelled_number(text), text) for text in plainly]
    for value, text in spelled:
        if value is not None and (value == exact or (value % 1 and abs(value) < 2**53 and float(value) == rounded)):
            return text
    word = "True" if exact == 1 else "False" if exact == 0 else None
    return word if word in values else None


def is_missing(cell: Any) -> bool:
    if isinstance(cell, str):
        return cell.strip().lower() in MISSING
    try:
        return cell is None or type(cell).__name__ in ("NAType", "NaTType") or bool(cell != cell)
    except (TypeError, ValueError, ArithmeticError):
        return False


# A function for each kind of column: the features of a cell, or None: its row has no score. A missing cell is fill.


def number(cell: Any) -> list[float] | None:
    value = number_of(cell)
    return None if value is None else [value]


def ranged(cell: Any, lower: float, upper: float, fill: float | None = None) -> list[float] | None:
    value = number_of(cell)
    if value is None and is_missing(cell):
        value = fill
    return None if value is None else [(min(max(value, lower), upper) - lower) / (upper - lower)]


def yes_no(cell: Any, fill: bool | None = None) -> list[float] | None:
    value = truth_of(cell)
    if value is None and is_missing(cell):
        value = fill
    return None if value is None else [float(value)]


def category(cell: Any, values: list[Any], strict: bool, fill: Any = None) -> list[float] | None:
    if isinstance(values[0], str):
        said: Any = called(cell, values)
    else:
        said = truth_of(cell) if isinstance(values[0], bool) else number_of(cell)
    if said not in values:
        said = fill if is_missing(cell) else None
    if strict and said is None:
        return None
    return [float(said is not None and said == value) for value in values]


KINDS: dict[str, Any] = {"number": number, "ranged": ranged, "yes_no": yes_no, "category": category}


def features(row: Any) -> list[float] | None:
    """Of one row: a dict by column name, or the cells in the order of COLUMNS. None if a cell has no reading."""
    if not hasattr(row, "keys") and len(row) != len(COLUMNS):
        raise ValueError(f"given a row of {len(row)} cells; expected {len(COLUMNS)}, in the order of COLUMNS")
    made: list[float] = []
    for place, column in enumerate(COLUMNS):
        constants = {key: value for key, value in column.items() if key not in ("kind", "name")}
        cell = row[column["name"]] if hasattr(row, "keys") else row[place]
        part = KINDS[column["kind"]](cell, **constants)
        if part is None:
            return None
        made += part
    return made


def row_scales(rows: Any) -> Any:
    """min(1, ROW_NORM / norm of the row), without a square that overflows."""
    peak = np.abs(rows).max(axis=1, initial=0.0)
    peak = np.where(peak > 0, peak, 1.0)
    ratio = np.sqrt(np.einsum("ij,ij->i", rows / peak[:, None], rows / peak[:, None]))
    with np.errstate(over="ignore"):
        return np.minimum(1.0, ROW_NORM / peak / np.where(ratio > 0, ratio, 1.0))


def scores(rows: Any) -> list[list[float] | None]:
    """The scores of each row (of a regression: its prediction before it is put into the range); None if invalid."""
    read = [features(row) for row in rows]
    valid = [part for part in read if part is not None]
    if not valid:
        return [None] * len(read)
    X, weights = np.array(valid), np.array(WEIGHTS)
    if INTERCEPT is not None:
        X = np.column_stack([X, np.ones(len(X))])
        weights = np.vstack([weights, INTERCEPT])
    found = iter(((X * row_scales(X)[:, None]) @ weights).tolist())
    return [None if part is None else next(found) for part in read]


def prediction(score: list[float] | None) -> Any:
    """A class, or of a regression a number; None if there is no score."""
    if score is None:
        return None
    if TARGET_RANGE is not None:
        half = (TARGET_RANGE[1] - TARGET_RANGE[0]) / 2
        return half * score[0] + TARGET_RANGE[0] + half
    assert LABELS is not None
    return LABELS[int(score[0] > 0) if len(score) == 1 else int(np.argmax(score))]


def predict(rows: Any) -> list[Any]:
    """The prediction of each row; None where it has no score."""
    return [prediction(score) for score in scores(rows)]


def read_rows(path: str) -> Any:
    """The rows of a CSV file (comma-separated UTF-8 with a header; .gz too) as dicts, one after the other."""
    csv.field_size_limit(2**31 - 1)
    opened: Any = gzip.open if path.lower().endswith(".gz") else open
    with opened(path, "rt", encoding="utf-8-sig", newline="") as stream:
        lines = csv.reader(stream)
        head = [name.strip() for name in next(lines, [])]
        wanted = [column["name"] for column in COLUMNS]
        if len(set(head)) < len(head) or not set(wanted) <= set(head):
            sys.exit("given a table without a column of the model, or with two of one name; expected each column once")
        for line in lines:
            if line and len(line) != len(head):
                sys.exit("given a table with a row longer or shorter than its header; expected as many cells in each")
            if line:
                yield dict(zip(head, line, strict=True))


def write_predictions(path: str, stream: Any) -> None:
    """A line a row: its prediction and its scores, blank where it has none."""
    outputs = len(WEIGHTS[0])
    head = ["score"] if outputs == 1 else [f"score={label}" for label in LABELS or ()]
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(["prediction", *head])
    block: list[Any] = []
    for row in read_rows(path):
        block.append(row)
        if len(block) == BLOCK:
            write_block(writer, block, outputs)
            block = []
    write_block(writer, block, outputs)


def write_block(writer: Any, block: list[Any], outputs: int) -> None:
    for score in scores(block):
        writer.writerow([""] * (outputs + 1) if score is None else [prediction(score), *score])


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit("usage: python score.py TABLE.csv > predictions.csv")
    with open(sys.stdout.fileno(), "w", encoding="utf-8", newline="", closefd=False) as stream:
        write_predictions(sys.argv[1], stream)


if __name__ == "__main__":
    main()
