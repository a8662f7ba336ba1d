"""How far each row's gradient moved between two released points, clipped to a public bound chosen at each ask."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product
from typing import Any, ClassVar

from dpadmm.errors import QueryRefused
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

DIFFERENCE = Kind[Array]("difference")

SMALLER_CLIPS = (1.0, 0.5, 0.1)
"""A difference is half as long as its clip where slopes keep their sign: audits try smaller clips too."""


@QUESTIONS.register("gradient-difference")
@dataclass(frozen=True)
class GradientDifference(Question[Array]):
    """Σ clip_c(clip(∇fᵢ(x)) − clip(∇fᵢ(anchor))): asked at (x, anchor, c).

    The bound c ≤ `clip` is public, made from released points. Noise shrinks with it, so that the noise multiplier, and
    with it the event, stays the same. A bound of zero, or too small for the arithmetic, is answered by exact zeros
    without reading a row; it still counts.

    Parameters
    ----------
    clip : float
        Largest c. The two gradients are clipped to half of it.
    """

    clip: float

    name: ClassVar[str] = "gradient-difference"
    frame: ClassVar[Frame] = "seen"
    reads_all: ClassVar[bool] = False
    may_be_cut: ClassVar[bool] = True

    @property
    def gradient_clip(self) -> float:
        """Clip of each of the two gradients."""
        return self.clip / 2

    def reach(self, relation: Relation) -> float:
        return self.clip

    def accept(self, at: At, space: Space) -> float:
        require_places(self, at, "a point", "an anchor", "a clip")
        x, anchor, clip = at
        require_point(x, space)
        require_point(anchor, space)
        if not 0 <= clip <= self.clip:
            raise QueryRefused(f"the plan allows a clip between 0 and {self.clip:g}")
        return float(clip)

    def contributions(self, view: View, at: At) -> Any:
        here, there = (view.clipped(gradients(view, x), self.gradient_clip) for x in at[:2])
        return here - there

    def probes(self, pair: Suspects, space: Space) -> Iterable[At]:
        points = list(far_points(pair, space.point_shape))
        return ((x, anchor, self.clip * share) for x, anchor, share in product(points, points, SMALLER_CLIPS))
