"""A table and its schema → numbers, row by row and by declared constants only."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpadmm.cells.feature_tables import numbers_of
from dpadmm.cells.one_cell import Label, label, number_or_nan, raise_if_stopped
from dpadmm.cells.pandas_cells import objects_of
from dpadmm.errors import InvalidData, InvalidParameter, InvalidSchema
from dpadmm.tables.columns import Boolean, Categorical, Column, Numeric, Value
from dpadmm.tables.lines import unreadable_rows
from dpadmm.tables.missing import is_missing, missing_among
from dpadmm.tables.schema import Schema, TargetColumn

Policy: TypeAlias = Literal["error", "zero"]
Mask: TypeAlias = NDArray[np.bool_]

_TRUE = frozenset({"true", "t", "yes", "y", "1", "1.0"})
_FALSE = frozenset({"false", "f", "no", "n", "0", "0.0"})


@dataclass(frozen=True, eq=False, repr=False)
class EncodedTable:
    """Private: rows as numbers.

    Attributes
    ----------
    X : ndarray of shape (n_rows, n_features)
        Every entry in [0, 1]; rows that are not valid are NaN, which an estimator with `invalid_rows="zero"` takes as
        no contribution.
    y : ndarray or None
        Declared classes, or numbers clipped to the declared range. A placeholder where the row is not valid.
    feature_names : tuple of str
    valid : ndarray of bool
        Private like the rows themselves.
    person : ndarray or None
        The id of the person whose row it is, where the schema names such a column and ids were asked for; None in a
        row without one, which is not valid.
    """

    X: NDArray[np.floating[Any]]
    y: NDArray[Any] | None
    feature_names: tuple[str, ...]
    valid: Mask
    person: NDArray[np.object_] | None = None

    @property
    def units(self) -> int:
        """How many rows there are, or persons where there are ids."""
        return len(self.X) if self.person is None else len({each for each in self.person if each is not None})


def encode(
    frame: pd.DataFrame,
    schema: Schema,
    *,
    with_target: bool,
    invalid_rows: Policy = "error",
    with_person: bool = False,
) -> EncodedTable:
    """Encode a table.

    A numeric cell is clipped to its declared range and mapped onto [0, 1]; a category becomes an indicator; a missing
    cell counts as the declared fill value of its column. Without such a value a missing cell makes its row invalid, and
    so does one that does not parse, or a label outside the classes. Each row is encoded by
    itself: changing one row changes no other.

    Parameters
    ----------
    frame : DataFrame
        With exactly the declared columns, in any order; ignored columns and, without `with_target`, the target may be
        absent.
    schema : Schema
    with_target : bool
        Whether the labels are needed.
    invalid_rows : {"error", "zero"}
        "error" raises if there is an invalid row, which tells that there is one; "zero" blanks such rows silently.
    with_person : bool
        Whether ids are needed, if the schema names the column of the persons. A row without one is not valid.

    Raises
    ------
    InvalidSchema
        Columns missing or undeclared, or no target declared.
    InvalidData
        No rows, or an invalid row under "error". The message never says which, how many or what.
    """
    if invalid_rows not in ("error", "zero"):
        raise InvalidParameter(f"invalid_rows={invalid_rows!r}", "'error' or 'zero'", "choose one of these")
    asked = schema.person if with_person else None
    target = _check_columns(frame, schema, with_target, asked)
    frame = frame.set_axis([str(name) for name in frame.columns], axis=1)
    X = np.zeros((len(frame), schema.n_features))
    valid = ~unreadable_rows(frame)
    position = 0
    for name, column in schema.columns.items():
        width = len(column.features(name))
        if width:
            valid &= _fill(X[:, position : position + width], frame[name], column)
        position += width
    y = None
    if target is not None:
        y, labelled = _labels(frame[target.column], target)
        valid &= labelled
    person = None if asked is None else read_ids(frame[asked])
    if person is not None:
        valid &= known_ids(person)
    if invalid_rows == "error":
        refuse_invalid(valid)
    X[~valid] = np.nan
    return EncodedTable(X, y, schema.feature_names, valid, person)


def refuse_invalid(valid: Mask) -> None:
    """Refuse a table with an invalid row, without saying which, how many or what."""
    if not valid.all():
        raise InvalidData(
            "a table with a missing, unreadable or undeclared value",
            "values that fit the schema in every row",
            "let the owner of the table run `dpadmm check TABLE --schema SCHEMA`, which finds the cells; then correct "
            "them, declare fill values, widen the schema, or choose another treatment of invalid rows",
        )


def _check_columns(
    frame: pd.DataFrame, schema: Schema, with_target: bool, person: str | None = None
) -> TargetColumn | None:
    """Names only, which are public; returns the target to encode."""
    if not isinstance(frame, pd.DataFrame):
        raise InvalidData(f"a table of type {type(frame).__name__}", "a pandas DataFrame", "read it with read_table")
    if with_target and schema.target is None:
        raise InvalidSchema("a schema without target", "a declared target", "add [target] or use with_target")
    names = [str(name) for name in frame.columns]
    present = set(names)
    target = () if schema.target is None else (schema.target.column,)
    needed = schema.required + (target if with_target else ()) + (() if person is None else (person,))
    problems = {
        "missing columns": [name for name in needed if name not in present],
        "columns the schema does not declare": [n for n in names if n not in (*schema.columns, *target, schema.person)],
        "columns present twice": sorted(name for name, times in Counter(names).items() if times > 1),
    }
    if not present & set(needed):
        # A table without a header shows its first row as names: say nothing of them.
        raise InvalidSchema(
            "a table with none of the declared columns",
            "a header line with the columns of the schema",
            "add the header, or correct the names in the schema",
        )
    found = [f"{what} " + ", ".join(map(repr, which)) for what, which in problems.items() if which]
    if found:
        raise InvalidSchema(
            "a table with " + " and ".join(found),
            "exactly the columns of the schema, each once",
            'declare them (kind = "ignore" if not wanted), or correct the table' + _about_an_index(names),
        )
    if len(frame) == 0:
        raise InvalidData("an empty table", "at least one row", "give a table that has rows")
    return schema.target if with_target else None


def _about_an_index(names: list[str]) -> str:
    """Where the column without a name comes from, if there is one."""
    if not any(name == "" or name.startswith("Unnamed: ") for name in names):
        return ""
    return "; a column without a name is usually the index that pandas writes: write the table with index=False"


def _fill(block: NDArray[np.float64], series: pd.Series[Any], column: Column) -> Mask:
    """Write the features of one column into `block`; returns which rows are valid in it."""
    if isinstance(column, Numeric):
        numbers = read_numbers(series, column.fill)
        known = ~np.isnan(numbers)
        block[:, 0] = column.to_unit(np.where(known, numbers, column.lower))
        return known
    if isinstance(column, Boolean):
        codes = read_codes(series, (False, True), column.fill)
        block[:, 0] = codes == 1
        return codes >= 0
    if isinstance(column, Categorical):
        codes = read_codes(series, column.categories, column.fill)
        seen = codes >= 0
        block[np.flatnonzero(seen), codes[seen]] = 1.0
        return seen if column.unseen == "error" else np.ones(len(codes), dtype=bool)
    raise AssertionError("an ignored column has no features")


def _labels(series: pd.Series[Any], target: TargetColumn) -> tuple[NDArray[Any], Mask]:
    if isinstance(target.kind, Numeric):
        numbers = read_numbers(series)
        known = ~np.isnan(numbers)
        return np.clip(np.where(known, numbers, target.kind.lower), target.kind.lower, target.kind.upper), known
    codes = read_codes(series, target.kind.classes)
    return np.array(target.kind.classes)[np.maximum(codes, 0)], codes >= 0


def read_ids(series: pd.Series[Any]) -> NDArray[np.object_]:
    """Ids of persons: numbers by their value, texts by their letters without the spaces around them, else None."""
    found = np.empty(len(series), dtype=object)
    found[:] = [_id(cell) for cell in objects_of(series).tolist()]
    return found


def known_ids(ids: NDArray[np.object_]) -> Mask:
    """Which rows have an id."""
    return np.fromiter((each is not None for each in ids), dtype=bool, count=len(ids))


def _id(cell: Any) -> Label | None:
    if is_missing(cell):
        return None
    found = label(cell)
    return found.strip() if isinstance(found, str) else found


def read_numbers(series: pd.Series[Any], fill: float | None = None) -> NDArray[np.float64]:
    """Finite numbers, `fill` for missing cells if there is one, and NaN for anything else."""
    numbers = _numbers(series)
    if fill is not None:
        numbers[missing_among(series, np.isnan(numbers))] = fill
    return numbers


def read_codes(series: pd.Series[Any], declared: Sequence[Value], fill: Value | None = None) -> NDArray[np.intp]:
    """Position of each cell among the declared values, that of `fill` for missing cells, and -1 for none of them."""
    codes = _codes(series, declared)
    if fill is not None:
        codes[missing_among(series, codes < 0)] = declared.index(fill)
    return codes


def _numbers(series: pd.Series[Any]) -> NDArray[np.float64]:
    """Finite numbers, NaN for anything else.

    Cell by cell on purpose: a parser that looks at a whole column lets one row decide how the others are read.
    """
    numbers = numbers_of(series)
    return np.where(np.isfinite(numbers), numbers, np.nan)


def _codes(series: pd.Series[Any], declared: Sequence[Value]) -> NDArray[np.intp]:
    """Position of each cell among the declared values, -1 for none of them."""
    position: dict[Any, int] = {value: i for i, value in enumerate(declared)}
    cells = objects_of(series).tolist()
    if isinstance(declared[0], str):
        of_value = _by_value(position)
        places = (_text_place(cell, position, of_value) for cell in cells)
    else:
        key: Callable[[Any], Any] = _truth if isinstance(declared[0], bool) else _number
        places = (position.get(key(cell), -1) for cell in cells)
    return np.fromiter(places, dtype=np.intp, count=len(series))


def _text_place(cell: Any, position: dict[Any, int], of_value: dict[Any, int]) -> int:
    """Where a cell stands among declared texts: a text by its letters, a number by its value alone.

    A column of categories holds one of 1, True and Decimal("1.0") for all of them, whichever came first: their
    spelling must not decide, or one cell would rename the others.
    """
    value = None if issubclass(type(cell), str) else label(cell)
    if value is None or isinstance(value, (str, bytes)):
        return position.get(_text(cell), -1)
    rounded = value if isinstance(value, int) else number_or_nan(value)
    return of_value.get(value, of_value.get(rounded, -1))


def _by_value(position: dict[Any, int]) -> dict[Any, int]:
    """The place of each number that a declared text spells; 1 is True and 0 False where only these are declared."""
    found: dict[Any, int] = {}
    for text, place in sorted(position.items(), key=lambda item: _text(number_or_nan(item[0])) != item[0]):
        with suppress(ArithmeticError):
            value = Decimal(text)
            if value.is_finite():
                found.setdefault(value, place)
                if abs(value) < 2**53 and value % 1:
                    found.setdefault(float(value), place)
    for word, truth in (("True", 1), ("False", 0)):
        if word in position:
            found.setdefault(truth, position[word])
    return found


def _number(cell: Any) -> float:
    number = number_or_nan(cell)
    return number if math.isfinite(number) else math.nan


def _text(cell: Any) -> str | None:
    if cell is None or cell is pd.NA or cell is pd.NaT:
        return None
    try:
        if isinstance(cell, str):
            return str.strip(cell)
        # pandas turns whole numbers into real or complex ones, and these into objects of NumPy, as soon as one row
        # has something else: that row must not rename the others.
        if not isinstance(cell, (float, complex, np.inexact)):
            return str(cell)
        number = number_or_nan(cell)
        return None if math.isnan(number) else str(int(number)) if number.is_integer() else str(number)
    except BaseException as problem:  # what cannot be written down is no category, and its words may quote it
        raise_if_stopped(problem)
        return None


def _truth(cell: Any) -> bool | None:
    text = (_text(cell) or "").lower()
    return True if text in _TRUE else False if text in _FALSE else None
