"""Laplacian smoothing along a public graph, Q = I + ν·L_G, factorised once."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import splu

from dpadmm.problem.checks import Array, count, number
from dpadmm.problem.incidence import Edges
from dpadmm.problem.smoothers.base import SMOOTHERS, mean_with_free, on_leading, smoothed_size
from dpadmm.problem.spectral import squared_norm_bound

COLUMNS_AT_ONCE = 256


@SMOOTHERS.register("graph")
@dataclass(frozen=True)
class GraphLaplacian:
    """S = (I + ν·L_G)⁻¹ with L_G = Σ_edges weight·(e_i − e_j)(e_i − e_j)ᵀ.

    Parameters
    ----------
    nu : float
        Strength of smoothing, at least 0; 0 is the identity.
    edges : tuple of (i, j) or (i, j, weight)
        The public graph.
    n_nodes : int
        Number of nodes; the array smoothed has n_nodes + free coordinates.
    free : int
        Trailing coordinates left untouched.

    Examples
    --------
    >>> import numpy as np
    >>> GraphLaplacian(1.0, ((0, 1, 2.0),), n_nodes=2)(np.array([1.0, 0.0])).round(12).tolist()
    [0.6, 0.4]
    """

    nu: float
    edges: tuple[tuple[int, int] | tuple[int, int, float], ...]
    n_nodes: int
    free: int = 0
    name: ClassVar[str] = "graph"

    def __post_init__(self) -> None:
        object.__setattr__(self, "nu", number("nu", self.nu))
        object.__setattr__(self, "edges", tuple(tuple(edge) for edge in self.edges))
        object.__setattr__(self, "n_nodes", count("n_nodes", self.n_nodes, minimum=1))
        object.__setattr__(self, "free", count("free", self.free))
        _ = self._root_laplacian

    def __call__(self, g: Array) -> Array:
        self._check(g.shape[0])
        return g.copy() if self.nu == 0.0 else on_leading(self._solve, g, self.free)

    def tau(self, d: int) -> float:
        self._check(d)
        return mean_with_free(self._traces[0] / self.n_nodes, d, self.free)

    def tau2(self, d: int) -> float:
        self._check(d)
        return mean_with_free(self._traces[1] / self.n_nodes, d, self.free)

    def norm_inverse(self, d: int) -> float:
        self._check(d)
        return 1 + self.nu * squared_norm_bound(self._root_laplacian)

    def __getstate__(self) -> dict[str, Any]:
        # The factorisation cannot be pickled or copied, and is quickly made again.
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def _check(self, d: int) -> None:
        smoothed_size(d, self.free, expected=self.n_nodes)

    def _solve(self, g: Array) -> Array:
        smoothed: Array = self._factor.solve(g.astype(float))
        return smoothed

    @cached_property
    def _root_laplacian(self) -> Any:
        """D with DᵀD = L_G: the incidence matrix with the square roots of the weights."""
        parsed = Edges.parse(self.edges, self.n_nodes)
        return Edges(parsed.tail, parsed.head, np.sqrt(parsed.weight), self.n_nodes).incidence()

    @cached_property
    def _factor(self) -> Any:
        D = self._root_laplacian
        return splu(sparse.csc_array(sparse.eye_array(self.n_nodes) + self.nu * (D.T @ D)))

    @cached_property
    def _traces(self) -> tuple[float, float]:
        """tr S and tr S² = ‖S‖_F², from the columns of S."""
        trace = trace_of_square = 0.0
        for start in range(0, self.n_nodes, COLUMNS_AT_ONCE):
            width = min(COLUMNS_AT_ONCE, self.n_nodes - start)
            columns = self._factor.solve(np.eye(self.n_nodes, width, -start))
            trace += float(np.trace(columns[start:]))
            trace_of_square += float(np.sum(columns**2))
        return trace, trace_of_square
