"""What one cell means: a number, a label, or neither. The cell alone decides, never the column or table it stands in.

No code of a cell's own class is run where a base class of Python or NumPy says what its value is. Types that are none
of those listed here are neither a number nor a label.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from decimal import Decimal
from fractions import Fraction
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

Label: TypeAlias = bool | int | float | str | bytes | Decimal | Fraction

PLAIN = frozenset({float, int, bool, str})
"""Types of Python that need no detour: what is met most often."""

SCALAR_KINDS = "biufUSOT"
"""Types of zero-dimensional arrays whose only entry may be a cell. Dates are not among them: NumPy would hand out
their nanoseconds as a number."""


def number(cell: Any) -> float:
    """The double nearest to a cell.

    Truth values, whole and real numbers of Python and NumPy, complex ones without an imaginary part, decimals,
    fractions, and text that `float` reads; None is a missing number, NaN.

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
    except BaseException as problem:  # whatever an object does when it is looked at: it is no number
        raise_if_stopped(problem)
        return math.nan


def numbers(cells: Sequence[Any], read: Callable[[Any], float] = number_or_nan) -> NDArray[np.float64]:
    """The numbers of cells, each by itself."""
    if all_plain(cells):
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
    except BaseException as problem:  # as above
        raise_if_stopped(problem)
        return None


def all_plain(cells: Sequence[Any]) -> bool:
    """Whether all cells are of types that need no detour."""
    try:
        return PLAIN.issuperset(map(type, cells))
    except BaseException as problem:  # a type may refuse to be compared
        raise_if_stopped(problem)
        return False


def raise_if_stopped(problem: BaseException) -> None:
    """Let the user stop the program; nothing else that a cell raises may."""
    if type(problem) is KeyboardInterrupt:
        raise problem


def _no_number(cell: Any) -> float:
    raise TypeError("no number")


def _no_label(cell: Any) -> Label | None:
    return None


def _entry(cell: Any) -> Any:
    """What an array without dimensions holds; of others, and of a masked one, nothing."""
    kind = np.ndarray.dtype.__get__(cell).kind
    if np.ndarray.ndim.__get__(cell) or isinstance(cell, np.ma.MaskedArray) or kind not in SCALAR_KINDS:
        raise TypeError("no plain cell")
    return np.ndarray.item(cell)


def _entry_of_tensor(cell: Any) -> Any:
    if cell.ndim:
        raise TypeError("no single cell")
    return cell.item()


class _Tensor:
    """Stands for tensors of torch, which need not be there."""


def _real(cell: complex) -> float:
    """pandas makes a whole column complex for one cell: that cell must not rename the others."""
    if cell.imag != 0:
        raise TypeError("no real number")
    return cell.real


def _text(cell: str) -> str:
    return str.__str__(cell)


def _fraction(cell: Fraction) -> Fraction:
    """A fraction of the very class `Fraction`: one derived from it may be equal to anything, or to nothing."""
    parts = (getattr(Fraction, name).__get__(cell) for name in Fraction.__slots__)
    return Fraction(*map(int.__int__, parts))


def _own_label(cell: Any) -> Label | None:
    """Of a float or a decimal: its value, unless it is none."""
    return cell if math.isfinite(cell) else None


def _exact_label(cell: Any) -> Label | None:
    """Of a real number of NumPy: its value, which may have more digits than a double."""
    if isinstance(cell, float):
        return _own_label(cell)
    return Fraction(*cell.as_integer_ratio()) if np.isfinite(cell) else None


_NUMBERS: dict[type, Callable[[Any], float]] = {
    float: float.__float__,
    int: int.__float__,
    complex: lambda cell: _real(complex.__complex__(cell)),
    str: lambda cell: float(_text(cell)),
    bytes: lambda cell: float(bytes.__bytes__(cell)),
    Decimal: lambda cell: float(Decimal(cell)),
    Fraction: lambda cell: float(_fraction(cell)),
    np.bool_: float,
    np.integer: lambda cell: float(np.generic.item(cell)),
    np.floating: lambda cell: float(np.generic.item(cell)),
    np.complexfloating: lambda cell: float(_real(np.generic.item(cell))),
    np.timedelta64: _no_number,
    np.ndarray: lambda cell: number(_entry(cell)),
    _Tensor: lambda cell: number(_entry_of_tensor(cell)),
    type(None): lambda cell: math.nan,
}
_LABELS: dict[type, Callable[[Any], Label | None]] = {
    bool: bool,
    float: lambda cell: _own_label(float.__float__(cell)),
    int: int.__int__,
    complex: lambda cell: _own_label(_real(complex.__complex__(cell))),
    str: _text,
    bytes: bytes.__bytes__,
    Decimal: lambda cell: _own_label(Decimal(cell)),
    Fraction: _fraction,
    np.bool_: bool,
    np.integer: np.generic.item,
    np.floating: lambda cell: _exact_label(np.generic.item(cell)),
    np.complexfloating: lambda cell: _exact_label(_real(np.generic.item(cell))),
    np.timedelta64: _no_label,
    np.ndarray: lambda cell: label(_entry(cell)),
    _Tensor: lambda cell: label(_entry_of_tensor(cell)),
}


_Meaning = TypeVar("_Meaning")


def _reader(
    kind: type, readers: dict[type, Callable[[Any], _Meaning]], otherwise: Callable[[Any], _Meaning]
) -> Callable[[Any], _Meaning]:
    """What reads cells of a type: that of the nearest class it is derived from."""
    ancestors = type.mro(kind)
    tensor = getattr(sys.modules.get("torch"), "Tensor", None)
    if tensor is not None and tensor in ancestors:
        return readers[_Tensor]
    return next((readers[base] for base in ancestors if base in readers), otherwise)


# Types met often, looked up at once; text and numbers of exactly these types need no detour to a base class.
_COMMON: set[type] = {int, bool, float, str, complex, Decimal, type(None), *np.sctypeDict.values()}
_NUMBER_OF: dict[type, Callable[[Any], float]] = {
    **{kind: _reader(kind, _NUMBERS, _no_number) for kind in _COMMON},
    **dict.fromkeys((str, int, float, np.float64, np.float32, np.int64), float),
}
_LABEL_OF = {kind: _reader(kind, _LABELS, _no_label) for kind in _COMMON}
