"""Passes that visit every row in a secret order and add noise at every visit; only the last state is seen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dpadmm.errors import QueryRefused
from dpadmm.privacy.budget import Relation
from dpadmm.privacy.events import HiddenPasses, Part
from dpadmm.privacy.passage import Passage
from dpadmm.privacy.questions.base import QUESTIONS, Array, At, Question, Space
from dpadmm.privacy.sampling import Permutation, Sampler


@QUESTIONS.register("hidden-passes")
@dataclass(frozen=True)
class HiddenWalk(Question[tuple[Array, Array]]):
    """(x, λ) after all planned passes of one program, each row's gradient clipped (docs/proofs/iteration.md).

    It is no sum: an oracle walks all passes in one call, and no state between them outlives it.

    Parameters
    ----------
    clip : float
        Largest norm of one row's gradient.
    passage : Passage
        The public numbers of a pass.
    """

    clip: float
    passage: Passage

    name: ClassVar[str] = "hidden-passes"
    walks: ClassVar[bool] = True

    def reach(self, relation: Relation) -> float:
        return self.clip

    def accept(self, at: At, space: Space) -> float:
        raise QueryRefused("hidden passes are walked all at once, and never asked for one by one")

    def sampler(self, usual: Sampler) -> Sampler:
        return Permutation(self.passage.n_rows)

    def part(self, sampler: Sampler, noise_multiplier: float, count: int) -> Part:
        return HiddenPasses(self.passage, noise_multiplier, count)

    @property
    def rows_read(self) -> int:
        return self.passage.n_rows
