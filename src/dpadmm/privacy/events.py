"""What a mechanism does to the data, in the words an accountant needs, and nothing more."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dpadmm.privacy.passage import Passage
from dpadmm.privacy.sampling import Everything, Permutation, Sampler, sampler_from_dict, sampler_to_dict
from dpadmm.stored_json import exactly, listed, real, record, whole


@dataclass(frozen=True)
class GaussianSums:
    """`count` adaptive releases of Σ_{i∈batch} g_i + N(0, z²C²I), ‖g_i‖ ≤ C, a fresh batch each time.

    Parameters
    ----------
    sampler : Sampler
        Draws the batch.
    noise_multiplier : float
        z = (noise standard deviation on the sum) / (largest norm C of ONE record's contribution). It does not
        depend on the relation: an accountant multiplies by `Relation.record_distance` itself.
    count : int
        Number of releases.
    """

    sampler: Sampler
    noise_multiplier: float
    count: int = 1


@dataclass(frozen=True)
class HiddenPasses:
    """`count` passes of noisy gradient ADMM, each over all rows in a fresh secret order, seen at its end only.

    Parameters
    ----------
    passage : Passage
        The public numbers of a pass.
    noise_multiplier : float
        z = (standard deviation of the noise on x after each row) / (step size · largest norm C of ONE row's gradient).
        As in `GaussianSums` it does not depend on the relation.
    count : int
        Number of passes, composed as if the state after each of them were released.
    """

    passage: Passage
    noise_multiplier: float
    count: int = 1

    @property
    def sampler(self) -> Permutation:
        return Permutation(self.passage.n_rows)


Part = GaussianSums | HiddenPasses


@dataclass(frozen=True)
class Event:
    """Adaptive composition of its parts, in any order."""

    parts: tuple[Part, ...]

    @property
    def full_batch(self) -> bool:
        return all(isinstance(part.sampler, Everything) for part in self.parts)

    @property
    def hidden(self) -> bool:
        """Whether some of its randomness is that of states nobody sees."""
        return any(isinstance(part, HiddenPasses) for part in self.parts)

    def to_dict(self) -> list[dict[str, Any]]:
        return [_part_to_dict(part) for part in self.parts]

    @classmethod
    def from_dict(cls, parts: list[dict[str, Any]]) -> Event:
        return cls(tuple(_part_from_dict(part) for part in listed(parts, "an event")))


def _part_to_dict(part: Part) -> dict[str, Any]:
    rest = {"noise_multiplier": part.noise_multiplier, "count": part.count}
    if isinstance(part, HiddenPasses):
        return {"passage": part.passage.to_dict(), **rest}
    return {"sampler": sampler_to_dict(part.sampler), **rest}


def _part_from_dict(fields: dict[str, Any]) -> Part:
    hidden = isinstance(fields, dict) and "passage" in fields
    exactly(fields, "a part of an event", ("noise_multiplier", "count", "passage" if hidden else "sampler"))
    noise = real(fields["noise_multiplier"], "the noise of an event")
    count = whole(fields["count"], "the count of an event", least=0)
    if hidden:
        return HiddenPasses(record(Passage, fields["passage"], "a passage"), noise, count)
    return GaussianSums(sampler_from_dict(fields["sampler"]), noise, count)
