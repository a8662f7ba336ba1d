"""Pieces of vector code that the loops over dense rows (`lanes`) and over stored entries (`entries`) are built of."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.errors import TypingError

INDEX = ir.IntType(64)
ZERO = INDEX(0)
DOUBLE = ir.DoubleType()


@dataclass(frozen=True)
class Matrix:
    """A C-ordered array."""

    builder: Any
    data: Any
    rows: Any
    columns: Any

    @classmethod
    def of(cls, context: Any, builder: Any, kind: Any, value: Any) -> Matrix:
        array = context.make_array(kind)(context, builder, value)
        shape = cgutils.unpack_tuple(builder, array.shape, kind.ndim)
        return cls(builder, array.data, shape[0], shape[-1])

    def element(self, i: Any, j: Any) -> Any:
        return self.builder.gep(self.data, [self.builder.add(self.builder.mul(i, self.columns), j)])

    def vector(self, i: Any, j: Any, lanes: int) -> Any:
        return as_vector(self.builder, self.element(i, j), lanes)


def given_bounds(context: Any, builder: Any, kinds: Any, values: Any) -> list[Matrix]:
    """The arrays of a tuple in which those that there are not are None."""
    return [
        Matrix.of(context, builder, kind, value)
        for kind, value in zip(kinds, cgutils.unpack_tuple(builder, values, len(kinds)), strict=True)
        if not isinstance(kind, types.NoneType)
    ]


def require_rows_in_order(*arrays: Any) -> None:
    if any(array.layout != "C" for array in arrays):
        raise TypingError("arrays must be C-contiguous")


@contextmanager
def counted(builder: Any, stop: Any, step: int, start: Any = ZERO) -> Iterator[Any]:
    """A loop; its value is the counter."""
    with cgutils.for_range_slice(builder, start, stop, INDEX(step)) as (counter, _):
        yield counter


def as_vector(builder: Any, address: Any, lanes: int) -> Any:
    return builder.bitcast(address, ir.VectorType(address.type.pointee, lanes).as_pointer())


def load(builder: Any, address: Any, lanes: int, mask: Any) -> Any:
    place = as_vector(builder, address, lanes)
    vector = place.type.pointee
    width = 8 if vector.element == DOUBLE else 4
    if mask is None:
        return builder.load(place, align=width)
    kinds = [place.type, ir.IntType(32), mask.type, vector]
    name = f"llvm.masked.load.v{lanes}f{8 * width}.p0"
    load = cgutils.get_or_insert_function(builder.module, ir.FunctionType(vector, kinds), name)
    return builder.call(load, [place, ir.IntType(32)(width), mask, ir.Constant(vector, None)])


def fetch(builder: Any, address: Any, ahead: Any) -> None:
    """Ask for what lies `ahead` bytes after an address. A wrong address does no harm."""
    number = ir.IntType(32)
    later = builder.gep(builder.bitcast(address, ir.IntType(8).as_pointer()), [ahead])
    shape = ir.FunctionType(ir.VoidType(), [later.type, number, number, number])
    ask = cgutils.get_or_insert_function(builder.module, shape, "llvm.prefetch.p0")
    builder.call(ask, [later, number(0), number(2), number(1)])


def first_lanes(builder: Any, count: Any, lanes: int) -> Any:
    numbers = ir.Constant(ir.VectorType(INDEX, lanes), list(range(lanes)))
    return builder.icmp_unsigned("<", numbers, splat(builder, count, lanes))


def splat(builder: Any, value: Any, lanes: int) -> Any:
    vector = ir.VectorType(value.type, lanes)
    one = builder.insert_element(ir.Constant(vector, ir.Undefined), value, ir.IntType(32)(0))
    zeros = ir.Constant(ir.VectorType(ir.IntType(32), lanes), None)
    return builder.shuffle_vector(one, ir.Constant(vector, ir.Undefined), zeros)


def fma(builder: Any, a: Any, b: Any, c: Any) -> Any:
    return builder.fadd(builder.fmul(a, b, flags=("contract",)), c, flags=("contract",))


def sum_of_lanes(builder: Any, vector: Any) -> Any:
    """By halves: log₂ steps."""
    lanes = vector.type.count
    while lanes > 1:
        lanes //= 2
        undefined = ir.Constant(vector.type, ir.Undefined)
        low, high = (
            builder.shuffle_vector(
                vector, undefined, ir.Constant(ir.VectorType(ir.IntType(32), lanes), list(range(first, first + lanes)))
            )
            for first in (0, lanes)
        )
        vector = builder.fadd(low, high)
    return builder.extract_element(vector, ir.IntType(32)(0))
