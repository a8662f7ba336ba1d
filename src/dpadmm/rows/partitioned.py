"""Rows in several parts: every sum over the table is the sum of the sums over its parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from dpadmm.privacy.questions import JointMoments, RowMoments
from dpadmm.privacy.sampling import Batch
from dpadmm.problem.rowmap import RowMap
from dpadmm.problem.spiked_map import SpikedMap
from dpadmm.rows.local import LocalRows
from dpadmm.rows.wide import SpikedRows

Array = NDArray[np.float64]
Answer = Array | tuple[Array, ...]

FAN_IN = 4
"""Answers added one after another, at most: a tree of 2³² parts is 48 additions deep, and that much is charged."""


class Parts(Protocol):
    """Where the parts are, and how they are asked. Each part is a `LocalRows`."""

    def total(self, question: str, arguments: tuple[Any, ...], batches: Sequence[Batch | None] | None = None) -> Answer:
        """Σ part.question(*arguments), with a batch of its own for each part, or None for a part that is not asked.

        Added in any tree of depth at most `FAN_IN`·log(parts).
        """
        ...

    def changed(self, change: str, argument: Any) -> Parts:
        """The parts part.change(argument)."""
        ...


class PartitionedRows:
    """A table whose parts are summed where they are.

    Parameters
    ----------
    parts : Parts
        The private rows.
    sizes : sequence of int
        Rows of each part, in the order of the table; none is empty.
    n_features : int
        Of a mapped row.
    outputs : int
        Of the loss.

    Notes
    -----
    *Formal guarantees.* Each part returns sums of contributions as `LocalRows` bounds them, and a row is in one part.
    Which rows a batch holds is drawn before it is split, so that no sampler knows of parts. Adding the answers rounds
    them no more than is charged (docs/proofs/float.md, Lemma 1a).
    """

    def __init__(self, parts: Parts, sizes: Sequence[int], n_features: int, outputs: int) -> None:
        self._parts, self._sizes, self._outputs = parts, tuple(sizes), outputs
        self._starts = np.concatenate([[0], np.cumsum(self._sizes)]).astype(np.intp)
        self.n_rows, self.n_features = int(self._starts[-1]), n_features
        self.point_shape: tuple[int, ...] = (n_features,) if outputs == 1 else (n_features, outputs)

    def gradient_sum(self, x: Array, clip_norm: float, batch: Batch) -> Array:
        return self._clipped_sum("gradient_sum", (x, clip_norm), batch)

    def difference_sum(self, x: Array, anchor: Array, gradient_clip: float, clip_norm: float, batch: Batch) -> Array:
        return self._clipped_sum("difference_sum", (x, anchor, gradient_clip, clip_norm), batch)

    def moment_sums(self, statistic: JointMoments) -> tuple[Array, Array]:
        return cast(tuple[Array, Array], self._parts.total("moment_sums", (statistic,)))

    def row_moment_sums(self, statistic: RowMoments) -> tuple[Array, ...]:
        return cast(tuple[Array, ...], self._parts.total("row_moment_sums", (statistic,)))

    def second_moment_sum(self) -> Array:
        return cast(Array, self._parts.total("second_moment_sum", ()))

    def curvature_sum(self, x: Array, weights: Array) -> Array:
        return cast(Array, self._parts.total("curvature_sum", (x, weights)))

    def feature_moment_sum(self) -> Array:
        return cast(Array, self._parts.total("feature_moment_sum", ()))

    def below_sums(self, thresholds: Array) -> Array:
        return cast(Array, self._parts.total("below_sums", (thresholds,)))

    def remapped(self, rowmap: RowMap) -> PartitionedRows:
        return self._changed("remapped", rowmap)

    def transformed(self, matrix: Array | SpikedMap) -> PartitionedRows | SpikedRows:
        if isinstance(matrix, SpikedMap):
            return SpikedRows(self._changed("measured_by", matrix), matrix)
        return self._changed("transformed", matrix)

    def _changed(self, change: str, argument: Any) -> PartitionedRows:
        return PartitionedRows(self._parts.changed(change, argument), self._sizes, self.n_features, self._outputs)

    def _clipped_sum(self, question: str, arguments: tuple[Any, ...], batch: Batch) -> Array:
        batches = self._split(batch)
        if all(part is None for part in batches):
            return np.zeros(self.point_shape)
        return cast(Array, self._parts.total(question, arguments, batches))

    def _split(self, batch: Batch) -> list[Batch | None]:
        """What each part is asked for; None where nothing of it was drawn."""
        if batch.rows is None:
            cuts = self._starts[1:-1]
            weights = [None] * len(self._sizes) if batch.weights is None else np.split(batch.weights, cuts)
            return [Batch(None, weight) for weight in weights]
        home = np.searchsorted(self._starts, batch.rows, side="right") - 1
        order = np.argsort(home, kind="stable")
        cuts = np.searchsorted(home[order], np.arange(1, len(self._sizes)))
        return [self._share(part, drawn, batch) for part, drawn in enumerate(np.split(order, cuts))]

    def _share(self, part: int, drawn: NDArray[np.intp], batch: Batch) -> Batch | None:
        if batch.rows is None or not len(drawn):
            return None
        weights = None if batch.weights is None else batch.weights[drawn]
        return Batch(batch.rows[drawn] - self._starts[part], weights)


class LocalParts:
    """Parts in this process."""

    def __init__(self, parts: Sequence[LocalRows]) -> None:
        self._parts = tuple(parts)

    def total(self, question: str, arguments: tuple[Any, ...], batches: Sequence[Batch | None] | None = None) -> Answer:
        answers = [
            getattr(part, question)(*arguments, *(() if batches is None else (batch,)))
            for part, batch in zip(self._parts, batches or [None] * len(self._parts), strict=True)
            if batches is None or batch is not None
        ]
        while len(answers) > 1:
            answers = [added(answers[start : start + FAN_IN]) for start in range(0, len(answers), FAN_IN)]
        return cast(Answer, answers[0])

    def changed(self, change: str, argument: Any) -> LocalParts:
        return LocalParts([getattr(part, change)(argument) for part in self._parts])


def added(answers: Sequence[Answer]) -> Answer:
    """One after another, in a fresh place."""
    first = answers[0]
    if isinstance(first, tuple):
        return tuple(_sum(cast(Sequence[Array], pieces)) for pieces in zip(*answers, strict=True))
    return _sum(cast(Sequence[Array], answers))


def _sum(pieces: Sequence[Array]) -> Array:
    total = pieces[0].copy()
    for piece in pieces[1:]:
        total += piece
    return total
