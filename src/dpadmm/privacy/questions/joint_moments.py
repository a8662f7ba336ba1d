"""How labels go with features, and features with each other: two sums released as one vector."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dpadmm.errors import InvalidParameter, QueryRefused
from dpadmm.privacy.budget import Relation
from dpadmm.privacy.questions.base import (
    QUESTIONS,
    Array,
    At,
    Kind,
    Question,
    Space,
    View,
    outer,
    require_places,
)

MOMENTS = Kind[tuple[Array, Array]]("moments")


@QUESTIONS.register("joint-moments")
@dataclass(frozen=True)
class JointMoments(Question[tuple[Array, Array]]):
    """Σ (s ⊗ a, √balance · a aᵀ), ‖a‖ ≤ 1, with |s| ≤ 1 (outputs 1) or s = e_y − 1/K (outputs K).

    For one output s is the descent slope at zero divided by `slope_unit` and cut to ±1. With `non_negative`, negative
    entries of a count as zero. Rows are divided by their declared norm. The answer is the means of s ⊗ a and of a aᵀ.

    Formal guarantees
    -----------------
    Replace-one: the squared distance is at most J, with J = 4 for one output: the second moment is free, because the
    pair that moves the correlation most (same row, other label) leaves it where it is. Add-remove: the largest squared
    norm of one contribution. A balance for which this is not proved is refused (docs/proofs/auto.md, Claim 1).
    """

    balance: float
    outputs: int
    slope_unit: float = 1.0
    non_negative: bool = False

    name: ClassVar[str] = "joint-moments"
    words: ClassVar[str] = "sums of label times row and of row times row, rows scaled to length one"
    proof: ClassVar[str | None] = "docs/proofs/auto.md"

    def __post_init__(self) -> None:
        if not 0 < self.balance <= self._size / 2:
            raise InvalidParameter(
                f"balance={self.balance}", f"0 < balance <= {self._size / 2:g}", "choose a smaller balance"
            )

    @property
    def _size(self) -> float:
        """‖s‖²."""
        return 1.0 if self.outputs == 1 else 1.0 - 1.0 / self.outputs

    def reach(self, relation: Relation) -> float:
        size, balance, outputs = self._size, self.balance, self.outputs
        if relation is Relation.ADD_REMOVE:
            return math.sqrt(size + balance)
        if outputs == 1:
            return 1.0
        other_label = 2 * size + 2 / outputs
        if 2 * outputs * balance > 1:
            other_label = 2 * size + 2 * balance + 1 / (2 * outputs**2 * balance)
        same_label = 2 * (size + balance) if self.non_negative else 4 * size
        return math.sqrt(max(same_label, other_label)) / 2

    def accept(self, at: At, space: Space) -> float:
        require_places(self, at)
        require_outputs(self.outputs, space)
        return math.inf

    def contributions(self, view: View, at: At) -> Any:
        unit = view.clipped(view.rows / view.row_norm, 1.0)
        if self.non_negative:
            unit = unit * view.numbers(unit > 0)
        correlation = outer(unit, view.labels(self.slope_unit))
        return view.joined([correlation, math.sqrt(self.balance) * outer(unit, unit)])

    def answer(self, mean: Array, space: Space) -> tuple[Array, Array]:
        split, d = math.prod(space.point_shape), space.n_features
        return mean[:split].reshape(space.point_shape).copy(), mean[split:].reshape(d, d) / math.sqrt(self.balance)

    def noised(self, answer: tuple[Array, Array]) -> Array:
        correlation, second = answer
        return np.concatenate([correlation.ravel(), math.sqrt(self.balance) * second.ravel()])

    def pieces(self, space: Space) -> dict[str, slice]:
        split = math.prod(space.point_shape)
        return {"correlation": slice(0, split), "moments": slice(split, None)}


def require_outputs(outputs: int, space: Space) -> None:
    """Refuse moments planned for a loss with another number of outputs."""
    if outputs != space.outputs:
        raise QueryRefused("the plan's moments are not those of this loss")
