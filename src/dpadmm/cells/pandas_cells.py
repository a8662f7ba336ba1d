"""The cells of a column of pandas or pyarrow, exactly; one that cannot be made an object harms no other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray


class _Unreadable:
    """What stands for a cell that cannot be made an object of Python: no number, no label, and not missing."""

    def __str__(self) -> str:
        raise TypeError("no text")


UNREADABLE = _Unreadable()


def cells_of(cells: Sequence[Any]) -> NDArray[Any]:
    """An array that holds each cell as it is, whatever it is."""
    return np.fromiter(cells, dtype=object, count=len(cells))


def objects_of(column: Any) -> NDArray[Any]:
    """The cells of a column as objects; `UNREADABLE` for text that is no UTF-8, or a date beyond those of Python.

    The conversion of all cells at once fails if one of them cannot be converted, and its words may quote it.
    """
    with suppress(Exception):
        if hasattr(column, "to_pylist"):  # of pyarrow, whose own arrays of whole numbers become real with one None
            return cells_of(column.to_pylist())
        if hasattr(getattr(column, "dtype", None), "categories"):  # so do categories, if asked for an array
            column = column.astype(object)
        return np.asarray(column, dtype=object)
    at = _cell_at(column)
    return cells_of([_or_unreadable(at, place) for place in range(len(column))])


def _cell_at(column: Any) -> Callable[[int], Any]:
    if hasattr(column, "to_pylist"):
        return lambda place: column[place].as_py()
    return getattr(column, "iloc", column).__getitem__  # type: ignore[no-any-return]


def _or_unreadable(at: Callable[[int], Any], place: int) -> Any:
    try:
        return at(place)
    except Exception:
        return UNREADABLE
