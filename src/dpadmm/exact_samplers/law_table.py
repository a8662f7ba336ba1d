"""Laws of whole numbers as tables of 128-bit fractions: exact samples are drawn by comparing uniform bits with them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import Self

import numpy as np
from numpy.typing import NDArray

Bits = Callable[[int], NDArray[np.uint64]]
Ratios = Iterable[tuple[int, int]]

WORD = 64
WEIGHT_BITS = 192
"""The weight of the likeliest number; weights below one are left out."""


@dataclass(frozen=True, eq=False)
class LawTable:
    """A law as numbers of 128 bits, cut off.

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

    @classmethod
    def around(cls, likeliest: int, below: Ratios, above: Ratios) -> Self:
        """The law whose probabilities are `likeliest`'s times products of ratios of whole numbers, at most 1 each.

        Parameters
        ----------
        below, above : iterables of (int, int)
            Numerator and denominator of P[k − 1]/P[k] for k = likeliest, likeliest − 1, …, and of P[k + 1]/P[k] for
            k = likeliest, likeliest + 1, …
        """
        smaller = list(_weights(below))[::-1]
        sums = list(accumulate([*smaller, 1 << WEIGHT_BITS, *_weights(above)]))
        ends = [(part << 2 * WORD) // sums[-1] for part in sums[:-1]]
        return cls(likeliest - len(smaller), ends, np.array([end >> WORD for end in ends], dtype=np.uint64))

    def draw(self, count: int, bits: Bits) -> list[int]:
        """`count` independent numbers; bits(n) gives n independent uniform 64-bit words."""
        words = bits(count)
        places = np.searchsorted(self.leading, words, side="left")
        drawn: list[int] = (self.first + places).tolist()
        # A word that an end begins with, hardly ever drawn, leaves the decision to the next.
        for i in np.flatnonzero(places != np.searchsorted(self.leading, words, side="right")):
            drawn[i] = self.first + bisect_right(self.ends, int(words[i]) << WORD | int(bits(1)[0]))
        return drawn


def _weights(ratios: Ratios) -> Iterator[int]:
    """From the likeliest number on, in one direction."""
    weight = 1 << WEIGHT_BITS
    for numerator, denominator in ratios:
        weight = weight * numerator // denominator
        if not weight:
            return
        yield weight
