"""Sums of clipped row gradients in one pass over the rows: margins, slopes, clip, sum, block by block.

All pieces that are inlined into one another live in this one file, because the cache of machine code watches the file
of the outer function only. Indices are unsigned: Numba otherwise tests each for being counted from the end.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from dpadmm.kernels.clipping import SAFETY
from dpadmm.kernels.codes import HUBER, HUBERISED_HINGE, LOGISTIC, SOFTMAX
from dpadmm.kernels.jit import kernel

U = np.uintp
BLOCK = 32
"""Rows handled together, fewer where that is more than BLOCK_BYTES."""
BLOCK_BYTES = 16384
CACHE_LINE = 64
HALF_ULP_SHIFT = 6755399441055744.0  # 1.5·2⁵²: adding it rounds to a whole number
LARGEST = 1.7976931348623157e308


@intrinsic
def _as_float(typing: Any, bits: Any) -> Any:
    return types.float64(types.int64), lambda context, builder, signature, args: builder.bitcast(
        args[0], ir.DoubleType()
    )


@intrinsic
def _as_bits(typing: Any, value: Any) -> Any:
    return types.int64(types.float64), lambda context, builder, signature, args: builder.bitcast(
        args[0], ir.IntType(64)
    )


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


@kernel("contract")
def _exp(x):
    """e^x to two units in the last place, without a branch; NaN counts as −708."""
    x = x if x > -708.0 else -708.0
    x = x if x < 709.0 else 709.0
    shifted = x * 1.4426950408889634 + HALF_ULP_SHIFT
    whole = shifted - HALF_ULP_SHIFT
    rest = x - whole * 6.93145751953125e-1
    rest = rest - whole * 1.42860682030941723212e-6
    p = 2.08767569878681e-9
    p = p * rest + 2.505210838544172e-8
    p = p * rest + 2.755731922398589e-7
    p = p * rest + 2.755731922398589e-6
    p = p * rest + 2.48015873015873e-5
    p = p * rest + 1.984126984126984e-4
    p = p * rest + 1.388888888888889e-3
    p = p * rest + 8.333333333333333e-3
    p = p * rest + 4.1666666666666664e-2
    p = p * rest + 1.6666666666666666e-1
    p = p * rest + 0.5
    p = p * rest + 1.0
    p = p * rest + 1.0
    return p * _as_float((_as_bits(shifted) + 1023) << 52)


# -- slopes and clip of one block: arrays (outputs, rows) ----------------------------------------------------------


@kernel("contract")
def _slopes(code, parameter, margin, target, at, count, out):
    """Derivative of the loss in each margin; NaN or infinite where the margin is, for `_clip` to drop."""
    outputs = U(margin.shape[0])
    if code == LOGISTIC:
        for r in range(count):
            y = target[U(0), at + r]
            z = margin[U(0), r] * y
            slope = -y / (1.0 + _exp(z))
            out[U(0), r] = slope if z == z else np.nan
    elif code == HUBERISED_HINGE:
        for r in range(count):
            y = target[U(0), at + r]
            depth = 1.0 + parameter - margin[U(0), r] * y
            depth = depth if depth > 0.0 or depth != depth else 0.0
            depth = depth if depth < 2.0 * parameter or depth != depth else 2.0 * parameter
            out[U(0), r] = -y * depth / (2.0 * parameter)
    elif code == SOFTMAX:
        for r in range(count):
            out[U(0), r] = margin[U(0), r]
        for k in range(U(1), outputs):
            for r in range(count):
                value = margin[k, r]
                out[U(0), r] = value if value > out[U(0), r] or value != value else out[U(0), r]
        # The first row of `out` holds the largest margin until the end: exponentials wait in `margin`.
        for k in range(outputs):
            for r in range(count):
                below = margin[k, r] - out[U(0), r]
                margin[k, r] = _exp(below) if below == below else np.nan
        for r in range(count):
            out[U(0), r] = margin[U(0), r]
        for k in range(U(1), outputs):
            for r in range(count):
                out[U(0), r] += margin[k, r]
        for k in range(outputs - U(1), U(0), -1):
            for r in range(count):
                out[k, r] = margin[k, r] / out[U(0), r] - (1.0 if target[U(0), at + r] == k else 0.0)
        for r in range(count):
            out[U(0), r] = margin[U(0), r] / out[U(0), r] - (1.0 if target[U(0), at + r] == 0 else 0.0)
    else:
        for k in range(outputs):
            for r in range(count):
                out[k, r] = margin[k, r] - target[k, at + r]
        if code == HUBER:
            for k in range(outputs):
                for r in range(count):
                    error = out[k, r]
                    error = error if error > -parameter or error != error else -parameter
                    out[k, r] = error if error < parameter or error != error else parameter


@kernel()
def _clip(slopes, norms, at, clip, count, sizes):
    """Scale slopes so that ‖slope‖·‖row‖ ≤ clip; what is not finite becomes zero. See `clipping.clip_slopes`."""
    limit = clip * SAFETY
    outputs = U(slopes.shape[0])
    for k in range(outputs):
        for r in range(count):
            slope = slopes[k, r]
            slopes[k, r] = slope if abs(slope) <= LARGEST and norms[at + r] <= LARGEST else 0.0
    if outputs == 1:
        for r in range(count):
            norm = abs(slopes[U(0), r]) * norms[at + r]
            slopes[U(0), r] *= limit / norm if norm > limit else 1.0
        return
    peaks, squares = sizes[U(0)], sizes[U(1)]
    for r in range(count):
        peaks[r] = 0.0
        squares[r] = 0.0
    for k in range(outputs):
        for r in range(count):
            peaks[r] = max(peaks[r], abs(slopes[k, r]))
    for r in range(count):
        peaks[r] = peaks[r] if peaks[r] > 0.0 else 1.0
    for k in range(outputs):
        for r in range(count):
            scaled = slopes[k, r] / peaks[r]
            squares[r] += scaled * scaled
    for r in range(count):
        norm = peaks[r] * np.sqrt(squares[r]) * norms[at + r]
        squares[r] = limit / norm if norm > limit else 1.0
    for k in range(outputs):
        for r in range(count):
            slopes[k, r] *= squares[r]


@kernel()
def _clipped(code, parameter, margin, anchored, target, norms, at, gradient_clip, clip, count, out, sizes):
    """Clipped slopes, or clipped differences of clipped slopes where there is an anchor."""
    _slopes(code, parameter, margin, target, at, count, out)
    if anchored is not None:
        _clip(out, norms, at, gradient_clip, count, sizes)
        # The margins have served; their place takes the slopes at the anchor.
        _slopes(code, parameter, anchored, target, at, count, margin)
        _clip(margin, norms, at, gradient_clip, count, sizes)
        for k in range(U(out.shape[0])):
            for r in range(count):
                out[k, r] -= margin[k, r]
    _clip(out, norms, at, clip, count, sizes)


# -- dense rows ----------------------------------------------------------------------------------------------------


@kernel()
def _entry(X, i, j, lower, upper, inverse):
    """Entry of the mapped row but for its factor."""
    if lower is None:
        return X[i, j]
    return (min(max(X[i, j], lower[j]), upper[j]) - lower[j]) * inverse[j]


@kernel("reassoc", "contract")
def _margins(X, lower, upper, inverse, index, factors, at, count, points, out):
    """factor · ⟨row, point⟩ for each output and row; the last entry of a point is its intercept."""
    d = U(X.shape[1])
    for k in range(U(points.shape[0])):
        w = points[k]
        for r in range(count):
            i = index[r]
            total = points.dtype.type(0)
            for j in range(d):
                total += _entry(X, i, j, lower, upper, inverse) * w[j]
            out[k, r] = factors[at + r] * (total + w[d])


@kernel("contract")
def _accumulate(X, lower, upper, inverse, index, count, coefficients, out):
    """out += coefficient ⊗ (row, 1), four rows at a time, always in float64."""
    d = U(X.shape[1])
    for k in range(U(out.shape[0])):
        sums = out[k]
        for r in range(U(0), count, U(4)):
            i0, i1, i2, i3 = index[r], index[r + U(1)], index[r + U(2)], index[r + U(3)]
            c0, c1 = coefficients[k, r], coefficients[k, r + U(1)]
            c2, c3 = coefficients[k, r + U(2)], coefficients[k, r + U(3)]
            for j in range(d):
                sums[j] += (
                    c0 * _entry(X, i0, j, lower, upper, inverse) + c1 * _entry(X, i1, j, lower, upper, inverse)
                ) + (c2 * _entry(X, i2, j, lower, upper, inverse) + c3 * _entry(X, i3, j, lower, upper, inverse))
            sums[d] += (c0 + c1) + (c2 + c3)


@kernel()
def _all_count(factors, position, block):
    """Whether no row of a block counts as zero."""
    zeros = 0
    for r in range(block):
        zeros += factors[position + r] == 0.0
    return zeros == 0


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
):
    d, outputs, columns = U(X.shape[1]), points.shape[0], U(target.shape[0])
    width = d * U(X.itemsize)
    block = U(max(4, min(BLOCK, BLOCK_BYTES // max(1, int(width)) // 4 * 4)))
    out = np.zeros((outputs, int(d) + 1))
    index = np.zeros(BLOCK, np.uintp)
    scratch = np.zeros((5, BLOCK))
    factor, norm, weight, sizes = scratch[0], scratch[1], scratch[2], scratch[3:]
    label = np.zeros((target.shape[0], BLOCK))
    margin, slope = np.zeros((outputs, BLOCK)), np.zeros((outputs, BLOCK))
    there = None if anchors is None else np.zeros((outputs, BLOCK))
    address = U(X.ctypes.data)
    position, end = U(start), U(stop)
    while position < end:
        if rows is None and weights is None and position + block <= end and _all_count(factors, position, block):
            for r in range(block):
                index[r] = position + r
            _margins(X, lower, upper, inverse, index, factors, position, block, points, margin)
            if there is not None:
                _margins(X, lower, upper, inverse, index, factors, position, block, anchors, there)
            _clipped(code, parameter, margin, there, target, norms, position, gradient_clip, clip, block, slope, sizes)
            for k in range(U(outputs)):
                for r in range(block):
                    slope[k, r] *= factors[position + r]
            _accumulate(X, lower, upper, inverse, index, block, slope, out)
            position += block
            continue
        count = U(0)
        while count < block and position < end:
            i = position if rows is None else U(rows[position])
            # Rows that count as zero may hold NaN and are never read.
            if factors[i] != 0.0:
                index[count], factor[count], norm[count] = i, factors[i], norms[i]
                weight[count] = factors[i] if weights is None else factors[i] * weights[position]
                for k in range(columns):
                    label[k, count] = target[k, i]
                if rows is not None:
                    for offset in range(U(0), width, U(CACHE_LINE)):
                        _prefetch(address + i * width + offset)
                count += U(1)
            position += U(1)
        if count == 0:
            break
        padded = (count + U(3)) // U(4) * U(4)
        for r in range(count, padded):
            index[r], factor[r], norm[r], weight[r] = index[0], factor[0], norm[0], 0.0
            for k in range(columns):
                label[k, r] = label[k, 0]
        _margins(X, lower, upper, inverse, index, factor, U(0), padded, points, margin)
        if there is not None:
            _margins(X, lower, upper, inverse, index, factor, U(0), padded, anchors, there)
        _clipped(code, parameter, margin, there, label, norm, U(0), gradient_clip, clip, padded, slope, sizes)
        for k in range(U(outputs)):
            for r in range(padded):
                slope[k, r] *= weight[r]
        _accumulate(X, lower, upper, inverse, index, padded, slope, out)
    return out


# -- sparse rows ---------------------------------------------------------------------------------------------------


@kernel()
def _stored(data, indices, position, upper, inverse):
    """A stored entry of the mapped row but for its factor; sparse rows have lower bounds of zero."""
    if upper is None:
        return np.float64(data[position])
    j = U(indices[position])
    return min(max(np.float64(data[position]), 0.0), upper[j]) * inverse[j]


@kernel()
def _sparse_margins(data, indices, indptr, upper, inverse, index, factors, count, points, out):
    """factor · ⟨row, point⟩ for each output and row; points are (features + 1, outputs)."""
    outputs, intercept = U(points.shape[1]), U(points.shape[0] - 1)
    for r in range(count):
        first, last = U(indptr[index[r]]), U(indptr[index[r] + U(1)])
        if outputs == 1:
            total = points[intercept, U(0)]
            for position in range(first, last):
                total += _stored(data, indices, position, upper, inverse) * points[U(indices[position]), U(0)]
            out[U(0), r] = factors[r] * total
            continue
        for k in range(outputs):
            out[k, r] = points[intercept, k]
        for position in range(first, last):
            value, j = _stored(data, indices, position, upper, inverse), U(indices[position])
            for k in range(outputs):
                out[k, r] += value * points[j, k]
        for k in range(outputs):
            out[k, r] *= factors[r]


@kernel()
def _scatter(data, indices, indptr, upper, inverse, index, count, coefficients, out):
    """out += (row, 1) ⊗ coefficient."""
    outputs, intercept = U(out.shape[1]), U(out.shape[0] - 1)
    for r in range(count):
        first, last = U(indptr[index[r]]), U(indptr[index[r] + U(1)])
        for k in range(outputs):
            out[intercept, k] += coefficients[k, r]
        if outputs == 1:
            c = coefficients[U(0), r]
            for position in range(first, last):
                out[U(indices[position]), U(0)] += c * _stored(data, indices, position, upper, inverse)
            continue
        for position in range(first, last):
            value, j = _stored(data, indices, position, upper, inverse), U(indices[position])
            for k in range(outputs):
                out[j, k] += coefficients[k, r] * value


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
):
    outputs, columns = points.shape[1], U(target.shape[0])
    out = np.zeros(points.shape)
    index = np.zeros(BLOCK, np.uintp)
    scratch = np.zeros((5, BLOCK))
    factor, norm, weight, sizes = scratch[0], scratch[1], scratch[2], scratch[3:]
    label = np.zeros((target.shape[0], BLOCK))
    margin, slope = np.zeros((outputs, BLOCK)), np.zeros((outputs, BLOCK))
    there = None if anchors is None else np.zeros((outputs, BLOCK))
    position, end = U(start), U(stop)
    while position < end:
        count = U(0)
        while count < U(BLOCK) and position < end:
            i = position if rows is None else U(rows[position])
            if factors[i] != 0.0:
                index[count], factor[count], norm[count] = i, factors[i], norms[i]
                weight[count] = factors[i] if weights is None else factors[i] * weights[position]
                for k in range(columns):
                    label[k, count] = target[k, i]
                if rows is not None:
                    first = U(indptr[i])
                    _prefetch(U(data.ctypes.data) + first * U(data.itemsize))
                    _prefetch(U(indices.ctypes.data) + first * U(indices.itemsize))
                count += U(1)
            position += U(1)
        _sparse_margins(data, indices, indptr, upper, inverse, index, factor, count, points, margin)
        if there is not None:
            _sparse_margins(data, indices, indptr, upper, inverse, index, factor, count, anchors, there)
        _clipped(code, parameter, margin, there, label, norm, U(0), gradient_clip, clip, count, slope, sizes)
        for k in range(U(outputs)):
            for r in range(count):
                slope[k, r] *= weight[r]
        _scatter(data, indices, indptr, upper, inverse, index, count, slope, out)
    return out
