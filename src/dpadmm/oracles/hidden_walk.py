"""Hidden passes: every row is visited once a pass, with noise at each visit, and the last state alone leaves."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from dpadmm.errors import QueryRefused
from dpadmm.kernels import numpy_kernels
from dpadmm.privacy.passage import Passage
from dpadmm.privacy.plan import Query
from dpadmm.privacy.questions import HiddenWalk
from dpadmm.privacy.sampling import Batch
from dpadmm.privacy.state_grid import Footing
from dpadmm.problem.hidden_pass_program import Program
from dpadmm.randomness import NoiseStream, Streams
from dpadmm.rows.protocol import Rows, State, Visited

Array = NDArray[np.float64]


class Walk:
    """All hidden passes of a plan over some rows, before the first visit.

    Notes
    -----
    *Formal guarantees.* docs/proofs/iteration.md, and docs/proofs/float.md, Theorem 3. A program other than the one
    that the plan was certified for is refused.
    """

    def __init__(self, rows: Rows, query: Query, program: Program) -> None:
        if not isinstance(rows, Visited) or type(program) is not Program:
            raise QueryRefused("rows that are only summed, or a program that is not the library's own")
        footing = Footing.of(program, rows.n_rows, query.count, query.clip_norm)
        if not isinstance(query.question, HiddenWalk) or query.question.passage != Passage.of(footing):
            raise QueryRefused("the program differs from the one the plan was certified for")
        self._rows, self._size, self._features = rows, rows.n_rows, rows.space.n_features
        self._query, self._program, self._noise = query, program, footing.noise(query.noise_multiplier)

    def last_state(self, streams: Streams, tick: Callable[[int], None] | None) -> State:
        """Make all passes; zeros leave without the sign of a sum."""
        state = self._program.start()
        for number in range(self._query.count):
            state = self._passed(state, streams)
            if tick is not None:
                tick(number + 1)
        x, dual = state
        return x + 0.0, dual + 0.0

    def _passed(self, state: State, streams: Streams) -> State:
        """Every row once, in a fresh secret order; then noise on the dual variable."""
        noise = self._noise
        order = once_each(self._query.sampler.draw(self._size, streams.sampling), self._size)
        draw = partial(normals_on_grid, streams.noise, noise.deviation, noise.grid)
        x, dual = self._rows.noisy_pass(
            self._program,
            state,
            self._query.clip_norm,
            order,
            lambda visits: draw((visits, self._features)),
            noise.grid,
        )
        dual = noise.dual_grid * numpy_kernels.on_grid(dual, noise.dual_grid)
        return x, dual + normals_on_grid(streams.noise, noise.dual_deviation, noise.dual_grid, dual.shape)


def normals_on_grid(stream: NoiseStream, deviation: float, grid: float, shape: tuple[int, ...]) -> Array:
    """Fresh normals, rounded to multiples of a power of two."""
    drawn = stream.standard_normal(shape)
    drawn *= deviation / grid
    np.rint(drawn, out=drawn)
    drawn *= grid
    return drawn


def once_each(batch: Batch, n_rows: int) -> NDArray[np.intp]:
    """The row numbers of a batch that holds each row exactly once."""
    rows = batch.rows
    if rows is None or batch.weights is not None or not np.array_equal(np.sort(rows), np.arange(n_rows)):
        raise QueryRefused("a pass visits each row exactly once")
    return rows
