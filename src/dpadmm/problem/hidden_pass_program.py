"""The public program of a hidden pass: what one visit to a row does to the state of noisy gradient ADMM.

| symbol | word           | meaning                                                                  |
|--------|----------------|--------------------------------------------------------------------------|
| x      | coefficients   | enter the loss of the row visited                                        |
| y      | auxiliary      | enters the penalty; a function of x and λ, so no part of the state        |
| λ      | scaled dual    | the paper's dual is −βλ                                                  |
| η      | step           | at most 1/L                                                              |
| H      | metric         | I + ηβAᵀA                                                                |

    y ← argmin r(y) + (β/2)‖Ax − y − c + λ‖²;   λ ← λ + Ax − y − c;
    x ← H⁻¹(x − η(∇loss(x) + ∇public(x)) + ηβAᵀ(y + c − λ)) + noise

Chan, Xie & Zhao 2024, Algorithm 1, in the scaled dual, for B = −I.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import cholesky_banded

from dpadmm.errors import InvalidParameter, UnsupportedProblem
from dpadmm.kernels import loss_codes, numpy_kernels
from dpadmm.problem.checks import number
from dpadmm.problem.losses import Huber, HuberisedHinge, Logistic, Squared
from dpadmm.problem.problem import Problem
from dpadmm.problem.regularizers import (
    L1,
    Ball,
    Box,
    ElasticNet,
    GroupL2,
    Nuclear,
    Simplex,
    SquaredL2,
    Zero,
    entrywise,
)

Array = NDArray[np.float64]

SINGLE_INDEX = (Logistic, HuberisedHinge, Squared, Huber)
"""Losses ψ(⟨row, x⟩) with ψ convex of known curvature. Clipping ψ′ to an interval leaves a convex loss, no rougher."""

CONVEX = (Zero, L1, SquaredL2, ElasticNet, GroupL2, Nuclear, Box, Ball, Simplex)
"""Penalties whose prox is known to be that of a convex function, finite everywhere: the proof needs the first, and a
prox that failed on a hidden state would tell of it."""

BAND_ENTRIES = 20_000_000

FINEST_GRID = math.ldexp(1.0, -300)
"""As good as none: no double above 2⁻²⁴⁸ is changed by rounding to it."""


@dataclass(frozen=True, eq=False)
class Program:
    """Certified when it is made: what the proof of amplification by iteration does not cover is refused.

    Parameters
    ----------
    problem : Problem
        One output, a convex penalty, B = −I and A of full row rank.
    step : float
        η.
    beta : float
        β.
    """

    problem: Problem
    step: float
    beta: float

    def __post_init__(self) -> None:
        number("step_size", self.step, strict=True)
        number("beta", self.beta, strict=True)
        _require_covered(self.problem)
        _require_independent_rows(self.problem)
        if not self.step * self.problem.smoothness <= 1.0:
            raise InvalidParameter(
                f"step_size={self.step:g} where one row's loss has curvature up to {self.problem.smoothness:g}",
                f"step_size <= {1.0 / self.problem.smoothness:g}, one over that curvature",
                "use a smaller step: beyond it an iteration may drive two states apart, and later noise hides nothing",
            )

    @property
    def convexity(self) -> float:
        """μ of every row's loss: the ridge, unless it leaves a coordinate free."""
        return self.problem.ridge if self.problem.constraint.free == 0 else 0.0

    def start(self) -> tuple[Array, Array]:
        """(x, λ), all zero."""
        x, _, dual = self.problem.zeros()
        return x, dual

    def auxiliary(self, x: Array, dual: Array) -> Array:
        """The y of a state."""
        y: Array = np.zeros(self.problem.constraint.n_auxiliary)
        return self.problem.constraint.auxiliary_update(self.problem.regularizer, x, y, dual, self.beta)

    @property
    def is_entrywise(self) -> bool:
        """Whether the prox shrinks each entry by itself, as compiled kernels do."""
        return not callable(self._prox[0])

    @cached_property
    def constants(self) -> tuple[Any, ...]:
        """The public numbers of every visit, as `kernels.numpy_kernels.visits` takes them after the state."""
        threshold, stiffness = self._prox
        offset, ridge = self.problem.constraint.offset, self.problem.ridge_weights
        return (*self._matrices, offset, ridge, self._bands, threshold, stiffness, self.step, self.beta)

    # -- sizes that bound how far rounding can carry a visit (docs/proofs/float.md, Lemmas 4 and 5) ----------------

    @cached_property
    def public_drift(self) -> float:
        """How far a visit to an empty row takes the zero state, in the distance of docs/proofs/iteration.md."""
        d = self.problem.constraint.n_features
        nothing, none = np.zeros(1), np.zeros((1, d))
        rest = (*self.start(), *self.constants, 1.0, FINEST_GRID, loss_codes.LOGISTIC, 0.0)
        x, dual = numpy_kernels.visits(none, nothing, nothing, nothing, none, *rest)
        shifted = dual + self.problem.constraint.apply(x)
        return 1.01 * math.sqrt(float(x @ x) + self.step * self.beta * float(shifted @ shifted))

    @cached_property
    def public_size(self) -> float:
        """Of c, of the prox at zero and of the margin where a hinge bends, in the same distance."""
        problem, beta = self.problem, self.beta
        offset = 0.0 if problem.constraint.offset is None else float(np.linalg.norm(problem.constraint.offset))
        nearest = problem.regularizer.prox(np.zeros(problem.constraint.n_rows), 1.0 / beta)
        sizes = offset + float(np.linalg.norm(nearest))
        return 1.01 * (math.sqrt(self.step * beta) * sizes + problem.loss.bend / problem.row_norm)

    @cached_property
    def operations(self) -> float:
        """Roundings that an entry of the state can collect in a visit before H⁻¹, weighed by what they act on."""
        longest = 1
        if self._matrices[0] is not None:
            longest = max(int(np.diff(starts).max()) for _, _, starts in self._matrices)
        products = 1.1 * self.problem.constraint.n_features + 6.0 * longest * math.sqrt(longest)
        return products + 3.0 * self.prox_operations + 64.0

    @cached_property
    def solving_operations(self) -> float:
        """The same of H⁻¹; a diagonal one is among the others."""
        width = self._bands.shape[1]
        return 5.0 * width * (width + 1) if width > 1 else 0.0

    @property
    def prox_operations(self) -> float:
        """Roundings that an entry can collect in the prox."""
        if self.is_entrywise:
            return 4.0
        entries = self.problem.constraint.n_rows
        return 4.0 * entries**2 + 16.0 if type(self.problem.regularizer) is Simplex else entries + 8.0

    @cached_property
    def _prox(self) -> tuple[Any, float]:
        penalty = self.problem.regularizer
        return entrywise(penalty, self.problem.constraint.n_rows) or (penalty.prox, 0.0)

    @cached_property
    def _matrices(self) -> tuple[Any, Any]:
        """Data, indices and row starts of A and of Aᵀ; None where y is a part of x."""
        constraint = self.problem.constraint
        if constraint.is_identity:
            return None, None
        A = sparse.csr_array(constraint.A)
        At = sparse.csr_array(A.T)
        return (A.data, A.indices, A.indptr), (At.data, At.indices, At.indptr)

    @cached_property
    def _bands(self) -> Array:
        """The Cholesky factor L of H, row j of it the entries L_jj, L_(j+1)j, … within the band."""
        constraint = self.problem.constraint
        if constraint.is_identity:
            diagonal: Array = np.ones(constraint.n_features)
            diagonal[: constraint.n_rows] += self.step * self.beta
            return np.asarray(np.sqrt(diagonal)[:, None])
        A = sparse.csr_array(constraint.A)
        gram = sparse.coo_array(sparse.eye_array(constraint.n_features) + self.step * self.beta * (A.T @ A))
        below = gram.coords[0] - gram.coords[1]
        width = int(below.max(initial=0))
        if (width + 1) * constraint.n_features > BAND_ENTRIES:
            raise UnsupportedProblem(
                "a constraint that ties far-apart coefficients of a long vector",
                "AᵀA with a narrow band, or fewer features",
                "use solver='full-admm'",
            )
        banded = np.zeros((width + 1, constraint.n_features))
        kept = below >= 0
        banded[below[kept], gram.coords[1][kept]] = gram.data[kept]
        return np.ascontiguousarray(cholesky_banded(banded, lower=True).T)


