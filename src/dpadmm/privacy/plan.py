"""The one frozen plan from which sampler, clip, noise and accounting event all derive."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any

from dpadmm.privacy.arithmetic import Arithmetic
from dpadmm.privacy.budget import Budget, Relation
from dpadmm.privacy.events import Event, GaussianSums
from dpadmm.privacy.sampling import Sampler, sampler_from_dict, sampler_to_dict
from dpadmm.privacy.statistics import Statistic, statistic_from_dict, statistic_to_dict


@dataclass(frozen=True)
class Request:
    """What a solver will ask for, before any noise is chosen.

    Parameters
    ----------
    kind : str
        Name under which the solver asks: "gradient", "snapshot" or "difference".
    count : int
        How often.
    clip_norm : float
        Largest norm of one record's contribution; for a `statistic` calibration replaces it by its reach.
    full_data : bool
        True if the request reads every row whatever the sampler of the fit.
    relative_noise : float
        Noise multiplier relative to the other requests of the same solver: how the budget is split.
    scalable : bool
        True if the solver may pass a smaller public clip at each query; the noise shrinks with it, so that the
        noise multiplier, and hence the event, stays the same.
    statistic : Statistic or None
        What is summed, if not clipped gradients.
    noise_multiplier : float or None
        Noise fixed in advance, whatever the rest of the plan: calibration shares what it leaves among the others.
    """

    kind: str
    count: int
    clip_norm: float
    full_data: bool = False
    relative_noise: float = 1.0
    scalable: bool = False
    statistic: Statistic | None = None
    noise_multiplier: float | None = None

    def noise(self, scale: float) -> float:
        """The noise multiplier at a scale of the calibration."""
        return scale * self.relative_noise if self.noise_multiplier is None else self.noise_multiplier


@dataclass(frozen=True)
class Query:
    """A request with its sampler, denominator and noise fixed."""

    kind: str
    count: int
    clip_norm: float
    sampler: Sampler
    denominator: float
    noise_multiplier: float
    scalable: bool = False
    statistic: Statistic | None = None

    @property
    def noise_std(self) -> float:
        """Noise standard deviation on the released mean (sum / denominator) at the full clip."""
        return self.noise_multiplier * self.clip_norm / self.denominator

    @property
    def part(self) -> GaussianSums:
        return GaussianSums(self.sampler, self.noise_multiplier, self.count)


@dataclass(frozen=True)
class Plan:
    """Everything that will be asked of the data, certified before a row is read.

    `epsilon_achieved` is what the accountant certifies for `event`; it never exceeds `budget.epsilon`. `arithmetic`
    says how sums and noise are computed.
    """

    budget: Budget
    n_rows: int
    queries: tuple[Query, ...]
    accountant: str
    epsilon_achieved: float
    proof_status: str
    arithmetic: Arithmetic = Arithmetic.GRANULAR

    @property
    def event(self) -> Event:
        return Event(tuple(query.part for query in self.queries))

    @property
    def steps(self) -> int:
        return sum(query.count for query in self.queries)

    def query(self, kind: str) -> Query | None:
        return next((query for query in self.queries if query.kind == kind), None)

    def to_dict(self) -> dict[str, Any]:
        return {
            "epsilon": self.budget.epsilon,
            "delta": self.budget.delta,
            "relation": str(self.budget.relation),
            "n_rows": self.n_rows,
            "accountant": self.accountant,
            "epsilon_achieved": self.epsilon_achieved,
            "proof_status": self.proof_status,
            # Plans of earlier versions have no such field; without it they keep their digests.
            **({} if self.arithmetic is Arithmetic.FLOATING else {"arithmetic": str(self.arithmetic)}),
            "queries": [
                {
                    "kind": q.kind,
                    "count": q.count,
                    "clip_norm": q.clip_norm,
                    "sampler": sampler_to_dict(q.sampler),
                    "denominator": q.denominator,
                    "noise_multiplier": q.noise_multiplier,
                    "noise_std": q.noise_std,
                    "scalable": q.scalable,
                    "statistic": statistic_to_dict(q.statistic),
                }
                for q in self.queries
            ],
        }

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> Plan:
        queries = tuple(
            Query(
                q["kind"],
                int(q["count"]),
                float(q["clip_norm"]),
                sampler_from_dict(q["sampler"]),
                float(q["denominator"]),
                float(q["noise_multiplier"]),
                bool(q["scalable"]),
                statistic_from_dict(q["statistic"]),
            )
            for q in fields["queries"]
        )
        budget = Budget(fields["epsilon"], fields["delta"], Relation.parse(fields["relation"]))
        return cls(
            budget,
            int(fields["n_rows"]),
            queries,
            fields["accountant"],
            float(fields["epsilon_achieved"]),
            fields["proof_status"],
            Arithmetic(fields.get("arithmetic", Arithmetic.FLOATING)),
        )

    @property
    def digest(self) -> str:
        """SHA-256 of the canonical JSON; equal plans have equal digests."""
        return hashlib.sha256(json.dumps(self.to_dict(), sort_keys=True).encode()).hexdigest()
