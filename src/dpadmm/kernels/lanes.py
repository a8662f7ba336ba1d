"""Vector instructions written out, for the two loops that read a dense table.

A compiler left to itself makes of a row of 54 numbers a few long steps and twenty short ones. Here every step is 64
bytes, the last one masked, and rows are asked for in advance, because the prefetcher of the processor loses them
between two blocks.

The cache of machine code watches `gradients.py` only: save that file, too, after a change here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from dpadmm.kernels.jit import kernel
from dpadmm.kernels.pieces import (
    DOUBLE,
    INDEX,
    Matrix,
    counted,
    fetch,
    first_lanes,
    fma,
    given_bounds,
    load,
    require_rows_in_order,
    splat,
    sum_of_lanes,
)

VECTOR_BYTES = 64
DOUBLES = VECTOR_BYTES // 8
FETCH_AHEAD = 16384
"""Bytes ahead of the rows being read at which the next ones are asked for, into the second cache."""
ROWS_TOGETHER = 4
"""Rows read at once where there are several outputs: each part of a point then serves four rows."""
ROWS_ADDED = 8
"""Rows added to a sum at once; blocks are padded to a multiple of it."""


@intrinsic
def dot_rows(
    typing: Any, X: Any, bounds: Any, index: Any, first: Any, at: Any, count: Any, points: Any, out: Any
) -> Any:
    """out[k, r] = ⟨row index[r], points[k]⟩ over the columns of X, for all k and count rows r from `at` on.

    Rows are first, first + 1, … instead if `first` is not negative. `bounds` are lower, upper and inverse, each None if
    there are none; `count` is a multiple of ROWS_ADDED. Sums have the precision of `points`.
    """
    require_rows_in_order(X, points, out)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        table = _Table(context, builder, signature.args[0:3], arguments[0:5], signature.args[6].dtype)
        first, last = arguments[4], builder.add(arguments[4], arguments[5])
        given, results = (Matrix.of(context, builder, signature.args[k], arguments[k]) for k in (6, 7))

        def tile(first_output: Any, outputs: int, first_row: Any, rows: int) -> None:
            _dot_tile(builder, table, given, results, first_output, outputs, first_row, rows)

        single = builder.icmp_unsigned("==", given.rows, INDEX(1))
        with builder.if_else(single) as (one_output, several):
            # Adding up the lanes of a sum takes as long as reading a short row: then several at once.
            rows = ROWS_TOGETHER if table.lanes > DOUBLES else 1
            with one_output, counted(builder, last, rows, first) as row:
                tile(INDEX(0), 1, row, rows)
            with several, counted(builder, last, ROWS_TOGETHER, first) as row:
                _in_tiles(builder, given.rows, lambda k, width: tile(k, width, row, ROWS_TOGETHER))
        return context.get_dummy_value()

    return types.void(X, bounds, index, types.intp, types.uintp, types.uintp, points, out), generate


@intrinsic
def add_rows(
    typing: Any, X: Any, bounds: Any, index: Any, first: Any, at: Any, count: Any, coefficients: Any, out: Any
) -> Any:
    """out[k] += Σ coefficients[k, r] · row index[r], for all k and count rows r from `at` on, in float64.

    `out` has room for whole vectors: `padded_width` columns. `count` is a multiple of ROWS_ADDED.
    """
    require_rows_in_order(X, coefficients, out)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        table = _Table(context, builder, signature.args[0:3], arguments[0:5], types.float64)
        factors, sums = (Matrix.of(context, builder, signature.args[k], arguments[k]) for k in (6, 7))
        single = builder.icmp_unsigned("==", sums.rows, INDEX(1))
        last = builder.add(arguments[4], arguments[5])
        with counted(builder, last, ROWS_ADDED, arguments[4]) as row, builder.if_else(single) as (one_output, several):
            with one_output:
                _add_to_one(builder, table, factors, sums, row)
            with several:
                _add_to_each(builder, table, factors, sums, row)
        return context.get_dummy_value()

    return types.void(X, bounds, index, types.intp, types.uintp, types.uintp, coefficients, out), generate


@kernel()
def padded_width(columns):
    """Columns of a float64 sum that `add_rows` can add to."""
    return (columns + DOUBLES - 1) // DOUBLES * DOUBLES


# -- the table as the generated code sees it ------------------------------------------------------------------------


class _Table:
    """Rows by number, read as vectors of `precision`, mapped by the bounds where there are any."""

    def __init__(self, context: Any, builder: Any, kinds: Any, values: Any, precision: Any) -> None:
        X, bounds, _ = kinds
        self.builder = builder
        self.scalar = context.get_value_type(precision)
        self.lanes = VECTOR_BYTES // (precision.bitwidth // 8)
        self.widened = X.dtype != precision
        self.data = Matrix.of(context, builder, X, values[0])
        self.index = Matrix.of(context, builder, kinds[2], values[2])
        self.first, self.at = values[3:]
        self.in_order = builder.icmp_signed(">=", self.first, INDEX(0))
        self.ahead = builder.select(self.in_order, INDEX(FETCH_AHEAD), INDEX(0))
        self.bounds = given_bounds(context, builder, bounds, values[1])

    def row(self, r: Any) -> Any:
        """Address of the row in place r."""
        builder = self.builder
        number = cgutils.alloca_once(builder, INDEX)
        with builder.if_else(self.in_order) as (in_order, anywhere):
            # Computed, not read: a number just written would have to travel through memory before the row is asked for.
            with in_order:
                builder.store(builder.add(self.first, builder.sub(r, self.at)), number)
            with anywhere:
                builder.store(builder.load(self.index.element(INDEX(0), r)), number)
        return self.data.element(builder.load(number), INDEX(0))

    def entries(self, start: Any, column: Any, mask: Any) -> Any:
        """The vector from a column of the row at `start`."""
        builder = self.builder
        value = load(builder, builder.gep(start, [column]), self.lanes, mask)
        if self.widened:
            value = builder.fpext(value, ir.VectorType(self.scalar, self.lanes))
        if not self.bounds:
            return value
        lower, upper, inverse = (
            load(builder, each.element(INDEX(0), column), self.lanes, mask) for each in self.bounds
        )
        value = builder.select(builder.fcmp_ordered("<", value, lower), lower, value)
        value = builder.select(builder.fcmp_ordered(">", value, upper), upper, value)
        return builder.fmul(builder.fsub(value, lower), inverse)

    def over_columns(self, visit: Callable[[Any, Any], None]) -> None:
        """Visit whole vectors of columns, then what remains under a mask."""
        builder = self.builder
        whole = builder.and_(self.data.columns, INDEX(-self.lanes))
        with counted(builder, whole, self.lanes) as column:
            visit(column, None)
        rest = builder.sub(self.data.columns, whole)
        with builder.if_then(builder.icmp_unsigned(">", rest, INDEX(0))):
            visit(whole, first_lanes(builder, rest, self.lanes))


def _dot_tile(
    builder: Any, table: _Table, points: Matrix, out: Matrix, output: Any, outputs: int, row: Any, rows: int
) -> None:
    """The products of a few rows with a few points: each number read serves all of them."""
    vector = ir.VectorType(table.scalar, table.lanes)
    starts = [table.row(builder.add(row, INDEX(r))) for r in range(rows)]
    tile = [(k, r) for k in range(outputs) for r in range(rows)]
    sums = {place: cgutils.alloca_once(builder, vector) for place in tile}
    for total in sums.values():
        builder.store(ir.Constant(vector, None), total)

    def multiply(column: Any, mask: Any) -> None:
        for start in starts:
            fetch(builder, builder.gep(start, [column]), table.ahead)
        parts = [table.entries(start, column, mask) for start in starts]
        for k in range(outputs):
            point = load(builder, points.element(builder.add(output, INDEX(k)), column), table.lanes, mask)
            for r in range(rows):
                builder.store(fma(builder, parts[r], point, builder.load(sums[k, r])), sums[k, r])

    table.over_columns(multiply)
    for k, r in tile:
        product = sum_of_lanes(builder, builder.load(sums[k, r]))
        product = builder.fpext(product, DOUBLE) if table.scalar != DOUBLE else product
        builder.store(product, out.element(builder.add(output, INDEX(k)), builder.add(row, INDEX(r))))


def _add_to_one(builder: Any, table: _Table, factors: Matrix, sums: Matrix, row: Any) -> None:
    """Rows times their coefficients, which stay in registers, to the one sum."""
    starts = [table.row(builder.add(row, INDEX(r))) for r in range(ROWS_ADDED)]
    spread = [
        splat(builder, builder.load(factors.element(INDEX(0), builder.add(row, INDEX(r)))), table.lanes)
        for r in range(ROWS_ADDED)
    ]

    def add(column: Any, mask: Any) -> None:
        place = sums.vector(INDEX(0), column, table.lanes)
        total = builder.load(place, align=8)
        for start, factor in zip(starts, spread, strict=True):
            total = fma(builder, factor, table.entries(start, column, mask), total)
        builder.store(total, place, align=8)

    table.over_columns(add)


def _add_to_each(builder: Any, table: _Table, factors: Matrix, sums: Matrix, row: Any) -> None:
    """Rows, a few columns of which stay in registers, times their coefficients to each sum."""
    starts = [table.row(builder.add(row, INDEX(r))) for r in range(ROWS_ADDED)]

    def add(column: Any, mask: Any) -> None:
        parts = [table.entries(start, column, mask) for start in starts]
        with counted(builder, sums.rows, 1) as k:
            place = sums.vector(k, column, table.lanes)
            total = builder.load(place, align=8)
            for r, part in enumerate(parts):
                factor = builder.load(factors.element(k, builder.add(row, INDEX(r))))
                total = fma(builder, splat(builder, factor, table.lanes), part, total)
            builder.store(total, place, align=8)

    table.over_columns(add)


def _in_tiles(builder: Any, count: Any, visit: Callable[[Any, int], None]) -> None:
    """Visit 0 to count in steps of four, then of one."""
    whole = builder.and_(count, INDEX(-4))
    with counted(builder, whole, 4) as k:
        visit(k, 4)
    with counted(builder, count, 1, whole) as k:
        visit(k, 1)
