"""The quadratic of a released model in the coordinates of the coefficients, and how to solve with it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dpadmm.solvers.auto.coordinates import Coordinates
from dpadmm.solvers.auto.wide_coordinates import SpikedCoordinates

Array = NDArray[np.float64]
Solve = Callable[[Array], Array]


class Quadratic(Protocol):
    """½xᵀHx with H = P⁻ᵀ diag(curvature) P⁻¹."""

    @property
    def stiffness(self) -> Array:
        """Curvatures whose geometric mean is that of H."""
        ...

    def apply(self, x: Array) -> Array:
        """H x."""
        ...

    def factorise(self, gram: Any) -> Solve:
        """v ↦ (H + gram)⁻¹ v for a sparse or dense `gram`."""
        ...


def quadratic(coordinates: Coordinates | SpikedCoordinates, curvature: Array) -> Quadratic:
    if isinstance(coordinates, SpikedCoordinates):
        return SpikedQuadratic(coordinates, curvature)
    return DenseQuadratic(coordinates, curvature)


@dataclass(frozen=True, eq=False)
class DenseQuadratic:
    """With a curvature that is a diagonal or a matrix in the coordinates z."""

    coordinates: Coordinates
    curvature: Array

    @property
    def stiffness(self) -> Array:
        if self.curvature.ndim == 2:
            return np.asarray(np.linalg.eigvalsh(self._hessian))
        return np.asarray(self.curvature / self.coordinates.scale)

    def apply(self, x: Array) -> Array:
        return self._hessian @ x

    def factorise(self, gram: Any) -> Solve:
        from scipy.linalg import cho_factor
        from scipy.linalg.lapack import dpotrs

        dense = gram.toarray() if hasattr(gram, "toarray") else np.asarray(gram)
        factor, lower = cho_factor(self._hessian + dense)
        # LAPACK itself: an ADMM asks hundreds of times, and SciPy's checks then take longer than the solution.
        return lambda v: np.asarray(dpotrs(factor, v, lower=lower)[0])

    @cached_property
    def _hessian(self) -> Array:
        inverse = self.coordinates.basis / np.sqrt(self.coordinates.scale)
        if self.curvature.ndim == 2:
            return np.asarray(inverse @ self.curvature @ inverse.T)
        return np.asarray((inverse * self.curvature) @ inverse.T)


@dataclass(frozen=True, eq=False)
class SpikedQuadratic:
    """H = S⁻¹ Q diag(g) Q S⁻¹ with Q = I − 2hhᵀ: a diagonal plus rank two, never formed."""

    coordinates: SpikedCoordinates
    curvature: Array

    @property
    def stiffness(self) -> Array:
        return np.asarray(self._reflected / self.coordinates.matrix.scale**2)

    def apply(self, x: Array) -> Array:
        spiked = self.coordinates.matrix
        scale, g = _column(spiked.scale, x), _column(self._reflected, x)
        return np.asarray(spiked.reflect(g * spiked.reflect(x / scale)) / scale)

    def factorise(self, gram: Any) -> Solve:
        """Woodbury's identity around diag(g/scale²) + gram, which is diagonal or factorised sparsely."""
        spiked, g = self.coordinates.matrix, self._reflected
        solve = _sparse_solver(self.stiffness, gram)
        h = spiked.normal
        low = np.column_stack([h, g * h]) / spiked.scale[:, None]
        # S⁻¹Q diag(g) QS⁻¹ − diag(g/scale²) = low · core · lowᵀ
        core = np.array([[4 * float(g @ h**2), -2.0], [-2.0, 0.0]])
        raised = solve(low)
        inner = np.linalg.inv(np.linalg.inv(core) + low.T @ raised)

        def step(v: Array) -> Array:
            first = solve(v)
            return np.asarray(first - raised @ (inner @ (low.T @ first)))

        return step

    @property
    def _reflected(self) -> Array:
        return np.asarray(self.curvature / self.coordinates.matrix.stretches**2)


def _sparse_solver(diagonal: Array, gram: Any) -> Solve:
    from scipy import sparse
    from scipy.sparse.linalg import splu

    total = sparse.csc_array(gram) + sparse.diags_array(diagonal, format="csc")
    flat = total.diagonal()
    if total.nnz == np.count_nonzero(flat):
        return lambda v: np.asarray(v / _column(flat, v))
    factor = splu(total, permc_spec="MMD_AT_PLUS_A")
    return lambda v: np.asarray(factor.solve(np.ascontiguousarray(v)))


def _column(values: Array, like: Array) -> Array:
    return values if like.ndim == 1 else values[:, None]
