"""What has to be true outside the library, as keys; `privacy/wording/assumption_words.py` has the words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from dpadmm.errors import InvalidParameter
from dpadmm.privacy.budget_split import STEPS
from dpadmm.privacy.plan import Query
from dpadmm.privacy.questions import CentredScore, HiddenWalk
from dpadmm.stored_json import entries, exactly, text, whole

PARAMETERS: Mapping[str, tuple[str, ...]] = {
    "declared-beforehand": (),
    "declared-but-learned": (),
    "not-selected": (),
    "noise-secret": (),
    "order-secret": (),
    "batches-secret": (),
    "final-state-only": (),
    "trials-secret": (),
    "parts-drawn-blindly": (),
    "candidates-listed-beforehand": (),
    "at-most-twice-the-rows": (),
    "classes-declared": (),
    "classes-public": (),
    "rows-public": (),
    "rows-at-one-node": (),
    "rows-treated-as-public": (),
    "rows-declared": (),
    "at-most-times-the-rows": ("times",),
    "at-least-one-row": (),
    "rows-as-declared": (),
    "ids-name-persons": (),
    "ids-complete": (),
    "persons-public": (),
    "persons-treated-as-public": (),
    "persons-declared": (),
    "at-most-times-the-persons": ("times",),
    "at-most-twice-the-persons": (),
    "at-least-one-person": (),
    "weights-public": (),
    "single-precision": (),
    "rows-equally-long": (),
    "dask-trusted": (),
    "nothing-else-learned": (),
    "network-row-by-row": (),
    "starting-weights-public": (),
    "record-continued-once": (),
    "costs-in-addition": (),
    "fixed-in-advance": (),
    "owners-collude-at-most": ("silos", "colluding", "epsilon"),
    "owners-rows-declared": (),
    "functions-row-by-row": (),
    "as-stored": ("words",),
}
"""Every assumption a statement may rest on, with the parameters of its words; "as-stored" quotes version 1."""


@dataclass(frozen=True)
class Assumption:
    """One assumption.

    Parameters
    ----------
    key : str
        One of `PARAMETERS`.
    parameters : tuple of (name, value)
        As many as the key has, in its order.
    """

    key: str
    parameters: tuple[tuple[str, int | str], ...] = ()

    def __post_init__(self) -> None:
        known = PARAMETERS.get(self.key)
        if known is None or tuple(name for name, _ in self.parameters) != known:
            raise InvalidParameter("an assumption without words", "one of those known", "name a known assumption")

    def to_dict(self) -> dict[str, Any]:
        return {"key": self.key, **dict(self.parameters)}

    @classmethod
    def from_dict(cls, fields: Any) -> Assumption:
        """The assumption that `to_dict` wrote; `FileProblem` for anything else."""
        key = text(entries(fields, "an assumption").get("key"), "the key of an assumption")
        known = PARAMETERS.get(key, ())
        exactly(fields, "an assumption", ("key", *known))
        return cls(key, tuple((name, _parameter(name, fields[name])) for name in known))


def _parameter(name: str, value: Any) -> int | str:
    return text(value, "an assumption") if name in ("words", "epsilon") else whole(value, "an assumption")


def assumed(key: str, **parameters: int | str) -> Assumption:
    """The assumption under a key."""
    return Assumption(key, tuple(parameters.items()))


def assumptions_of(given: Iterable[str | Assumption]) -> tuple[Assumption, ...]:
    """Each once, in order; a key alone stands for an assumption without parameters."""
    return tuple(dict.fromkeys(Assumption(each) if isinstance(each, str) else each for each in given))


class Planned(Protocol):
    """Any plan, of a fit or of a search."""

    @property
    def queries(self) -> tuple[Query, ...]: ...


def standing_assumptions(plan: Planned) -> tuple[Assumption, ...]:
    """What every statement on this plan rests on."""
    queries = plan.queries
    searched = any(isinstance(query.question, CentredScore) for query in queries)
    learned = searched or any(isinstance(query.question, STEPS) for query in queries)
    hidden = any(isinstance(query.question, HiddenWalk) for query in queries)
    sampled = any(query.sampler.name not in ("full", "permutation") for query in queries)
    rests_on = {
        "declared-beforehand": not learned,
        "declared-but-learned": learned,
        "not-selected": not searched,
        "noise-secret": True,
        "order-secret": hidden,
        "batches-secret": sampled,
        "final-state-only": hidden,
        "trials-secret": searched,
        "parts-drawn-blindly": searched,
        "candidates-listed-beforehand": searched,
    }
    return assumptions_of(key for key, needed in rests_on.items() if needed)
