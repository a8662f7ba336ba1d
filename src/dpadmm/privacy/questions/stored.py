"""How plans write a question: as those before did, so that equal plans keep equal digests.

A question is written under "statistic" by its name and its fields. Four are older than this: a query without a
statistic asks for clipped gradients, for differences of them if it is "scalable", for scores if that is its kind, and
for hidden passes if it has a "passage".
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from dpadmm.privacy.passage import Passage
from dpadmm.privacy.questions.base import QUESTIONS, Question
from dpadmm.privacy.questions.centred_score import SCORE, CentredScore
from dpadmm.privacy.questions.clipped_gradient import ClippedGradient
from dpadmm.privacy.questions.gradient_difference import GradientDifference
from dpadmm.privacy.questions.hidden_passes import HiddenWalk
from dpadmm.stored_json import flag, reading, record, unreadable

FIELDS, POSSIBLE = ("scalable", "statistic"), ("passage",)
"""What a stored query says of its question, always and at times."""


def question_to_dict(question: Question[Any]) -> dict[str, Any]:
    """Name and fields."""
    return {"name": question.name, **asdict(question)}  # type: ignore[call-overload]


def question_from_dict(fields: dict[str, Any]) -> Question[Any]:
    """The question that `question_to_dict` wrote; `FileProblem` for anything else."""
    with reading("a statistic"):
        return record(QUESTIONS[fields["name"]], fields, "a statistic")


def written(kind: str, clip_norm: float, question: Question[Any]) -> dict[str, Any]:
    """The fields of a stored query of this kind and clip that say what it asks."""
    passage = question.passage if isinstance(question, HiddenWalk) else None
    scalable = isinstance(question, GradientDifference)
    plain = question == _plain(kind, clip_norm, scalable, passage)
    fields = {"scalable": scalable and plain, "statistic": None if plain else question_to_dict(question)}
    # Absent where there is none, so that the digests of older plans stay what they were.
    return {**fields, "passage": passage.to_dict()} if plain and passage is not None else fields


def read(kind: str, clip_norm: float, fields: dict[str, Any]) -> Question[Any]:
    """The question of a stored query."""
    scalable = flag(fields["scalable"], "what is scalable in a query")
    passage = record(Passage, fields["passage"], "a passage") if "passage" in fields else None
    if fields["statistic"] is None:
        return _plain(kind, clip_norm, scalable, passage)
    if scalable or passage is not None:
        raise unreadable("a query", "that asks two things at once")
    return question_from_dict(fields["statistic"])


def _plain(kind: str, clip_norm: float, scalable: bool, passage: Passage | None) -> Question[Any]:
    """What a query without a statistic asks."""
    if passage is not None:
        return HiddenWalk(clip_norm, passage)
    if scalable:
        return GradientDifference(clip_norm)
    return CentredScore(clip_norm) if kind == SCORE else ClippedGradient(clip_norm)
