"""Private rows that answer where the minimiser of their node's objective lies, before noise."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpadmm.errors import QueryRefused
from dpadmm.network.decentralised.local_minimum import displacement, rounding_share
from dpadmm.privacy.questions.local_minimum import ROUNDING_SHARE
from dpadmm.privacy.sampling import Batch
from dpadmm.problem.problem import Problem
from dpadmm.rows.local import LocalRows
from dpadmm.rows.packed import PackedRows

Array = NDArray[np.float64]
ACCURACY = 1e-6
"""Of a minimiser, as a share of its distance from where the steps start. Privacy does not rest on it under PVP."""


class MinimisingRows(LocalRows):
    """Where `LocalRows` returns a sum of clipped gradients at x, these return m·μ·(w − a) at the public centre a = x.

    `curvature` is μ of the next question, a public number that changes with the graph.

    Notes
    -----
    *Formal guarantees.* One replaced row moves what is returned by at most 2·clip, and rounding adds at most
    `ROUNDING_SHARE` of that: a curvature or a centre at which it could add more is refused.
    """

    def __init__(self, table: PackedRows, target: NDArray[Any], problem: Problem) -> None:
        super().__init__(table, target, problem.loss, problem.row_norm)
        self.smoothness = problem.smoothness
        self.curvature = 0.0
        self.kernels_suffice = False  # NumPy computes here too, and is to be silent

    def gradient_sum(self, x: Array, clip_norm: float, batch: Batch) -> Array:
        if batch.rows is not None:
            raise QueryRefused("a local minimum reads every row")
        return self.n_rows * self.curvature * self.moved(x, clip_norm)

    def moved(self, centre: Array, clip_norm: float) -> Array:
        """w − a, before noise: for barriers alone."""
        self._require_accurate(float(np.linalg.norm(centre)), clip_norm)
        mean_gradient = partial(self.mean_gradient, clip_norm=clip_norm)
        return displacement(mean_gradient, centre, self.curvature, self.smoothness, ACCURACY)

    def mean_gradient(self, point: Array, clip_norm: float) -> Array:
        """Before noise, too."""
        return super().gradient_sum(point, clip_norm, Batch(None)).reshape(point.shape) / self.n_rows

    def _require_accurate(self, distance: float, clip_norm: float) -> None:
        """Of public numbers alone."""
        if not self.curvature > 0:
            raise QueryRefused("a local minimum without curvature")
        if not rounding_share(distance, self.curvature, self.smoothness, clip_norm, self.n_rows) <= ROUNDING_SHARE:
            raise QueryRefused("a local minimum so far away, or with so little curvature, that rounding shows in it")
