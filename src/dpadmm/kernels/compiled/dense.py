"""Sums of clipped gradients of dense rows in one pass over them: margins, slopes, clip, sum, block by block.

Indices are unsigned: Numba otherwise tests each for being counted from the end.
"""

from __future__ import annotations

import numpy as np

from dpadmm.kernels.compiled.block_slopes import block_coefficients
from dpadmm.kernels.compiled.row_blocks import is_single, next_rows, prefetch, thirds
from dpadmm.kernels.jit import kernel
from dpadmm.kernels.vectors.dense_blocks import BLOCK, add_rows, dot_and_add, dot_rows, padded_width
from dpadmm.kernels.vectors.dense_table import CACHE_LINE, ROWS_ADDED

U = np.uintp
AHEAD = 4 * BLOCK
"""Rows of a batch asked for before they are needed: a cache holds more, but no more can be on their way at once."""


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
        prefetch(address + U(rows[r]) * width)
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
    margin, slope, there = thirds(room[6 + tasks :], outputs, anchors)
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
    single: bool = is_single(points)
    at_once = single and anchors is None and out.shape[0] == U(1)
    while True:
        if rows is None and drawn is None and is_single(X):
            _fetch_known(factors, norms, target, position + U(2 * BLOCK))
        after = U(BLOCK) - at
        position, count, first_after = next_rows(
            BLOCK, position, end, after, rows, weights, factors, norms, target, index, factor, norm, weight, label
        )
        if count:
            first_after = _numbered(drawn, first_after, after, count, index)
            if rows is not None:
                _fetch(X, index, after, count)
            _fetch_ahead(X, drawn, position)
            count = _padded(count, after, index, weight)
        if ready:
            block_coefficients(rule, single, margin, there, label, norm, weight, at, BLOCK, ready, slope, sizes)
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
            prefetch(row + offset)
        prefetch(row + width - U(1))


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
        prefetch(U(factors.ctypes.data) + place)
        prefetch(U(norms.ctypes.data) + place)
    for offset in range(U(0), U(BLOCK * target.itemsize), U(CACHE_LINE)):
        place = position * U(target.itemsize) + offset
        for k in range(U(target.shape[0])):
            prefetch(U(target.ctypes.data) + k * U(target.shape[1] * target.itemsize) + place)
