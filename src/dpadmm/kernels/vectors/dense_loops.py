"""Loops over a few dense rows, written out as vector instructions: margins of a group of rows, and their sum.

A compiler left to itself makes of a row of 54 numbers a few long steps and twenty short ones. Here every step is 64
bytes, the last one masked.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from llvmlite import ir
from numba.core import cgutils

from dpadmm.kernels.vectors.dense_table import DOUBLES, ROWS_ADDED, Table
from dpadmm.kernels.vectors.instructions import (
    DOUBLE,
    INDEX,
    Matrix,
    counted,
    first_lanes,
    fma,
    load,
    splat,
    sum_of_lanes,
    sums_of_lanes,
)

ROWS_TOGETHER = 4
"""Rows read at once where there are several outputs: each part of a point then serves four rows."""
VECTORS_HELD = 4
"""Vectors of a point that stay in registers while rows are multiplied with it."""


def dot_one(builder: Any, table: Table, factors: Matrix, points: Matrix, out: Matrix, row: Any) -> None:
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
    builder: Any, table: Table, sums: list[Any], factors: Matrix, points: Matrix, out: Matrix, row: Any
) -> None:
    """Products of eight rows with the one point, whose lanes are added up together, become margins."""
    products = sums_of_lanes(builder, sums)
    if table.scalar != DOUBLE:
        products = builder.fpext(products, ir.VectorType(DOUBLE, ROWS_ADDED))
    margins = builder.fadd(products, splat(builder, table.intercept(points, INDEX(0)), ROWS_ADDED))
    scales = builder.load(factors.vector(INDEX(0), row, ROWS_ADDED), align=8)
    builder.store(builder.fmul(scales, margins), out.vector(INDEX(0), row, ROWS_ADDED), align=8)


def _products_in_order(builder: Any, table: Table, points: Matrix, starts: list[Any]) -> list[Any]:
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


def dot_tile(
    builder: Any, table: Table, factors: Matrix, points: Matrix, out: Matrix, output: Any, outputs: int, row: Any
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
    table: Table,
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


def add_to_one(builder: Any, table: Table, factors: Matrix, sums: Matrix, row: Any) -> None:
    """Rows times their coefficients, which stay in registers, to the one sum."""
    starts = table.addresses(row, ROWS_ADDED)
    spread = _spread_coefficients(builder, factors, row)
    table.over_columns(lambda column, mask: _add_columns(builder, table, starts, spread, sums, column, mask))


def _spread_coefficients(builder: Any, factors: Matrix, row: Any) -> list[Any]:
    """Coefficients of a group of rows, each in all lanes of a vector."""
    places = [factors.element(INDEX(0), builder.add(row, INDEX(r))) for r in range(ROWS_ADDED)]
    return [splat(builder, builder.load(place), DOUBLES) for place in places]


def _add_columns(
    builder: Any, table: Table, starts: list[Any], spread: list[Any], sums: Matrix, column: Any, mask: Any
) -> None:
    """Some columns of a group of rows times their coefficients to the one sum."""
    place = sums.vector(INDEX(0), column, DOUBLES)
    total = builder.load(place, align=8)
    for start, factor in zip(starts, spread, strict=True):
        total = fma(builder, factor, table.entries(start, column, mask), total)
    builder.store(total, place, align=8)


def dot_and_add_group(builder: Any, read: Table, added: Table, known: list[Matrix], there: Any, at: Any) -> None:
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


def add_to_each(builder: Any, table: Table, factors: Matrix, sums: Matrix, row: Any) -> None:
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


def in_tiles(builder: Any, count: Any, visit: Callable[[Any, int], None]) -> None:
    """Visit 0 to count in steps of four, then of one."""
    whole = builder.and_(count, INDEX(-4))
    with counted(builder, whole, 4) as k:
        visit(k, 4)
    with counted(builder, count, 1, whole) as k:
        visit(k, 1)
