"""Exact samples of the binomial law, made of uniform bits by comparing whole numbers.

How many rows of a table take part in a batch is part of the proof of its privacy. Samplers of general libraries are
made for speed: they cut off tails, or accept by series that are nearly right (docs/proofs/float.md).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

Bits = Callable[[int], NDArray[np.uint64]]

WORD = 64
WEIGHT_BITS = 192
"""The weight of the likeliest number; weights below one are left out."""


@dataclass(frozen=True, eq=False)
class _Law:
    """Bin(trials, rate) as numbers of 128 bits, cut off.

    Attributes
    ----------
    first : int
        The smallest number that is drawn.
    ends : list of int
        2¹²⁸·P[X ≤ first + j] for j = 0, 1, …, without the last, which is 2¹²⁸.
    leading : (len(ends),) of uint64
        The first 64 bits of each.
    """

    first: int
    ends: list[int]
    leading: NDArray[np.uint64]


def binomial(trials: int, rate: float, count: int, bits: Bits) -> list[int]:
    """`count` independent numbers of heads among `trials` coins of chance `rate`.

    Parameters
    ----------
    bits : callable
        bits(n) gives n independent uniform 64-bit words.

    Notes
    -----
    *Formal guarantees.* If the bits are independent and uniform, the law of each number is within 2⁻⁸⁰ of
    Bin(trials, rate) in total variation for up to 2⁴⁸ trials (docs/proofs/float.md, Claim 5).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> drawn = binomial(1000, 0.3, 10_000, lambda n: rng.integers(0, 2**64, n, dtype=np.uint64))
    >>> round(float(np.mean(drawn)))
    300
    """
    law = _law(trials, rate)
    words = bits(count)
    places = np.searchsorted(law.leading, words, side="left")
    drawn: list[int] = (law.first + places).tolist()
    # A word that an end begins with, hardly ever drawn, leaves the decision to the next.
    for i in np.flatnonzero(places != np.searchsorted(law.leading, words, side="right")):
        drawn[i] = law.first + bisect_right(law.ends, int(words[i]) << WORD | int(bits(1)[0]))
    return drawn


@lru_cache(maxsize=64)
def _law(trials: int, rate: float) -> _Law:
    heads, coins = float(rate).as_integer_ratio()
    likeliest = min(trials, (trials + 1) * heads // coins)
    below = list(_weights(likeliest, trials, coins - heads, heads))[::-1]
    above = list(_weights(trials - likeliest, trials, heads, coins - heads))
    sums = list(accumulate([*below, 1 << WEIGHT_BITS, *above]))
    ends = [(part << 2 * WORD) // sums[-1] for part in sums[:-1]]
    return _Law(likeliest - len(below), ends, np.array([end >> WORD for end in ends], dtype=np.uint64))


def _weights(left: int, trials: int, chance: int, other: int) -> Iterator[int]:
    """From the likeliest number on, in one direction: each loses one of `left` coins to the `trials − left` others."""
    weight = 1 << WEIGHT_BITS
    for remaining in range(left, 0, -1):
        weight = weight * remaining * chance // ((trials - remaining + 1) * other)
        if not weight:
            return
        yield weight
