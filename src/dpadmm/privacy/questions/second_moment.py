"""How features go together in coordinates made from earlier releases."""

from __future__ import annotations

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
    View,
    orthogonal_reach,
    outer,
)

SECOND_MOMENT = Kind[Array]("second moment")


@QUESTIONS.register("second-moment")
@dataclass(frozen=True)
class SecondMoment(Question[Array]):
    """Σ a aᵀ, ‖a‖ ≤ 1: moved by √2 when a row is replaced, by 1 when one is added (docs/proofs/auto.md, Claim 3)."""

    name: ClassVar[str] = "second-moment"
    words: ClassVar[str] = "sum of row times row in coordinates made from earlier releases, rows scaled to length one"
    proof: ClassVar[str | None] = "docs/proofs/auto.md"
    frame: ClassVar[Frame] = "seen"

    def reach(self, relation: Relation) -> float:
        return orthogonal_reach(relation)

    def contributions(self, view: View, at: At) -> Any:
        unit = view.clipped(view.rows, 1.0)
        return outer(unit, unit)
