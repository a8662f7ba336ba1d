"""Sums of clipped gradients of sparse rows in one pass over them: margins, slopes, clip, sum, block by block."""

from __future__ import annotations

import numpy as np

from dpadmm.kernels.compiled.block_slopes import block_coefficients
from dpadmm.kernels.compiled.row_blocks import is_single, next_rows, prefetch, thirds
from dpadmm.kernels.jit import kernel
from dpadmm.kernels.vectors.short_sparse_rows import add_run, dot_run, is_run, room_for
from dpadmm.kernels.vectors.sparse_loops import add_entries, dot_entries
from dpadmm.kernels.vectors.sparse_loops_by_output import add_entries_each, dot_entries_each

U = np.uintp
SPARSE_BLOCK = 64
"""Sparse rows handled together: more, because each is short."""


# Not "contract", which would reach into the loops: products in a run are rounded before they are added.
@kernel(inline=True)
def _sparse_margins(stored, bounds, index, first, factors, at, count, points, run, out):
    """factor · ⟨row, point⟩ for each output and row; points are (features + 1, outputs)."""
    outputs, intercept = U(points.shape[1]), U(points.shape[0] - 1)
    if outputs == 1 and is_run(stored, first, count):
        dot_run(stored, bounds, first, at, count, points, run, out)
    elif outputs == 1:
        dot_entries(stored, bounds, index, first, at, count, points, out)
    else:
        dot_entries_each(stored, bounds, index, first, at, count, points, out)
    for k in range(outputs):
        for r in range(at, at + count):
            out[k, r] = factors[r] * (out[k, r] + points[intercept, k])


@kernel(inline=True)
def _scatter(stored, bounds, index, first, at, count, coefficients, run, out):
    """out += (row, 1) ⊗ coefficient."""
    outputs, intercept = U(out.shape[1]), U(out.shape[0] - 1)
    for k in range(outputs):
        for r in range(at, at + count):
            out[intercept, k] += coefficients[k, r]
    if outputs == 1 and is_run(stored, first, count):
        add_run(stored, bounds, first, at, count, coefficients, run, out)
    elif outputs == 1:
        add_entries(stored, bounds, index, first, at, count, coefficients, out)
    else:
        add_entries_each(stored, bounds, index, first, at, count, coefficients, out)


@kernel(inline=True)
def _fetch_stored(stored, index, at, count):
    """Ask for the beginnings of rows that lie anywhere before the first is needed."""
    data, indices, indptr = stored
    for r in range(at, at + count):
        first = U(indptr[index[r]])
        prefetch(U(data.ctypes.data) + first * U(data.itemsize))
        prefetch(U(indices.ctypes.data) + first * U(indices.itemsize))


@kernel()
def sparse_sum(
    data,
    indices,
    indptr,
    upper,
    inverse,
    factors,
    norms,
    target,
    rows,
    weights,
    start,
    stop,
    points,
    anchors,
    gradient_clip,
    clip,
    code,
    parameter,
    total,
):
    outputs, tasks, length = points.shape[1], target.shape[0], SPARSE_BLOCK
    most = 0 if outputs > 1 or rows is not None else length
    total[:] = 0.0
    room = np.zeros((6 + tasks + 3 * outputs, length))
    index, known, sizes, label = room[0].view(np.uintp), room[1:4], room[4:6], room[6 : 6 + tasks]
    margin, slope, there = thirds(room[6 + tasks :], outputs, anchors)
    _add_sparse(
        ((data, indices, indptr), (upper, inverse), factors, norms, target, rows, weights),
        (start, stop),
        points,
        anchors,
        (code, parameter, gradient_clip, clip),
        (index, known[0], known[1], known[2], label),
        (margin, there, slope, sizes, room_for(most, points.dtype), room_for(most, np.float64)),
        total,
    )


@kernel(borrows=True)
def _add_sparse(table, span, points, anchors, rule, notes, room, out):
    """Add the rows of a span to `out`, block by block."""
    stored, bounds, factors, norms, target, rows, weights = table
    index, factor, norm, weight, label = notes
    margin, there, slope, sizes, parts, beside = room
    single: bool = is_single(points)
    length, position, end, at = SPARSE_BLOCK, U(span[0]), U(span[1]), U(0)
    while position < end:
        position, count, first = next_rows(
            length, position, end, at, rows, weights, factors, norms, target, index, factor, norm, weight, label
        )
        if rows is not None:
            _fetch_stored(stored, index, at, count)
        _sparse_margins(stored, bounds, index, first, factor, at, count, points, parts, margin)
        if anchors is not None:
            _sparse_margins(stored, bounds, index, first, factor, at, count, anchors, parts, there)
        block_coefficients(rule, single, margin, there, label, norm, weight, at, length, count, slope, sizes)
        _scatter(stored, bounds, index, first, at, count, slope, beside, out)
