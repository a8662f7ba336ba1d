"""Vector instructions written out, for the two loops that read a dense table.

A compiler left to itself makes of a row of 54 numbers a few long steps and twenty short ones. Here every step is 64
bytes, the last one masked, and rows are asked for in advance, because the prefetcher of the processor loses them
between two blocks. Float32 rows are widened to be added, which keeps one part of the processor busy; another multiplies
the next block meanwhile (`dot_and_add`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
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
    sums_of_lanes,
)

VECTOR_BYTES = 64
DOUBLES = VECTOR_BYTES // 8
FLOAT_BYTES = 4
CACHE_LINE = 64
FETCH_AHEAD = 10240
"""Bytes ahead of the rows being read at which the next ones are asked for."""
ROWS_TOGETHER = 4
"""Rows read at once where there are several outputs: each part of a point then serves four rows."""
ROWS_ADDED = 8
"""Rows added to a sum at once; blocks are padded to a multiple of it."""
VECTORS_HELD = 4
"""Vectors of a point that stay in registers while rows are multiplied with it."""
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

        def dot(table: _Table) -> None:
            def tile(k: Any, outputs: int, row: Any) -> None:
                _dot_tile(builder, table, scales, given, results, k, outputs, row)

            with builder.if_else(single) as (one_output, several):
                with one_output, counted(builder, last, ROWS_ADDED, first) as row:
                    _dot_one(builder, table, scales, given, results, row)
                with several, counted(builder, last, ROWS_TOGETHER, first) as row:
                    _in_tiles(builder, given.rows, lambda k, outputs: tile(k, outputs, row))

        _in_order_or_anywhere(context, builder, signature.args[0:3], arguments[0:5], signature.args[7].dtype, dot)
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

        def add(table: _Table) -> None:
            with (
                counted(builder, last, ROWS_ADDED, arguments[4]) as row,
                builder.if_else(single) as (one_output, several),
            ):
                with one_output:
                    _add_to_one(builder, table, factors, sums, row)
                with several:
                    _add_to_each(builder, table, factors, sums, row)

        _in_order_or_anywhere(context, builder, signature.args[0:3], arguments[0:5], types.float64, add)
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
        def block(first: Any, at: Any, precision: Any) -> _Table:
            return _Table(context, builder, signature.args[0:3], (*arguments[0:3], first, at), precision, True)

        read = block(*arguments[3:5], points.dtype)
        added = block(*arguments[5:7], types.float64)
        known = [Matrix.of(context, builder, signature.args[k], arguments[k]) for k in range(7, 12)]
        with counted(builder, INDEX(BLOCK), ROWS_ADDED) as row:
            _dot_and_add(builder, read, added, known, builder.add(read.at, row), builder.add(added.at, row))
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


# -- the table as the generated code sees it ------------------------------------------------------------------------


def _in_order_or_anywhere(
    context: Any, builder: Any, kinds: Any, values: Any, precision: Any, visit: Callable[[_Table], None]
) -> None:
    """Two pieces of code, for rows that follow each other and for rows that lie anywhere."""
    in_order = builder.icmp_signed(">=", values[3], INDEX(0))
    with builder.if_else(in_order) as (following, anywhere):
        with following:
            visit(_Table(context, builder, kinds, values, precision, True))
        with anywhere:
            visit(_Table(context, builder, kinds, values, precision, False))


class _Table:
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


def _dot_one(builder: Any, table: _Table, factors: Matrix, points: Matrix, out: Matrix, row: Any) -> None:
    """The margins of eight rows at the one point."""
    starts = table.addresses(row, ROWS_ADDED)
    if table.swift:
        sums = _products_in_order(builder, table, points, starts)
    else:
        sums = [
            _products(builder, table, points, INDEX(0), 1, [start], partial(table.fetch_ahead, start))[0, 0]
            for start in starts
        ]
    _store_margins(builder, table, sums, factors, points, out, row)


def _store_margins(
    builder: Any, table: _Table, sums: list[Any], factors: Matrix, points: Matrix, out: Matrix, row: Any
) -> None:
    """Products of eight rows with the one point, whose lanes are added up together, become margins."""
    products = sums_of_lanes(builder, sums)
    if table.scalar != DOUBLE:
        products = builder.fpext(products, ir.VectorType(DOUBLE, ROWS_ADDED))
    margins = builder.fadd(products, splat(builder, table.intercept(points, INDEX(0)), ROWS_ADDED))
    scales = builder.load(factors.vector(INDEX(0), row, ROWS_ADDED), align=8)
    builder.store(builder.fmul(scales, margins), out.vector(INDEX(0), row, ROWS_ADDED), align=8)


def _products_in_order(builder: Any, table: _Table, points: Matrix, starts: list[Any]) -> list[Any]:
    """Products of the one point with a few rows, yet to be added up over lanes, each row read from end to end.

    Up to `VECTORS_HELD` vectors of the point stay in registers meanwhile, and later rows are asked for, a little with
    each row. The compiler may not mix rows: what is asked for all at once is dropped, and the prefetcher follows a row.
    """
    ask = table.group_ahead(starts[0])
    vector = ir.VectorType(table.scalar, table.lanes)
    sums = [cgutils.alloca_once(builder, vector) for _ in starts]
    for total in sums:
        builder.store(ir.Constant(vector, None), total)

    def multiply(column: Any, count: int, mask: Any) -> None:
        columns = [builder.add(column, INDEX(v * table.lanes)) for v in range(count)]
        masks = [None] * (count - 1) + [mask]
        held = [
            load(builder, points.element(INDEX(0), each), table.lanes, lanes)
            for each, lanes in zip(columns, masks, strict=True)
        ]
        for r, (start, place) in enumerate(zip(starts, sums, strict=True)):
            if r * DOUBLES < count * table.lanes:
                ask(builder.add(column, INDEX(r * DOUBLES)))
            total = builder.load(place)
            for each, part, lanes in zip(columns, held, masks, strict=True):
                total = fma(builder, table.entries(start, each, lanes), part, total)
            builder.store(total, place)
            builder.fence("seq_cst", "singlethread")  # no instruction

    table.over_runs(VECTORS_HELD, multiply)
    return [builder.load(total) for total in sums]


def _dot_tile(
    builder: Any, table: _Table, factors: Matrix, points: Matrix, out: Matrix, output: Any, outputs: int, row: Any
) -> None:
    """The margins of a few rows at a few points."""
    starts = table.addresses(row, ROWS_TOGETHER)

    def ask(column: Any) -> None:
        for start in starts:
            table.fetch_ahead(start, column)

    sums = _products(builder, table, points, output, outputs, starts, ask)
    for (k, r), total in sums.items():
        number, place = builder.add(output, INDEX(k)), builder.add(row, INDEX(r))
        product = sum_of_lanes(builder, total)
        product = builder.fpext(product, DOUBLE) if table.scalar != DOUBLE else product
        margin = builder.fadd(product, table.intercept(points, number))
        scale = builder.load(factors.element(INDEX(0), place))
        builder.store(builder.fmul(scale, margin), out.element(number, place))


def _products(
    builder: Any,
    table: _Table,
    points: Matrix,
    output: Any,
    outputs: int,
    starts: list[Any],
    ask: Callable[[Any], None],
) -> dict[tuple[int, int], Any]:
    """Products of a few points with a few rows, yet to be added up over lanes: each number read serves all of them.

    `ask` asks for later rows, column by column.
    """
    vector = ir.VectorType(table.scalar, table.lanes)
    tile = [(k, r) for k in range(outputs) for r in range(len(starts))]
    sums = {place: cgutils.alloca_once(builder, vector) for place in tile}
    for total in sums.values():
        builder.store(ir.Constant(vector, None), total)

    def multiply(column: Any, mask: Any) -> None:
        ask(column)
        parts = [table.entries(start, column, mask) for start in starts]
        for k in range(outputs):
            point = load(builder, points.element(builder.add(output, INDEX(k)), column), table.lanes, mask)
            for r in range(len(starts)):
                builder.store(fma(builder, parts[r], point, builder.load(sums[k, r])), sums[k, r])

    table.over_columns(multiply)
    return {place: builder.load(total) for place, total in sums.items()}


def _add_to_one(builder: Any, table: _Table, factors: Matrix, sums: Matrix, row: Any) -> None:
    """Rows times their coefficients, which stay in registers, to the one sum."""
    starts = table.addresses(row, ROWS_ADDED)
    spread = _spread_coefficients(builder, factors, row)
    table.over_columns(lambda column, mask: _add_columns(builder, table, starts, spread, sums, column, mask))


def _spread_coefficients(builder: Any, factors: Matrix, row: Any) -> list[Any]:
    """Coefficients of a group of rows, each in all lanes of a vector."""
    places = [factors.element(INDEX(0), builder.add(row, INDEX(r))) for r in range(ROWS_ADDED)]
    return [splat(builder, builder.load(place), DOUBLES) for place in places]


def _add_columns(
    builder: Any, table: _Table, starts: list[Any], spread: list[Any], sums: Matrix, column: Any, mask: Any
) -> None:
    """Some columns of a group of rows times their coefficients to the one sum."""
    place = sums.vector(INDEX(0), column, DOUBLES)
    total = builder.load(place, align=8)
    for start, factor in zip(starts, spread, strict=True):
        total = fma(builder, factor, table.entries(start, column, mask), total)
    builder.store(total, place, align=8)


def _dot_and_add(builder: Any, read: _Table, added: _Table, known: list[Matrix], there: Any, at: Any) -> None:
    """Eight rows multiplied and eight added, some columns of each at a time."""
    scales, points, margins, factors, sums = known
    later, rows = read.addresses(there, ROWS_ADDED), added.addresses(at, ROWS_ADDED)
    ask = read.group_ahead(later[0])
    vector = ir.VectorType(read.scalar, read.lanes)
    totals = [cgutils.alloca_once(builder, vector) for _ in later]
    for total in totals:
        builder.store(ir.Constant(vector, None), total)
    spread = _spread_coefficients(builder, factors, at)

    def multiply(column: Any, mask: Any) -> None:
        part = load(builder, points.element(INDEX(0), column), read.lanes, mask)
        for start, total in zip(later, totals, strict=True):
            builder.store(fma(builder, read.entries(start, column, mask), part, builder.load(total)), total)

    def add(column: Any, mask: Any) -> None:
        ask(column)
        _add_columns(builder, added, rows, spread, sums, column, mask)

    whole = builder.and_(read.data.columns, INDEX(-read.lanes))
    with counted(builder, whole, read.lanes) as column:
        multiply(column, None)
        for shift in range(0, read.lanes, DOUBLES):
            add(builder.add(column, INDEX(shift)), None)
    rest = builder.sub(read.data.columns, whole)
    with builder.if_then(builder.icmp_unsigned(">", rest, INDEX(0))):
        multiply(whole, first_lanes(builder, rest, read.lanes))
    for shift in range(0, read.lanes, DOUBLES):
        left = builder.sub(rest, INDEX(shift))
        with builder.if_then(builder.icmp_signed(">", left, INDEX(0))):
            add(builder.add(whole, INDEX(shift)), first_lanes(builder, left, DOUBLES))
    _store_margins(builder, read, [builder.load(total) for total in totals], scales, points, margins, there)


def _add_to_each(builder: Any, table: _Table, factors: Matrix, sums: Matrix, row: Any) -> None:
    """Rows, a few columns of which stay in registers, times their coefficients to each sum."""
    starts = table.addresses(row, ROWS_ADDED)

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
