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
def _slopes(code, parameter, margin, target, count, out):
    """Derivative of the loss in each margin; NaN or infinite where the margin is, for `_clip` to drop."""
    outputs = U(margin.shape[0])
    if code == LOGISTIC:
        for r in range(count):
            y = target[U(0), r]
            z = margin[U(0), r] * y
            slope = -y / (1.0 + _exp(z))
            out[U(0), r] = slope if z == z else np.nan
    elif code == HUBERISED_HINGE:
        for r in range(count):
            y = target[U(0), r]
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
                out[k, r] = margin[k, r] / out[U(0), r] - (1.0 if target[U(0), r] == k else 0.0)
        for r in range(count):
            out[U(0), r] = margin[U(0), r] / out[U(0), r] - (1.0 if target[U(0), r] == 0 else 0.0)
    else:
        for k in range(outputs):
            for r in range(count):
                out[k, r] = margin[k, r] - target[k, r]
        if code == HUBER:
            for k in range(outputs):
                for r in range(count):
                    error = out[k, r]
                    error = error if error > -parameter or error != error else -parameter
                    out[k, r] = error if error < parameter or error != error else parameter


@kernel()
def _clip(slopes, norms, clip, count, sizes):
    """Scale slopes so that ‖slope‖·‖row‖ ≤ clip; what is not finite becomes zero. See `clipping.clip_slopes`."""
    limit = clip * SAFETY
    outputs = U(slopes.shape[0])
    for k in range(outputs):
        for r in range(count):
            slope = slopes[k, r]
            slopes[k, r] = slope if abs(slope) <= LARGEST and norms[r] <= LARGEST else 0.0
    if outputs == 1:
        for r in range(count):
            norm = abs(slopes[U(0), r]) * norms[r]
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
        norm = peaks[r] * np.sqrt(squares[r]) * norms[r]
        squares[r] = limit / norm if norm > limit else 1.0
    for k in range(outputs):
        for r in range(count):
            slopes[k, r] *= squares[r]


@kernel()
def _clipped(code, parameter, margin, anchored, target, norms, gradient_clip, clip, count, out, sizes):
    """Clipped slopes, or clipped differences of clipped slopes where there is an anchor."""
    _slopes(code, parameter, margin, target, count, out)
    if anchored is not None:
        _clip(out, norms, gradient_clip, count, sizes)
        # The margins have served; their place takes the slopes at the anchor.
        _slopes(code, parameter, anchored, target, count, margin)
        _clip(margin, norms, gradient_clip, count, sizes)
        for k in range(U(out.shape[0])):
            for r in range(count):
                out[k, r] -= margin[k, r]
    _clip(out, norms, clip, count, sizes)


# -- dense rows ----------------------------------------------------------------------------------------------------


@kernel()
def _entry(X, i, j, lower, upper, inverse):
    """Entry of the mapped row but for its factor."""
    if lower is None:
        return X[i, j]
    return (min(max(X[i, j], lower[j]), upper[j]) - lower[j]) * inverse[j]


