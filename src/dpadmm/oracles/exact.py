"""No noise: turns the private algorithms into STOC-ADMM and SVRG-ADMM, for baselines and tests. Never private."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dpadmm.errors import QueryRefused
from dpadmm.privacy.questions import JointMoments, RowMoments
from dpadmm.privacy.sampling import Everything, Sampler
from dpadmm.problem.hidden_pass_program import FINEST_GRID, Program
from dpadmm.problem.spiked_map import SpikedMap
from dpadmm.randomness import make_streams
from dpadmm.rows.lattice_sum import as_numbers
from dpadmm.rows.protocol import Rows, Visited

Array = NDArray[np.float64]

TWO_CLASS_MOMENTS = JointMoments(balance=0.5, outputs=1, slope_unit=0.5)


class ExactOracle:
    """Answers any number of queries exactly; nothing it returns may be called private.

    Parameters
    ----------
    rows : Rows
        The data.
    sampler : Sampler
        Draws the batches of "gradient" and "difference" queries; "snapshot" queries always read every row.
    random_state : int or None
        Seed of the batches.
    moments : JointMoments
        What `moments` answers.
    """

    def __init__(
        self,
        rows: Rows,
        sampler: Sampler | None = None,
        random_state: int | None = None,
        moments: JointMoments = TWO_CLASS_MOMENTS,
    ) -> None:
        self._moments = moments
        self._rows = self._seen = rows
        self._sampler = Everything() if sampler is None else sampler
        self._stream = make_streams(random_state).sampling
        self._state: tuple[Array, Array] | None = None

    def gradient(self, x: Array, kind: str = "gradient") -> Array:
        sampler = Everything() if kind == "snapshot" else self._sampler
        n = self._rows.n_rows
        return as_numbers(self._seen.gradient_sum(x, np.inf, sampler.draw(n, self._stream))) / sampler.denominator(n)

    def difference(self, x: Array, anchor: Array, clip_norm: float, kind: str = "difference") -> Array:
        n = self._rows.n_rows
        batch = self._sampler.draw(n, self._stream)
        total = as_numbers(self._rows.difference_sum(x, anchor, np.inf, np.inf, batch))
        return total / self._sampler.denominator(n)

    def moments(self) -> tuple[Array, Array]:
        correlation, second = map(as_numbers, self._rows.moment_sums(self._moments))
        return correlation / self._rows.n_rows, second / math.sqrt(self._moments.balance) / self._rows.n_rows

    def row_moments(self) -> tuple[Array, ...]:
        weights = RowMoments(1.0, self._moments.balance / 2, self._moments.balance / 2, self._moments.outputs)
        weights = replace(weights, slope_unit=self._moments.slope_unit)
        parts = map(as_numbers, self._rows.row_moment_sums(weights))
        scales = (1.0, weights.mean, weights.diagonal, weights.length)
        return tuple(part / math.sqrt(scale) / self._rows.n_rows for part, scale in zip(parts, scales, strict=True))

    def second_moment(self) -> Array:
        return as_numbers(self._seen.second_moment_sum()) / self._rows.n_rows

    def feature_curvature(self, x: Array, weights: Array) -> Array:
        return as_numbers(self._rows.curvature_sum(x, weights)) / self._rows.n_rows

    def noisy_pass(self, program: Program) -> None:
        """Every row once, in a random order, without noise."""
        if not isinstance(self._rows, Visited):
            raise QueryRefused("these rows are summed, never visited one by one")
        n = self._rows.n_rows
        order = self._stream.distinct(n, n)
        state = program.start() if self._state is None else self._state
        self._state = self._rows.noisy_pass(program, state, np.inf, order, self._silence, FINEST_GRID)

    def last_state(self) -> tuple[Array, Array]:
        if self._state is None:
            raise QueryRefused("no pass was made")
        return self._state

    def _silence(self, visits: int) -> Array:
        return np.zeros((visits, self._rows.n_features))

    def change_coordinates(self, matrix: Array | SpikedMap) -> None:
        self._seen = self._rows.transformed(matrix)

    def noise_std(self, kind: str) -> float:
        """Not zero, so that models weighing evidence by its noise stay defined."""
        return 1e-12
