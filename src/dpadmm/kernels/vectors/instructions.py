"""Pieces of vector code that the loops over dense rows (`lanes`) and over stored entries (`entries`) are built of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.errors import TypingError

from dpadmm.kernels.vectors.processor_caches import NEARNESS

INDEX = ir.IntType(64)
ZERO = INDEX(0)
DOUBLE = ir.DoubleType()
SWIFT_BITS = 128
"""Lanes change places fastest within parts of this many bits, or these parts as a whole."""


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
    """None stands for an array that there is not."""
    if any(getattr(array, "layout", "C") != "C" for array in arrays):
        raise TypingError("arrays must be C-contiguous")


@contextmanager
def counted(builder: Any, stop: Any, step: int, start: Any = ZERO) -> Iterator[Any]:
    """A loop; its value is the counter."""
    with cgutils.for_range_slice(builder, start, stop, INDEX(step)) as (counter, _):
        yield counter


def index_at(builder: Any, numbers: Matrix, place: Any) -> Any:
    """A number that is never negative, as an index."""
    number = builder.load(numbers.element(ZERO, place))
    return number if number.type == INDEX else builder.zext(number, INDEX)


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


def store(builder: Any, vector: Any, address: Any, mask: Any) -> None:
    """The lanes of the mask, if there is one."""
    place, width = as_vector(builder, address, vector.type.count), 8 if vector.type.element == DOUBLE else 4
    if mask is None:
        builder.store(vector, place, align=width)
        return
    kinds = [vector.type, place.type, ir.IntType(32), mask.type]
    name = f"llvm.masked.store.v{vector.type.count}f{8 * width}.p0"
    put = cgutils.get_or_insert_function(builder.module, ir.FunctionType(ir.VoidType(), kinds), name)
    builder.call(put, [vector, place, ir.IntType(32)(width), mask])


def fetch(builder: Any, address: Any) -> None:
    """Ask for the cache line at an address, near enough to the processor. A wrong address does no harm."""
    number, pointer = ir.IntType(32), ir.IntType(8).as_pointer()
    shape = ir.FunctionType(ir.VoidType(), [pointer, number, number, number])
    ask = cgutils.get_or_insert_function(builder.module, shape, "llvm.prefetch.p0")
    builder.call(ask, [builder.bitcast(address, pointer), number(0), number(NEARNESS), number(1)])


def first_lanes(builder: Any, count: Any, lanes: int) -> Any:
    """None if the count is negative."""
    numbers = ir.Constant(ir.VectorType(INDEX, lanes), list(range(lanes)))
    return builder.icmp_signed("<", numbers, splat(builder, count, lanes))


def splat(builder: Any, value: Any, lanes: int) -> Any:
    vector = ir.VectorType(value.type, lanes)
    one = builder.insert_element(ir.Constant(vector, ir.Undefined), value, ir.IntType(32)(0))
    zeros = ir.Constant(ir.VectorType(ir.IntType(32), lanes), None)
    return builder.shuffle_vector(one, ir.Constant(vector, ir.Undefined), zeros)


def widened(builder: Any, value: Any) -> Any:
    """A number, or a vector of them, as doubles."""
    is_vector = isinstance(value.type, ir.VectorType)
    wide = ir.VectorType(DOUBLE, value.type.count) if is_vector else DOUBLE
    return value if value.type == wide else builder.fpext(value, wide)


def fma(builder: Any, a: Any, b: Any, c: Any) -> Any:
    return builder.fadd(builder.fmul(a, b, flags=("contract",)), c, flags=("contract",))


def sum_of_lanes(builder: Any, vector: Any) -> Any:
    """By halves: log₂ steps."""
    lanes = vector.type.count
    while lanes > 1:
        lanes //= 2
        low, high = (shuffled(builder, vector, vector, range(first, first + lanes)) for first in (0, lanes))
        vector = builder.fadd(low, high)
    return builder.extract_element(vector, ir.IntType(32)(0))


def sums_of_lanes(builder: Any, vectors: list[Any]) -> Any:
    """The sums of the lanes of some vectors, a power of two of them, as one vector.

    Each is added up by halves as in `sum_of_lanes`, to the same last bit: two vectors become one that holds half as
    many lanes of each.
    """
    lanes, width = vectors[0].type.count, vectors[0].type.count
    bits = 64 if vectors[0].type.element == DOUBLE else 32
    held = [(vector, [number]) for number, vector in enumerate(vectors)]
    while len(held) > 1:
        halves = []
        for (a, in_a), (b, in_b) in zip(held[::2], held[1::2], strict=True):
            slots = [(0, k) for k in range(len(in_a))] + [(lanes, k) for k in range(len(in_b))]
            if width * bits <= SWIFT_BITS:
                slots.sort(key=lambda slot: slot[1])
            halves.append(
                (
                    _low_plus_high(builder, a, b, [first + k * width for first, k in slots], width),
                    [(in_b if first else in_a)[k] for first, k in slots],
                )
            )
        held, width = halves, width // 2
    ((vector, order),) = held
    places = [order.index(number) * width for number in range(len(vectors))]
    if width == 1:
        return shuffled(builder, vector, vector, places)
    while width > 1:
        vector, width = _low_plus_high(builder, vector, vector, places, width), width // 2
        places = [number * width for number in range(len(vectors))]
    return vector


def _low_plus_high(builder: Any, a: Any, b: Any, starts: list[int], width: int) -> Any:
    """The lower half of each run of `width` lanes plus its upper half; runs are given by where they start."""
    half = width // 2
    low, high = (
        shuffled(builder, a, b, [start + shift + lane for start in starts for lane in range(half)])
        for shift in (0, half)
    )
    return builder.fadd(low, high)


def shuffled(builder: Any, a: Any, b: Any, lanes: Iterable[int]) -> Any:
    """A vector of some lanes of two: those of b are counted on from those of a."""
    chosen = list(lanes)
    return builder.shuffle_vector(a, b, ir.Constant(ir.VectorType(ir.IntType(32), len(chosen)), chosen))
