"""A noisy symmetric matrix, cleaned: what cannot be distinguished from the noise is removed."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

Array = NDArray[np.float64]

FALSE_EDGES, LIKELIEST = 0.1, 0.0013
"""Edges that noise alone makes: expected for each feature, and the largest chance of one entry on either side, so that
thresholds stay above three standard deviations where features are few."""

EDGE = 1.02
"""Eigenvalues within this factor of the spectral radius of the noise are taken for noise."""


@dataclass(frozen=True, eq=False)
class Cleaned:
    """What is left of a noisy matrix, and the size up to which its entries may still be noise: the penalty to use."""

    matrix: Array
    threshold: float


def clean(noisy: Array, noise: float, strictness: float = 1.0) -> Cleaned:
    """Keep what stands out: eigenvalues beyond the spectrum of noise, and single entries beyond its size.

    Eigenvalues v of a matrix with independent entries of standard deviation ν above 2ν√d are shrunk to √(v² − 4ν²d), by
    which the squared error is least as d grows (Gavish & Donoho 2017). What noise adds to entry (i, j) of the kept part
    has variance about ν²(hᵢ + hⱼ), h the diagonal of the projection onto its eigenvectors; of the rest, ν². The rest is
    moved towards zero by what its noise has more, so that one threshold suits both.

    Parameters
    ----------
    noisy : (d, d)
        Symmetric.
    noise : float
        ν, off the diagonal.
    strictness : float
        Factor on the thresholds; at one, noise makes one false entry for every ten features.
    """
    d = len(noisy)
    cut = strictness * _normal_cut(d) * noise
    values, vectors = np.linalg.eigh(noisy)
    radius = 2.0 * noise * math.sqrt(d)
    kept = values > EDGE * radius
    spectral = (vectors[:, kept] * np.sqrt(values[kept] ** 2 - radius**2)) @ vectors[:, kept].T
    leverage = (vectors[:, kept] ** 2).sum(axis=1)
    doubt = cut * np.sqrt(np.minimum(1.0, leverage[:, None] + leverage))
    threshold = cut * math.sqrt(min(1.0, 2.0 * kept.sum() / d)) if kept.any() else cut
    rest = _softened(noisy - spectral, cut - threshold)
    matrix = np.where(np.abs(spectral) > doubt, spectral, 0.0) + rest
    np.fill_diagonal(matrix, np.maximum(np.diag(noisy), cut))
    return Cleaned(matrix, threshold)


def positive(symmetric: Array, floor: float) -> Array:
    """The nearest symmetric matrix with eigenvalues of at least `floor`."""
    values, vectors = np.linalg.eigh(symmetric)
    raised: Array = (vectors * np.maximum(values, floor)) @ vectors.T
    return raised


def _softened(values: Array, cut: float) -> Array:
    """Values moved towards zero by `cut`, and zero within it."""
    return np.asarray(np.sign(values) * np.maximum(np.abs(values) - cut, 0.0))


def _normal_cut(n_features: int) -> float:
    """Standard deviations beyond which d(d − 1)/2 noise entries of either sign leave `FALSE_EDGES` a feature."""
    return float(-ndtri(min(FALSE_EDGES / max(1, n_features - 1), LIKELIEST)))
