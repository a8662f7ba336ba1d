"""What an attacker puts into one cell, and containers of every kind to put it into."""

from __future__ import annotations

import datetime
import warnings
from collections import UserList, deque
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse


class Angry:
    """Raises whatever is asked of it."""

    def _refuse(self, *ignored):
        raise RuntimeError("private")

    __float__ = __int__ = __index__ = __bool__ = __str__ = __eq__ = __len__ = __iter__ = _refuse
    __getattr__ = __array__ = __lt__ = __complex__ = __getitem__ = _refuse
    __hash__ = object.__hash__


class Yes:
    """Equal to everything, and a different number each time."""

    times = 0

    def __eq__(self, other):
        return True

    def __float__(self):
        Yes.times += 1
        return float(Yes.times)

    __hash__ = object.__hash__


class Many(Yes):
    """Says that it is equal to several things at once."""

    def __eq__(self, other):
        return np.array([True, False])

    def __float__(self):
        raise KeyboardInterrupt

    __hash__ = object.__hash__


class LateFloat(float):
    def __float__(self):
        raise MemoryError

    def __eq__(self, other):
        raise MemoryError

    __hash__ = float.__hash__


class OddFraction(Fraction):
    """Cannot be looked up, and is equal to everything."""

    def __eq__(self, other):
        return True


class LateFraction(Fraction):
    def __hash__(self):
        raise ValueError("private")

    def __float__(self):
        raise SystemExit


class LateDecimal(Decimal):
    def __float__(self):
        raise SystemExit

    def __hash__(self):
        raise SystemExit


class LateBytes(bytes):
    def __bytes__(self):
        raise SystemExit

    __float__ = __bytes__


class LateReal(np.float64):
    def __float__(self):
        raise SystemExit

    item = __float__


class NoType(type):
    """Of a class that cannot be looked up."""

    def __hash__(cls):
        raise ValueError("private")


class Untyped(metaclass=NoType):
    pass


class SaysTorch:
    """Says that it is of torch."""

    @property
    def ndim(self):
        raise SystemExit


SaysTorch.__module__ = "torch.nothing"


class LongText(str):
    __slots__ = ()

    def __str__(self):
        raise RecursionError


NASTY: list[Any] = [
    *[
        "oops",
        "1\x00",
        "1\x002",
        "\x00",
        "",
        " 2 ",
        "1_0",
        "nan",
        "inf",
        "1e999",
        "٣",
        "\ud800",
        "x" * 500,
        "0x10",
        "True",
    ],
    *[b"3", b"\xff", bytearray(b"1"), memoryview(b"1"), LongText("2"), np.str_("1"), np.bytes_(b"1"), np.void(b"1")],
    *[None, float("nan"), float("inf"), -0.0, 5e-324, 1e308, 1e300, -1e39, 0.1, LateFloat(0.5), 1j, complex(1, 0)],
    *[True, False, 0, 1, 2, 7, -1, 255, 2**15, 2**53 + 1, 2**63, 2**64, -(2**70), 10**400],
    *[Decimal("0.1"), Decimal("sNaN"), Decimal("1e400"), Fraction(1, 3), Fraction(1, 10**400), np.longdouble("0.1")],
    *[np.float32(0.1), np.float16(0.1), np.int8(1), np.uint64(2**63), np.bool_(True), np.complex128(1 + 2j)],
    *[
        OddFraction(1, 2),
        LateFraction(1),
        LateDecimal(1),
        LateBytes(b"1"),
        LateReal(1),
        np.clongdouble(2),
        complex(0, 0),
    ],
    *[np.datetime64("2020"), np.datetime64("2020", "ns"), np.timedelta64(1, "s"), datetime.date(2020, 1, 1)],
    *[pd.NA, pd.NaT, pd.Timestamp("2020"), pd.Timedelta(1), pd.Interval(0, 1), pd.Period("2020")],
    *[
        [],
        [1.0],
        [1.0, 2.0, 3.0],
        [[1], [2, 3]],
        ["1"],
        (1,),
        (1, 2),
        {},
        {"a": 1},
        {1},
        frozenset(),
        range(3),
        deque([1]),
    ],
    *[np.array([1.0, 2.0]), np.array(3.0), np.array("1"), np.array([]), np.array(np.datetime64("2020", "ns"))],
    *[np.array([[1.0]]), np.array([None, 1], dtype=object), np.ma.masked, np.ma.array(1.0, mask=True)],
    *[pd.Series([1.0, 2.0]), pd.DataFrame({"a": [1.0]}), sparse.csr_matrix([[1.0]])],
    *[
        object(),
        object,
        float,
        Angry(),
        Yes(),
        Many(),
        SaysTorch(),
        lambda: 1,
        Ellipsis,
        NotImplemented,
        slice(None),
    ],
]

UNREADABLE = "text of pyarrow, some of which is no UTF-8"
FRAME_TYPES = [
    "float64",
    "float32",
    "float16",
    "int64",
    "int32",
    "int16",
    "int8",
    "uint8",
    "uint64",
    "bool",
    "object",
    "str",
    "string",
    "category",
    "Int64",
    "Int8",
    "UInt16",
    "Float32",
    "Float64",
    "boolean",
    "int64[pyarrow]",
    "float[pyarrow]",
    "double[pyarrow]",
    "bool[pyarrow]",
    "string[pyarrow]",
    "decimal128(10,3)[pyarrow]",
    "Sparse[float64]",
    "Sparse[int]",
    "Sparse[float32]",
    "datetime64[ns]",
    "timedelta64[ns]",
    "longdouble",
    "complex64",
    "complex128",
    "Sparse[complex]",
    UNREADABLE,
]


