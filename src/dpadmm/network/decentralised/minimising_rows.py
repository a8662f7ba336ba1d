"""Private rows that answer where the minimiser of their node's objective lies, before noise."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpadmm.errors import QueryRefused
from dpadmm.network.decentralised.descent_to_minimum import displacement, rounding_share
from dpadmm.privacy.questions import At, ClippedGradient, LocalMinimum
from dpadmm.privacy.questions.local_minimum import ROUNDING_SHARE
from dpadmm.privacy.sampling import Batch
from dpadmm.problem.problem import Problem
from dpadmm.rows.lattice_sum import Sum
from dpadmm.rows.local import LocalRows
from dpadmm.rows.packed import PackedRows

Array = NDArray[np.float64]
ACCURACY = 1e-6
"""Of a minimiser, as a share of its distance from where the steps start. Privacy does not rest on it under PVP."""
ALL = Batch(None)


class MinimisingRows(LocalRows):
    """Rows that also answer `LocalMinimum`: m·μ·(w − a) at the public centre a and curvature μ.

    Notes
    -----
    *Formal guarantees.* One replaced row moves that answer by at most 2·clip, and rounding adds at most
    `ROUNDING_SHARE` of it: a curvature or a centre at which it could add more is refused.
    """

    def __init__(self, table: PackedRows, target: NDArray[Any], problem: Problem) -> None:
        super().__init__(table, target, problem.loss, problem.row_norm)
        self._smoothness = problem.smoothness

    def mean_gradient(self, x: Array, clip_norm: float) -> Array:
        """Before noise: for barriers alone."""
        return np.asarray(self.ask(ClippedGradient(clip_norm), (x,), ALL)) / self.n_rows

    def moved(self, centre: Array, curvature: float, clip_norm: float) -> Array:
        """w − a, before noise: for barriers alone."""
        self._require_accurate(float(np.linalg.norm(centre)), curvature, clip_norm)
        mean_gradient = partial(self.mean_gradient, clip_norm=clip_norm)
        return displacement(mean_gradient, centre, curvature, self._smoothness, ACCURACY)

    def _minimum(self, question: LocalMinimum, at: At, batch: Batch) -> Array:
        if batch.rows is not None:
            raise QueryRefused("a local minimum reads every row")
        centre, curvature = at
        return np.asarray(self.n_rows * curvature * self.moved(centre, curvature, question.clip))

    def _require_accurate(self, distance: float, curvature: float, clip_norm: float) -> None:
        """Of public numbers alone."""
        share = rounding_share(distance, curvature, self._smoothness, clip_norm, self.n_rows, self.space.n_features)
        if not share <= ROUNDING_SHARE:
            raise QueryRefused("a local minimum so far away, or with so little curvature, that rounding shows in it")

    WAYS: ClassVar[dict[type, Callable[[Any, Any, At, Batch], Sum]]] = {**LocalRows.WAYS, LocalMinimum: _minimum}
