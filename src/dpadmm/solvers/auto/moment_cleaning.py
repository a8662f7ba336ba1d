"""Second-moment matrices released with symmetric Gaussian noise, cleaned by what is known of the noise alone."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh

Matrix = NDArray[np.float64]

EDGE = 1.02
"""Eigenvalues within this factor of the noise's spectral radius are taken for noise."""


def symmetrised(noisy: Matrix) -> Matrix:
    """(M + Mᵀ)/2: independent noise σ on every entry becomes σ on the diagonal and σ/√2 off it."""
    return (noisy + noisy.T) / 2


def clean_second_moment(noisy: Matrix, noise_std: float, trace: float, floor: float = 1.0) -> Matrix:
    """Estimate of a second moment with the given trace, normalised to trace one.

    The top eigenpair is shrunk by the semicircle law; the rest is a diagonal (shrunk towards its mean) plus
    off-diagonal entries shrunk by their signal-to-noise ratio and freed of eigenvalues inside the noise. Where not
    even the top eigenpair rises above the noise, only the direction of equal coordinates is looked at.

    Parameters
    ----------
    noisy : (d, d)
        Symmetric, with noise of standard deviation `noise_std` on the diagonal and `noise_std`/√2 off it.
    floor : float
        Factor on the smallest eigenvalues and diagonal entries: one where the estimate will be inverted.
    """
    d = len(noisy)
    noisy, noise_std = noisy / trace, noise_std / trace
    radius = math.sqrt(2 * d) * noise_std
    largest, direction = _top_eigenpair(noisy)
    if largest <= EDGE * radius:
        return _one_public_direction(noisy, noise_std)
    top = math.sqrt(largest**2 - radius**2)
    spike = top * np.outer(direction, direction)
    rest = _clean_bulk(noisy - spike, noise_std, max(1 - top, 0.05), floor)
    whole = rest + spike
    return np.asarray(whole / np.trace(whole))


def clean_whitened_moment(noisy: Matrix, noise_std: float, floor: float = 1.0) -> Matrix:
    """Estimate in whitened coordinates: a multiple of the identity, but for eigenvalues beyond the noise."""
    d = len(noisy)
    level = max(float(np.trace(noisy)), 0.2) / d
    excess = _outside_noise(noisy - level * np.eye(d), math.sqrt(2 * d) * noise_std)
    return _floored(excess + level * np.eye(d), 0.1 * floor * level)


def clean_diagonal(noisy: Matrix, noise_std: float) -> Matrix:
    """Estimate of the diagonal of a second moment of trace one."""
    return _shrunk_diagonal(noisy, noise_std, 1.0)


def clean_mean(noisy: Matrix, noise_std: float, free: int) -> Matrix:
    """Estimate of a mean row: James–Stein towards zero, the last `free` coordinates (an intercept) by themselves.

    In many dimensions noise hides the mean row, but not its share along the one axis that is known in advance.
    """
    split = len(noisy) - free
    shrunk = [part * _positive_part(part, noise_std) for part in (noisy[:split], noisy[split:])]
    return np.concatenate(shrunk)


def _positive_part(values: Matrix, noise_std: float) -> float:
    """James–Stein factor towards zero."""
    return max(0.0, 1 - values.size * noise_std**2 / max(float(values @ values), 1e-30))


def _top_eigenpair(matrix: Matrix) -> tuple[float, Matrix]:
    last = len(matrix) - 1
    values, vectors = eigh(matrix, subset_by_index=[last, last])
    return float(values[0]), vectors[:, 0]


def _one_public_direction(noisy: Matrix, noise_std: float) -> Matrix:
    """A multiple of the identity, but for the direction of equal coordinates.

    Noise hides every direction found by searching, but along one fixed in advance it is only `noise_std`. Rows of
    non-negative features have much of their mass there, and a model that ignores it oscillates along it.
    """
    d = len(noisy)
    equal = np.full((d, d), 1.0 / d)
    seen = min(max(float((noisy * equal).sum()), 0.0), 1.0)
    mass = max(seen**3 / (seen**2 + noise_std**2), 1.0 / d)
    return np.asarray(mass * equal + (1 - mass) / max(d - 1, 1) * (np.eye(d) - equal))


def _clean_bulk(rest: Matrix, noise_std: float, mass: float, floor: float) -> Matrix:
    diagonal = _shrunk_diagonal(np.diag(rest), noise_std, mass, floor)
    whole = _outside_noise(*_shrunk_off_diagonal(rest, diagonal, noise_std)) + np.diag(diagonal)
    return _floored(whole, 0.1 * floor * mass / len(rest))


def _shrunk_off_diagonal(rest: Matrix, diagonal: Matrix, noise_std: float) -> tuple[Matrix, float]:
    """Entries off the diagonal, shrunk by their signal-to-noise ratio, and the spectral radius of the noise left."""
    off = ~np.eye(len(rest), dtype=bool)
    scale, variance = np.outer(diagonal, diagonal), noise_std**2 / 2
    ratio = _correlation_strength(rest, scale, off, variance)
    shrink = ratio * scale / (ratio * scale + variance)
    radius = 2 * math.sqrt(float(((shrink**2) * off).sum(axis=1).max()) * variance)
    return np.where(off, rest * shrink, 0.0), radius


def _shrunk_diagonal(diagonal: Matrix, noise_std: float, mass: float, floor: float = 1.0) -> Matrix:
    """James–Stein towards the mean, floored, rescaled to the known sum."""
    mean = diagonal.mean()
    keep = max(0.0, 1 - noise_std**2 / max(float(diagonal.var()), 1e-30))
    shrunk = np.maximum(mean + (diagonal - mean) * keep, 0.2 * floor * mass / len(diagonal))
    return np.asarray(shrunk * (mass / shrunk.sum()))


def _correlation_strength(rest: Matrix, scale: Matrix, off: NDArray[np.bool_], variance: float) -> float:
    """Mean squared correlation beyond the noise, weighted by how well each entry tells it."""
    if not off.any():
        return 0.0
    rough = max(float((rest[off] ** 2 - variance).mean()), 0.0) / float(scale[off].mean())
    weight = (scale / (rough * scale + variance)) ** 2
    fine = (weight * (rest**2 - variance))[off].sum() / (weight * scale)[off].sum()
    return float(min(max(fine, 0.0), 1.0))


def _outside_noise(matrix: Matrix, radius: float) -> Matrix:
    values, vectors = np.linalg.eigh(matrix)
    beyond = np.sign(values) * np.sqrt(np.maximum(values**2 - radius**2, 0.0))
    return np.asarray((vectors * np.where(np.abs(values) > EDGE * radius, beyond, 0.0)) @ vectors.T)


def _floored(matrix: Matrix, floor: float) -> Matrix:
    values, vectors = np.linalg.eigh(matrix)
    return np.asarray((vectors * np.maximum(values, floor)) @ vectors.T)
