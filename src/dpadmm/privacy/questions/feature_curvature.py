"""How curved the loss is along each feature, at a released point and with public weights."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product
from typing import Any, ClassVar

import numpy as np

from dpadmm.errors import QueryRefused
from dpadmm.privacy.budget import Relation
from dpadmm.privacy.questions.base import (
    LARGEST_SQUARE,
    QUESTIONS,
    SATURATED,
    Array,
    At,
    Kind,
    Question,
    Space,
    Suspects,
    View,
    far_points,
    orthogonal_reach,
    require_places,
)

CURVATURE = Kind[Array]("curvature")


@QUESTIONS.register("feature-curvature")
@dataclass(frozen=True)
class FeatureCurvature(Question[Array]):
    """Σ c, c = l''(⟨a, x⟩) · weights∘a∘a scaled down to ‖c‖ ≤ 1: asked at (x, weights), weights ≥ 0.

    Rows and x are in the coordinates of the table, whatever those of the gradients are by now.

    Formal guarantees
    -----------------
    No entry of c is negative, so that two of them are at most √2 apart: moved by √2 when a row is replaced, by 1 when
    one is added (docs/proofs/auto.md, Claim 6).
    """

    name: ClassVar[str] = "feature-curvature"
    words: ClassVar[str] = (
        "sum of row squared entrywise times the curvature of its loss, at a point and with weights made from earlier "
        "releases, scaled down to length one"
    )
    proof: ClassVar[str | None] = "docs/proofs/auto.md"
    may_be_cut: ClassVar[bool] = True

    def reach(self, relation: Relation) -> float:
        return orthogonal_reach(relation)

    def accept(self, at: At, space: Space) -> float:
        require_places(self, at, "a point", "weights")
        x, weights = at
        if not x.shape == weights.shape == space.point_shape == (space.n_features,):
            raise QueryRefused("a curvature is asked for at one coefficient and with one weight a feature")
        # NaN and infinity fail the comparisons too.
        if not (np.vdot(x, x) <= LARGEST_SQUARE and np.all((weights >= 0) & (weights < math.inf))):
            raise QueryRefused("a curvature is asked for at a finite point, with finite weights of at least zero")
        return math.inf

    def contributions(self, view: View, at: At) -> Any:
        x, weights = at
        return view.curvatures(x)[:, None] * (view.numbers(weights) * view.rows**2)

    def probes(self, pair: Suspects, space: Space) -> Iterable[At]:
        """Weights so large that both rows are scaled down, on features in which they differ, or one is longer."""
        first, second = (row**2 for row in pair.mapped)
        large = SATURATED / max(float(np.linalg.norm(first)), float(np.linalg.norm(second)))
        chosen = [large * longer.astype(float) for longer in (first != second, first > second, second > first)]
        return product(far_points(pair, space.point_shape), chosen)
