"""No noise: turns the private algorithms into STOC-ADMM and SVRG-ADMM, for baselines and tests. Never private."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from dpadmm.errors import QueryRefused
from dpadmm.privacy.questions import (
    CURVATURE,
    DIFFERENCE,
    MOMENTS,
    SECOND_MOMENT,
    SNAPSHOT,
    ClippedGradient,
    FeatureCurvature,
    GradientDifference,
    JointMoments,
    Kind,
    Question,
    RowMoments,
    SecondMoment,
)
from dpadmm.privacy.sampling import Everything, Sampler
from dpadmm.problem.hidden_pass_program import FINEST_GRID, Program
from dpadmm.problem.spiked_map import SpikedMap
from dpadmm.randomness import make_streams
from dpadmm.rows.lattice_sum import as_numbers
from dpadmm.rows.protocol import Rows, Visited

A = TypeVar("A")
Array = NDArray[np.float64]

TWO_CLASS_MOMENTS = JointMoments(balance=0.5, outputs=1, slope_unit=0.5)


class NoiselessOracle:
    """Answers any number of questions exactly; nothing it returns may be called private.

    Parameters
    ----------
    rows : Rows
        The data.
    sampler : Sampler
        Draws the batches of gradients and differences; snapshots always read every row.
    random_state : int or None
        Seed of the batches.
    moments : JointMoments or RowMoments
        What is answered where moments are asked for.
    passes : int
        How often a walk visits every row.
    """

    def __init__(
        self,
        rows: Rows,
        sampler: Sampler | None = None,
        random_state: int | None = None,
        moments: JointMoments | RowMoments = TWO_CLASS_MOMENTS,
        passes: int = 1,
    ) -> None:
        self._rows = self._seen = rows
        self._sampler = Everything() if sampler is None else sampler
        self._stream, self._passes = make_streams(random_state).sampling, passes
        self._questions: dict[str, Question[Any]] = {
            DIFFERENCE: GradientDifference(np.inf),
            MOMENTS: moments,
            SECOND_MOMENT: SecondMoment(),
            CURVATURE: FeatureCurvature(),
        }

    def ask(self, kind: Kind[A], *at: Any) -> A:
        """The mean without noise; a kind that is not known here is one of gradients."""
        question = self._questions.get(kind, ClippedGradient(np.inf))
        sampler = Everything() if kind == SNAPSHOT else question.sampler(self._sampler)
        rows = self._seen if question.frame == "seen" else self._rows
        if kind == DIFFERENCE:
            at = (*at[:2], np.inf)
        total = as_numbers(rows.ask(question, at, sampler.draw(rows.n_rows, self._stream)))
        return cast(A, question.answer(total / sampler.denominator(rows.n_rows), rows.space))

    def walk(self, program: Program, tick: Callable[[int], None] | None = None) -> tuple[Array, Array]:
        """Every row once a pass, in a random order, without noise."""
        if not isinstance(self._rows, Visited):
            raise QueryRefused("these rows are summed, never visited one by one")
        n, state = self._rows.n_rows, program.start()
        for number in range(self._passes):
            order = self._stream.distinct(n, n)
            state = self._rows.noisy_pass(program, state, np.inf, order, self._silence, FINEST_GRID)
            if tick is not None:
                tick(number + 1)
        return state

    def _silence(self, visits: int) -> Array:
        return np.zeros((visits, self._rows.space.n_features))

    def change_coordinates(self, matrix: Array | SpikedMap) -> None:
        self._seen = self._rows.transformed(matrix)

    def noise_std(self, kind: str) -> float:
        """Not zero, so that models weighing evidence by its noise stay defined."""
        return 1e-12
