"""The one frozen plan from which sampler, clip, noise and accounting event all derive."""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import dataclass
from typing import Any

from dpadmm.privacy.arithmetic import Arithmetic
from dpadmm.privacy.budget import Budget, Relation
from dpadmm.privacy.events import Event, Part
from dpadmm.privacy.questions import Question
from dpadmm.privacy.questions import stored as stored_questions
from dpadmm.privacy.sampling import Everything, Sampler, sampler_from_dict, sampler_to_dict
from dpadmm.privacy.unit import Unit, as_stored
from dpadmm.stored_json import exactly, listed, reading, real, text, unreadable, whole


@dataclass(frozen=True)
class Request:
    """What a solver will ask for, before any noise is chosen.

    Parameters
    ----------
    kind : str
        Name under which the solver asks, for instance "gradient".
    count : int
        How often.
    question : Question
        What is asked: what one row contributes, and how far it can move the sum.
    full_data : bool
        True if the request reads every row whatever the sampler of the fit. Some questions always do.
    relative_noise : float
        Noise multiplier relative to the other requests of the same solver: how the budget is split.
    noise_multiplier : float or None
        Noise fixed in advance, whatever the rest of the plan: calibration shares what it leaves among the others.
    """

    kind: str
    count: int
    question: Question[Any]
    full_data: bool = False
    relative_noise: float = 1.0
    noise_multiplier: float | None = None

    def drawn_by(self, usual: Sampler) -> Sampler:
        """What draws its rows where a fit usually draws them by `usual`."""
        return self.question.sampler(Everything() if self.full_data else usual)

    def noise(self, scale: float) -> float:
        """The noise multiplier at a scale of the calibration."""
        return scale * self.relative_noise if self.noise_multiplier is None else self.noise_multiplier


@dataclass(frozen=True)
class Query:
    """A request with its sampler, denominator and noise fixed.

    `clip_norm` is the reach of the question under the relation of the plan: what its noise is measured by.
    """

    kind: str
    count: int
    clip_norm: float
    sampler: Sampler
    denominator: float
    noise_multiplier: float
    question: Question[Any]

    @property
    def noise_std(self) -> float:
        """Noise standard deviation on the released mean (sum / denominator) at the full clip.

        Of a hidden pass: on the gradient of one row, before it is multiplied by the step.
        """
        return self.noise_multiplier * self.clip_norm / self.denominator

    @property
    def readings(self) -> int:
        """How often rows are read: once a query, and once a row in a hidden pass."""
        return self.count * self.question.rows_read

    @property
    def part(self) -> Part:
        return self.question.part(self.sampler, self.noise_multiplier, self.count)


@dataclass(frozen=True)
class Plan:
    """Everything that will be asked of the data, certified before a row is read.

    `epsilon_achieved` is what the accountant certifies for `event`; it never exceeds `budget.epsilon`. `arithmetic`
    says how sums and noise are computed. `unit` says whose data is protected, and `n_rows` is the number of these: of
    rows, or of persons where a person may have several rows.
    """

    budget: Budget
    n_rows: int
    queries: tuple[Query, ...]
    accountant: str
    epsilon_achieved: float
    proof_status: str
    arithmetic: Arithmetic = Arithmetic.GRANULAR
    unit: Unit = Unit.ROW

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
            **as_stored(self.unit),
            "queries": [_query_to_dict(query) for query in self.queries],
        }

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> Plan:
        """The plan that `to_dict` wrote; `FileProblem` for anything else."""
        exactly(fields, "a plan", (*PROMISED, "queries"), ("arithmetic", "unit", "digest"))
        with reading("a plan"):
            budget, n_rows, accountant, achieved, status = promised_from_dict(fields)
            queries = tuple(_query_from_dict(query) for query in listed(fields["queries"], "the queries of a plan"))
            arithmetic = Arithmetic(text(fields.get("arithmetic", Arithmetic.FLOATING), "the arithmetic of a plan"))
            unit = Unit.parse(text(fields.get("unit", Unit.ROW), "the unit of a plan"))
            made = cls(budget, n_rows, queries, accountant, achieved, status, arithmetic, unit)
            require_digest(fields, made.digest)
            return made

    @property
    def digest(self) -> str:
        """SHA-256 of the canonical JSON; equal plans have equal digests."""
        return hashlib.sha256(json.dumps(self.to_dict(), sort_keys=True).encode()).hexdigest()


PROMISED = ("epsilon", "delta", "relation", "n_rows", "accountant", "epsilon_achieved", "proof_status")
"""What plans of fits and of searches both store."""


QUERY = (
    "kind",
    "count",
    "clip_norm",
    "sampler",
    "denominator",
    "noise_multiplier",
    "noise_std",
    *stored_questions.FIELDS,
)


def promised_from_dict(fields: dict[str, Any]) -> tuple[Budget, int, str, float, str]:
    """Budget, rows, accountant, ε achieved and proof status of a stored plan."""
    real(fields["epsilon"], "the epsilon of a plan"), real(fields["delta"], "the delta of a plan")
    return (
        Budget(fields["epsilon"], fields["delta"], Relation.parse(text(fields["relation"], "the relation of a plan"))),
        whole(fields["n_rows"], "the number of rows of a plan"),
        text(fields["accountant"], "the accountant of a plan"),
        real(fields["epsilon_achieved"], "the certified epsilon of a plan"),
        text(fields["proof_status"], "the proof status of a plan"),
    )


def require_digest(fields: dict[str, Any], digest: str) -> None:
    """Refuse a stored plan with the digest of another; the plan of a report has one, that of a model has none."""
    if fields.get("digest", digest) != digest:
        raise unreadable("a plan", "with the digest of another")


def _query_to_dict(query: Query) -> dict[str, Any]:
    return {
        "kind": query.kind,
        "count": query.count,
        "clip_norm": query.clip_norm,
        "sampler": sampler_to_dict(query.sampler),
        "denominator": query.denominator,
        "noise_multiplier": query.noise_multiplier,
        "noise_std": query.noise_std,
        **stored_questions.written(query.kind, query.clip_norm, query.question),
    }


def _query_from_dict(fields: dict[str, Any]) -> Query:
    exactly(fields, "a query", QUERY, stored_questions.POSSIBLE)
    kind, clip_norm = text(fields["kind"], "the kind of a query"), real(fields["clip_norm"], "the clip of a query")
    made = Query(
        kind,
        whole(fields["count"], "the count of a query"),
        clip_norm,
        sampler_from_dict(fields["sampler"]),
        real(fields["denominator"], "the denominator of a query"),
        real(fields["noise_multiplier"], "the noise of a query"),
        stored_questions.read(kind, clip_norm, fields),
    )
    if not math.isclose(real(fields["noise_std"], "the noise of a query"), made.noise_std, rel_tol=1e-9):
        raise unreadable("a query", "whose noise on the mean is not that on its sum over its denominator")
    return made
