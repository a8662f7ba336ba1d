"""Laplacian smoothing of images: coordinates are the pixels of a periodic grid, row by row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy import fft

from dpadmm.problem.checks import Array, count, number
from dpadmm.problem.smoothers.base import SMOOTHERS, mean_with_free, on_leading, smoothed_size


@SMOOTHERS.register("grid")
@dataclass(frozen=True)
class GridLaplacian:
    """S = Q⁻¹ with Q = I + ν·(Laplacian of a periodic height × width grid).

    Parameters
    ----------
    nu : float
        Strength of smoothing, at least 0; 0 is the identity.
    height, width : int
        Size of the grid; the array smoothed has height·width + free coordinates.
    free : int
        Trailing coordinates left untouched.

    Examples
    --------
    >>> import numpy as np
    >>> GridLaplacian(1.0, 1, 2)(np.array([1.0, 0.0])).round(12).tolist()
    [0.6, 0.4]
    """

    nu: float
    height: int
    width: int
    free: int = 0
    name: ClassVar[str] = "grid"

    def __post_init__(self) -> None:
        object.__setattr__(self, "nu", number("nu", self.nu))
        for field in ("height", "width"):
            object.__setattr__(self, field, count(field, getattr(self, field), minimum=1))
        object.__setattr__(self, "free", count("free", self.free))

    def __call__(self, g: Array) -> Array:
        self._check(g.shape[0])
        return g.copy() if self.nu == 0.0 else on_leading(self._by_fft, g, self.free)

    def tau(self, d: int) -> float:
        self._check(d)
        return mean_with_free(float(np.mean(1 / self._eigenvalues())), d, self.free)

    def tau2(self, d: int) -> float:
        self._check(d)
        return mean_with_free(float(np.mean(1 / self._eigenvalues() ** 2)), d, self.free)

    def norm_inverse(self, d: int) -> float:
        self._check(d)
        return float(self._eigenvalues().max())

    def _check(self, d: int) -> None:
        smoothed_size(d, self.free, expected=self.height * self.width)

    def _eigenvalues(self) -> Array:
        down, across = (np.sin(np.pi * np.arange(side) / side) ** 2 for side in (self.height, self.width))
        eigenvalues: Array = 1 + 4 * self.nu * (down[:, None] + across)
        return eigenvalues

    def _by_fft(self, g: Array) -> Array:
        image = g.reshape(self.height, self.width, -1)
        kept = self.width // 2 + 1
        spectrum = fft.rfft2(image, axes=(0, 1)) / self._eigenvalues()[:, :kept, None]
        smoothed: Array = fft.irfft2(spectrum, s=(self.height, self.width), axes=(0, 1)).reshape(g.shape)
        return smoothed
