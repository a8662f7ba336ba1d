"""Ids of persons: whose row each row is, found cell by cell and compared exactly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpadmm.cells.one_cell import label
from dpadmm.cells.target_columns import one_column
from dpadmm.errors import InvalidData


@dataclass(frozen=True, eq=False)
class PersonNumbers:
    """Private but for `count`: the number of the person whose row it is, −1 for a row without an id."""

    of_row: NDArray[np.intp]
    count: int


def numbered(ids: Any, n_rows: int) -> PersonNumbers:
    """Persons numbered from 0 on, in any order.

    Two cells are one id if they are equal as labels are (docs/proofs/rows.md): 1, 1.0 and True are, "1" is another. A
    cell that is no label, such as None, NaN or a list, is no id, nor is a real number so large that it may have been
    rounded (2⁵³ in double precision).

    Examples
    --------
    >>> found = numbered(["a", "b", None, "a"], 4)
    >>> found.of_row.tolist(), found.count
    ([0, 1, -1, 0], 2)
    """
    column = _one_column(ids)
    if len(column) != n_rows:
        raise InvalidData("person and X of inconsistent lengths", "one id a row", "pass matching X and person")
    found = _of_objects(column) if column.dtype.kind == "O" else _of_one_type(column)
    if not found.count:
        raise InvalidData("person without a single id", "one id a row", "pass the ids of the persons")
    return found


def require_complete(persons: PersonNumbers) -> None:
    """Refuse a table in which a row has no id, without saying which or how many."""
    if (persons.of_row < 0).any():
        raise InvalidData(
            "person with a missing id, or a cell that is no id",
            "one number or text a row, by which its person is known",
            "clean the ids, or use invalid_rows='zero', which lets rows without one count for nothing",
        )


def _one_column(ids: Any) -> NDArray[Any]:
    try:
        return one_column(ids)
    except InvalidData:
        pass
    raise InvalidData(
        "person that is not one column, or of complex numbers",
        "one id a row: a row belongs to one person",
        "pass one column; where several persons share a row, name the one who is to be protected",
    )


def _of_objects(column: NDArray[Any]) -> PersonNumbers:
    numbers: dict[Any, int] = {}
    labels = map(_id_of, column.tolist())
    found = (-1 if each is None else numbers.setdefault(each, len(numbers)) for each in labels)
    return PersonNumbers(np.fromiter(found, dtype=np.intp, count=len(column)), len(numbers))


def _id_of(cell: Any) -> Any:
    rounded = isinstance(cell, (float, np.floating)) and not np.abs(cell) < _first_gap(type(cell))
    return None if rounded else label(cell)


def _first_gap(kind: Any) -> float:
    """From here on not every whole number is of this real type: ids of several persons may have become one."""
    return float(2.0 / np.finfo(kind).eps)


def _of_one_type(column: NDArray[Any]) -> PersonNumbers:
    known = np.abs(column) < _first_gap(column.dtype) if column.dtype.kind == "f" else np.ones(len(column), dtype=bool)
    ids, places = np.unique(column[known], return_inverse=True)
    numbers = np.full(len(column), -1, dtype=np.intp)
    numbers[known] = places
    return PersonNumbers(numbers, len(ids))
