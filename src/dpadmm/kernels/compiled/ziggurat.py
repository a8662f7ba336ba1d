"""Standard normals from random words by a ziggurat, without a call for each word.

Layers, edges and the use of bits are those of NumPy's generator, so that the same words give the same normals to
rounding. 256 layers of equal area cover what lies under exp(−x²/2): rectangles, and lowest a rectangle with the tail
beyond `TAIL`.
"""

from __future__ import annotations

from decimal import Decimal, localcontext

import numpy as np
from numpy.typing import NDArray

from dpadmm.kernels.jit import kernel

Array = NDArray[np.float64]

U = np.uintp
LAYERS = 256
CELLS = 1 << 52
"""A layer is as many equal steps wide."""
TAIL_DIGITS = "3.6541528853610087963519472518"
"""Where the tail begins so that the layers fit: known for 256 of them."""
TAIL = float(TAIL_DIGITS)
PI_DIGITS = "3.1415926535897932384626433832795028841972"
SPARE = 16
"""One word more for so many normals is four standard deviations more than they take even in blocks of a few hundred."""


def normals(generator: np.random.Generator, count: int) -> Array:
    """`count` independent standard normals; as in `reference.normals`, with words asked for all at once."""
    out, draw = np.empty(count), generator.bit_generator.random_raw
    words = draw(count + count // SPARE + SPARE)
    used, made = _fill(words, out, 0, STEPS, SURE, HEIGHTS)
    while made < count:
        # What was left over is used first: to drop a word because of what it holds would change the law.
        words = np.concatenate([words[used:], draw(count - made + SPARE)])
        used, made = _fill(words, out, made, STEPS, SURE, HEIGHTS)
    return out


@kernel()
def _fill(words, out, made, steps, sure, heights):
    """Fill `out` from place `made` on, as far as the words last; returns how many were used, and the next place.

    A number that would need more words than there are is not begun.
    """
    used, at, end, last = U(0), U(made), U(out.size), U(words.size)
    while at < end and used < last:
        word = words[used]
        layer, cell = U(word & np.uint64(255)), (word >> np.uint64(9)) & np.uint64(CELLS - 1)
        x = np.float64(cell) * steps[layer]
        signed = -x if (word >> np.uint64(8)) & np.uint64(1) else x
        if cell < sure[layer]:
            out[at] = signed
            at += U(1)
            used += U(1)
        elif layer:
            if used + U(2) > last:
                break
            height = heights[layer] + (heights[layer - U(1)] - heights[layer]) * _uniform(words[used + U(1)])
            used += U(2)
            if height < np.exp(-0.5 * x * x):
                out[at] = signed
                at += U(1)
        else:
            beyond, after = _beyond(words, used + U(1))
            if after > last:
                break
            used = after
            out[at] = -(TAIL + beyond) if (cell >> np.uint64(8)) & np.uint64(1) else TAIL + beyond
            at += U(1)
    return used, at


@kernel()
def _beyond(words, used):
    """A distance into the tail, and the word after those it took; a number past the last one if there are too few."""
    while used + U(2) <= U(words.size):
        distance = -np.log1p(-_uniform(words[used])) / TAIL
        height = -np.log1p(-_uniform(words[used + U(1)]))
        used += U(2)
        if height + height > distance * distance:
            return distance, used
    return 0.0, U(words.size) + U(1)


@kernel(inline=True)
def _uniform(word):
    return np.float64(word >> np.uint64(11)) * 2.0**-53


def _layers() -> tuple[Array, NDArray[np.uint64], Array]:
    """Of each layer: the width of a cell, how many cells lie wholly below the curve, the height of its edge."""
    with localcontext() as context:
        context.prec = 40
        tail = Decimal(TAIL_DIGITS)
        area = tail * _bell(tail) + (Decimal(PI_DIGITS) / 2).sqrt() - _bell_integral(tail)
        edges = [tail]
        while len(edges) < LAYERS - 1:
            edges.append((-2 * (area / edges[-1] + _bell(edges[-1])).ln()).sqrt())
        # The lowest layer is as wide as a rectangle of its height and area.
        edges = [area / _bell(tail), *reversed(edges)]
        steps = [float(edge / CELLS) for edge in edges]
        inner = [tail, Decimal(0), *edges[1:-1]]
        sure = [int(CELLS * below / edge) for below, edge in zip(inner, edges, strict=True)]
        heights = [1.0, *(float(_bell(edge)) for edge in edges[1:])]
    return np.array(steps), np.array(sure, dtype=np.uint64), np.array(heights)


def _bell(x: Decimal) -> Decimal:
    return (-x * x / 2).exp()


def _bell_integral(x: Decimal) -> Decimal:
    """∫ exp(−t²/2) dt from 0 to x, by its power series."""
    total, term, k = Decimal(0), x, 0
    while abs(term) > Decimal(10) ** -38:
        total += term / (2 * k + 1)
        k += 1
        term *= -x * x / (2 * k)
    return total


STEPS, SURE, HEIGHTS = _layers()
