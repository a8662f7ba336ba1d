"""Exact samples of the binomial law, made of uniform bits by comparing whole numbers.

How many rows of a table take part in a batch is part of the proof of its privacy. Samplers of general libraries are
made for speed: they cut off tails, or accept by series that are nearly right (docs/proofs/float.md).
"""

from __future__ import annotations

from functools import lru_cache

from dpadmm.exact_samplers.law_table import Bits, LawTable


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
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> drawn = binomial(1000, 0.3, 10_000, lambda n: rng.integers(0, 2**64, n, dtype=np.uint64))
    >>> round(float(np.mean(drawn)))
    300
    """
    return _law(trials, rate).draw(count, bits)


@lru_cache(maxsize=64)
def _law(trials: int, rate: float) -> LawTable:
    heads, coins = float(rate).as_integer_ratio()
    tails = coins - heads
    likeliest = min(trials, (trials + 1) * heads // coins)
    return LawTable.around(
        likeliest,
        ((k * tails, (trials - k + 1) * heads) for k in range(likeliest, 0, -1)),
        (((trials - k) * heads, (k + 1) * tails) for k in range(likeliest, trials)),
    )
