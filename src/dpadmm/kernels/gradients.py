"""Sums of clipped row gradients in one pass over the rows: margins, slopes, clip, sum, block by block.

Indices are unsigned: Numba otherwise tests each for being counted from the end.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from dpadmm.kernels.clipping import SAFETY, SMALLEST_SCALE
from dpadmm.kernels.codes import HUBER, HUBERISED_HINGE, LOGISTIC, SOFTMAX, SQUARED
from dpadmm.kernels.entries import add_entries, dot_entries
from dpadmm.kernels.entries_each import add_entries_each, dot_entries_each
from dpadmm.kernels.jit import kernel
from dpadmm.kernels.lanes import (
    BLOCK,
    CACHE_LINE,
    ROWS_ADDED,
    add_rows,
    copy_run,
    dot_and_add,
    dot_rows,
    none_is_zero,
    padded_width,
)
from dpadmm.kernels.runs import add_run, dot_run, is_run, room_for
from dpadmm.kernels.slopes import LARGEST, clipped, exp, slope_at

U = np.uintp
AHEAD = 4 * BLOCK
"""Rows of a batch asked for before they are needed: a cache holds more, but no more can be on their way at once."""
SPARSE_BLOCK = 64
"""Sparse rows handled together: more, because each is short."""


@intrinsic
def _prefetch(typing: Any, address: Any) -> Any:
    """Ask for the cache line at an address. A wrong address does no harm."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        shape = ir.FunctionType(ir.VoidType(), [pointer, number, number, number])
        ask = cgutils.get_or_insert_function(builder.module, shape, "llvm.prefetch.p0")
        builder.call(ask, [builder.inttoptr(args[0], pointer), number(0), number(3), number(1)])
        return context.get_dummy_value()

    return types.void(types.uintp), generate


@intrinsic
def _is_single(typing: Any, array: Any) -> Any:
    """Whether an array is of float32: a constant to the compiler."""
    return types.boolean(array), lambda context, builder, signature, args: ir.IntType(1)(array.dtype == types.float32)


# -- slopes and clip of one block: arrays (outputs, rows), of which those from `at` on -----------------------------


@kernel("contract")
def _slopes(code, parameter, margin, target, block, out):
    """Derivative of the loss in each margin; NaN or infinite where the margin is, for `_clip` to drop."""
    if code == SOFTMAX:
        _softmax_slopes(margin, target[U(0)], block, out)
    else:
        for k in range(U(margin.shape[0])):
            for r in block:
                numerator, denominator = slope_at(code, parameter, margin[k, r], target[k, r], False)
                out[k, r] = numerator / denominator


@kernel("contract")
def _softmax_slopes(margin, label, block, out):
    """Probabilities less one for the label; the exponentials take the place of the margins."""
    outputs = U(margin.shape[0])
    for r in block:
        out[U(0), r] = margin[U(0), r]
    for k in range(U(1), outputs):
        for r in block:
            value = margin[k, r]
            out[U(0), r] = value if value > out[U(0), r] or value != value else out[U(0), r]
    # The first row of `out` holds the largest margin until the end: exponentials wait in `margin`.
    for k in range(outputs):
        for r in block:
            below = margin[k, r] - out[U(0), r]
            margin[k, r] = exp(below) if below == below else np.nan
    for r in block:
        out[U(0), r] = margin[U(0), r]
    for k in range(U(1), outputs):
        for r in block:
            out[U(0), r] += margin[k, r]
    for k in range(outputs - U(1), U(0), -1):
        for r in block:
            out[k, r] = margin[k, r] / out[U(0), r] - (1.0 if label[r] == k else 0.0)
    for r in block:
        out[U(0), r] = margin[U(0), r] / out[U(0), r] - (1.0 if label[r] == 0 else 0.0)


