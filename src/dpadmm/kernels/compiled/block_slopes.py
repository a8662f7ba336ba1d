"""Weights times clipped slopes of the rows of one block: arrays (outputs, rows), of which those from `at` on."""

from __future__ import annotations

import numpy as np

from dpadmm.kernels.clipping import SAFETY, SMALLEST_SCALE
from dpadmm.kernels.compiled.slopes import LARGEST, clipped, exp, slope_at
from dpadmm.kernels.jit import kernel
from dpadmm.kernels.loss_codes import HUBER, HUBERISED_HINGE, LOGISTIC, SOFTMAX, SQUARED

U = np.uintp


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
def block_coefficients(rule, single, margin, anchored, target, norms, weights, at, length, count, out, sizes):
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
