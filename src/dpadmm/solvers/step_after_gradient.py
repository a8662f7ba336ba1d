"""What an ADMM step does once the gradient is released, on one vector that holds all blocks.

Where the penalty acts on each entry alone, B = −I and the smoother is none or a ring, a step is one kernel call;
otherwise the same formulas are composed from the parts of the problem.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from dpadmm import kernels
from dpadmm.problem.problem import Problem
from dpadmm.problem.regularizers import entrywise
from dpadmm.problem.smoothers import Identity, RingLaplacian, Smoother

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Iterate:
    """The three blocks of ADMM."""

    x: Array
    y: Array
    dual: Array


@dataclass(frozen=True, eq=False)
class Tail:
    """How one step moves the blocks of a problem; public, and the same in every step."""

    problem: Problem
    smoother: Smoother

    def start(self) -> Array:
        """x, y, λ, velocity and the sums of x, y and λ, all zero."""
        return np.zeros(self._ends[-1])

    def x(self, state: Array) -> Array:
        x = state[self._head]
        return x if self._is_flat else x.reshape(self._shapes[0])

    def point(self, state: Array) -> Iterate:
        return Iterate(*self._blocks(state)[:3])

    def sums(self, state: Array) -> Iterate:
        return Iterate(*self._blocks(state)[4:])

    def with_point(self, state: Array, point: Iterate) -> Array:
        """The state with other blocks and nothing summed yet."""
        rest = np.zeros(self._ends[-1] - self._ends[4])
        velocity = state[self._ends[3] : self._ends[4]]
        return np.concatenate([point.x.ravel(), point.y.ravel(), point.dual.ravel(), velocity, rest])

    def step(
        self,
        state: Array,
        gradient: Array,
        step: float,
        beta: float,
        weight: float,
        y_first: bool,
        rate: float = 1.0,
        momentum: float = 0.0,
    ) -> Array:
        """The state after one step; `kernels.numpy_kernels.tail` says which."""
        fused = self._fused
        if fused is None:
            return self._composed(state, gradient, step, beta, weight, y_first, rate, momentum)
        after, numbers = np.empty(state.size), (step, beta, rate, momentum, weight)
        if self._is_plain:
            kernels.active().plain_tail(state, gradient, *self._plain_rule, *numbers, y_first, after)
        else:
            kernels.active().tail(state, gradient, *fused[0], *numbers, *fused[1], y_first, after)
        return after

    @cached_property
    def _shapes(self) -> tuple[tuple[int, ...], ...]:
        x, y, dual = (block.shape for block in self.problem.zeros())
        return x, y, dual, x, x, y, dual

    @cached_property
    def _ends(self) -> tuple[int, ...]:
        sizes = [int(np.prod(shape)) for shape in self._shapes]
        return (0, *(int(end) for end in np.cumsum(sizes)))

    @cached_property
    def _head(self) -> slice:
        """Where x lies."""
        return slice(self._ends[1])

    @cached_property
    def _is_flat(self) -> bool:
        return len(self._shapes[0]) == 1

    def _blocks(self, state: Array) -> list[Array]:
        starts, ends = self._ends[:-1], self._ends[1:]
        return [state[a:b].reshape(shape) for a, b, shape in zip(starts, ends, self._shapes, strict=True)]

    @cached_property
    def _fused(self) -> tuple[tuple[Any, ...], tuple[Any, ...]] | None:
        """The public arguments of the kernel, before and after those of the step; None where no kernel fits."""
        constraint, outputs = self.problem.constraint, self.problem.loss.outputs
        prox, ring = self._prox, self._ring
        dense = not constraint.is_identity and not sparse.issparse(constraint.A_matrix)
        if prox is None or ring is None or dense or constraint.B_matrix is not None:
            return None
        matrices = (None, None) if constraint.is_identity else tuple(map(_parts, (constraint.A, constraint.A.T)))
        sizes = (constraint.n_features, constraint.n_rows, outputs)
        # One number an entry, so that the kernel need not ask which row an entry belongs to.
        offset = None if constraint.offset is None else np.repeat(constraint.offset, outputs)
        ridge, threshold = np.repeat(self.problem.ridge_weights, outputs), np.repeat(prox[0], outputs)
        return (*sizes, *matrices, offset, ridge, threshold, prox[1]), ring

    @cached_property
    def _plain_rule(self) -> tuple[Any, ...]:
        """Ridge, threshold and stiffness: what a plain step needs of the fused arguments."""
        assert self._fused is not None
        return self._fused[0][-3:]

    @cached_property
    def _is_plain(self) -> bool:
        """Whether y is x but for its free entries, and no entry is smoothed."""
        constraint = self.problem.constraint
        return constraint.is_identity and constraint.offset is None and self._ring == (0, 1.0, 1.0)

    @property
    def _prox(self) -> tuple[Array, float] | None:
        """(threshold, stiffness) of an entrywise prox."""
        return entrywise(self.problem.regularizer, self.problem.constraint.n_rows)

    @property
    def _ring(self) -> tuple[int, float, float] | None:
        """(features on the ring, decay, gain); no features for no smoothing."""
        smoother = self.smoother
        if type(smoother) is Identity:
            return 0, 1.0, 1.0
        if type(smoother) is not RingLaplacian or smoother.method == "fft":
            return None
        if smoother.nu == 0.0:
            return 0, 1.0, 1.0
        return self.problem.constraint.n_features - smoother.free, smoother.decay, smoother.gain

    def _composed(
        self,
        state: Array,
        gradient: Array,
        step: float,
        beta: float,
        weight: float,
        y_first: bool,
        rate: float,
        momentum: float,
    ) -> Array:
        problem, constraint = self.problem, self.problem.constraint
        x, y, dual, velocity, *sums = self._blocks(state)
        if y_first:
            y = constraint.auxiliary_update(problem.regularizer, x, y, dual, beta)
        public = problem.public_gradient(x) + beta * constraint.adjoint(constraint.residual(x, y) + dual)
        velocity = momentum * velocity + self.smoother(gradient + public)
        x = x - step * velocity
        if not y_first:
            y = constraint.auxiliary_update(problem.regularizer, x, y, dual, beta)
        dual = dual + rate * constraint.residual(x, y)
        if weight:
            sums = [total + weight * block for total, block in zip(sums, (x, y, dual), strict=True)]
        return np.concatenate([block.ravel() for block in (x, y, dual, velocity, *sums)])


def _parts(matrix: Any) -> tuple[Any, Any, Any]:
    """Data, indices and row starts of a matrix in CSR."""
    rows = sparse.csr_array(matrix)
    return rows.data, rows.indices, rows.indptr