@kernel("reassoc", "contract")
def _margins(X, lower, upper, inverse, index, factors, count, points, out):
    """factor · ⟨row, point⟩ for each output and row; the last entry of a point is its intercept."""
    d = U(X.shape[1])
    for k in range(U(points.shape[0])):
        w = points[k]
        for r in range(U(0), count, U(4)):
            i0, i1, i2, i3 = index[r], index[r + U(1)], index[r + U(2)], index[r + U(3)]
            s0 = s1 = s2 = s3 = points.dtype.type(0)
            for j in range(d):
                v = w[j]
                s0 += _entry(X, i0, j, lower, upper, inverse) * v
                s1 += _entry(X, i1, j, lower, upper, inverse) * v
                s2 += _entry(X, i2, j, lower, upper, inverse) * v
                s3 += _entry(X, i3, j, lower, upper, inverse) * v
            out[k, r] = factors[r] * (s0 + w[d])
            out[k, r + U(1)] = factors[r + U(1)] * (s1 + w[d])
            out[k, r + U(2)] = factors[r + U(2)] * (s2 + w[d])
            out[k, r + U(3)] = factors[r + U(3)] * (s3 + w[d])


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
    d, outputs, columns = U(X.shape[1]), points.shape[0], U(target.shape[1])
    width = d * U(X.itemsize)
    block = U(max(4, min(BLOCK, BLOCK_BYTES // max(1, int(width)) // 4 * 4)))
    out = np.zeros((outputs, int(d) + 1))
    index = np.zeros(BLOCK, np.uintp)
    scratch = np.zeros((5 + int(columns), BLOCK))
    factor, norm, weight, sizes, labels = scratch[0], scratch[1], scratch[2], scratch[3:5], scratch[5:]
    slopes = np.zeros((2 * outputs, BLOCK)) if anchors is None else np.zeros((3 * outputs, BLOCK))
    margin, slope = slopes[:outputs], slopes[outputs : 2 * outputs]
    address = U(X.ctypes.data)
    position, end = U(start), U(stop)
    while position < end:
        count = U(0)
        if rows is None and weights is None and position + block <= end:
            # The usual case, a block of consecutive rows none of which counts as zero, in loops that vectorise.
            zeros = 0
            for r in range(block):
                i = position + r
                index[r], factor[r], norm[r], weight[r] = i, factors[i], norms[i], 1.0
                zeros += factors[i] == 0.0
            for k in range(columns):
                for r in range(block):
                    labels[k, r] = target[position + r, k]
            if zeros == 0:
                count = block
                position += block
        while count < block and position < end:
            i = position if rows is None else U(rows[position])
            # Rows that count as zero may hold NaN and are never read.
            if factors[i] != 0.0:
                index[count], factor[count], norm[count] = i, factors[i], norms[i]
                weight[count] = 1.0 if weights is None else weights[position]
                for k in range(columns):
                    labels[k, count] = target[i, k]
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
                labels[k, r] = labels[k, 0]
        _margins(X, lower, upper, inverse, index, factor, padded, points, margin)
        if anchors is None:
            _clipped(code, parameter, margin, None, labels, norm, gradient_clip, clip, padded, slope, sizes)
        else:
            there = slopes[2 * outputs :]
            _margins(X, lower, upper, inverse, index, factor, padded, anchors, there)
            _clipped(code, parameter, margin, there, labels, norm, gradient_clip, clip, padded, slope, sizes)
        for k in range(U(outputs)):
            for r in range(padded):
                slope[k, r] *= weight[r] * factor[r]
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
def _sparse_margin(data, indices, first, last, upper, inverse, factor, points, out):
    """factor · ⟨row, point⟩ for each output; points are (features + 1, outputs)."""
    outputs = U(points.shape[1])
    intercept = U(points.shape[0] - 1)
    if outputs == 1:
        total = points[intercept, U(0)]
        for position in range(first, last):
            total += _stored(data, indices, position, upper, inverse) * points[U(indices[position]), U(0)]
        out[U(0), U(0)] = factor * total
        return
    for k in range(outputs):
        out[k, U(0)] = points[intercept, k]
    for position in range(first, last):
        value, j = _stored(data, indices, position, upper, inverse), U(indices[position])
        for k in range(outputs):
            out[k, U(0)] += value * points[j, k]
    for k in range(outputs):
        out[k, U(0)] *= factor


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
    outputs, columns = U(points.shape[1]), U(target.shape[1])
    out = np.zeros(points.shape)
    intercept = U(points.shape[0] - 1)
    scratch = np.zeros((3 * int(outputs), 1))
    margin, slope, there = (
        scratch[: int(outputs)],
        scratch[int(outputs) : 2 * int(outputs)],
        scratch[2 * int(outputs) :],
    )
    labels, norm, sizes = np.zeros((int(columns), 1)), np.zeros(1), np.zeros((2, 1))
    if rows is not None:
        for position in range(U(start), U(stop)):
            first = U(indptr[U(rows[position])])
            _prefetch(U(data.ctypes.data) + first * U(data.itemsize))
            _prefetch(U(indices.ctypes.data) + first * U(indices.itemsize))
    for position in range(U(start), U(stop)):
        i = position if rows is None else U(rows[position])
        if factors[i] == 0.0:
            continue
        first, last, factor = U(indptr[i]), U(indptr[i + U(1)]), factors[i]
        norm[U(0)] = norms[i]
        for k in range(columns):
            labels[k, U(0)] = target[i, k]
        _sparse_margin(data, indices, first, last, upper, inverse, factor, points, margin)
        if anchors is None:
            _clipped(code, parameter, margin, None, labels, norm, gradient_clip, clip, U(1), slope, sizes)
        else:
            _sparse_margin(data, indices, first, last, upper, inverse, factor, anchors, there)
            _clipped(code, parameter, margin, there, labels, norm, gradient_clip, clip, U(1), slope, sizes)
        scale = factor if weights is None else factor * weights[position]
        if outputs == 1:
            c = slope[U(0), U(0)] * scale
            for entry in range(first, last):
                out[U(indices[entry]), U(0)] += c * _stored(data, indices, entry, upper, inverse)
            out[intercept, U(0)] += c
        else:
            for k in range(outputs):
                slope[k, U(0)] *= scale
                out[intercept, k] += slope[k, U(0)]
            for entry in range(first, last):
                value, j = _stored(data, indices, entry, upper, inverse), U(indices[entry])
                for k in range(outputs):
                    out[j, k] += slope[k, U(0)] * value
    return out
