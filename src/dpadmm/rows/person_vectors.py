"""One vector a person, in several columns: how it is made of rows, how long it is, clipped and added up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from dpadmm.kernels.clipping import SAFETY, SMALLEST_SCALE, squared_lengths
from dpadmm.kernels.numpy_kernels import products
from dpadmm.problem.spiked_map import SpikedMap
from dpadmm.rows.wide import turned_rows

Array = NDArray[np.float64]
Map = Array | SpikedMap | None

SHORTEST = 1e-150
"""Shorter vectors may have squares that vanish: in new coordinates all are taken to be longer by so much."""


@dataclass(frozen=True, eq=False)
class PersonVectors:
    """Private vectors.

    Attributes
    ----------
    parts : list of (persons, d)
        One matrix a column, dense or CSR, in the coordinates of the table.
    """

    parts: list[Any]

    def __len__(self) -> int:
        return int(self.parts[0].shape[0])

    @classmethod
    def weighed(cls, vectors: Any, weights: Array, ends: NDArray[np.intp]) -> PersonVectors:
        """Σ weight · vector over the rows ends[p] to ends[p + 1] of each person, for each column of the weights.

        Formal guarantees
        -----------------
        SciPy adds row after row, so that a sum depends on the rows of its person and on their order alone.
        """
        count = len(weights)
        places, shape = np.arange(count), (len(ends) - 1, count)
        chosen = [sparse.csr_matrix((np.ascontiguousarray(each), places, ends), shape=shape) for each in weights.T]
        return cls([_plain(each @ vectors) for each in chosen])

    def columns(self, which: slice) -> PersonVectors:
        """Some of the columns."""
        return PersonVectors(self.parts[which])

    def __add__(self, other: PersonVectors) -> PersonVectors:
        return PersonVectors([mine + its for mine, its in zip(self.parts, other.parts, strict=True)])

    def minus(self, other: PersonVectors) -> PersonVectors:
        return PersonVectors([mine - its for mine, its in zip(self.parts, other.parts, strict=True)])

    def clipped(self, clip: float, seen: Map, by_rows: bool = False) -> PersonVectors:
        """Each person's vector v scaled so that ‖Pᵀv‖ ≤ clip; zero where its length is no finite number.

        With `by_rows` no length depends on where a vector stands, not even in its last bits; that takes longer.

        Formal guarantees
        -----------------
        Lengths are never taken to be shorter than they are, rounding included, for every P (docs/proofs/persons.md).
        """
        lengths = np.sqrt(sum(_squared_lengths(part, seen, by_rows) for part in self.parts))
        with np.errstate(all="ignore"):
            factors = np.fmin(1.0, clip * SAFETY / lengths)
        factors[~np.isfinite(lengths) | (factors < SMALLEST_SCALE)] = 0.0
        return PersonVectors([_scaled(part, factors) for part in self.parts])

    def total(self, drawn: Array) -> Array:
        """Σ of the vectors of those drawn, (d, columns), person after person."""
        return np.column_stack([_total(_scaled(part, drawn)) for part in self.parts])


def _dense(matrix: Any) -> Array:
    return np.asarray(matrix.toarray() if sparse.issparse(matrix) else matrix)


def _plain(matrix: Any) -> Any:
    if not sparse.issparse(matrix):
        return np.asarray(matrix)
    # SciPy adds and multiplies in another order if any row is out of order: no row may decide for others.
    found = sparse.csr_matrix(matrix)
    found.sort_indices()
    return found


def _squared_lengths(vectors: Any, seen: Map, by_rows: bool) -> Array:
    """‖Pᵀv‖² of each vector, or a little more; not finite where an entry, or the square, is not."""
    if seen is None:
        return _summed_squares(vectors)
    if isinstance(seen, SpikedMap):
        along = _along(vectors, seen.scale * seen.direction)
        lengths, size = seen.row_norms(_summed_squares(_times(vectors, seen.scale)), along), seen.norm_bound
    else:
        size = float(np.linalg.norm(seen))
        rounding = 2.0 * (seen.shape[0] + 8) * np.finfo(np.float64).eps * size
        turned = turned_rows(_dense(vectors), seen) if by_rows else vectors @ seen
        lengths = np.sqrt(_summed_squares(turned)) + rounding * np.sqrt(_summed_squares(vectors))
    return np.asarray((lengths + SHORTEST * size) ** 2)


def _summed_squares(vectors: Any) -> Array:
    if sparse.issparse(vectors):
        return np.asarray(vectors.multiply(vectors) @ np.ones(vectors.shape[1]))
    return np.asarray(squared_lengths(vectors))


def _along(vectors: Any, direction: Array) -> Array:
    """⟨v, direction⟩, in an order that does not depend on where a vector stands."""
    return np.asarray(vectors @ direction if sparse.issparse(vectors) else products(vectors, direction[None])[:, 0])


def _times(vectors: Any, scale: Array) -> Any:
    """Every entry times the scale of its feature."""
    return vectors.multiply(scale).tocsr() if sparse.issparse(vectors) else vectors * scale


def _scaled(vectors: Any, factors: Array) -> Any:
    """Each vector times its factor; zero where that is zero, whatever the vector holds."""
    if sparse.issparse(vectors):
        scaled = vectors.copy()
        each = np.repeat(factors, np.diff(scaled.indptr))
        scaled.data *= each
        scaled.data[each == 0] = 0.0
        return scaled
    scaled = vectors * factors[:, None]
    scaled[factors == 0] = 0.0
    return scaled


def _total(vectors: Any) -> Array:
    if sparse.issparse(vectors):
        return np.asarray(vectors.T @ np.ones(vectors.shape[0]))
    return np.asarray(np.add.reduce(vectors, axis=0))
