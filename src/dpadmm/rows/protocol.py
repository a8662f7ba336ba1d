"""What an oracle may ask of private rows: raw sums, for an oracle alone to ask for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from dpadmm.privacy.questions import At, Question, Space
from dpadmm.privacy.sampling import Batch
from dpadmm.problem.hidden_pass_program import Program
from dpadmm.problem.rowmap import RowMap
from dpadmm.problem.spiked_map import SpikedMap
from dpadmm.rows.lattice_sum import Sum

Array = NDArray[np.float64]
State = tuple[Array, Array]


class Rows(Protocol):
    """Holds private rows. Returns raw sums, so that only an oracle may ask it.

    Attributes
    ----------
    n_rows : int
        How many there are to draw from.
    """

    n_rows: int

    @property
    def space(self) -> Space:
        """Public shapes of the coordinates in which it is asked."""
        ...

    def ask(self, question: Question[Any], at: At, batch: Batch) -> Sum:
        """Σ of the contributions of the batch, each clipped to what the question says.

        Every engine has ways of its own for the questions it knows, by type; `row_by_row` answers any other.
        """
        ...

    def transformed(self, matrix: Array | SpikedMap) -> Rows:
        """The rows Pᵀ row."""
        ...

    def remapped(self, rowmap: RowMap) -> Rows:
        """The rows as they were given, under another map; refused by rows that cannot."""
        ...


@runtime_checkable
class Visited(Protocol):
    """Rows that can be visited one after the other."""

    def noisy_pass(
        self,
        program: Program,
        state: State,
        clip_norm: float,
        order: NDArray[np.intp],
        noise: Callable[[int], Array],
        grid: float,
    ) -> State:
        """The state after one visit to each row of `order`, gradients clipped; `noise(m)` is for the next m visits.

        After each visit x is rounded to multiples of `grid` before the noise, whose values are such multiples.
        """
        ...
