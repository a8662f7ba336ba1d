"""How well a released model does on held-out rows: what a private search compares its trials by."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dpadmm.privacy.budget import Relation
from dpadmm.privacy.questions.base import (
    QUESTIONS,
    Array,
    At,
    Kind,
    Question,
    Space,
    Suspects,
    View,
    far_points,
    require_places,
    require_point,
)

SCORE = Kind[float]("score")


@QUESTIONS.register("centred-score")
@dataclass(frozen=True)
class CentredScore(Question[float]):
    """Σ of each row's score less ½, within ±clip: asked at (x,), the model, answered by one number.

    Formal guarantees
    -----------------
    A contribution is one number within ±clip (docs/proofs/tuning.md).
    """

    clip: float

    name: ClassVar[str] = "centred-score"
    may_be_cut: ClassVar[bool] = True

    def reach(self, relation: Relation) -> float:
        return self.clip

    def accept(self, at: At, space: Space) -> float:
        require_places(self, at, "a model")
        require_point(at[0], space)
        return self.clip

    def contributions(self, view: View, at: At) -> Any:
        return (view.scores(at[0]) - 0.5)[:, None]

    def answer(self, mean: Array, space: Space) -> float:
        return float(mean[0])

    def noised(self, answer: float) -> Array:
        return np.array([answer])

    def probes(self, pair: Suspects, space: Space) -> Iterable[At]:
        return ((x,) for x in far_points(pair, space.point_shape))
