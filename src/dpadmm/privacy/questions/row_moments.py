"""What can be had of a second moment without asking for d² numbers: sums that a wide table can give."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dpadmm.errors import InvalidParameter
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
from dpadmm.privacy.questions.joint_moments import require_outputs

ROW_MOMENTS = Kind[tuple[Array, ...]]("moments")


@QUESTIONS.register("row-moments")
@dataclass(frozen=True)
class RowMoments(Question[tuple[Array, ...]]):
    """Σ (s ⊗ a, √mean · a, √diagonal · a∘a, √length · ‖a‖²), ‖a‖ ≤ 1, with s as in `JointMoments`.

    A part of weight zero is not asked for, and comes back empty. The answer is the means without their weights.

    Formal guarantees
    -----------------
    With σ the largest ‖s‖² and diagonal + length ≤ σ/2 the squared distance under replace-one is at most 4(σ + mean):
    the diagonal and the length are free. Add-remove: the largest squared norm of one contribution, the sum of σ and
    all weights. Weights for which this is not proved are refused (docs/proofs/auto.md, Claim 4).
    """

    mean: float
    diagonal: float
    length: float
    outputs: int
    slope_unit: float = 1.0

    name: ClassVar[str] = "row-moments"
    proof: ClassVar[str | None] = "docs/proofs/auto.md"

    def __post_init__(self) -> None:
        weights = (self.mean, self.diagonal, self.length)
        if not (all(0 <= weight <= 1 for weight in weights) and self.diagonal + self.length <= self._size / 2):
            raise InvalidParameter(
                f"weights {weights}",
                f"weights from 0 to 1, diagonal + length <= {self._size / 2:g}",
                "choose smaller weights",
            )

    @property
    def _size(self) -> float:
        """‖s‖²."""
        return 1.0 if self.outputs == 1 else 1.0 - 1.0 / self.outputs

    @property
    def _weights(self) -> tuple[float, ...]:
        return 1.0, self.mean, self.diagonal, self.length

    def reach(self, relation: Relation) -> float:
        if relation is Relation.ADD_REMOVE:
            return math.sqrt(self._size + self.mean + self.diagonal + self.length)
        return math.sqrt(self._size + self.mean)

    def accept(self, at: At, space: Space) -> float:
        require_places(self, at)
        require_outputs(self.outputs, space)
        return math.inf

    def contributions(self, view: View, at: At) -> Any:
        unit = view.clipped(view.rows / view.row_norm, 1.0)
        squares = unit**2
        parts = (unit, self.mean), (squares, self.diagonal), (view.totals(squares)[:, None], self.length)
        weighed = [math.sqrt(weight) * part for part, weight in parts if weight > 0]
        return view.joined([outer(unit, view.labels(self.slope_unit)), *weighed])

    def answer(self, mean: Array, space: Space) -> tuple[Array, ...]:
        d = space.n_features
        shapes = (space.point_shape, *(size if weight > 0 else (0,) for size, weight in self._asked(d)))
        pieces = np.split(mean, np.cumsum([math.prod(shape) for shape in shapes])[:-1])
        return tuple(
            piece.reshape(shape) / math.sqrt(weight or 1.0)
            for piece, shape, weight in zip(pieces, shapes, self._weights, strict=True)
        )

    def noised(self, answer: tuple[Array, ...]) -> Array:
        parts = zip(answer, self._weights, strict=True)
        return np.concatenate([math.sqrt(weight) * part.ravel() for part, weight in parts])

    def _asked(self, d: int) -> tuple[tuple[tuple[int], float], ...]:
        """Shape and weight of each part after the first."""
        return ((d,), self.mean), ((d,), self.diagonal), ((1,), self.length)
