"""Exact samples of the discrete Gaussian: P(k) ∝ exp(−k²/2σ²) over all integers k.

The rejection sampler of Canonne, Kamath & Steinke (2020): a discrete Laplace proposal Y of scale t, kept with
probability exp(−(|Y| − σ²/t)²/2σ²). Each coin of probability e^(−x) is tossed by comparing 64 uniform bits with e^(−x).
Where double precision cannot tell which is larger, the comparison goes on in rational arithmetic with further bits,
so that every decision is the one infinite precision would take (docs/proofs/float.md).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpadmm.errors import InvalidParameter

Bits = Callable[[int], NDArray[np.uint64]]
"""`count` independent uniform 64-bit numbers."""
Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

LARGEST_SIGMA = 1 << 54
DOUBT = 2.0**-40
"""Share by which e^(−x) in double precision may be off, with a wide margin: what lies closer is decided exactly."""
LAST_BITS = 2.0**-60
"""Covers the rounding of 64 bits to a double, and probabilities too small for a relative error to mean anything."""
FEWEST_TRIES = 1 << 10
LONGEST_TAIL = 1 << 8
"""Proposals beyond this many scales, of probability e⁻²⁵⁶, would leave 64-bit integers and are drawn again."""


def discrete_gaussian(sigma: Integers, bits: Bits) -> Integers:
    """One independent sample for each entry of `sigma`.

    Parameters
    ----------
    sigma : array of int
        Standard deviations, between 1 and 2⁵⁴.
    bits : callable
        Source of uniform 64-bit numbers.

    Formal guarantees
    -----------------
    If the bits are uniform and independent, the samples have exactly the law above, but for tails of probability
    below e⁻²⁵⁵ that are cut.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> drawn = discrete_gaussian(np.full(10_000, 7), lambda n: rng.integers(0, 2**64, n, dtype=np.uint64))
    >>> drawn.dtype, bool(6.8 < drawn.std() < 7.2)
    (dtype('int64'), True)
    """
    flat = np.asarray(sigma, dtype=np.int64).ravel()
    if flat.size and not (flat.min() >= 1 and flat.max() <= LARGEST_SIGMA):
        raise InvalidParameter("a sigma outside 1 to 2**54", "whole numbers inside", "choose another grid")
    drawn = np.empty(flat.size, dtype=np.int64)
    open_places = np.arange(flat.size)
    while open_places.size:
        # Short arrays get several tries at once, of which the first that stands counts: calls cost more than bits.
        tries = max(1, FEWEST_TRIES // open_places.size)
        wanted = np.tile(flat[open_places], tries)
        proposal, kept = _proposals(wanted, bits)
        kept[kept] = _accepted(proposal[kept], wanted[kept], bits)
        proposal, kept = proposal.reshape(tries, -1), kept.reshape(tries, -1)
        first, settled = kept.argmax(axis=0), kept.any(axis=0)
        drawn[open_places[settled]] = proposal[first[settled], np.flatnonzero(settled)]
        open_places = open_places[~settled]
    return np.asarray(drawn.reshape(np.shape(sigma)))


def scale_exponent(sigma: Integers) -> Integers:
    """e with 2^(e−1) < σ ≤ 2^e: a power of two as the scale of the proposal makes its uniform part plain bits."""
    mantissa, exponent = np.frexp(sigma.astype(np.float64))
    return np.asarray(exponent.astype(np.int64) - (mantissa == 0.5))


def _proposals(sigma: Integers, bits: Bits) -> tuple[Integers, NDArray[np.bool_]]:
    """Discrete Laplace values of scale t = 2^e, and which of them stand."""
    exponent = scale_exponent(sigma)
    fresh = bits(sigma.size)
    negative = (fresh & np.uint64(1)).astype(bool)
    # A shift by 64 is undefined, so the sign bit is dropped first: e = 0 shifts by 63 in two steps.
    remainder = ((fresh >> np.uint64(1)) >> (63 - exponent).astype(np.uint64)).astype(np.int64)
    share = np.ldexp(remainder.astype(np.float64), -exponent.astype(np.int32))

    def exact_share(place: int) -> Fraction:
        return Fraction(int(remainder[place]), 1 << int(exponent[place]))

    stands = below_exponential(share, exact_share, bits)
    scales = _geometric(sigma.size, bits)
    stands &= scales < LONGEST_TAIL
    size = remainder + (np.minimum(scales, LONGEST_TAIL) << exponent)
    stands &= ~(negative & (size == 0))
    return np.where(negative, -size, size), stands


def _geometric(count: int, bits: Bits) -> Integers:
    """P(V ≥ v) = e^(−v)."""
    values = np.zeros(count, dtype=np.int64)
    running = np.arange(count)
    while running.size:
        running = running[below_exponential(np.ones(running.size), lambda place: Fraction(1), bits)]
        values[running] += 1
    return values


def _accepted(proposal: Integers, sigma: Integers, bits: Bits) -> NDArray[np.bool_]:
    """Coins of probability exp(−(|Y| − σ²/t)²/2σ²)."""
    exponent = scale_exponent(sigma)
    deviation = sigma.astype(np.float64)
    centre = np.ldexp(deviation * deviation, -exponent.astype(np.int32))
    distance = (np.abs(proposal).astype(np.float64) - centre) / deviation

    def exact_exponent(place: int) -> Fraction:
        variance = int(sigma[place]) ** 2
        gap = abs(int(proposal[place])) - Fraction(variance, 1 << int(exponent[place]))
        return gap * gap / (2 * variance)

    return below_exponential(0.5 * distance * distance, exact_exponent, bits)


def below_exponential(x: Floats, exact: Callable[[int], Fraction], bits: Bits) -> NDArray[np.bool_]:
    """Coins that fall heads with probability exactly e^(−exact(i)).

    Parameters
    ----------
    x : (n,)
        The exponents, to a relative error of 2⁻⁵⁰.
    exact : callable
        The exponent of place i as a fraction.
    """
    fresh = bits(x.size)
    uniform = np.ldexp(fresh.astype(np.float64), -64)
    probability = np.exp(-x)
    heads = uniform < probability * (1 - DOUBT) - LAST_BITS
    doubtful = ~heads & (uniform < probability * (1 + DOUBT) + LAST_BITS)
    for place in np.flatnonzero(doubtful):
        heads[place] = _settled(int(fresh[place]), exact(int(place)), bits)
    return heads


def _settled(uniform: int, x: Fraction, bits: Bits) -> bool:
    """Whether 0.uniform…, continued by fresh bits for as long as it takes, lies below e^(−x)."""
    places = 64
    while True:
        low, high = exponential_bounds(x, places)
        if uniform + 1 <= low:
            return True
        if uniform >= high:
            return False
        uniform, places = (uniform << 64) | int(bits(1)[0]), places + 64


def exponential_bounds(x: Fraction, places: int) -> tuple[int, int]:
    """Integers with low ≤ e^(−x)·2^places ≤ high, at most a few apart."""
    with localcontext() as context:
        context.prec = math.ceil(places * math.log10(2)) + 25
        context.Emin, context.Emax = -(10**9), 10**9
        value = (-Decimal(x.numerator) / Decimal(x.denominator)).exp() * Decimal(2) ** places
        # The quotient is off by 10^(−prec) of x, and `exp` is correctly rounded.
        error = value * (1 + Decimal(math.ceil(x))) * Decimal(10) ** (5 - context.prec)
        return math.floor(value - error), math.ceil(value + error)
