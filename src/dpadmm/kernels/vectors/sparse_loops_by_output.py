"""The loops over the stored entries of sparse rows for several outputs: eight a vector, up to four vectors at a time.

An entry meets a run of the point, or of the sum, one number an output. Eight of them are one instruction; the next
eight lie beside them, and are on their way from memory already if they are asked for at once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from dpadmm.kernels.vectors.instructions import (
    DOUBLE,
    INDEX,
    Matrix,
    counted,
    fetch,
    first_lanes,
    fma,
    load,
    require_rows_in_order,
    splat,
    store,
)
from dpadmm.kernels.vectors.sparse_loops import NumberedRows

TOGETHER = 8
"""Outputs of a vector."""
VECTORS = 4
"""Of a run: more would not stay in the registers of every processor."""
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
        rows = NumberedRows.of(context, builder, signature.args[0:3], arguments[0:5])
        at, count = arguments[4:6]
        given, results = (Matrix.of(context, builder, signature.args[k], arguments[k]) for k in (6, 7))
        totals = [cgutils.alloca_once(builder, DOUBLES) for _ in range(VECTORS)]

        def run(r: Any, vectors: list[_Vector]) -> None:
            def multiply(column: Any, value: Any) -> None:
                for total, (k, mask) in zip(totals, vectors, strict=False):
                    parts = load(builder, given.element(column, k), TOGETHER, mask)
                    parts = parts if parts.type.element == DOUBLE else builder.fpext(parts, DOUBLES)
                    builder.store(fma(builder, splat(builder, value, TOGETHER), parts, builder.load(total)), total)

            for total, _ in zip(totals, vectors, strict=False):
                builder.store(ir.Constant(DOUBLES, None), total)
            rows.stored.over_entries(rows.span(r), multiply, lambda column: _ask(builder, given, column, vectors))
            for total, (k, _) in zip(totals, vectors, strict=False):
                _spread(builder, total, results, k, r, into_lanes=False)

        with counted(builder, builder.add(at, count), 1, at) as r:
            _in_runs(builder, given.columns, lambda vectors: run(r, vectors))
        return context.get_dummy_value()

    return types.void(stored, bounds, index, types.intp, types.uintp, types.uintp, points, out), generate


@intrinsic
def add_entries_each(
    typing: Any, stored: Any, bounds: Any, index: Any, first: Any, at: Any, count: Any, coefficients: Any, out: Any
) -> Any:
    """out[:, k] += Σ coefficients[k, r] · row index[r], for all k and count rows r from `at` on."""
    require_rows_in_order(*stored, *bounds, coefficients, out)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        rows = NumberedRows.of(context, builder, signature.args[0:3], arguments[0:5])
        at, count = arguments[4:6]
        factors, sums = (Matrix.of(context, builder, signature.args[k], arguments[k]) for k in (6, 7))
        held = cgutils.alloca_once(builder, DOUBLES)

        def run(r: Any, vectors: list[_Vector]) -> None:
            scales = []
            for k, _ in vectors:
                _spread(builder, held, factors, k, r, into_lanes=True)
                scales.append(builder.load(held))

            def add(column: Any, value: Any) -> None:
                for scale, (k, mask) in zip(scales, vectors, strict=True):
                    place = sums.element(column, k)
                    before = load(builder, place, TOGETHER, mask)
                    store(builder, fma(builder, splat(builder, value, TOGETHER), scale, before), place, mask)

            rows.stored.over_entries(rows.span(r), add, lambda column: _ask(builder, sums, column, vectors))

        with counted(builder, builder.add(at, count), 1, at) as r:
            _in_runs(builder, sums.columns, lambda vectors: run(r, vectors))
        return context.get_dummy_value()

    return types.void(stored, bounds, index, types.intp, types.uintp, types.uintp, coefficients, out), generate


_Vector = tuple[Any, Any]
"""Number of its first output, and a mask, or None where there are eight."""


def _in_runs(builder: Any, outputs: Any, run: Callable[[list[_Vector]], None]) -> None:
    """Generate run(vectors) for every four vectors of outputs, and for what is left: one to four, the last masked."""
    with counted(builder, outputs, VECTORS * TOGETHER) as k:
        left = builder.sub(outputs, k)
        for vectors in range(1, VECTORS + 1):
            beyond = INDEX((vectors - 1) * TOGETHER)
            here = builder.icmp_unsigned(">", left, beyond)
            if vectors < VECTORS:
                here = builder.and_(here, builder.icmp_unsigned("<=", left, INDEX(vectors * TOGETHER)))
            with builder.if_then(here):
                mask = first_lanes(builder, builder.sub(left, beyond), TOGETHER)
                starts = [builder.add(k, INDEX(vector * TOGETHER)) for vector in range(vectors)]
                run([*((start, None) for start in starts[:-1]), (starts[-1], mask)])


def _ask(builder: Any, matrix: Matrix, row: Any, vectors: list[_Vector]) -> None:
    """Ask for the beginnings of some vectors of a row of a matrix."""
    for k, _ in vectors:
        fetch(builder, matrix.element(row, k))


def _spread(builder: Any, vector: Any, matrix: Matrix, k: Any, r: Any, into_lanes: bool) -> None:
    """Lanes of the vector at an address to column r of a matrix from row k on, or the other way round."""
    lanes = builder.bitcast(vector, DOUBLE.as_pointer())
    left = builder.sub(matrix.rows, k)
    some = builder.select(builder.icmp_unsigned("<", left, INDEX(TOGETHER)), left, INDEX(TOGETHER))
    with counted(builder, some, 1) as lane:
        ends = [builder.gep(lanes, [lane]), matrix.element(builder.add(k, lane), r)]
        source, target = reversed(ends) if into_lanes else ends
        builder.store(builder.load(source), target)
