"""What one cell means: a number, a label, or neither. The cell alone decides, never the column or table it stands in.

No code of a cell's own class is run where a base class of Python or NumPy says what its value is. Types that are none
of those listed here are neither a number nor a label.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from decimal import Decimal
from fractions import Fraction
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpadmm.rows.holders import is_of

Label: TypeAlias = bool | int | float | str | bytes | Decimal | Fraction

PLAIN = frozenset({float, int, bool, str})
"""Types of Python that need no detour: what is met most often."""

SCALAR_KINDS = "biufUSOT"
"""Types of zero-dimensional arrays whose only entry may be a cell. Dates are not among them: NumPy would hand out
their nanoseconds as a number."""


def number(cell: Any) -> float:
    """The double nearest to a cell.

    Truth values, whole and real numbers of Python and NumPy, decimals, fractions, and text that `float` reads; None is
    a missing number, NaN.

    Raises
    ------
    Exception
        Of any kind, where the cell is no number or is beyond all doubles.
    """
    kind = type(cell)
    return (_NUMBER_OF.get(kind) or _reader(kind, _NUMBERS, _no_number))(cell)


def number_or_nan(cell: Any) -> float:
    """The double nearest to a cell; NaN for what is no number."""
    try:
        return number(cell)
    except Exception:  # whatever an object does when it is looked at: it is no number
        return math.nan


def numbers(cells: Sequence[Any], read: Callable[[Any], float] = number_or_nan) -> NDArray[np.float64]:
    """The numbers of cells, each by itself."""
    if PLAIN.issuperset(map(type, cells)):
        with suppress(ValueError, OverflowError):  # the same conversion of each cell, sooner
            return np.fromiter(map(float, cells), dtype=np.float64, count=len(cells))
    return np.fromiter(map(read, cells), dtype=np.float64, count=len(cells))


def label(cell: Any) -> Label | None:
    """What a cell is called, as a value that equals others by Python's rules; None for what is no label.

    1, 1.0 and True are one label; "1" is another. Whole numbers are exact, however large.
    """
    try:
        kind = type(cell)
        return (_LABEL_OF.get(kind) or _reader(kind, _LABELS, _no_label))(cell)
    except Exception:  # as above
        return None


def _no_number(cell: Any) -> float:
    raise TypeError("no number")


def _no_label(cell: Any) -> Label | None:
    return None


def _entry(cell: Any) -> Any:
    """What an array or tensor without dimensions holds; of others, and of a masked one, nothing."""
    if cell.ndim or isinstance(cell, np.ma.MaskedArray):
        raise TypeError("no single cell")
    if isinstance(cell, np.ndarray) and cell.dtype.kind not in SCALAR_KINDS:
        raise TypeError("no plain cell")
    return cell.item()


def _text(cell: str) -> str:
    return str.__str__(cell)


def _own_label(cell: Any) -> Label | None:
    """Of a float or a decimal: its value, unless it is none."""
    return cell if math.isfinite(cell) else None


_NUMBERS: dict[type, Callable[[Any], float]] = {
    float: float.__float__,
    int: int.__float__,
    str: lambda cell: float(_text(cell)),
    bytes: float,
    Decimal: float,
    Fraction: float,
    np.bool_: float,
    np.integer: float,
    np.floating: float,
    np.timedelta64: _no_number,
    np.ndarray: lambda cell: number(_entry(cell)),
    type(None): lambda cell: math.nan,
}
_LABELS: dict[type, Callable[[Any], Label | None]] = {
    bool: bool,
    float: lambda cell: _own_label(float.__float__(cell)),
    int: int.__int__,
    str: _text,
    bytes: bytes,
    Decimal: _own_label,
    Fraction: lambda cell: cell,
    np.bool_: bool,
    np.integer: int,
    np.floating: lambda cell: _own_label(float(cell)),
    np.timedelta64: _no_label,
    np.ndarray: lambda cell: label(_entry(cell)),
}


_Meaning = TypeVar("_Meaning")


def _reader(
    kind: type, readers: dict[type, Callable[[Any], _Meaning]], otherwise: Callable[[Any], _Meaning]
) -> Callable[[Any], _Meaning]:
    """What reads cells of a type: that of the nearest class it is derived from."""
    if is_of(kind, "torch"):
        return readers[np.ndarray]
    return next((readers[base] for base in kind.__mro__ if base in readers), otherwise)


# Types met often, looked up at once; text and numbers of exactly these types need no detour to a base class.
_COMMON: set[type] = {int, bool, float, str, type(None), *np.sctypeDict.values()}
_NUMBER_OF: dict[type, Callable[[Any], float]] = {
    **{kind: _reader(kind, _NUMBERS, _no_number) for kind in _COMMON},
    **dict.fromkeys((str, int, float), float),
}
_LABEL_OF = {kind: _reader(kind, _LABELS, _no_label) for kind in _COMMON}
