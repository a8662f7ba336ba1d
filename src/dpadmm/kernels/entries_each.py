"""The loops over the stored entries of sparse rows for several outputs: eight outputs at a time, the last ones masked.

An entry meets a run of the point, or of the sum, one number an output. Eight of them are one instruction, and the
entries of a row are soon read again for the next eight.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from dpadmm.kernels.entries import Rows
from dpadmm.kernels.pieces import (
    DOUBLE,
    INDEX,
    Matrix,
    counted,
    first_lanes,
    fma,
    load,
    require_rows_in_order,
    splat,
    store,
)

TOGETHER = 8
"""Outputs handled at once."""
DOUBLES = ir.VectorType(DOUBLE, TOGETHER)


@intrinsic
def dot_entries_each(
    typing: Any, stored: Any, bounds: Any, index: Any, first: Any, at: Any, count: Any, points: Any, out: Any
) -> Any:
    """out[k, r] = ⟨row index[r], points[:, k]⟩ over the stored entries, for all k and count rows r from `at` on.

    Rows, `stored` and `bounds` are those of `dot_entries`; `points` are (features + 1, outputs).
    """
    require_rows_in_order(*stored, *bounds, points, out)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        rows = Rows.of(context, builder, signature.args[0:3], arguments[0:5])
        at, count = arguments[4:6]
        given, results = (Matrix.of(context, builder, signature.args[k], arguments[k]) for k in (6, 7))
        total = cgutils.alloca_once(builder, DOUBLES)

        def tile(r: Any, k: Any, mask: Any) -> None:
            def multiply(column: Any, value: Any) -> None:
                parts = load(builder, given.element(column, k), TOGETHER, mask)
                parts = parts if parts.type.element == DOUBLE else builder.fpext(parts, DOUBLES)
                builder.store(fma(builder, splat(builder, value, TOGETHER), parts, builder.load(total)), total)

            builder.store(ir.Constant(DOUBLES, None), total)
            rows.over_entries(r, multiply)
            _spread(builder, total, results, k, r, into_lanes=False)

        with counted(builder, builder.add(at, count), 1, at) as r:
            _in_tiles(builder, given.columns, lambda k, mask: tile(r, k, mask))
        return context.get_dummy_value()

    return types.void(stored, bounds, index, types.intp, types.uintp, types.uintp, points, out), generate


@intrinsic
def add_entries_each(
    typing: Any, stored: Any, bounds: Any, index: Any, first: Any, at: Any, count: Any, coefficients: Any, out: Any
) -> Any:
    """out[:, k] += Σ coefficients[k, r] · row index[r], for all k and count rows r from `at` on."""
    require_rows_in_order(*stored, *bounds, coefficients, out)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        rows = Rows.of(context, builder, signature.args[0:3], arguments[0:5])
        at, count = arguments[4:6]
        factors, sums = (Matrix.of(context, builder, signature.args[k], arguments[k]) for k in (6, 7))
        held = cgutils.alloca_once(builder, DOUBLES)

        def tile(r: Any, k: Any, mask: Any) -> None:
            _spread(builder, held, factors, k, r, into_lanes=True)
            factor = builder.load(held)

            def add(column: Any, value: Any) -> None:
                place = sums.element(column, k)
                before = load(builder, place, TOGETHER, mask)
                store(builder, fma(builder, splat(builder, value, TOGETHER), factor, before), place, mask)

            rows.over_entries(r, add)

        with counted(builder, builder.add(at, count), 1, at) as r:
            _in_tiles(builder, sums.columns, lambda k, mask: tile(r, k, mask))
        return context.get_dummy_value()

    return types.void(stored, bounds, index, types.intp, types.uintp, types.uintp, coefficients, out), generate


def _in_tiles(builder: Any, outputs: Any, tile: Callable[[Any, Any], None]) -> None:
    """Call tile(k, mask) for every eight outputs from k on; the mask is None where all eight are there."""
    over = builder.urem(outputs, INDEX(TOGETHER))
    whole = builder.sub(outputs, over)
    with counted(builder, whole, TOGETHER) as k:
        tile(k, None)
    with builder.if_then(builder.icmp_unsigned("!=", over, INDEX(0))):
        tile(whole, first_lanes(builder, over, TOGETHER))


def _spread(builder: Any, vector: Any, matrix: Matrix, k: Any, r: Any, into_lanes: bool) -> None:
    """Lanes of the vector at an address to column r of a matrix from row k on, or the other way round."""
    lanes = builder.bitcast(vector, DOUBLE.as_pointer())
    left = builder.sub(matrix.rows, k)
    some = builder.select(builder.icmp_unsigned("<", left, INDEX(TOGETHER)), left, INDEX(TOGETHER))
    with counted(builder, some, 1) as lane:
        ends = [builder.gep(lanes, [lane]), matrix.element(builder.add(k, lane), r)]
        source, target = reversed(ends) if into_lanes else ends
        builder.store(builder.load(source), target)