@kernel()
def _clip(slopes, norms, clip, block, sizes):
    """Scale slopes so that ‖slope‖·‖row‖ ≤ clip; what is not finite becomes zero. See `clipping.clip_slopes`."""
    limit, outputs = clip * SAFETY, U(slopes.shape[0])
    peaks, squares = sizes[U(0)], sizes[U(1)]
    for r in block:
        peaks[r] = 0.0
        squares[r] = 0.0
    for k in range(outputs):
        for r in block:
            slope = slopes[k, r]
            slopes[k, r] = slope if abs(slope) <= LARGEST and norms[r] <= LARGEST else 0.0
            peaks[r] = max(peaks[r], abs(slopes[k, r]))
    for r in block:
        peaks[r] = peaks[r] if peaks[r] > 0.0 else 1.0
    for k in range(outputs):
        for r in block:
            scaled = slopes[k, r] / peaks[r]
            squares[r] += scaled * scaled
    for r in block:
        scale = limit / (peaks[r] * np.sqrt(squares[r]) * norms[r])
        scale = scale if scale < 1.0 else 1.0
        squares[r] = 0.0 if scale < SMALLEST_SCALE else scale
    for k in range(outputs):
        for r in block:
            slopes[k, r] *= squares[r]


@kernel()
def _general_coefficients(
    code, parameter, margin, anchored, target, norms, weights, gradient_clip, clip, block, out, sizes
):
    """Weights times clipped slopes, or clipped differences of clipped slopes where margins at an anchor are given."""
    outputs = U(out.shape[0])
    _slopes(code, parameter, margin, target, block, out)
    if anchored.shape[0]:
        _clip(out, norms, gradient_clip, block, sizes)
        # The margins have served; their place takes the slopes at the anchor.
        _slopes(code, parameter, anchored, target, block, margin)
        _clip(margin, norms, gradient_clip, block, sizes)
        for k in range(outputs):
            for r in block:
                out[k, r] -= margin[k, r]
    _clip(out, norms, clip, block, sizes)
    for k in range(outputs):
        for r in block:
            out[k, r] *= weights[r]


@kernel(inline=True)
def _cut_slopes(code, parameter, margin, target, norms, weights, at, length, limit, out, single):
    """Weights times clipped slopes of one output: a few vector instructions if the code is known to the compiler."""
    for r in range(at, at + U(length)):
        numerator, denominator = slope_at(code, parameter, margin[U(0), r], target[U(0), r], single)
        out[U(0), r] = weights[r] * clipped(numerator, denominator, norms[r], limit)


@kernel(inline=True)
def _coefficients(rule, single, margin, anchored, target, norms, weights, at, length, count, out, sizes):
    """Weights times clipped slopes. One output without an anchor is the usual case, and has a loop for each loss."""
    code, parameter, gradient_clip, clip = rule
    limit = clip * SAFETY
    if out.shape[0] > 1 or anchored.shape[0] or code == SOFTMAX:
        block = range(at, at + count)
        _general_coefficients(
            code, parameter, margin, anchored, target, norms, weights, gradient_clip, clip, block, out, sizes
        )
    elif code == LOGISTIC:
        _cut_slopes(LOGISTIC, parameter, margin, target, norms, weights, at, length, limit, out, single)
    elif code == HUBERISED_HINGE:
        _cut_slopes(HUBERISED_HINGE, parameter, margin, target, norms, weights, at, length, limit, out, single)
    elif code == HUBER:
        _cut_slopes(HUBER, parameter, margin, target, norms, weights, at, length, limit, out, single)
    else:
        _cut_slopes(SQUARED, parameter, margin, target, norms, weights, at, length, limit, out, single)


# -- the rows of one block: where they are, and what is known of each ----------------------------------------------


@kernel(inline=True)
def _note(i, weight, r, factors, norms, target, index, factor, norm, weighed, label):
    """Row i of the table is row r of the block."""
    index[r], factor[r], norm[r], weighed[r] = i, factors[i], norms[i], factors[i] * weight
    for k in range(U(target.shape[0])):
        label[k, r] = target[k, i]


@kernel(inline=True)
def _next_rows(length, position, end, at, rows, weights, factors, norms, target, index, factor, norm, weighed, label):
    """Note the next rows that count from place `at` on.

    Returns the position after them, how many there are, and the number of the first, or −1 if others may lie between
    them; `index` holds their numbers only then.
    """
    if rows is None and weights is None and position + U(length) <= end and none_is_zero(factors, position, U(length)):
        copy_run(factors, U(0), position, factor, U(0), at, U(length))
        copy_run(factors, U(0), position, weighed, U(0), at, U(length))
        copy_run(norms, U(0), position, norm, U(0), at, U(length))
        for k in range(U(target.shape[0])):
            copy_run(target, k, position, label, k, at, U(length))
        return position + U(length), U(length), np.intp(position)
    count = U(0)
    while count < U(length) and position < end:
        i = position if rows is None else U(rows[position])
        # Rows that count as zero may hold NaN and are never read.
        if factors[i] != 0.0:
            weight = 1.0 if weights is None else weights[position]
            _note(i, weight, at + count, factors, norms, target, index, factor, norm, weighed, label)
            count += U(1)
        position += U(1)
    return position, count, np.intp(-1)


