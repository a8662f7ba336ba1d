"""A question made up for tests, whole in this one file: how many rows have a margin in each public interval."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dpadmm.privacy.budget import Relation
from dpadmm.privacy.questions import QUESTIONS, At, Kind, Question, Space, Suspects, View
from dpadmm.privacy.questions.base import Array, far_points, orthogonal_reach, require_places, require_point

MARGINS = Kind[Array]("margins")


@QUESTIONS.register("margin-histogram")
@dataclass(frozen=True)
class MarginHistogram(Question[Array]):
    """Σ of the unit vector of the interval in which ⟨row, x⟩ lies: asked at (x,), answered by shares of the rows."""

    bins: int
    width: float

    name: ClassVar[str] = "margin-histogram"
    words: ClassVar[str] = "how many margins lie in each public interval, at a point made from earlier releases"
    proof: ClassVar[str | None] = "tests/privacy/margin_histogram.py"
    may_be_cut: ClassVar[bool] = True

    @property
    def edges(self) -> Array:
        inner = self.width * (np.arange(1, self.bins) - self.bins / 2)
        return np.concatenate([[-np.inf], inner, [np.inf]])

    def reach(self, relation: Relation) -> float:
        return orthogonal_reach(relation)

    def accept(self, at: At, space: Space) -> float:
        require_places(self, at, "one point")
        require_point(at[0], space)
        return np.inf

    def contributions(self, view: View, at: At) -> Any:
        margin, edges = view.dot(at[0])[:, None], view.numbers(self.edges)
        return view.numbers((margin >= edges[:-1]) & (margin < edges[1:]))

    def probes(self, pair: Suspects, space: Space) -> Iterable[At]:
        return ((x,) for x in far_points(pair, space.point_shape))
