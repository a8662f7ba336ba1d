"""Features: a table as a user passes it, as numbers of a precision that no cell decides.

What has one fixed numeric type (an array, a sparse matrix, a tensor) is taken as it is. Whatever can hold cells of any
type (lists, arrays of objects or text, DataFrames of any columns) is read cell by cell, into double precision always.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from dpadmm.cells.holders import NamedArray, brought_here
from dpadmm.cells.one_cell import number, number_or_nan, numbers, raise_if_stopped
from dpadmm.cells.pandas_cells import objects_of
from dpadmm.cells.sparse_places import require_places_inside
from dpadmm.cells.target_columns import FIXED, is_list, unmasked
from dpadmm.cells.text_columns import not_numbers
from dpadmm.errors import InvalidData, InvalidDataType

SINGLE_PRECISION, EQUALLY_LONG = "single-precision", "rows-equally-long"
"""Keys of assumptions."""

Array = NDArray[Any]


def numeric_table(X: Any, tolerant: bool = False) -> Any:
    """`X` as an array or sparse matrix of real numbers: itself where it is one.

    Parameters
    ----------
    tolerant : bool
        Turn cells that are no numbers into NaN instead of refusing the table.
    """
    X = X.X if isinstance(X, NamedArray) else brought_here(X)
    if sparse.issparse(X):
        return _sparse(X)
    if is_frame(X):
        require_usable_names(X)
        return _of_columns(X, tolerant)
    if is_list(X):
        return _of_rows(X, tolerant)
    return _of_array(X, tolerant) if isinstance(X, np.ndarray) else _of_exported(X, tolerant)


def with_names(numbers: Any, X: Any) -> Any:
    """Numbers read from `X`, under the names of its columns where it has any."""
    if not (is_frame(X) or isinstance(X, NamedArray)):
        return numbers
    import pandas as pd

    return pd.DataFrame(numbers, columns=X.columns, copy=False)


def is_frame(X: Any) -> bool:
    """Whether `X` is a DataFrame of pandas."""
    return hasattr(X, "iloc") and hasattr(X, "dtypes") and getattr(X, "ndim", 0) == 2


def precision_of(dtype: Any) -> type[np.floating[Any]]:
    """The precision in which rows of a fixed type are seen."""
    return np.float32 if np.dtype(dtype) in (np.dtype("<f4"), np.dtype(">f4")) else np.float64


def public_form(X: Any, numbers: Any, refuses: bool) -> tuple[str, ...]:
    """What has to be assumed about the form of a table, as it was passed and as it was read.

    Parameters
    ----------
    refuses : bool
        Whether any row that does not fit is refused, which is then assumed of all rows already.
    """
    single = (SINGLE_PRECISION,) if precision_of(numbers.dtype) is np.float32 else ()
    return (*single, *((EQUALLY_LONG,) if is_list(X) and not refuses else ()))


def require_usable_names(X: Any) -> None:
    """Refuse, before anything is charged, names of columns that a fitted model could not keep."""
    names = list(getattr(X, "columns", ()))
    kinds = {type(name) for name in names}
    if len(kinds) > 1 and any(issubclass(kind, str) for kind in kinds):
        raise InvalidDataType(
            "columns some of which are named by text and some not",
            "names that are all text, or none",
            "name all of them by text: X.columns = X.columns.astype(str)",
        )
    if len(set(names)) < len(names):
        raise InvalidData("two columns of the same name", "a name for each column", "rename or drop one of them")


def numbers_of(column: Any, tolerant: bool = True, table: Any = None) -> NDArray[np.float64]:
    """A column of a DataFrame as doubles; a cell that is no number is NaN, or its table is refused."""
    if isinstance(column.dtype, np.dtype) and column.dtype.kind in FIXED:
        return np.asarray(column, dtype=np.float64)
    return _read(objects_of(column).tolist(), tolerant, table)


def _of_columns(X: Any, tolerant: bool) -> Array:
    if all(isinstance(dtype, np.dtype) and dtype == np.float64 for dtype in X.dtypes):
        return np.asarray(X)
    numbers = np.empty(X.shape)
    for place in range(X.shape[1]):
        numbers[:, place] = numbers_of(X.iloc[:, place], tolerant, X)
    return numbers


def _of_array(X: Array, tolerant: bool) -> Array:
    if X.dtype.kind == "c":
        raise _complex()
    if X.ndim != 2:
        raise _no_table(X.ndim)
    if X.dtype.kind not in f"{FIXED}OUST":
        raise not_numbers(X)
    if X.dtype.kind in FIXED:
        if not isinstance(X, np.ma.MaskedArray):
            return np.asarray(X)
        # The type alone decides what masked cells are filled in: whether there are any must not.
        return X.data if X.mask is np.ma.nomask else np.ma.filled(X.astype(precision_of(X.dtype)), np.nan)
    cells = unmasked(X) if isinstance(X, np.ma.MaskedArray) else X
    return _read(cells.ravel().tolist(), tolerant).reshape(cells.shape)


def _of_exported(X: Any, tolerant: bool) -> Array:
    """What makes an array of itself, by rules of its own: one cell may decide the type, so it is double always."""
    found = _exported(X)
    cells = found.astype(object) if found.dtype.kind == "c" and found.ndim == 2 else found
    return np.asarray(_of_array(cells, tolerant), dtype=np.float64)


def _of_rows(X: Any, tolerant: bool) -> Array:
    """A list of rows. How many cells a row has is public: a list in which they differ is refused."""
    found = [_cells_of_row(row) for row in X]
    rows = [row for row in found if row is not None]
    if not rows:
        raise _no_table(1)
    width = len(rows[0])
    if len(rows) < len(found) or any(len(row) != width for row in rows):
        raise InvalidData(
            "X with rows of different lengths, or with something that is no row",
            "a list of rows with one cell a feature",
            "pass as many cells in each row",
        )
    return _read(list(chain.from_iterable(rows)), tolerant).reshape(len(rows), width)


def _cells_of_row(row: Any) -> list[Any] | tuple[Any, ...] | None:
    """The cells of one row; None for what is no row."""
    if type(row) in (list, tuple):
        return row  # type: ignore[no-any-return]
    try:
        if is_list(row):
            return list(row)
        if isinstance(row, np.ma.MaskedArray):
            row = unmasked(row)
        elif not hasattr(type(row), "__array__"):
            return None
        cells = row if isinstance(row, np.ndarray) else _exported(brought_here(row))
        return list(cells) if cells.ndim == 1 else None
    except BaseException as problem:  # whatever an object does when it is looked at: it is no row
        raise_if_stopped(problem)
        return None


def _exported(X: Any) -> Array:
    try:
        return np.asarray(X)
    except BaseException as problem:  # its words may quote a cell
        raise_if_stopped(problem)
    raise InvalidData("X that is no table", "rows and columns", "pass an array or a DataFrame")


def _sparse(X: Any) -> Any:
    """A sparse matrix whose index arrays fit its shape: whatever reads or converts it does not look."""
    if X.ndim != 2:
        raise _no_table(X.ndim)
    if X.format in ("lil", "dok", "dia"):
        X = _as_coordinates(X)
    require_places_inside(X)
    if X.dtype.kind == "c":
        raise _complex()
    if X.dtype.kind not in FIXED:
        raise not_numbers(X)
    return X


def _as_coordinates(X: Any) -> Any:
    with suppress(Exception):  # its words may quote a cell
        if X.format != "lil" or [len(row) for row in X.rows] == [len(row) for row in X.data]:
            return X.tocoo()
    raise InvalidData("a sparse table that is broken", "a valid sparse matrix", "build the matrix again")


def _read(cells: Sequence[Any], tolerant: bool, table: Any = None) -> NDArray[np.float64]:
    try:
        return numbers(cells, number_or_nan if tolerant else number)
    except BaseException as problem:  # whatever the cell raised: its words may quote it
        raise_if_stopped(problem)
    raise not_numbers(table)


def _complex() -> InvalidData:
    return InvalidData("X with complex entries. Complex data not supported", "real numbers", "pass real features")


def _no_table(dimensions: int) -> InvalidData:
    return InvalidData(
        f"X with {dimensions} dimensions. Expected 2D array, got {dimensions}D array",
        "rows and columns",
        "Reshape your data",
    )
