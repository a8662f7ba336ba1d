"""How features go together, as they are mapped: what graphs and whitening are learned from before training."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from dpadmm.privacy.budget import Relation
from dpadmm.privacy.questions.base import (
    QUESTIONS,
    Array,
    At,
    Kind,
    Question,
    View,
    orthogonal_reach,
    outer,
)

FEATURE_MOMENT = Kind[Array]("feature moment")


@QUESTIONS.register("feature-moment")
@dataclass(frozen=True)
class FeatureMoment(Question[Array]):
    """Σ a aᵀ for the rows as they are mapped, divided by the declared norm: ‖a‖ ≤ 1.

    Formal guarantees
    -----------------
    Moved by √2 when a row is replaced, by 1 when one is added (docs/proofs/preparation.md, Claim 1).
    """

    name: ClassVar[str] = "feature-moment"
    words: ClassVar[str] = "sum of row times row, rows divided by their declared norm"
    proof: ClassVar[str | None] = "docs/proofs/preparation.md"

    def reach(self, relation: Relation) -> float:
        return orthogonal_reach(relation)

    def contributions(self, view: View, at: At) -> Any:
        unit = view.clipped(view.rows / view.row_norm, 1.0)
        return outer(unit, unit)
