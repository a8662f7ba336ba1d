"""The one frozen plan from which sampler, clip, noise and accounting event all derive."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any

from dpadmm.privacy.arithmetic import Arithmetic
from dpadmm.privacy.budget import Budget, Relation
from dpadmm.privacy.events import Event, GaussianSums, HiddenPasses, Part
from dpadmm.privacy.passage import Passage
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
    passage : Passage or None
        Of a hidden pass over all rows, one noisy step a row: the public numbers of its accounting.
    """

    kind: str
    count: int
    clip_norm: float
    full_data: bool = False
    relative_noise: float = 1.0
    scalable: bool = False
    statistic: Statistic | None = None
    noise_multiplier: float | None = None
    passage: Passage | None = None

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
    passage: Passage | None = None

    @property
    def noise_std(self) -> float:
        """Noise standard deviation on the released mean (sum / denominator) at the full clip.

        Of a hidden pass: on the gradient of one row, before it is multiplied by the step.
        """
        return self.noise_multiplier * self.clip_norm / self.denominator

    @property
    def readings(self) -> int:
        """How often rows are read: once a query, and once a row in a hidden pass."""
        return self.count * (1 if self.passage is None else self.passage.n_rows)

    @property
    def part(self) -> Part:
        if self.passage is not None:
            return HiddenPasses(self.passage, self.noise_multiplier, self.count)
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
            "queries": [_query_to_dict(query) for query in self.queries],
        }

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> Plan:
        queries = tuple(_query_from_dict(query) for query in fields["queries"])
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


def _query_to_dict(query: Query) -> dict[str, Any]:
    described = {
        "kind": query.kind,
        "count": query.count,
        "clip_norm": query.clip_norm,
        "sampler": sampler_to_dict(query.sampler),
        "denominator": query.denominator,
        "noise_multiplier": query.noise_multiplier,
        "noise_std": query.noise_std,
        "scalable": query.scalable,
        "statistic": statistic_to_dict(query.statistic),
    }
    # Absent where there is none, so that the digests of older plans stay what they were.
    return described if query.passage is None else {**described, "passage": query.passage.to_dict()}


def _query_from_dict(fields: dict[str, Any]) -> Query:
    return Query(
        fields["kind"],
        int(fields["count"]),
        float(fields["clip_norm"]),
        sampler_from_dict(fields["sampler"]),
        float(fields["denominator"]),
        float(fields["noise_multiplier"]),
        bool(fields["scalable"]),
        statistic_from_dict(fields["statistic"]),
        Passage(**fields["passage"]) if "passage" in fields else None,
    )
