"""Exact samples of how many trials a private search makes, drawn as the sizes of batches are.

The law of that number is part of the proof of a search's privacy (docs/proofs/tuning.md).
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from itertools import count
from math import ceil, floor

from dpadmm.exact_samplers.law_table import Bits, LawTable


def poisson(mean: float, bits: Bits) -> int:
    """P[k] ∝ meanᵏ/k!, k ≥ 0.

    Parameters
    ----------
    bits : callable
        bits(n) gives n independent uniform 64-bit words.

    Notes
    -----
    *Formal guarantees.* As of `negative_binomial`.
    """
    return _poisson(mean).draw(1, bits)[0]


def negative_binomial(shape: float, stopping: float, bits: Bits) -> int:
    """P[k] ∝ (1 − stopping)ᵏ·Γ(k + shape)/k!, k ≥ 1: geometric where the shape is 1, logarithmic where it is 0.

    Parameters
    ----------
    bits : callable
        bits(n) gives n independent uniform 64-bit words.

    Notes
    -----
    *Formal guarantees.* If the bits are independent and uniform, the law of the number is within 2⁻⁸⁰ of the named
    one in total variation, for tables of up to 2⁴⁰ entries (docs/proofs/float.md, Claim 6).

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> drawn = [negative_binomial(1.0, 0.1, lambda n: rng.integers(0, 2**64, n, dtype=np.uint64)) for _ in range(9999)]
    >>> min(drawn), round(sum(drawn) / 9999)
    (1, 10)
    """
    return _negative_binomial(shape, stopping).draw(1, bits)[0]


@lru_cache(maxsize=8)
def _poisson(mean: float) -> LawTable:
    numerator, denominator = float(mean).as_integer_ratio()
    likeliest = floor(mean)
    return LawTable.around(
        likeliest,
        ((k * denominator, numerator) for k in range(likeliest, 0, -1)),
        ((numerator, (k + 1) * denominator) for k in count(likeliest)),
    )


@lru_cache(maxsize=8)
def _negative_binomial(shape: float, stopping: float) -> LawTable:
    a, b = float(shape).as_integer_ratio()
    ends, chances = float(stopping).as_integer_ratio()
    goes_on = chances - ends
    # P[k + 1]/P[k] = (1 − γ)(k + η)/(k + 1) exceeds 1 before this number, and nowhere after it.
    likeliest = max(1, ceil((Fraction(goes_on, chances) * Fraction(a, b) - 1) / Fraction(ends, chances)))
    return LawTable.around(
        likeliest,
        ((k * b * chances, ((k - 1) * b + a) * goes_on) for k in range(likeliest, 1, -1)),
        (((k * b + a) * goes_on, (k + 1) * b * chances) for k in count(likeliest)),
    )