def _require_covered(problem: Problem) -> None:
    if type(problem.loss) not in SINGLE_INDEX or problem.loss.outputs != 1:
        raise UnsupportedProblem(
            f"loss {problem.loss.name!r} with {problem.loss.outputs} outputs for hidden passes",
            "a built-in loss of one margin: logistic, huberised hinge, squared or Huber",
            "use solver='auto': clipping the gradient of several outputs makes it expand, and then no state is hidden",
        )
    if type(problem.regularizer) not in CONVEX:
        raise UnsupportedProblem(
            f"penalty {getattr(problem.regularizer, 'name', type(problem.regularizer).__name__)!r} for hidden passes",
            "a built-in convex penalty",
            "use solver='auto' or 'full-admm', which show every state they work on",
        )
    if problem.constraint.B_matrix is not None:
        raise UnsupportedProblem("a general matrix B for hidden passes", "B = -I", "use solver='full-admm'")


def _require_independent_rows(problem: Problem) -> None:
    if problem.constraint.smallest_squared > 0:
        return
    rows, columns = problem.constraint.n_rows, problem.constraint.n_features
    raise UnsupportedProblem(
        f"a constraint matrix of {rows} rows and {columns} columns whose rows are not certainly independent",
        "full row rank: x = y, differences along a chain or a tree, or any matrix with independent rows",
        "use solver='auto' or 'full-admm': noise on x cannot hide a dual variable of higher dimension, and two "
        "iterations then tell two states apart with certainty",
    )
