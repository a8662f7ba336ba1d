"""The slope of a loss at one margin, and its clip: what the compiled loops over rows share.

Selections instead of branches, so that a loop over margins becomes vector instructions.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from dpadmm.kernels.jit import kernel
from dpadmm.kernels.loss_codes import HUBER, HUBERISED_HINGE, LOGISTIC

HALF_ULP_SHIFT = 6755399441055744.0  # 1.5·2⁵²: adding it rounds to a whole number
LARGEST = 1.7976931348623157e308

SINGLE = np.float32
SINGLE_HALF_ULP_SHIFT = SINGLE(12582912.0)  # 1.5·2²³
SINGLE_LEAST, SINGLE_MOST = SINGLE(-87.0), SINGLE(88.0)
LOG2_E, LN2_HIGH, LN2_LOW = SINGLE(1.44269504), SINGLE(0.693359375), SINGLE(-2.1219444e-4)
ONE = SINGLE(1.0)
Q0, Q1, Q2, Q3, Q4 = SINGLE(0.5), SINGLE(0.16666576), SINGLE(0.041666463), SINGLE(0.008363236), SINGLE(0.0013933734)
"""(eʳ − 1 − r)/r² as a polynomial in r, |r| ≤ ln(2)/2, fitted at Chebyshev's points."""


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


@intrinsic
def _power_of_two(typing: Any, shifted: Any) -> Any:
    """2^k, where `shifted` is k + SINGLE_HALF_ULP_SHIFT in float32."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        word = ir.IntType(32)
        exponent = builder.add(builder.bitcast(args[0], word), word(127))
        return builder.bitcast(builder.shl(exponent, word(23)), ir.FloatType())

    return types.float32(types.float32), generate


@kernel("contract", inline=True)
def single_exp(x):
    """e^x of a float32 to two of its units in the last place, without a branch; NaN counts as −87."""
    x = x if x > SINGLE_LEAST else SINGLE_LEAST
    x = x if x < SINGLE_MOST else SINGLE_MOST
    shifted = x * LOG2_E + SINGLE_HALF_ULP_SHIFT
    whole = shifted - SINGLE_HALF_ULP_SHIFT
    rest = (x - whole * LN2_HIGH) - whole * LN2_LOW
    square = rest * rest
    tail = (Q0 + Q1 * rest) + square * ((Q2 + Q3 * rest) + square * Q4)
    return (ONE + (rest + square * tail)) * _power_of_two(shifted)


@kernel("contract", inline=True)
def slope_at(code, parameter, margin, target, single):
    """Derivative of a loss of one margin as a numerator and a denominator of at least 1, for `clipped` to divide.

    The numerator is NaN where the margin is, for `clipped` to drop; an infinite margin has a bounded slope where the
    loss has. A `single` exponential has the precision of float32, which is that of the margin.
    """
    if code == LOGISTIC:
        z = margin * target
        power = np.float64(single_exp(np.float32(z))) if single else exp(z)
        return (-target if z == z else np.nan), 1.0 + power
    if code == HUBERISED_HINGE:
        depth = 1.0 + parameter - margin * target
        depth = depth if depth > 0.0 or depth != depth else 0.0
        depth = depth if depth < 2.0 * parameter or depth != depth else 2.0 * parameter
        return -target * depth / (2.0 * parameter), 1.0
    error = margin - target
    if code == HUBER:
        error = error if error > -parameter or error != error else -parameter
        error = error if error < parameter or error != error else parameter
    return error, 1.0


@kernel(inline=True)
def clipped(numerator, denominator, norm, limit):
    """The slope numerator / denominator, scaled so that |slope|·norm ≤ limit; zero if numerator or norm is not finite.

    A division by the larger of two denominators is both: the slope's own, and the one that makes it as long as allowed.
    The latter is infinite or NaN if either is not finite, or if both are too large for a number: zero as well. See
    `clipping.clip_slopes`.
    """
    longest = abs(numerator) * (norm * (1.0 / limit))
    shorter = numerator / (denominator if denominator > longest else longest)
    return shorter if longest <= LARGEST else 0.0
