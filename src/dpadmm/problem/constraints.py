"""The linear constraint Ax + By = c that ties the coefficients x to the regularised variable y.

==========  =========================  ==========================================================
symbol      word                       where
==========  =========================  ==========================================================
x           coefficients               shape (d,) or (d, K); A acts on the first axis
y           auxiliary variable         shape (n_auxiliary,) or (n_auxiliary, K)
u           scaled dual variable       augmented term (beta/2)‖Ax + By − c + u‖²
free        unpenalised coordinates    the last ones of x (an intercept); their columns of A are zero
==========  =========================  ==========================================================
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import lsmr

from dpadmm.errors import InvalidParameter, UnsupportedProblem
from dpadmm.problem.checks import Array, count, leading_axis
from dpadmm.problem.incidence import EdgeList, Edges
from dpadmm.problem.regularizers.base import Regularizer, checked_prox
from dpadmm.problem.spectral import ROUNDING, squared_norm_bound

DENSE_LEAST_SQUARES_UP_TO = 4_000_000
LARGEST_CONDITION = 1e6

Map = Callable[[Array], Array]


@dataclass(frozen=True, eq=False)
class Constraint:
    """Ax + By = c. Use a named constructor: `identity`, `chain`, `graph`, `stacked` or `general`.

    Fields left at None stand for the common case, so that it costs no multiplication: A = [I 0], B = −I, c = 0.

    Examples
    --------
    >>> import numpy as np
    >>> fused = Constraint.chain(3)
    >>> fused.apply(np.array([1.0, 1.0, 4.0])).tolist()
    [0.0, 3.0]
    >>> fused.adjoint(np.array([0.0, 1.0])).tolist()
    [0.0, -1.0, 1.0]
    """

    kind: Literal["identity", "chain", "graph", "stacked", "general"]
    n_features: int
    free: int = 0
    A_matrix: Any = None
    B_matrix: Any = None
    offset: Array | None = None
    edges: Edges | None = None

    @classmethod
    def identity(cls, d: int, free: int = 0) -> Constraint:
        """x = y on all but the last `free` coordinates: the plain lasso, ridge, group lasso and so on."""
        return cls("identity", _penalised(d, free) + int(free), int(free))

    @classmethod
    def chain(cls, d: int, free: int = 0) -> Constraint:
        """y_i = x_{i+1} − x_i: the fused lasso."""
        edges = Edges.chain(_penalised(d, free))
        return cls("chain", d, free, edges.incidence(free), edges=edges)

    @classmethod
    def graph(cls, edges: EdgeList, d: int, free: int = 0) -> Constraint:
        """y_e = weight_e·(x_i − x_j) for every edge (i, j) or (i, j, weight) of a public graph."""
        parsed = Edges.parse(edges, _penalised(d, free))
        return cls("graph", d, free, parsed.incidence(free), edges=parsed)

    @classmethod
    def stacked(cls, phi: Any, free: int = 0) -> Constraint:
        """A = [φ; I]: penalise φx and x itself together; φ has one column per penalised coordinate."""
        phi = _matrix("phi", phi)
        penalised, free = phi.shape[1], count("free", free)
        blocks = sparse.vstack([sparse.csr_array(phi), sparse.eye_array(penalised)])
        A = sparse.hstack([blocks, sparse.csr_array((blocks.shape[0], free))], format="csr")
        return cls("stacked", penalised + free, free, A)

    @classmethod
    def general(cls, A: Any, B: Any = None, c: Any = None) -> Constraint:
        """Any public A, B and c, dense or sparse; B = −I and c = 0 if left out."""
        A = _matrix("A", A)
        B = None if B is None else _matrix("B", B)
        if B is not None and abs(B).max() == 0:
            raise InvalidParameter("B = 0", "a matrix that lets y take part", "drop y, or correct B")
        if B is not None and B.shape[0] != A.shape[0]:
            raise InvalidParameter(f"B with {B.shape[0]} rows", f"{A.shape[0]} rows, as A has", "make B fit A")
        return cls("general", A.shape[1], 0, A, _none_if_minus_identity(B), _offset(c, A.shape[0]))

    @cached_property
    def A(self) -> Any:
        """The matrix A itself, sparse unless it was given dense."""
        return sparse.eye_array(self.n_rows, self.n_features, format="csr") if self.is_identity else self.A_matrix

    @property
    def is_identity(self) -> bool:
        """Whether the constraint says x = y on the penalised coordinates."""
        return self.kind == "identity"

    @property
    def n_rows(self) -> int:
        """Rows of A, entries of the dual variable."""
        return self.n_features - self.free if self.is_identity else int(self.A_matrix.shape[0])

    @property
    def n_auxiliary(self) -> int:
        """Columns of B, entries of y."""
        return self.n_rows if self.B_matrix is None else int(self.B_matrix.shape[1])

    def apply(self, x: Array) -> Array:
        """Ax (for the identity a view of x, not to be written into)."""
        leading_axis("x", x, self.n_features)
        return self._apply(x)

    def adjoint(self, v: Array) -> Array:
        """Aᵀv (for the identity possibly v itself, not to be written into)."""
        leading_axis("v", v, self.n_rows)
        return self._adjoint(v)

    @property
    def maps(self) -> tuple[Map, Map]:
        """`apply` and `adjoint` without a look at shapes: for loops whose shapes were checked before they began."""
        return self._apply, self._adjoint

    def _apply(self, x: Array) -> Array:
        return x[: self.n_rows] if self.is_identity else self.A_matrix @ x

    def _adjoint(self, v: Array) -> Array:
        if not self.is_identity:
            pulled_back: Array = self._A_transposed @ v
            return pulled_back
        return np.concatenate([v, np.zeros((self.free, *v.shape[1:]), v.dtype)]) if self.free else v

    def apply_B(self, y: Array) -> Array:
        """By."""
        leading_axis("y", y, self.n_auxiliary)
        return -y if self.B_matrix is None else self.B_matrix @ y

    def adjoint_B(self, v: Array) -> Array:
        """Bᵀv."""
        leading_axis("v", v, self.n_rows)
        return -v if self.B_matrix is None else self.B_matrix.T @ v

    def residual(self, x: Array, y: Array) -> Array:
        """Ax + By − c, zero where x and y are feasible."""
        return self._minus_offset(self.apply(x) + self.apply_B(y))

    @cached_property
    def _is_chain(self) -> bool:
        """Whether A is what the kind says: its singular values are then known, and certified by them."""
        if self.kind != "chain":
            return False
        chain = Edges.chain(_penalised(self.n_features, self.free)).incidence(self.free)
        return chain.shape == self.A_matrix.shape and not (sparse.csr_array(self.A_matrix) - chain).data.any()

    @cached_property
    def norm_squared(self) -> float:
        """An upper bound on ‖A‖₂², tight to a relative 1e-6 where Lanczos converges, exact for the identity."""
        if self.is_identity:
            return 1.0
        if self._is_chain:
            return 4 * math.cos(math.pi / (2 * (self.n_features - self.free))) ** 2 * (1 + ROUNDING)
        return squared_norm_bound(self.A_matrix)

    @cached_property
    def norm_B_squared(self) -> float:
        """An upper bound on ‖B‖₂², and κ itself where BᵀB = κI, so that the y-step is exact there."""
        if self.B_matrix is None:
            return 1.0
        gram = sparse.csr_array(self.B_matrix.T @ self.B_matrix)
        kappa = float(gram.diagonal()[0])
        orthogonal = abs(gram - kappa * sparse.eye_array(gram.shape[0])).max() <= 1e-13 * kappa
        return kappa if orthogonal else squared_norm_bound(self.B_matrix)

    @cached_property
    def full_row_rank(self) -> bool:
        """Whether the rows of A are linearly independent."""
        if self.is_identity:
            return True
        if self.edges is not None:
            spanning_forest = self.edges.n_nodes - (int(self.edges.components().max()) + 1)
            return len(self.edges) == spanning_forest
        if self.n_rows > self.n_features:
            return False
        return int(np.linalg.matrix_rank(_dense(self.A_matrix))) == self.n_rows

    @cached_property
    def smallest_squared(self) -> float:
        """A lower bound on the smallest squared singular value of A; 0 unless the rows are certainly independent.

        Rows count as dependent where the ratio of the extreme singular values is above 10⁶ or A is too large to tell.
        """
        if self.is_identity:
            return 1.0
        if self._is_chain:
            return 4 * math.sin(math.pi / (2 * (self.n_features - self.free))) ** 2 * (1 - ROUNDING)
        if not 0 < self.n_rows <= self.n_features or self.n_rows * self.n_features > DENSE_LEAST_SQUARES_UP_TO:
            return 0.0
        values = np.linalg.svd(_dense(self.A_matrix), compute_uv=False)
        # LAPACK's singular values are off by a few roundings of the largest one.
        least = float(values[-1] - 16 * self.n_features * np.finfo(float).eps * values[0])
        return least**2 if least > values[0] / LARGEST_CONDITION else 0.0

    def auxiliary_update(self, regularizer: Regularizer, x: Array, y: Array, dual: Array, beta: float) -> Array:
        """Return the y-step, argmin_y r(y) + (beta/2)‖Ax + By − c + u‖².

        Exact where BᵀB = κI, in particular for B = −I; otherwise one preconditioned step from the present y, whose
        formula is the same.
        """
        if self.B_matrix is None:
            return checked_prox(regularizer, self._minus_offset(self.apply(x)) + dual, 1 / beta)
        scale = self.norm_B_squared
        centre = y - self.adjoint_B(self.residual(x, y) + dual) / scale
        return checked_prox(regularizer, centre, 1 / (beta * scale))

    def feasible_auxiliary(self, x: Array) -> Array:
        """The y that satisfies Ax + By = c, for B = −I."""
        if self.B_matrix is not None:
            raise UnsupportedProblem("a general matrix B", "B = -I", "evaluate the penalty at your own feasible y")
        return self._minus_offset(self.apply(x))

    def adjoint_pinv(self, v: Array) -> Array:
        """pinv(Aᵀ)v, the shortest dual that comes closest to Aᵀu = v."""
        leading_axis("v", v, self.n_features)
        if self.is_identity:
            return v[: self.n_rows].copy()
        if self.n_rows * self.n_features <= DENSE_LEAST_SQUARES_UP_TO:
            return np.linalg.lstsq(_dense(self.A_matrix).T, v, rcond=None)[0]
        columns = [lsmr(self._A_transposed, column, atol=1e-14, btol=1e-14)[0] for column in v.reshape(len(v), -1).T]
        return np.stack(columns, axis=1).reshape(self.n_rows, *v.shape[1:])

    def recover(self, x: Array, y: Array) -> Array:
        """Return the coefficients to release, which carry the structure that only y has exactly.

        Identity and stacked: y's copy of the coefficients. Chain and graph: x averaged over every set of coefficients
        that y declares equal. General: x. The free coordinates always come from x.
        """
        leading_axis("x", x, self.n_features)
        leading_axis("y", y, self.n_auxiliary)
        penalised = self.n_features - self.free
        if self.kind in ("identity", "stacked"):
            return np.concatenate([y[-penalised:], x[penalised:]])
        if self.edges is None:
            return x.copy()
        fused = ~(y != 0).any(axis=tuple(range(1, y.ndim)))
        return np.concatenate([_average_within(self.edges.components(fused), x[:penalised]), x[penalised:]])

    @cached_property
    def _A_transposed(self) -> Any:
        return self.A_matrix.T.tocsr() if sparse.issparse(self.A_matrix) else self.A_matrix.T

    def _minus_offset(self, v: Array) -> Array:
        if self.offset is None:
            return v
        return v - self.offset.reshape(-1, *[1] * (v.ndim - 1))


def _penalised(d: int, free: int) -> int:
    d, free = count("number of features", d, minimum=1), count("free", free)
    if free >= d:
        raise InvalidParameter(f"free={free} of {d} features", "free < number of features", "penalise a feature")
    return d - free


def _matrix(name: str, matrix: Any) -> Any:
    try:
        checked = sparse.csr_array(matrix, dtype=float) if sparse.issparse(matrix) else np.array(matrix, dtype=float)
    except (TypeError, ValueError):
        checked = np.empty(0)
    if checked.ndim != 2 or 0 in checked.shape:
        raise InvalidParameter(f"{name} that is no matrix", "two axes, neither empty", f"give {name} as a matrix")
    if not np.isfinite(checked.data if sparse.issparse(checked) else checked).all():
        raise InvalidParameter(f"{name} with infinite or missing entries", "finite numbers", f"correct {name}")
    return checked


def _offset(c: Any, n_rows: int) -> Array | None:
    if c is None:
        return None
    offset = np.array(c, dtype=float)
    if offset.shape != (n_rows,) or not np.isfinite(offset).all():
        raise InvalidParameter(
            f"c of shape {offset.shape}", f"{n_rows} finite numbers, one for each row of A", "make c fit A"
        )
    return offset if offset.any() else None


def _none_if_minus_identity(B: Any) -> Any:
    square = B is not None and B.shape[0] == B.shape[1]
    return None if square and abs(sparse.csr_array(B) + sparse.eye_array(B.shape[0])).max() == 0 else B


def _dense(matrix: Any) -> Array:
    dense: Array = matrix.toarray() if sparse.issparse(matrix) else matrix
    return dense


def _average_within(labels: Array, x: Array) -> Array:
    """Replace every entry by the mean of its component, so that fused coefficients are equal to the last bit."""
    totals = np.zeros((labels.max() + 1, *x.shape[1:]))
    np.add.at(totals, labels, x)
    sizes = np.bincount(labels).reshape(-1, *[1] * (x.ndim - 1))
    averaged: Array = (totals / sizes)[labels].astype(x.dtype)
    return averaged
