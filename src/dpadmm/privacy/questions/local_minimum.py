"""Where the minimiser of a node's own objective lies: what nodes of a network ask under primal perturbation."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from dpadmm.errors import QueryRefused
from dpadmm.privacy.budget import Relation
from dpadmm.privacy.questions.base import (
    QUESTIONS,
    Array,
    At,
    Kind,
    Question,
    Space,
    Suspects,
    far_points,
    require_places,
    require_point,
)

LOCAL_MINIMUM = Kind[Array]("local minimum")
ROUNDING_SHARE = 2.0**-20
"""What rounding on the way to the minimum may add to how far one row moves it, as a share of that."""


@QUESTIONS.register("local-minimum")
@dataclass(frozen=True)
class LocalMinimum(Question[Array]):
    """m·μ·(w − a): asked at (a, μ), w what gradient descent finds from a for the mean clipped loss + (μ/2)‖w − a‖².

    It is no sum over rows, so only rows that find minima answer it. But one replaced row moves it no farther than a sum
    of clipped gradients.

    Parameters
    ----------
    clip : float
        Largest norm of one row's gradient.

    Formal guarantees
    -----------------
    docs/proofs/decentralised.md, Claim 2, for replaced rows, and Claim 3 for its rounding.
    """

    clip: float

    name: ClassVar[str] = "local-minimum"
    words: ClassVar[str] = "distance of the minimum of a mean loss with public curvature added, times that and the rows"
    proof: ClassVar[str | None] = "docs/proofs/decentralised.md"

    def reach(self, relation: Relation) -> float:
        return self.clip * (1.0 + ROUNDING_SHARE)

    def accept(self, at: At, space: Space) -> float:
        if len(at) != 2:
            require_places(self, at, "a point", "a curvature")
        require_point(at[0], space)
        if not (isinstance(at[1], float) and 0 < at[1] < math.inf):
            raise QueryRefused("a local minimum is asked for with a finite positive curvature")
        return math.inf

    def probes(self, pair: Suspects, space: Space) -> Iterable[At]:
        return ((x, 1.0) for x in far_points(pair, space.point_shape))
