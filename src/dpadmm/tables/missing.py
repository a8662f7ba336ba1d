"""Which cells are missing: a rule on the cell alone, whatever its column and the other cells are."""

from __future__ import annotations

import math
from numbers import Number
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpadmm.cells.one_cell import raise_if_stopped
from dpadmm.cells.pandas_cells import objects_of

MISSING_TEXTS = frozenset({"", "na", "n/a", "<na>", "nan", "null", "none"})
"""Texts that say that there is nothing, without the spaces around them and in small letters. Any other text that
cannot be read is not missing but wrong: a fill value must not hide a mistake."""


def is_missing(cell: Any) -> bool:
    """Whether a cell holds nothing.

    A column may declare one of these texts as a category; such a cell is that category, and nobody asks whether it is
    missing.

    Examples
    --------
    >>> [is_missing(cell) for cell in ("", " NA ", "nan", None, float("nan"), "?", "12,5", 0, "0")]
    [True, True, True, True, True, False, False, False, False]
    """
    if cell is None or cell is pd.NA or cell is pd.NaT:
        return True
    try:
        if isinstance(cell, str):
            return str.strip(cell).lower() in MISSING_TEXTS
        return isinstance(cell, (Number, np.generic)) and _is_nan(cell)
    except BaseException as problem:  # an object that cannot be looked at is wrong, and its words may quote it
        raise_if_stopped(problem)
        return False


def missing_among(series: pd.Series[Any], suspects: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which of the suspects are missing: the cells that could not be read."""
    missing = np.zeros(len(suspects), dtype=bool)
    places = np.flatnonzero(suspects)
    cells = objects_of(series.iloc[places]).tolist()
    missing[places] = np.fromiter(map(is_missing, cells), dtype=bool, count=len(places))
    return missing


def _is_nan(number: Any) -> bool:
    try:
        return math.isnan(number)
    except (TypeError, ValueError, OverflowError):
        return bool(number != number) if isinstance(number, (np.generic, complex)) else False
