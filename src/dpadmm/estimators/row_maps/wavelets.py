"""The scattering transform of a square picture: Morlet wavelets of several scales and angles, moduli, local means.

Bruna and Mallat, Invariant scattering convolution networks (2013). All filters are real in the Fourier domain, and a
map is made coarser there, by adding up what a coarser grid cannot tell apart.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import fft

Reals = NDArray[np.float32]

WIDTH, CENTRE = 0.8, 3 * np.pi / 4
"""Standard deviation and centre frequency of the finest wavelet, in pixels and radians a pixel."""

IMAGES_APART = 2
"""Copies of the picture on either side that a filter is summed over: beyond them it is zero in float32."""


@dataclass(frozen=True, eq=False)
class FilterPlan:
    """Filters for spectra, and how much coarser the filtered maps are.

    Attributes
    ----------
    blocks : (factor, factor, filters, side, 2 · side)
        The frequencies that one frequency of the coarser grid stands for, block by block; each entry twice, for real
        and imaginary part.
    """

    blocks: Reals

    @classmethod
    def of(cls, filters: Reals, factor: int) -> FilterPlan:
        side = filters.shape[-1] // factor
        blocks = filters.reshape(-1, factor, side, factor, side).transpose(1, 3, 0, 2, 4) / np.float32(factor**2)
        return cls(np.repeat(blocks, 2, axis=-1))

    def __call__(self, spectra: NDArray[np.complex64]) -> NDArray[np.complex64]:
        """Each spectrum times each filter: (spectra, filters, side, side)."""
        factor, _, filters, side, _ = self.blocks.shape
        total = np.zeros((len(spectra), filters, side, 2 * side), dtype=np.float32)
        term = np.empty_like(total)
        for rows in range(factor):
            for columns in range(factor):
                part = spectra[:, rows * side : (rows + 1) * side, columns * side : (columns + 1) * side]
                numbers = np.ascontiguousarray(part).view(np.float32)[:, None]
                total += np.multiply(numbers, self.blocks[rows, columns], out=term)
        return total.view(np.complex64)


@dataclass(frozen=True, eq=False)
class ScatteringBank:
    """All filters for pictures of `side` × `side` pixels.

    Attributes
    ----------
    padded : int
        Side after reflection at the edges.
    first : tuple of FilterPlan
        Wavelets of each scale, for the picture.
    second : tuple of (int, int, FilterPlan)
        A scale, a coarser one, and wavelets of the coarser for maps of the finer.
    means : tuple of (cells, padded / 2^j)
        Local means of a map 2^j times coarser than the picture, along one axis.
    """

    side: int
    J: int
    L: int
    padded: int
    first: tuple[FilterPlan, ...]
    second: tuple[tuple[int, int, FilterPlan], ...]
    means: tuple[Reals, ...]

    @classmethod
    def make(cls, side: int, J: int, L: int) -> ScatteringBank:
        coarsest = 2**J
        padded = -(-(side + 2 * coarsest) // coarsest) * coarsest
        angles = (np.arange(L // 2 - 1, L // 2 - 1 - L, -1)) * np.pi / L
        wavelets = [np.stack([_morlet(padded, j, angle, 4.0 / L) for angle in angles]) for j in range(J)]
        first = tuple(FilterPlan.of(wavelets[j], 2**j) for j in range(J))
        second = tuple(
            (j, later, FilterPlan.of(_coarsened(wavelets[later], 2**j), 2 ** (later - j)))
            for j in range(J)
            for later in range(j + 1, J)
        )
        means = tuple(_local_mean(side, padded, J, j) for j in range(J))
        return cls(side, J, L, padded, first, second, means)

    @property
    def channels(self) -> int:
        """Maps that come out: means, first-order ones, and second-order ones of a coarser scale each."""
        return 1 + self.J * self.L + len(self.second) * self.L * self.L

    @property
    def cells(self) -> int:
        """Side of the maps that come out."""
        return len(self.means[0])

    def transform(self, picture: Reals) -> Reals:
        """(channels, cells, cells) of one (side, side) picture, which alone decides them to the last bit."""
        before = (self.padded - self.side) // 2
        framed = np.pad(picture, (before, self.padded - self.side - before), mode="reflect")
        spectrum = _spectrum(framed[None])
        first = [_modulus(plan(spectrum)[0]) for plan in self.first]
        spectra = {j: _spectrum(first[j]) for j in {pair[0] for pair in self.second}}
        parts = [self._averaged(framed[None], 0)]
        parts += [self._averaged(maps, j) for j, maps in enumerate(first)]
        for j, later, plan in self.second:
            maps = _modulus(plan(spectra[j]))
            parts.append(self._averaged(maps.reshape(-1, *maps.shape[-2:]), later))
        return np.concatenate(parts)

    def _averaged(self, maps: Reals, j: int) -> Reals:
        mean = self.means[j]
        return np.asarray(mean @ maps @ mean.T)


def _spectrum(maps: Reals) -> NDArray[np.complex64]:
    return np.asarray(fft.fft2(maps, workers=1))


def _modulus(spectra: NDArray[np.complex64]) -> Reals:
    """|inverse transform|, by operations that round alike wherever a number stands."""
    values = np.ascontiguousarray(fft.ifft2(spectra, workers=1)).view(np.float32)
    np.square(values, out=values)
    return np.asarray(np.sqrt(values[..., 0::2] + values[..., 1::2]))


def _coarsened(filters: Reals, factor: int) -> Reals:
    """Filters for spectra of maps that are `factor` times coarser."""
    side = filters.shape[-1] // factor
    return np.asarray(filters.reshape(-1, factor, side, factor, side).sum(axis=(1, 3)))


def _morlet(side: int, j: int, angle: float, slant: float) -> Reals:
    """A wave under a Gaussian bell, of mean zero, in the Fourier domain."""
    width, frequency = WIDTH * 2**j, CENTRE / 2**j
    wave, bell = (_gabor(side, width, angle, centre, slant) for centre in (frequency, 0.0))
    return np.asarray(fft.fft2(wave - wave.sum() / bell.sum() * bell).real, dtype=np.float32)


def _gabor(side: int, width: float, angle: float, frequency: float, slant: float) -> NDArray[np.complex128]:
    """exp(−½ (along² + slant² across²) / width²) · exp(i · frequency · along), repeated at every `side` pixels."""
    place = np.arange(-IMAGES_APART * side, (IMAGES_APART + 1) * side, dtype=np.float64)
    down, right = np.meshgrid(place, place, indexing="ij")
    along, across = np.cos(angle) * down + np.sin(angle) * right, np.cos(angle) * right - np.sin(angle) * down
    bell = np.exp(-(along**2 + (slant * across) ** 2) / (2 * width**2)) * slant / (2 * np.pi * width**2)
    copies = 2 * IMAGES_APART + 1
    wave = (bell * np.exp(1j * frequency * along)).reshape(copies, side, copies, side)
    return np.asarray(wave.sum(axis=(0, 2)))


def _local_mean(side: int, padded: int, J: int, j: int) -> Reals:
    """Row c holds the weights of cell c on a grid 2^j times coarser than the picture."""
    width, step = WIDTH * 2 ** (J - 1), 2 ** (J - j)
    place = np.arange(padded)
    near = (place[:, None] - padded * np.arange(-IMAGES_APART, IMAGES_APART + 1)) / width
    bell = np.exp(-(near**2) / 2).sum(axis=1) / (np.sqrt(2 * np.pi) * width)
    response = fft.fft(bell).real.reshape(2**j, -1).sum(axis=0)
    coarse = fft.ifft(response).real
    first = (padded - side) // 2 // 2**J
    centres = step * np.arange(first, first + side // 2**J)
    size = padded // 2**j
    return np.asarray(coarse[(centres[:, None] - np.arange(size)) % size], dtype=np.float32)
