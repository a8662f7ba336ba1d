"""Features of pictures by a public rule: which edges, of which size and angle, are near which place."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpadmm.errors import InvalidParameter
from dpadmm.estimators.row_maps.row_map_base import PublicRowMap
from dpadmm.estimators.row_maps.wavelets import ScatteringBank
from dpadmm.problem.checks import count, number

MOST_SCALES, MOST_ANGLES = 8, 32


class Scattering(PublicRowMap):
    """Maps each picture to its scattering coefficients: local means of wavelet moduli, of first and second order.

    The wavelets are fixed before the data, so nothing is learned from rows and nothing is charged. A linear model of
    these features comes near a small convolutional network, whose filters would have to be learned through the noise.
    A picture of 28 × 28 pixels becomes 81 maps of 7 × 7 cells, 3969 features; follow it by `GroupNorm(27)`.

    Parameters
    ----------
    J : int
        Scales: cells are 2^J pixels wide.
    L : int
        Angles of the wavelets at each scale.
    shape : tuple of int, optional
        (side, side) or (side, side, colours) of a picture whose pixels are the features, row by row and with the
        colours of a pixel together. Left out, pictures are square and grey.
    white : float
        Value of a white pixel; pixels are divided by it.

    Examples
    --------
    >>> import numpy as np
    >>> from dpadmm import Scattering
    >>> Scattering(J=2, L=8).fit_transform(np.zeros((1, 784))).shape
    (1, 3969)
    """

    precisions: ClassVar[tuple[type[np.floating[Any]], ...]] = (np.float32,)

    def __init__(self, J: int = 2, L: int = 8, shape: tuple[int, ...] | None = None, white: float = 255.0) -> None:
        self.J = J
        self.L = L
        self.shape = shape
        self.white = white

    def _prepare(self, n_features: int) -> None:
        scales, angles = count("J", self.J, minimum=1), count("L", self.L, minimum=1)
        number("white", self.white, strict=True)
        if scales > MOST_SCALES or angles > MOST_ANGLES:
            raise InvalidParameter(
                f"J={scales} and L={angles}", f"J <= {MOST_SCALES} and L <= {MOST_ANGLES}", "take fewer"
            )
        side, self.colours_ = _side_and_colours(self.shape, n_features)
        if side < 2 ** (scales + 1):
            raise InvalidParameter(
                f"J={scales} for pictures of {side} × {side} pixels",
                f"pictures of {2 ** (scales + 1)} × {2 ** (scales + 1)} pixels or more",
                "take a smaller J",
            )
        self.bank_ = ScatteringBank.make(side, scales, angles)

    def _map(self, rows: NDArray[Any]) -> NDArray[Any]:
        bank, colours = self.bank_, self.colours_
        out = np.empty((len(rows), colours, bank.channels, bank.cells, bank.cells), dtype=np.float32)
        for row, found in zip(rows, out, strict=True):
            picture = (row / np.float32(self.white)).reshape(bank.side, bank.side, colours)
            for colour in range(colours):
                found[colour] = bank.transform(picture[..., colour])
        return out.reshape(len(rows), -1)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags


def _side_and_colours(shape: tuple[int, ...] | None, n_features: int) -> tuple[int, int]:
    if shape is None:
        side = math.isqrt(n_features)
        if side**2 != n_features:
            raise InvalidParameter(
                f"{n_features} features, which are no square grey picture",
                "shape=(side, side, colours)",
                "declare the shape of the pictures, for instance shape=(32, 32, 3)",
            )
        return side, 1
    sizes = tuple(count("shape", each, minimum=1) for each in shape)
    if len(sizes) not in (2, 3) or sizes[0] != sizes[1] or math.prod(sizes) != n_features:
        raise InvalidParameter(
            f"shape={sizes} for {n_features} features",
            "(side, side) or (side, side, colours) of square pictures, whose product is the number of features",
            "declare the shape of the pictures; pad those that are not square",
        )
    return sizes[0], sizes[2] if len(sizes) == 3 else 1
