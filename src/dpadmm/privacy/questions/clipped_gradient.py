"""The gradient of each row's loss at a released point, clipped: what most solvers ask, step after step."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

from dpadmm.privacy.budget import Relation
from dpadmm.privacy.questions.base import (
    QUESTIONS,
    Array,
    At,
    Frame,
    Kind,
    Question,
    Space,
    Suspects,
    View,
    far_points,
    gradients,
    require_places,
    require_point,
)

GRADIENT = Kind[Array]("gradient")
SNAPSHOT = Kind[Array]("snapshot")


@QUESTIONS.register("clipped-gradient")
@dataclass(frozen=True)
class ClippedGradient(Question[Array]):
    """Σ clip(∇fᵢ(x)): asked at (x,), answered by a vector of the shape of x.

    Parameters
    ----------
    clip : float
        Largest norm of one row's gradient (docs/proofs/sensitivity.md, Claim 1).
    """

    clip: float

    name: ClassVar[str] = "clipped-gradient"
    frame: ClassVar[Frame] = "seen"
    reads_all: ClassVar[bool] = False
    may_be_cut: ClassVar[bool] = True

    def reach(self, relation: Relation) -> float:
        return self.clip

    def accept(self, at: At, space: Space) -> float:
        if len(at) != 1:
            require_places(self, at, "one point")
        require_point(at[0], space)
        return self.clip

    def contributions(self, view: View, at: At) -> Any:
        return gradients(view, at[0])

    def probes(self, pair: Suspects, space: Space) -> Iterable[At]:
        return ((x,) for x in far_points(pair, space.point_shape))
