"""Sparse rows that follow each other: their entries are one run, in which no loop has to guess where a row ends.

Rows of text or clicks are short and all of different lengths, and a processor loses as much time on a wrong guess as it
takes to handle several entries. So entries are multiplied one after another, whatever row they are of; ends count only
where products become the margins of rows and where their coefficients are laid beside their entries, and there the
first entries of a row are handled as if there were 24.

Margins and sums are those of `entries`, to the same bit: what is computed of a row must not depend on its neighbours,
and whether it is part of a run does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from dpadmm.kernels.jit import kernel
from dpadmm.kernels.vectors.instructions import (
    INDEX,
    ZERO,
    Matrix,
    counted,
    first_lanes,
    index_at,
    load,
    require_rows_in_order,
    splat,
    store,
    sum_of_lanes,
    widened,
)
from dpadmm.kernels.vectors.sparse_loops import FETCH_AHEAD, TOGETHER, Group, Stored

U = np.uintp
AT_ONCE = 3
"""Vectors of a row that are handled without asking whether it is as long: most short rows are not longer."""
SHORT = AT_ONCE * TOGETHER
"""Entries of a row, on average, up to which a run is faster than row by row: ends of longer rows are fewer."""


@kernel(inline=True)
def room_for(rows, precision):
    """For what is kept of the entries of so many rows, and beyond, as the last of them is handled as if it had more."""
    return np.empty((rows + 1) * SHORT, precision)


@kernel(inline=True)
def is_run(stored, first, count):
    """Whether count rows from `first` on, or from anywhere if it is negative, are a run of short ones."""
    indptr = stored[2]
    return first >= 0 and U(indptr[U(first) + count]) - U(indptr[U(first)]) <= count * U(SHORT)


@kernel(inline=True)
def dot_run(stored, bounds, first, at, count, point, room, out):
    """out[0, at + r] = ⟨row first + r, point⟩ for count rows r, in the precision of `point` and `room`."""
    _multiply(stored, bounds, U(first), count, point, room)
    _sum_parts(room, stored[2], U(first), at, count, out)


@kernel(inline=True)
def add_run(stored, bounds, first, at, count, coefficients, room, out):
    """out[:, 0] += Σ coefficients[0, at + r] · row first + r, for count rows r."""
    _lay_beside(coefficients, stored[2], U(first), at, count, room)
    _add(stored, bounds, U(first), count, room, out)


@intrinsic
def _multiply(typing: Any, stored: Any, bounds: Any, first: Any, count: Any, point: Any, out: Any) -> Any:
    """out[i] = the value of entry i times the point at its column, for the entries of count rows from `first` on."""
    require_rows_in_order(*stored, *bounds, point, out)

    def put(builder: Any, table: Stored, group: Group, i: Any, given: Matrix, results: Matrix) -> None:
        table.fetch(builder.add(group.position, INDEX(FETCH_AHEAD)))
        store(builder, group.times(given), results.element(ZERO, i), None)

    return types.void(stored, bounds, types.uintp, types.uintp, point, out), _over_run(put)


@intrinsic
def _add(typing: Any, stored: Any, bounds: Any, first: Any, count: Any, factors: Any, out: Any) -> Any:
    """out[:, 0] += the entries of count rows from `first` on, times the factors beside them."""
    require_rows_in_order(*stored, *bounds, factors, out)

    def add(builder: Any, table: Stored, group: Group, i: Any, given: Matrix, sums: Matrix) -> None:
        group.add(load(builder, given.element(ZERO, i), TOGETHER, None), sums)

    return types.void(stored, bounds, types.uintp, types.uintp, factors, out), _over_run(add)


def _over_run(visit: Callable[[Any, Stored, Group, Any, Matrix, Matrix], None]) -> Callable[..., Any]:
    """Code that visits the entries of a run eight at a time, with the number of the first of them in the run."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        table = Stored.of(context, builder, signature.args, arguments)
        given, results = (Matrix.of(context, builder, signature.args[k], arguments[k]) for k in (4, 5))
        first, count = arguments[2:4]
        start, stop = (index_at(builder, table.indptr, row) for row in (first, builder.add(first, count)))

        def each(group: Group) -> None:
            visit(builder, table, group, builder.sub(group.position, start), given, results)

        table.over_groups((start, stop), each)
        return context.get_dummy_value()

    return generate


@intrinsic
def _sum_parts(typing: Any, parts: Any, indptr: Any, first: Any, at: Any, count: Any, out: Any) -> Any:
    """out[0, at + r] = Σ of the parts of row first + r, for count rows r; parts are counted from the first of them.

    Number i of a row goes to sum i mod 8.
    """
    require_rows_in_order(parts, indptr, out)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        given, starts, results = (Matrix.of(context, builder, signature.args[k], arguments[k]) for k in (0, 1, 5))
        first, at, count = arguments[2:5]
        nothing = ir.Constant(ir.VectorType(given.data.type.pointee, TOGETHER), None)
        total = cgutils.alloca_once(builder, nothing.type)

        with _spans(builder, starts, first, count) as (r, begin, end):

            def add(position: Any) -> None:
                vector = load(builder, given.element(ZERO, position), TOGETHER, None)
                mask = first_lanes(builder, builder.sub(end, position), TOGETHER)
                builder.store(builder.fadd(builder.load(total), builder.select(mask, vector, nothing)), total)

            builder.store(nothing, total)
            _in_vectors(builder, begin, end, add)
            result = widened(builder, sum_of_lanes(builder, builder.load(total)))
            builder.store(result, results.element(ZERO, builder.add(at, r)))
        return context.get_dummy_value()

    return types.void(parts, indptr, types.uintp, types.uintp, types.uintp, out), generate


@intrinsic
def _lay_beside(typing: Any, coefficients: Any, indptr: Any, first: Any, at: Any, count: Any, out: Any) -> Any:
    """out[i] = coefficients[0, at + r] for each entry i of row first + r, for count rows r, counted from the first.

    What is laid beyond the end of a row is overwritten by the next one.
    """
    require_rows_in_order(coefficients, indptr, out)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        given, starts, results = (Matrix.of(context, builder, signature.args[k], arguments[k]) for k in (0, 1, 5))
        first, at, count = arguments[2:5]
        with _spans(builder, starts, first, count) as (r, begin, end):
            vector = splat(builder, builder.load(given.element(ZERO, builder.add(at, r))), TOGETHER)

            def put(position: Any) -> None:
                store(builder, vector, results.element(ZERO, position), None)

            _in_vectors(builder, begin, end, put)
        return context.get_dummy_value()

    return types.void(coefficients, indptr, types.uintp, types.uintp, types.uintp, out), generate


@contextmanager
def _spans(builder: Any, indptr: Matrix, first: Any, count: Any) -> Iterator[tuple[Any, Any, Any]]:
    """A loop over count rows from `first` on: number, and positions of its first entry and after its last, all counted
    from those of the first row."""
    start = index_at(builder, indptr, first)
    with counted(builder, count, 1) as r:
        row = builder.add(first, r)
        begin, end = (builder.sub(index_at(builder, indptr, builder.add(row, INDEX(k))), start) for k in (0, 1))
        yield r, begin, end


def _in_vectors(builder: Any, begin: Any, end: Any, visit: Callable[[Any], None]) -> None:
    """Visit every eighth position from begin to end, the first ones also beyond the end."""
    for vector in range(AT_ONCE):
        visit(builder.add(begin, INDEX(vector * TOGETHER)))
    with counted(builder, end, TOGETHER, builder.add(begin, INDEX(AT_ONCE * TOGETHER))) as position:
        visit(position)