# -- dense rows ----------------------------------------------------------------------------------------------------


@kernel(inline=True)
def _padded(count, at, index, weights):
    """A whole number of groups of rows: the first row fills the last group, with weight zero."""
    whole = (count + U(ROWS_ADDED - 1)) // U(ROWS_ADDED) * U(ROWS_ADDED)
    for r in range(at + count, at + whole):
        index[r], weights[r] = index[at], 0.0
    return whole


@kernel("reassoc", inline=True)
def _run_total(values, at, count):
    total = 0.0
    for r in range(at, at + count):
        total += values[r]
    return total


@kernel()
def _aligned_zeros(rows, columns):
    """A zero matrix whose rows begin with a cache line, so that what is stored can be read again at once."""
    room = np.zeros(rows * columns + CACHE_LINE // 8)
    start = (-(room.ctypes.data // 8)) % (CACHE_LINE // 8)
    return room[start : start + rows * columns].reshape(rows, columns)


@kernel(inline=True)
def _thirds(room, outputs, anchors):
    """Margins, slopes and margins at the anchors, if there are any."""
    return room[:outputs], room[outputs : 2 * outputs], room[2 * outputs : (2 if anchors is None else 3) * outputs]


@kernel()
def dense_sum(
    X,
    lower,
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
    table = (X, (lower, upper, inverse), factors, norms, target, rows, weights, None)
    _sum_dense(table, (start, stop), points, anchors, (code, parameter, gradient_clip, clip), total)


@kernel()
def dense_batch(X, facts, rows, x, clip, code, parameter, total):
    drawn = np.empty((facts.shape[1], rows.size))
    _gather(X, facts, rows, drawn)
    # What is known of the rows now lies in the order of the batch, and only they themselves lie anywhere.
    table = (X, (None, None, None), drawn[0], drawn[1], drawn[2:], None, None, rows)
    point, out = x.astype(X.dtype).reshape((1, x.size)), total.reshape((1, x.size))
    _sum_dense(table, (0, rows.size), point, None, (code, parameter, clip, clip), out)


@kernel(inline=True)
def _gather(X, facts, rows, drawn):
    """Facts of the rows in the order of the batch; the first rows themselves are asked for meanwhile."""
    address, width = U(facts.ctypes.data), U(facts.shape[1]) * U(facts.itemsize)
    for r in range(U(rows.size)):
        _prefetch(address + U(rows[r]) * width)
    for r in range(U(rows.size)):
        for k in range(U(facts.shape[1])):
            drawn[k, r] = facts[U(rows[r]), k]
        if r < U(AHEAD):
            _fetch(X, rows, r, U(1))


@kernel()
def _sum_dense(table, span, points, anchors, rule, total):
    d, outputs, tasks, twice = table[0].shape[1], points.shape[0], table[4].shape[0], 2 * BLOCK
    # Two arrays, cut up: to make an array takes as long as to add a few rows.
    out = _aligned_zeros(outputs, padded_width(d) + padded_width(1))
    constants = out[:, padded_width(d)]
    room = _aligned_zeros(6 + tasks + 3 * outputs, twice)
    index, known, sizes, label = room[0].view(np.uintp), room[1:4], room[4:6], room[6 : 6 + tasks]
    margin, slope, there = _thirds(room[6 + tasks :], outputs, anchors)
    notes = (index, known[0], known[1], known[2], label)
    _add_dense(table, span, points, anchors, rule, notes, (margin, there, slope, sizes), out, constants)
    for k in range(U(outputs)):
        for j in range(U(d)):
            total[k, j] = out[k, j]
        total[k, U(d)] = constants[k]


@kernel(borrows=True)
def _add_dense(table, span, points, anchors, rule, notes, room, out, constants):
    """Add the rows of a span to `out` and their coefficients to `constants`.

    Two blocks take turns: the next one is read while the slopes of the last are on their way. Rows of float32 are read
    and added at once, if both blocks are rows that follow each other.
    """
    X, bounds, factors, norms, target, rows, weights, drawn = table
    index, factor, norm, weight, label = notes
    margin, there, slope, sizes = room
    position, end, at, ready, first = U(span[0]), U(span[1]), U(0), U(0), np.intp(-1)
    single: bool = _is_single(points)
    at_once = single and anchors is None and out.shape[0] == U(1)
    while True:
        if rows is None and drawn is None and _is_single(X):
            _fetch_known(factors, norms, target, position + U(2 * BLOCK))
        after = U(BLOCK) - at
        position, count, first_after = _next_rows(
            BLOCK, position, end, after, rows, weights, factors, norms, target, index, factor, norm, weight, label
        )
        if count:
            first_after = _numbered(drawn, first_after, after, count, index)
            if rows is not None:
                _fetch(X, index, after, count)
            _fetch_ahead(X, drawn, position)
            count = _padded(count, after, index, weight)
        if ready:
            _coefficients(rule, single, margin, there, label, norm, weight, at, BLOCK, ready, slope, sizes)
        if at_once and first >= 0 and first_after >= 0:
            dot_and_add(X, bounds, index, first_after, after, first, at, factor, points, margin, slope, out)
        else:
            if count:
                dot_rows(X, bounds, index, first_after, after, count, factor, points, margin)
                if anchors is not None:
                    dot_rows(X, bounds, index, first_after, after, count, factor, anchors, there)
            if ready:
                add_rows(X, bounds, index, first, at, ready, slope, out)
        if ready:
            for k in range(U(out.shape[0])):
                constants[k] += _run_total(slope[k], at, ready)
        if not count:
            break
        at, ready, first = after, count, first_after


@kernel(inline=True)
def _numbered(drawn, first, at, count, index):
    """Places in a batch become numbers of the rows that were drawn. Returns what is now known of the first."""
    if drawn is None:
        return first
    for r in range(count):
        place = index[at + r] if first < 0 else U(first) + r
        index[at + r] = U(drawn[place])
    return np.intp(-1)


@kernel(inline=True)
def _fetch(X, index, at, count):
    """Ask for rows that lie anywhere before the first is needed."""
    width, address = U(X.shape[1]) * U(X.itemsize), U(X.ctypes.data)
    for r in range(at, at + count):
        row = address + U(index[r]) * width
        for offset in range(U(0), width, U(CACHE_LINE)):
            _prefetch(row + offset)
        _prefetch(row + width - U(1))


@kernel(inline=True)
def _fetch_ahead(X, drawn, position):
    """Ask for the next rows of a batch that were not asked for yet."""
    if drawn is not None:
        start, end = position + U(AHEAD - BLOCK), U(drawn.size)
        if start < end:
            _fetch(X, drawn, start, min(U(BLOCK), end - start))


@kernel(inline=True)
def _fetch_known(factors, norms, target, position):
    """Ask for what is known of the rows of a block from `position` on, for which the processor's prefetcher is late."""
    for offset in range(U(0), U(BLOCK * factors.itemsize), U(CACHE_LINE)):
        place = position * U(factors.itemsize) + offset
        _prefetch(U(factors.ctypes.data) + place)
        _prefetch(U(norms.ctypes.data) + place)
    for offset in range(U(0), U(BLOCK * target.itemsize), U(CACHE_LINE)):
        place = position * U(target.itemsize) + offset
        for k in range(U(target.shape[0])):
            _prefetch(U(target.ctypes.data) + k * U(target.shape[1] * target.itemsize) + place)


# -- sparse rows ---------------------------------------------------------------------------------------------------


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
        _prefetch(U(data.ctypes.data) + first * U(data.itemsize))
        _prefetch(U(indices.ctypes.data) + first * U(indices.itemsize))


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
    margin, slope, there = _thirds(room[6 + tasks :], outputs, anchors)
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
    single: bool = _is_single(points)
    length, position, end, at = SPARSE_BLOCK, U(span[0]), U(span[1]), U(0)
    while position < end:
        position, count, first = _next_rows(
            length, position, end, at, rows, weights, factors, norms, target, index, factor, norm, weight, label
        )
        if rows is not None:
            _fetch_stored(stored, index, at, count)
        _sparse_margins(stored, bounds, index, first, factor, at, count, points, parts, margin)
        if anchors is not None:
            _sparse_margins(stored, bounds, index, first, factor, at, count, anchors, parts, there)
        _coefficients(rule, single, margin, there, label, norm, weight, at, length, count, slope, sizes)
        _scatter(stored, bounds, index, first, at, count, slope, beside, out)
