"""The general way to answer a question: contributions row by row, clipped, weighed and added up as rounding is charged.

Engines answer the questions they know by ways of their own. This is for every other question; `Question.contributions`
says what is added up, and an engine shows it its rows block by block.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpadmm.errors import QueryRefused
from dpadmm.kernels.threads import LONGEST_RUN
from dpadmm.privacy.questions import At, Question, Space, View
from dpadmm.privacy.questions.base import clip_there
from dpadmm.privacy.sampling import Batch

Chosen = slice | NDArray[np.intp]
"""Some rows of a table, by their places or their numbers."""
Show = Callable[[Chosen], tuple[View, Any]]
"""From some rows to what a question sees of them, and the factor within [0, 1] of each one's contribution."""

BLOCK_NUMBERS = 1 << 18
"""Numbers of a block of rows, or of their contributions, that are held together."""


def row_by_row(question: Question[Any], at: At, space: Space, n_rows: int, batch: Batch, show: Show) -> Any:
    """Σ wᵢcᵢ over the batch in the shape of one contribution: an array, or a tensor where the rows are.

    Formal guarantees
    -----------------
    ‖cᵢ‖ is at most the clip of the question at this place, wᵢ is within [0, 1], and cᵢ depends on row i and public
    numbers alone. Rows are added up in runs of `LONGEST_RUN`, and these to each other (docs/proofs/float.md, Lemma 1).
    """
    clip = clip_there(question, at, space)
    shape, zeros = shape_of_answer(question, at, show)
    total = zeros()
    for run in stretches(slice(0, size_of(batch, n_rows)), LONGEST_RUN):
        part = zeros()
        for places in stretches(run, held(space, shape)):
            part = part + finished(question, at, clip, batch, places, show).sum(0)
        total = total + part
    return total


def finished(question: Question[Any], at: At, clip: float, batch: Batch, places: slice, show: Show) -> Any:
    """Contributions of some rows of a batch, clipped and weighed."""
    view, factors = show(places if batch.rows is None else batch.rows[places])
    found = view.clipped(question.contributions(view, at), clip)
    if batch.weights is not None:
        factors = factors * view.numbers(np.clip(batch.weights[places], 0.0, 1.0))
    # No contribution is infinite any more, so that a factor of zero makes it zero.
    return found * factors.reshape(-1, *([1] * (len(found.shape) - 1)))


def shape_of_answer(question: Question[Any], at: At, show: Show) -> tuple[tuple[int, ...], Callable[[], Any]]:
    """Of the contributions of no row: their shape, and zeros of it."""
    view, _ = show(slice(0, 0))
    shape = tuple(question.contributions(view, at).shape[1:])
    return shape, lambda: view.numbers(np.zeros(shape))


def size_of(batch: Batch, n_rows: int) -> int:
    return n_rows if batch.rows is None else len(batch.rows)


def stretches(places: slice, length: int) -> Iterator[slice]:
    """Places in stretches of at most this length."""
    for start in range(places.start, places.stop, length):
        yield slice(start, min(start + length, places.stop))


def held(space: Space, shape: tuple[int, ...]) -> int:
    """Rows that are held together with their contributions."""
    return max(1, BLOCK_NUMBERS // max(1, space.n_features, math.prod(shape)))


def whole(way: Callable[[Any, Any, At], Any]) -> Callable[[Any, Any, At, Batch], Any]:
    """A way to answer a question in which every row takes part: a sample of rows is refused."""

    def asked(rows: Any, question: Question[Any], at: At, batch: Batch) -> Any:
        if batch.rows is not None or batch.weights is not None:
            raise QueryRefused(f"Got a sample of rows for {question.name!r}. Expected all rows.")
        return way(rows, question, at)

    return asked
