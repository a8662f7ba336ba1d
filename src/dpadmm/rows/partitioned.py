"""Rows in several parts: every sum over the table is the sum of the sums over its parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dpadmm.privacy.questions import At, Question, Space
from dpadmm.privacy.sampling import Batch
from dpadmm.problem.rowmap import RowMap
from dpadmm.problem.spiked_map import SpikedMap
from dpadmm.rows.lattice_sum import as_numbers
from dpadmm.rows.local import LocalRows
from dpadmm.rows.wide import SpikedRows

Array = NDArray[np.float64]
FAN_IN = 4
"""Answers added one after another, at most: a tree of 2³² parts is 48 additions deep, and that much is charged."""


class Parts(Protocol):
    """Where the parts are, and how they are asked. Each part is a `LocalRows`."""

    def total(self, question: Question[Any], at: At, batches: Sequence[Batch | None]) -> Array:
        """Σ part.ask(question, at, batch), with a batch of its own for each part, or None for a part that is not asked.

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
        self.n_rows = int(self._starts[-1])
        self.space = Space((n_features,) if outputs == 1 else (n_features, outputs), n_features)

    def ask(self, question: Question[Any], at: At, batch: Batch) -> Array:
        batches = self._split(batch)
        if all(part is None for part in batches):
            # The first part knows the shape of the answer to no row.
            batches[0] = Batch(np.zeros(0, dtype=np.intp))
        return self._parts.total(question, at, batches)

    def remapped(self, rowmap: RowMap) -> PartitionedRows:
        return self._changed("remapped", rowmap)

    def transformed(self, matrix: Array | SpikedMap) -> PartitionedRows | SpikedRows:
        if isinstance(matrix, SpikedMap):
            return SpikedRows(self._changed("measured_by", matrix), matrix)
        return self._changed("transformed", matrix)

    def _changed(self, change: str, argument: Any) -> PartitionedRows:
        return PartitionedRows(self._parts.changed(change, argument), self._sizes, self.space.n_features, self._outputs)

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

    def total(self, question: Question[Any], at: At, batches: Sequence[Batch | None]) -> Array:
        asked = [(part, batch) for part, batch in zip(self._parts, batches, strict=True) if batch is not None]
        answers = [as_numbers(part.ask(question, at, batch)) for part, batch in asked]
        while len(answers) > 1:
            answers = [added(answers[start : start + FAN_IN]) for start in range(0, len(answers), FAN_IN)]
        return answers[0]

    def changed(self, change: str, argument: Any) -> LocalParts:
        return LocalParts([getattr(part, change)(argument) for part in self._parts])


def added(answers: Sequence[Array]) -> Array:
    """One after another, in a fresh place."""
    total = answers[0].copy()
    for answer in answers[1:]:
        total += answer
    return total
