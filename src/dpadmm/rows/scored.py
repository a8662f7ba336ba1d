"""Rows that are asked how well a model does on them, and nothing else than in `local.py` otherwise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpadmm.privacy.questions import At, CentredScore
from dpadmm.privacy.sampling import Batch
from dpadmm.problem.losses.base import Loss
from dpadmm.problem.scores import Score
from dpadmm.rows.array_view import ArrayView
from dpadmm.rows.lattice_sum import Sum
from dpadmm.rows.local import LocalRows
from dpadmm.rows.packed import PackedRows
from dpadmm.rows.row_by_row import Chosen, whole
from dpadmm.rows.wide import margins

Array = NDArray[np.float64]

GRID = 2.0**-20
"""Contributions are multiples of this, so that sums of up to four billion rows have no rounding error at all."""

BLOCK_ROWS = 1 << 14


class ScoredRows(LocalRows):
    """Rows with a public rule that scores a model on each of them.

    Notes
    -----
    *Formal guarantees.* The answer to a `CentredScore` is Σ cᵢ with |cᵢ| ≤ the clip, each cᵢ a function of row i and
    the model, exact in float64. A row that counts as zero contributes zero.
    """

    def __init__(
        self, table: PackedRows, target: NDArray[Any], loss: Loss, score: Score, weights: Array | None = None
    ) -> None:
        super().__init__(table, target, loss, weights=weights)
        self._score = score

    def _view(self, rows: Array, chosen: Chosen) -> ArrayView:
        view = super()._view(rows, chosen)
        return view.with_score(self._score)

    def _centred_score(self, question: CentredScore, at: At) -> Array:
        """Σ of (score − ½), each within ±clip and times the row's weight; shape (1,)."""
        total, (x,), clip_norm = 0.0, at, question.clip
        for start in range(0, self._table.n_rows, BLOCK_ROWS):
            block = slice(start, start + BLOCK_ROWS)
            margin = margins(self._table.stored(block), x)
            part = self._score.values(margin, self._target[block], self._loss) - 0.5
            part = np.clip(np.nan_to_num(part, nan=0.0), -clip_norm, clip_norm)
            part[self._table.factors[block] == 0] = 0.0
            if self._weights is not None:
                part *= self._weights[block]
            total += float((np.trunc(part / GRID) * GRID).sum())
        return np.array([total])

    WAYS: ClassVar[dict[type, Callable[[Any, Any, At, Batch], Sum]]] = {
        **LocalRows.WAYS,
        CentredScore: whole(_centred_score),
    }
