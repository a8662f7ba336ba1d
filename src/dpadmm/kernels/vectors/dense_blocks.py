"""Margins and sums of blocks of dense rows, as vector instructions (`dense_loops.py`), for kernels to call.

Float32 rows are widened to be added, which keeps one part of the processor busy; another multiplies the next block
meanwhile (`dot_and_add`).
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from dpadmm.kernels.jit import kernel
from dpadmm.kernels.vectors.dense_loops import (
    ROWS_TOGETHER,
    add_to_each,
    add_to_one,
    dot_and_add_group,
    dot_one,
    dot_tile,
    in_tiles,
)
from dpadmm.kernels.vectors.dense_table import DOUBLES, ROWS_ADDED, Table, in_order_or_anywhere
from dpadmm.kernels.vectors.instructions import DOUBLE, INDEX, Matrix, counted, require_rows_in_order

BLOCK = 16
"""Rows handled together: loops of constant length are a few vector instructions."""


@intrinsic
def dot_rows(
    typing: Any, X: Any, bounds: Any, index: Any, first: Any, at: Any, count: Any, factors: Any, points: Any, out: Any
) -> Any:
    """out[k, r] = factors[r] · ⟨(row index[r], 1), points[k]⟩ for all k and count rows r from `at` on.

    Rows are first, first + 1, … instead if `first` is not negative. `bounds` are lower, upper and inverse, each None if
    there are none; `count` is a multiple of ROWS_ADDED. Sums have the precision of `points`.
    """
    require_rows_in_order(X, *bounds, factors, points, out)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        first, last = arguments[4], builder.add(arguments[4], arguments[5])
        scales, given, results = (Matrix.of(context, builder, signature.args[k], arguments[k]) for k in (6, 7, 8))
        single = builder.icmp_unsigned("==", given.rows, INDEX(1))

        def dot(table: Table) -> None:
            def tile(k: Any, outputs: int, row: Any) -> None:
                dot_tile(builder, table, scales, given, results, k, outputs, row)

            with builder.if_else(single) as (one_output, several):
                with one_output, counted(builder, last, ROWS_ADDED, first) as row:
                    dot_one(builder, table, scales, given, results, row)
                with several, counted(builder, last, ROWS_TOGETHER, first) as row:
                    in_tiles(builder, given.rows, lambda k, outputs: tile(k, outputs, row))

        in_order_or_anywhere(context, builder, signature.args[0:3], arguments[0:5], signature.args[7].dtype, dot)
        return context.get_dummy_value()

    return types.void(X, bounds, index, types.intp, types.uintp, types.uintp, factors, points, out), generate


@intrinsic
def add_rows(
    typing: Any, X: Any, bounds: Any, index: Any, first: Any, at: Any, count: Any, coefficients: Any, out: Any
) -> Any:
    """out[k] += Σ coefficients[k, r] · row index[r], for all k and count rows r from `at` on, in float64.

    `out` has room for whole vectors: `padded_width` columns. `count` is a multiple of ROWS_ADDED.
    """
    require_rows_in_order(X, *bounds, coefficients, out)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        factors, sums = (Matrix.of(context, builder, signature.args[k], arguments[k]) for k in (6, 7))
        single = builder.icmp_unsigned("==", sums.rows, INDEX(1))
        last = builder.add(arguments[4], arguments[5])

        def add(table: Table) -> None:
            with (
                counted(builder, last, ROWS_ADDED, arguments[4]) as row,
                builder.if_else(single) as (one_output, several),
            ):
                with one_output:
                    add_to_one(builder, table, factors, sums, row)
                with several:
                    add_to_each(builder, table, factors, sums, row)

        in_order_or_anywhere(context, builder, signature.args[0:3], arguments[0:5], types.float64, add)
        return context.get_dummy_value()

    return types.void(X, bounds, index, types.intp, types.uintp, types.uintp, coefficients, out), generate


@intrinsic
def dot_and_add(
    typing: Any,
    X: Any,
    bounds: Any,
    index: Any,
    later: Any,
    there: Any,
    first: Any,
    at: Any,
    factors: Any,
    points: Any,
    margins: Any,
    coefficients: Any,
    out: Any,
) -> Any:
    """`dot_rows` of one block and `add_rows` of another at once: the one multiplies while the other widens numbers.

    They begin with row `later`, in places from `there` on, and with row `first`, in places from `at` on. Both have
    BLOCK rows, of float32, that follow each other, and there is one output. Every number is what the two would give.
    """
    require_rows_in_order(X, *bounds, factors, points, margins, coefficients, out)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        def block(first: Any, at: Any, precision: Any) -> Table:
            return Table(context, builder, signature.args[0:3], (*arguments[0:3], first, at), precision, True)

        read = block(*arguments[3:5], points.dtype)
        added = block(*arguments[5:7], types.float64)
        known = [Matrix.of(context, builder, signature.args[k], arguments[k]) for k in range(7, 12)]
        with counted(builder, INDEX(BLOCK), ROWS_ADDED) as row:
            dot_and_add_group(builder, read, added, known, builder.add(read.at, row), builder.add(added.at, row))
        return context.get_dummy_value()

    places = (types.intp, types.uintp, types.intp, types.uintp)
    return types.void(X, bounds, index, *places, factors, points, margins, coefficients, out), generate


@intrinsic
def copy_run(typing: Any, source: Any, i: Any, start: Any, target: Any, k: Any, at: Any, length: Any) -> Any:
    """target[k, at:at + length] = source[i, start:start + length]; vectors have one row, number 0.

    The source is float64 or int8, the target float64; `length` is a multiple of DOUBLES. A loop over elements would
    have to ask first whether the arrays overlap.
    """
    require_rows_in_order(source, target)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        given, taken = (Matrix.of(context, builder, signature.args[j], arguments[j]) for j in (0, 3))
        i, start, k, at, length = (arguments[j] for j in (1, 2, 4, 5, 6))
        with counted(builder, length, DOUBLES) as offset:
            place = given.vector(i, builder.add(start, offset), DOUBLES)
            vector = builder.load(place, align=source.dtype.bitwidth // 8)
            if vector.type.element != DOUBLE:
                vector = builder.sitofp(vector, ir.VectorType(DOUBLE, DOUBLES))
            builder.store(vector, taken.vector(k, builder.add(at, offset), DOUBLES), align=8)
        return context.get_dummy_value()

    number = types.uintp
    return types.void(source, number, number, target, number, number, number), generate


@intrinsic
def none_is_zero(typing: Any, values: Any, start: Any, length: Any) -> Any:
    """Whether values[start:start + length], float64, are all other than zero; `length` is a multiple of DOUBLES."""
    require_rows_in_order(values)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        given = Matrix.of(context, builder, signature.args[0], arguments[0])
        zeros = cgutils.alloca_once_value(builder, ir.Constant(ir.VectorType(ir.IntType(1), DOUBLES), None))
        with counted(builder, arguments[2], DOUBLES) as offset:
            vector = builder.load(given.vector(INDEX(0), builder.add(arguments[1], offset), DOUBLES), align=8)
            found = builder.fcmp_ordered("==", vector, ir.Constant(vector.type, None))
            builder.store(builder.or_(builder.load(zeros), found), zeros)
        lanes = ir.IntType(DOUBLES)
        return builder.icmp_unsigned("==", builder.bitcast(builder.load(zeros), lanes), lanes(0))

    return types.boolean(values, types.uintp, types.uintp), generate


@kernel()
def padded_width(columns):
    """Columns of a float64 sum that `add_rows` can add to."""
    return (columns + DOUBLES - 1) // DOUBLES * DOUBLES
