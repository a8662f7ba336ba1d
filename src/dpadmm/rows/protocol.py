"""What an oracle may ask of private rows: raw sums, for `PrivateOracle` alone to call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from dpadmm.privacy.questions import JointMoments, RowMoments
from dpadmm.privacy.sampling import Batch
from dpadmm.problem.hidden_pass_program import Program
from dpadmm.problem.rowmap import RowMap
from dpadmm.problem.spiked_map import SpikedMap
from dpadmm.rows.lattice_sum import Sum

Array = NDArray[np.float64]
State = tuple[Array, Array]


class Rows(Protocol):
    """Holds private rows. Returns raw sums, so only `PrivateOracle` may call it."""

    n_rows: int
    n_features: int
    point_shape: tuple[int, ...]

    def gradient_sum(self, x: Array, clip_norm: float, batch: Batch) -> Sum: ...

    def difference_sum(self, x: Array, anchor: Array, gradient_clip: float, clip_norm: float, batch: Batch) -> Sum: ...

    def moment_sums(self, statistic: JointMoments) -> tuple[Sum, Sum]:
        """Σ s ⊗ a and √balance · Σ a aᵀ with ‖a‖ ≤ 1."""
        ...

    def second_moment_sum(self) -> Sum:
        """Σ a aᵀ with rows clipped to ‖a‖ ≤ 1."""
        ...

    def curvature_sum(self, x: Array, weights: Array) -> Sum:
        """Σ c with c = l''(⟨a, x⟩) · weights∘a∘a scaled down to ‖c‖ ≤ 1, in the coordinates of the table."""
        ...

    def row_moment_sums(self, statistic: RowMoments) -> tuple[Sum, ...]:
        """Σ s ⊗ a, √mean · Σ a, √diagonal · Σ a∘a, √length · Σ ‖a‖² with ‖a‖ ≤ 1; empty where the weight is zero."""
        ...

    def transformed(self, matrix: Array | SpikedMap) -> Rows:
        """The rows Pᵀ row."""
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


@runtime_checkable
class Preparable(Protocol):
    """Rows as they were given, which bounds and graphs can be learned from before they are trained on."""

    def feature_moment_sum(self) -> Array:
        """Σ a aᵀ over the mapped rows divided by their declared norm."""
        ...

    def below_sums(self, thresholds: Array) -> Array:
        """Σ (1[x ≤ t] − ½) over the rows as they were given, for each row of thresholds and each feature."""
        ...

    def remapped(self, rowmap: RowMap) -> Rows:
        """The rows as they were given, under another map."""
        ...


@runtime_checkable
class Scored(Protocol):
    """Rows that can tell how well a model does on them."""

    def score_sum(self, x: Array, clip_norm: float) -> Array:
        """Σ of one number a row, each within ±clip; shape (1,)."""
        ...
