"""From a cleaned covariance to a sparse graph: the graphical lasso, part by part. Post-processing."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from dpadmm.preparation.covariance_cleaning import positive

Array = NDArray[np.float64]
Edge = tuple[int, int, float]

SHRINKAGE = (1.0, 0.9, 0.7, 0.5, 0.3)
"""Factors on what is off the diagonal, tried in turn where the graphical lasso does not converge."""
MAX_ITERATIONS, TOLERANCE = 100, 1e-3
SMALLEST_CORRELATION = 1e-6
"""Partial correlations below are rounding."""


def edges_of(covariance: Array, strength: float) -> list[Edge]:
    """Edges (i, j, partial correlation) of the graphical lasso with penalty `strength`, strongest first.

    Its solution falls apart into the connected parts of the graph |Sᵢⱼ| > strength (Witten, Friedman & Simon 2011,
    Thm 1), so each is solved by itself; entries that noise alone explains then never meet.
    """
    found = [edge for part in _parts(covariance, strength) for edge in _part_edges(covariance, strength, part)]
    return sorted(found, key=lambda edge: (-abs(edge[2]), edge[0], edge[1]))


def _parts(covariance: Array, strength: float) -> Iterator[NDArray[np.intp]]:
    linked = np.abs(covariance) > strength
    np.fill_diagonal(linked, False)
    labels = connected_components(sparse.csr_array(linked), directed=False)[1]
    for label in np.flatnonzero(np.bincount(labels) > 1):
        yield np.flatnonzero(labels == label)


def _part_edges(covariance: Array, strength: float, part: NDArray[np.intp]) -> Iterator[Edge]:
    block = positive(covariance[np.ix_(part, part)], strength)
    unit = float(np.trace(block)) / len(part)
    precision = _sparse_inverse(block / unit, strength / unit)
    root = np.sqrt(np.diag(precision))
    partial = -precision / np.outer(root, root)
    for i, j in zip(*np.triu_indices(len(part), 1), strict=True):
        if abs(partial[i, j]) > SMALLEST_CORRELATION:
            yield int(part[i]), int(part[j]), float(partial[i, j])


def _sparse_inverse(block: Array, strength: float) -> Array:
    """The graphical lasso; shrunk towards the diagonal until it converges, and the diagonal itself if it never does."""
    from sklearn.covariance import graphical_lasso
    from sklearn.exceptions import ConvergenceWarning

    diagonal = np.diag(np.diag(block))
    for factor in SHRINKAGE:
        shrunk = diagonal + factor * (block - diagonal)
        with warnings.catch_warnings():
            warnings.simplefilter("error", ConvergenceWarning)
            try:
                precision: Array = graphical_lasso(shrunk, strength, tol=TOLERANCE, max_iter=MAX_ITERATIONS)[1]
            except (FloatingPointError, ConvergenceWarning, np.linalg.LinAlgError):
                continue
        if np.isfinite(precision).all() and np.all(np.diag(precision) > 0):
            return precision
    return np.diag(1.0 / np.diag(block))
