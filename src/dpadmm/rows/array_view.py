"""Rows in memory as a question sees them: NumPy arrays, everything computed row by row."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpadmm.errors import QueryRefused
from dpadmm.kernels.clipping import SAFETY, SMALLEST_SCALE
from dpadmm.kernels.numpy_kernels import products
from dpadmm.problem.losses.base import Loss
from dpadmm.problem.scores import Score

Array = NDArray[np.float64]


class ArrayView:
    """Some rows of a table; `privacy.questions.View` says what each method answers.

    Parameters
    ----------
    rows : (m, d)
        Mapped rows in the question's frame, in float64.
    target : (m, …)
        What the loss expects.
    raw : callable
        Gives the rows as they were given, when a question asks for them.
    """

    def __init__(
        self,
        rows: Array,
        target: NDArray[Any],
        loss: Loss,
        row_norm: float,
        raw: Callable[[], Array],
    ) -> None:
        self.rows, self.target, self.row_norm = rows, target, row_norm
        self._loss, self._raw = loss, raw
        self._score: Score | None = None

    def with_score(self, score: Score) -> ArrayView:
        """The same rows, with a rule by which a model is scored on each."""
        self._score = score
        return self

    @property
    def raw(self) -> Array:
        return self._raw()

    def dot(self, x: Array) -> Array:
        found = products(self.rows, np.atleast_2d(x.T))
        return found if x.ndim == 2 else found[:, 0]

    def slopes(self, x: Array) -> Array:
        return np.asarray(self._loss.slope(self.dot(x), self.target))

    def curvatures(self, x: Array) -> Array:
        require_one_output(self._loss)
        return np.asarray(self._loss.curvature(self.dot(x), self.target))

    def labels(self, slope_unit: float) -> Array:
        return descent_slopes(self._loss, self.target, slope_unit).reshape(len(self.rows), self._loss.outputs)

    def scores(self, x: Array) -> Array:
        if self._score is None:
            raise QueryRefused("these rows have no rule by which a model is scored")
        return self._score.values(self.dot(x), self.target, self._loss)

    def numbers(self, values: Any) -> Array:
        return np.asarray(values, dtype=np.float64)

    def clipped(self, vectors: Array, size: float) -> Array:
        return clip_vectors(vectors, size)

    def totals(self, vectors: Array) -> Array:
        return np.asarray(np.add.reduce(vectors, axis=1))

    def joined(self, parts: Iterable[Array]) -> Array:
        return np.concatenate([flattened(part) for part in parts], axis=1)


def clip_vectors(vectors: Array, size: float) -> Array:
    """One vector a row, (m, …), each scaled so that its norm is at most `size`; zero where it is not finite.

    Formal guarantees
    -----------------
    For sizes of at least `SMALLEST_CLIP` each vector returned has norm at most `size` and depends on its own row alone.
    Its entries have the signs they had, and none is further from zero.
    """
    flat = flattened(vectors)
    if not flat.size:
        return vectors
    finite = np.logical_and.reduce(np.isfinite(flat), axis=1)
    flat = np.where(finite[:, None], flat, 0.0)
    peaks = np.abs(flat).max(axis=1)
    scaled = flat / np.where(peaks > 0, peaks, 1.0)[:, None]
    lengths = np.sqrt(np.add.reduce(scaled * scaled, axis=1))
    with np.errstate(all="ignore"):
        # A length that leaves the numbers makes the factor zero, which drops the row.
        factors = np.fmin(1.0, size * SAFETY / (peaks * lengths))
    factors = np.where(factors < SMALLEST_SCALE, 0.0, factors)
    return np.asarray((flat * factors[:, None]).reshape(vectors.shape))


def flattened(vectors: Any) -> Any:
    """(m, …) as (m, entries), for arrays and tensors, also of no row."""
    return vectors.reshape(len(vectors), math.prod(vectors.shape[1:]))


def descent_slopes(loss: Loss, target: NDArray[Any], slope_unit: float) -> Array:
    """At zero: within ±1 for one output, e_y − 1/K for K."""
    if loss.outputs > 1:
        return np.asarray(np.eye(loss.outputs)[target] - 1.0 / loss.outputs)
    slopes = -loss.slope(np.zeros(len(target)), target) / slope_unit
    return np.clip(np.where(np.isfinite(slopes), slopes, 0.0), -1.0, 1.0)


def require_one_output(loss: Loss) -> None:
    """Second derivatives of several outputs are matrices, which no question asks for."""
    if loss.outputs != 1:
        raise QueryRefused("curvatures are asked for where the loss has one output")
