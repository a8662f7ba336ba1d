"""The slope of a loss at one margin, and its clip: what the compiled loops over rows share.

Selections instead of branches, so that a loop over margins becomes vector instructions.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from dpadmm.kernels.codes import HUBER, HUBERISED_HINGE, LOGISTIC
from dpadmm.kernels.jit import kernel

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


@kernel("contract", inline=True)
def exp(x):
    """e^x to two units in the last place, without a branch; NaN counts as −708."""
    x = x if x > -708.0 else -708.0
    x = x if x < 709.0 else 709.0
    shifted = x * 1.4426950408889634 + HALF_ULP_SHIFT
    whole = shifted - HALF_ULP_SHIFT
    rest = x - whole * 6.93145751953125e-1
    rest = rest - whole * 1.42860682030941723212e-6
    # Pairs of coefficients, pairs of pairs: a third of the steps that wait for each other in Horner's rule.
    square = rest * rest
    fourth = square * square
    low = (rest + 1.0) + square * (1.6666666666666666e-1 * rest + 0.5)
    middle = (8.333333333333333e-3 * rest + 4.1666666666666664e-2) + square * (
        1.984126984126984e-4 * rest + 1.388888888888889e-3
    )
    high = (2.755731922398589e-6 * rest + 2.48015873015873e-5) + square * (
        2.505210838544172e-8 * rest + 2.755731922398589e-7
    )
    p = low + fourth * (middle + fourth * (high + fourth * 2.08767569878681e-9))
    return p * _as_float((_as_bits(shifted) + 1023) << 52)


@kernel("contract", inline=True)
def slope_at(code, parameter, margin, target):
    """Derivative of a loss of one margin; NaN or infinite where the margin is, for `clipped` to drop."""
    if code == LOGISTIC:
        z = margin * target
        slope = -target / (1.0 + exp(z))
        return slope if z == z else np.nan
    if code == HUBERISED_HINGE:
        depth = 1.0 + parameter - margin * target
        depth = depth if depth > 0.0 or depth != depth else 0.0
        depth = depth if depth < 2.0 * parameter or depth != depth else 2.0 * parameter
        return -target * depth / (2.0 * parameter)
    error = margin - target
    if code == HUBER:
        error = error if error > -parameter or error != error else -parameter
        error = error if error < parameter or error != error else parameter
    return error


@kernel(inline=True)
def clipped(slope, norm, limit):
    """The slope scaled so that |slope|·norm ≤ limit; zero if either is not finite. See `clipping.clip_slopes`."""
    scale = limit / (abs(slope) * norm)
    shorter = slope * (scale if scale < 1.0 else 1.0)
    return shorter if abs(slope) <= LARGEST and norm <= LARGEST else 0.0
