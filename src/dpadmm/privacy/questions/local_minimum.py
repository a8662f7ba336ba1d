"""Where the minimiser of a node's own objective lies: what nodes of a network ask under primal perturbation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dpadmm.privacy.budget import Relation
from dpadmm.privacy.questions.base import QUESTIONS, Array, Frame, Kind
from dpadmm.privacy.questions.clipped_gradient import ClippedGradient

LOCAL_MINIMUM = Kind[Array]("local minimum")
ROUNDING_SHARE = 2.0**-20
"""What rounding on the way to the minimum may add to how far one row moves it, as a share of that."""


@QUESTIONS.register("local-minimum")
@dataclass(frozen=True)
class LocalMinimum(ClippedGradient):
    """m·μ·(w − a), w what gradient descent finds from the public point a for a mean loss with curvature μ added.

    It is no sum over rows, but one row moves it as little as a sum of clipped gradients: by 2·`clip` if it is replaced.

    Formal guarantees
    -----------------
    docs/proofs/decentralised.md, Claim 2, for replaced rows, and Claim 3 for its rounding.
    """

    name: ClassVar[str] = "local-minimum"
    words: ClassVar[str] = "of a mean loss with public curvature added, times that curvature and the rows"
    proof: ClassVar[str | None] = "docs/proofs/decentralised.md"
    frame: ClassVar[Frame] = "table"
    reads_all: ClassVar[bool] = True

    def reach(self, relation: Relation) -> float:
        return self.clip * (1.0 + ROUNDING_SHARE)
