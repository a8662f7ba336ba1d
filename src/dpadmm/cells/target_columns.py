"""Labels and targets: a column as a user passes it, and what each of its cells means."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from itertools import repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpadmm.cells.holders import brought_here, held_by
from dpadmm.cells.one_cell import Label, all_plain, label, numbers
from dpadmm.cells.pandas_cells import cells_of, objects_of
from dpadmm.errors import InvalidData

FIXED = "biuf"
"""Kinds of NumPy type of which every cell is a real number, and that no cell can change."""

BEYOND_WHOLE = 2**64
"""No array of whole numbers holds this one, or a larger one."""


def one_column(y: Any) -> NDArray[Any]:
    """`y` as an array with one entry a row: of a fixed numeric or text type as it came, else of its cells as they are.

    A masked cell becomes None, and a list of one cell is that cell, as in a column of a matrix.
    """
    held = brought_here(y)
    if isinstance(held, np.ndarray) and held.dtype.kind == "c":
        raise InvalidData("y with complex entries. Complex data not supported", "real targets", "pass real targets")
    column = _array_of(held)
    if column.ndim == 2 and column.shape[1] == 1:
        column = column.ravel()
    if column.ndim != 1:
        raise InvalidData("y that is not one column (bad input shape)", "a 1d array", "pass one label a row")
    return column if column.dtype.kind in f"{FIXED}USO" else cells_of(list(column))


def is_list(held: Any) -> bool:
    """Whether a container is a sequence of things of any type, such as a list or a tuple."""
    return isinstance(held, Sequence) and not isinstance(held, (str, bytes, bytearray, memoryview))


def unmasked(held: np.ma.MaskedArray[Any, Any]) -> NDArray[Any]:
    """The cells of a masked array, with None where one is masked."""
    cells = np.empty(held.shape, dtype=object)
    flat = np.asarray(held.data).ravel()
    cells.ravel()[:] = cells_of(flat.tolist() if held.dtype.kind in f"{FIXED}USO" else list(flat))
    cells[np.ma.getmaskarray(held)] = None
    return cells


def numeric_column(column: NDArray[Any]) -> NDArray[np.float64]:
    """A copy of the numbers of a column; what is no number becomes NaN."""
    if column.dtype.kind in FIXED:
        return column.astype(np.float64)
    return numbers(column.tolist())


def positions(column: NDArray[Any], declared: Sequence[Label]) -> NDArray[Any]:
    """Where each cell stands among the declared labels, in one byte if that is enough; −1 if it is none of them."""
    small = np.int8 if len(declared) <= np.iinfo(np.int8).max else np.intp
    if column.dtype.kind == "O":
        places = {label(each): place for place, each in enumerate(declared)}
        cells = column.tolist()
        # Cells of these very types are called what they are.
        called = cells if all_plain(cells) else map(label, cells)
        return np.fromiter(map(places.get, called, repeat(-1)), dtype=small, count=len(column))
    found_at = np.full(len(column), -1, dtype=small)
    for place, each in enumerate(declared):
        own = _as_stored(each, column.dtype)
        if own is not None:
            found_at[column == own] = place
    return found_at


def distinct(column: NDArray[Any]) -> NDArray[Any]:
    """Each label of a column once; cells that are no labels are left out.

    Of a column that was not passed as an array of one type, the values alone decide what the labels are: one missing
    label makes pandas turn whole numbers into real ones. Whole numbers become `int`, and truth values stay what they
    are if there is nothing else.
    """
    if column.dtype.kind in f"{FIXED}US":
        return np.unique(column)
    labels = {(type(each), each) for each in map(label, column.tolist()) if each is not None}
    if all(kind is bool for kind, _ in labels):
        return cells_of([each for _, each in labels])
    return _in_one_array(list({_by_value(each) for _, each in labels}))


def has_public_type(y: Any) -> bool:
    """Whether a container has one fixed type that no cell can change."""
    return held_by(y, "torch") or (
        isinstance(y, np.ndarray) and not isinstance(y, np.ma.MaskedArray) and y.dtype.kind != "O"
    )


def _by_value(each: Label) -> Label:
    """A label as text, as a whole number, or as the double that it is, if it is one."""
    if isinstance(each, (str, bytes)):
        return each
    whole = int(each)
    if whole == each and abs(whole) < BEYOND_WHOLE:
        return whole
    own = float(each)
    return own if own == each else each


def _in_one_array(labels: list[Label]) -> NDArray[Any]:
    """Labels as an array of whole numbers, or else of objects."""
    if all(type(each) is int for each in labels):
        for whole in (np.int64, np.uint64):
            with suppress(OverflowError):
                return np.array(labels, dtype=whole)
    return cells_of(labels)


def _as_stored(each: Label, dtype: np.dtype[Any]) -> Any:
    """A label as a column of this fixed type would hold it; None if it cannot."""
    if dtype.kind in "US" or isinstance(each, (str, bytes)):
        return each if isinstance(each, {"U": str, "S": bytes}.get(dtype.kind, ())) else None
    try:
        own = dtype.type(each)
        return own if label(own) == label(each) else None
    except (OverflowError, ValueError, TypeError):
        return None


def _array_of(y: Any) -> NDArray[Any]:
    if isinstance(y, np.ma.MaskedArray):
        return np.asarray(y.data) if y.mask is np.ma.nomask else unmasked(y)
    if isinstance(y, np.ndarray):
        return np.asarray(y)
    if is_list(y):
        return cells_of([each[0] if type(each) in (list, tuple) and len(each) == 1 else each for each in y])
    if hasattr(y, "iloc") and y.ndim == 2:
        return _array_of(y.iloc[:, 0])[:, None] if y.shape[1] == 1 else np.empty((0, 0))
    try:
        # Of pandas: a column of one fixed type as it is, of any other cell by cell.
        dtype = getattr(y, "dtype", None)
        fixed = dtype.kind in FIXED if isinstance(dtype, np.dtype) else not (hasattr(y, "dtype") or _is_pyarrow(y))
        return np.asarray(y) if fixed else objects_of(y)
    except Exception:  # an object that is no column
        return np.empty((0, 0))


def _is_pyarrow(y: Any) -> bool:
    return held_by(y, "pyarrow") and hasattr(y, "to_pylist")
