"""What a mechanism does to the data, in the words an accountant needs, and nothing more."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dpadmm.privacy.sampling import Everything, Sampler, sampler_from_dict, sampler_to_dict


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
class Event:
    """Adaptive composition of its parts, in any order."""

    parts: tuple[GaussianSums, ...]

    @property
    def full_batch(self) -> bool:
        return all(isinstance(part.sampler, Everything) for part in self.parts)

    def to_dict(self) -> list[dict[str, Any]]:
        return [
            {"sampler": sampler_to_dict(p.sampler), "noise_multiplier": p.noise_multiplier, "count": p.count}
            for p in self.parts
        ]

    @classmethod
    def from_dict(cls, parts: list[dict[str, Any]]) -> Event:
        return cls(
            tuple(
                GaussianSums(sampler_from_dict(p["sampler"]), float(p["noise_multiplier"]), int(p["count"]))
                for p in parts
            )
        )
