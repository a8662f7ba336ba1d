"""A dense table as generated code sees it: rows by number, read 64 bytes at a time, asked for in advance.

The prefetcher of the processor loses rows between two blocks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types

from dpadmm.kernels.vectors.instructions import DOUBLE, INDEX, Matrix, counted, fetch, first_lanes, given_bounds, load
from dpadmm.kernels.vectors.processor_caches import ROOMY

VECTOR_BYTES = 64
DOUBLES = VECTOR_BYTES // 8
FLOAT_BYTES = 4
CACHE_LINE = 64
FETCH_AHEAD = 10240 if ROOMY else 16384
"""Bytes ahead of the rows being read at which the next ones are asked for: what is near is not filled up by them."""
ROWS_ADDED = 8
"""Rows added to a sum at once; blocks are padded to a multiple of it."""


def in_order_or_anywhere(
    context: Any, builder: Any, kinds: Any, values: Any, precision: Any, visit: Callable[[Table], None]
) -> None:
    """Two pieces of code, for rows that follow each other and for rows that lie anywhere."""
    in_order = builder.icmp_signed(">=", values[3], INDEX(0))
    with builder.if_else(in_order) as (following, anywhere):
        with following:
            visit(Table(context, builder, kinds, values, precision, True))
        with anywhere:
            visit(Table(context, builder, kinds, values, precision, False))


class Table:
    """Rows by number, read as vectors of `precision`, mapped by the bounds where there are any."""

    def __init__(self, context: Any, builder: Any, kinds: Any, values: Any, precision: Any, in_order: bool) -> None:
        X, bounds, _ = kinds
        self.builder = builder
        self.scalar = context.get_value_type(precision)
        self.lanes = VECTOR_BYTES // (precision.bitwidth // 8)
        self.widened = X.dtype != precision
        self.swift = X.dtype == types.float32
        self.data = Matrix.of(context, builder, X, values[0])
        self.index = Matrix.of(context, builder, kinds[2], values[2])
        self.first, self.at = values[3:]
        self.in_order = in_order
        self.bounds = given_bounds(context, builder, bounds, values[1])

    def addresses(self, r: Any, rows: int) -> list[Any]:
        """Where the rows in places r, r + 1, … begin."""
        builder = self.builder
        if not self.in_order:
            places = [self.index.element(INDEX(0), builder.add(r, INDEX(k))) for k in range(rows)]
            return [self.data.element(builder.load(place), INDEX(0)) for place in places]
        found = [self.data.element(builder.add(self.first, builder.sub(r, self.at)), INDEX(0))]
        while len(found) < rows:
            found.append(builder.gep(found[-1], [self.data.columns]))
        return found

    def fetch_ahead(self, start: Any, column: Any) -> None:
        """Ask for what lies `FETCH_AHEAD` bytes after a column of the row at `start`, if rows follow each other."""
        if self.in_order:
            builder = self.builder
            place = builder.bitcast(builder.gep(start, [column]), ir.IntType(8).as_pointer())
            fetch(builder, builder.gep(place, [INDEX(FETCH_AHEAD)]))

    def group_ahead(self, start: Any) -> Callable[[Any], None]:
        """What asks, DOUBLES columns at a time, for as much memory as the float32 rows of a group take.

        It lies `FETCH_AHEAD` bytes after the group at `start`, if rows follow each other; if they lie anywhere, nothing
        is asked for. Lines are asked for in their order, a few at a time: others are dropped.
        """
        builder = self.builder
        there = builder.bitcast(start, ir.IntType(8).as_pointer())
        there = builder.gep(there, [INDEX(FETCH_AHEAD)])
        group_bytes = ROWS_ADDED * FLOAT_BYTES

        def ask(column: Any) -> None:
            place = builder.gep(there, [builder.mul(column, INDEX(group_bytes))])
            for offset in range(0, group_bytes * DOUBLES, CACHE_LINE):
                fetch(builder, builder.gep(place, [INDEX(offset)]))

        return ask if self.in_order else lambda column: None

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

    def intercept(self, points: Matrix, k: Any) -> Any:
        """The last entry of a point, in float64."""
        value = self.builder.load(points.element(k, self.data.columns))
        return value if value.type == DOUBLE else self.builder.fpext(value, DOUBLE)

    def over_columns(self, visit: Callable[[Any, Any], None]) -> None:
        """Visit whole vectors of columns, then what remains under a mask."""
        builder = self.builder
        whole = builder.and_(self.data.columns, INDEX(-self.lanes))
        with counted(builder, whole, self.lanes) as column:
            visit(column, None)
        rest = builder.sub(self.data.columns, whole)
        with builder.if_then(builder.icmp_unsigned(">", rest, INDEX(0))):
            visit(whole, first_lanes(builder, rest, self.lanes))

    def over_runs(self, longest: int, visit: Callable[[Any, int, Any], None]) -> None:
        """Visit runs of `longest` vectors of columns, then a shorter one, its last vector under a mask."""
        builder = self.builder
        run = longest * self.lanes  # a power of two
        whole = builder.and_(self.data.columns, INDEX(-run))
        with counted(builder, whole, run) as column:
            visit(column, longest, None)
        rest = builder.sub(self.data.columns, whole)
        for count in range(1, longest + 1):
            in_last = builder.sub(rest, INDEX((count - 1) * self.lanes))
            # Unsigned, so that a last vector of no or fewer columns is out as well.
            ends_here = builder.icmp_unsigned("<", builder.sub(in_last, INDEX(1)), INDEX(self.lanes))
            with builder.if_then(ends_here):
                visit(whole, count, first_lanes(builder, in_last, self.lanes))
