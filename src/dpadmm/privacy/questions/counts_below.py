"""How many values of each feature are at most a threshold: what private bounds are found by."""

from __future__ import annotations

import math
from collections.abc import Iterable
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
    Suspects,
    View,
    require_places,
)

QUANTILE_COUNTS = Kind[Array]("quantile counts")


@QUESTIONS.register("counts-below")
@dataclass(frozen=True)
class CountsBelow(Question[Array]):
    """Σ (1[x_j ≤ t_kj] − ½) for each feature j and threshold k: asked at (t,), answered by shares of the rows.

    Features are those of the rows as they were given.

    Formal guarantees
    -----------------
    Every entry of a contribution is ±½, so that replacing a row moves the sum by at most √(features · levels) and
    adding one by at most half of that (docs/proofs/preparation.md, Claim 2).
    """

    features: int
    levels: int

    name: ClassVar[str] = "counts-below"
    words: ClassVar[str] = "for each feature, how many values are at most a threshold made from earlier releases"
    proof: ClassVar[str | None] = "docs/proofs/preparation.md"
    may_be_cut: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not (self.features >= 1 and self.levels >= 1):
            raise InvalidParameter("counts of nothing", "at least one feature and one threshold", "ask for one")

    def reach(self, relation: Relation) -> float:
        return math.sqrt(self.features * self.levels) / 2

    def accept(self, at: At, space: Space) -> float:
        require_places(self, at, "thresholds")
        (thresholds,) = at
        if thresholds.shape != (self.levels, self.features):
            raise QueryRefused("the plan's counts are of other features or thresholds")
        if not np.isfinite(thresholds).all():
            raise QueryRefused("thresholds must be finite numbers")
        return math.inf

    def contributions(self, view: View, at: At) -> Any:
        return view.numbers(view.raw[:, None, :] <= view.numbers(at[0])) - 0.5

    def answer(self, mean: Array, space: Space) -> Array:
        return mean + 0.5

    def noised(self, answer: Array) -> Array:
        return np.asarray(answer - 0.5).ravel()

    def probes(self, pair: Suspects, space: Space) -> Iterable[At]:
        """Thresholds between the two rows, and anywhere where they agree."""
        first, second = pair.raw
        return ((np.tile((first + second) / 2, (self.levels, 1)),),)