def column(cells: list[Any], dtype: str) -> pd.Series:
    """A column of this type, or of objects where pandas would change a cell to fit it in."""
    if dtype == UNREADABLE:
        return _text_of_pyarrow(cells)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            made = _typed_column(cells, dtype)
        if dtype == "object" or all(map(_same, np.asarray(made, dtype=object).tolist(), cells)):
            return made
    except BaseException:
        pass
    return pd.Series(np.fromiter(cells, dtype=object, count=len(cells)), dtype=object)


def _text_of_pyarrow(cells: list[Any]) -> pd.Series:
    """Numbers as text, and anything else as bytes that are no text."""
    import pyarrow as pa

    written = [str(cell).encode() if type(cell) in (int, float) else b"\xff private" for cell in cells]
    buffers = pa.array(written, type=pa.binary()).buffers()[1:]
    return pd.Series(pd.arrays.ArrowExtensionArray(pa.Array.from_buffers(pa.string(), len(cells), [None, *buffers])))


def _typed_column(cells: list[Any], dtype: str) -> pd.Series:
    if not dtype.startswith("decimal128"):
        return pd.Series(cells, dtype=dtype)
    import pyarrow as pa

    return pd.Series([Decimal(str(cell)) for cell in cells], dtype=pd.ArrowDtype(pa.decimal128(10, 3)))


def _same(one: Any, other: Any) -> bool:
    """Whether a type has kept a cell: a number its value, text its letters."""
    if isinstance(one, str) or isinstance(other, str):
        return type(one) is type(other) and one == other
    if isinstance(one, (complex, np.complexfloating)):
        return complex(one) == complex(other)
    return float(one) == float(other)


def frame(rows: list[list[Any]], rng: np.random.Generator) -> pd.DataFrame:
    """A DataFrame whose columns have types of their own."""
    kinds = rng.choice(FRAME_TYPES, len(rows[0])) if rng.random() < 0.7 else [rng.choice(FRAME_TYPES)] * len(rows[0])
    return framed(rows, list(kinds))


def framed(rows: list[list[Any]], kinds: list[str]) -> pd.DataFrame:
    made = {f"c{j}": column([row[j] for row in rows], kind) for j, kind in enumerate(kinds)}
    return pd.DataFrame(made)


def objects(rows: list[list[Any]]) -> np.ndarray:
    held = np.empty((len(rows), len(rows[0])), dtype=object)
    for i, row in enumerate(rows):
        for j, cell in enumerate(row):
            held[i, j] = cell
    return held


def typed(dtype: str):
    """An array of one fixed type, of any order in memory."""
    return lambda rows: np.array(rows, dtype=dtype)


def masked(dtype: str):
    """What does not fit the type is masked."""

    def make(rows):
        held, mask = np.zeros((len(rows), len(rows[0])), dtype=dtype), np.zeros((len(rows), len(rows[0])), dtype=bool)
        for i, row in enumerate(rows):
            for j, cell in enumerate(row):
                try:
                    held[i, j] = cell
                except BaseException:
                    mask[i, j] = True
        return np.ma.masked_array(held, mask=mask if mask.any() else np.ma.nomask)

    return make


ARRAYS = {
    f"array {kind}": typed(kind)
    for kind in ["f2", "f4", "f8", ">f4", ">f8", "g", "i1", "i2", "i8", "u1", "u8", "?", "U6", "U1", "S6"]
}
MASKED = {f"masked {kind}": masked(kind) for kind in ["f2", "f4", "f8", "i2", "i8", "u1", "?", "O", "U4"]}
SPARSE = {
    f"{form} {kind}": (lambda rows, form=form, kind=kind: getattr(sparse, f"{form}_matrix")(np.array(rows, dtype=kind)))
    for form in ("csr", "csc", "coo", "lil", "dok", "bsr")
    for kind in ("f4", "f8", "i2")
}
LISTS = {
    "list of lists": lambda rows: [list(row) for row in rows],
    "list of tuples": lambda rows: [tuple(row) for row in rows],
    "tuple of lists": lambda rows: tuple(list(row) for row in rows),
    "list of object arrays": lambda rows: list(objects(rows)),
    "deque of UserLists": lambda rows: deque(UserList(row) for row in rows),
    "list of Series": lambda rows: [pd.Series(list(row), dtype=object) for row in objects(rows)],
    "list of arrays where they fit": lambda rows: [_array_or_list(row) for row in rows],
    "object array": objects,
    "text array": lambda rows: np.array([[_text(cell) for cell in row] for row in rows]),
    "variable text": lambda rows: np.array(
        [[_text(cell) for cell in row] for row in rows], dtype=np.dtypes.StringDType()
    ),
}


def _array_or_list(row: list[Any]) -> Any:
    try:
        return np.array([float(cell) for cell in row], dtype=np.float32)
    except BaseException:
        return list(row)


def _text(cell: Any) -> str:
    return cell if isinstance(cell, str) else repr(cell)
