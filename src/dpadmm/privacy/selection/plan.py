"""The plan of a private search: base runs, score and law of their number, certified as one before a row is read."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dpadmm.errors import CannotCertify, InvalidParameter, PromiseBroken
from dpadmm.privacy.budget import Budget, Relation
from dpadmm.privacy.calibration import AIM, LOWEST, bracketed_secant, calibrate, verify_plan
from dpadmm.privacy.plan import Plan, Query, Request
from dpadmm.privacy.proofs import said_once
from dpadmm.privacy.sampling import Everything
from dpadmm.privacy.selection.bounds import profile_base, profile_epsilon, renyi_certificate
from dpadmm.privacy.selection.event import Selection
from dpadmm.privacy.selection.repetitions import Repetitions
from dpadmm.privacy.wording import rounded_down, rounded_up

HALF = 0.5
"""Scores lie in [0, 1]; less one half, one record contributes at most this much to their sum."""

PROOFS = {
    "profile": "proved here (docs/proofs/tuning.md; compare Koskela, Redberg & Wang 2024)",
    "rdp": "proved (Papernot & Steinke 2022, Thms 2 and 6; docs/proofs/tuning.md)",
}


@dataclass(frozen=True)
class SearchPlan:
    """Everything a search may ask of the data, and what all of it costs together.

    Parameters
    ----------
    budget : Budget
        The total.
    n_rows : int
        Public number of rows, of both parts together.
    repetitions : Repetitions
        Law of the secret number of trials.
    bases : tuple of Plan
        The different plans of one fit; candidates that ask the same queries share one.
    score : Plan
        The one noisy score of a trial, on rows that no fit of the search reads.
    accountant : {"profile", "rdp"}
        Which bound certifies the total.
    epsilon_achieved, proof_status
        Of the total.
    """

    budget: Budget
    n_rows: int
    repetitions: Repetitions
    bases: tuple[Plan, ...]
    score: Plan
    accountant: str
    epsilon_achieved: float
    proof_status: str

    @property
    def runs(self) -> tuple[Plan, ...]:
        """What one trial can do to one record: a fit, or the score."""
        return (*self.bases, self.score)

    @property
    def base_budget(self) -> Budget:
        """What each single run promises."""
        return self.score.budget

    @property
    def event(self) -> Selection:
        return Selection(tuple(run.event for run in self.runs), self.repetitions)

    @property
    def queries(self) -> tuple[Query, ...]:
        """Every query of a trial, of whichever candidate."""
        return tuple(query for run in self.runs for query in run.queries)

    def to_dict(self) -> dict[str, Any]:
        return {
            "epsilon": self.budget.epsilon,
            "delta": self.budget.delta,
            "relation": str(self.budget.relation),
            "n_rows": self.n_rows,
            "accountant": self.accountant,
            "epsilon_achieved": self.epsilon_achieved,
            "proof_status": self.proof_status,
            "repetitions": self.repetitions.to_dict(),
            "bases": [plan.to_dict() for plan in self.bases],
            "score": self.score.to_dict(),
        }

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> SearchPlan:
        return cls(
            Budget(fields["epsilon"], fields["delta"], Relation.parse(fields["relation"])),
            int(fields["n_rows"]),
            Repetitions(**fields["repetitions"]),
            tuple(Plan.from_dict(base) for base in fields["bases"]),
            Plan.from_dict(fields["score"]),
            fields["accountant"],
            float(fields["epsilon_achieved"]),
            fields["proof_status"],
        )

    @property
    def digest(self) -> str:
        """SHA-256 of the canonical JSON."""
        return hashlib.sha256(json.dumps(self.to_dict(), sort_keys=True).encode()).hexdigest()


def calibrate_search(
    budget: Budget,
    repetitions: Repetitions,
    bases: Callable[[Budget], tuple[Plan, ...]],
    n_rows: int,
    n_validation: int,
    accountant: str | None = None,
) -> SearchPlan:
    """The search plan with the least noise whose total keeps to the budget.

    Parameters
    ----------
    budget : Budget
        The total of the whole search.
    repetitions : Repetitions
        Law of the number of trials.
    bases : callable
        The plans of all candidates under a given budget of one fit.
    n_rows, n_validation : int
        Public numbers of all rows, and of those that score.
    accountant : {"profile", "rdp"}, optional
        "profile", the tighter one, takes every solver that has an accountant; "rdp" those with a Rényi bound.

    Formal guarantees
    -----------------
    The bound of docs/proofs/tuning.md, computed from the very events the plan contains, is at most `budget.epsilon`
    at `budget.delta`. All inputs are public and no row is read.
    """
    name = search_accountant(accountant)
    budget.require_meaningful(n_rows)
    found: SearchPlan | None = None

    def excess(less: float) -> float:
        nonlocal found
        single = Budget(math.exp(-less), budget.delta / repetitions.mean, budget.relation)
        score = calibrate(single, [Request("score", 1, HALF)], Everything(), n_validation)
        plans = (*_distinct(bases(single)), score)
        epsilon = _total(plans, repetitions, budget, name)
        if epsilon <= budget.epsilon:
            status = said_once([PROOFS[name], *(plan.proof_status for plan in plans)])
            found = SearchPlan(budget, n_rows, repetitions, plans[:-1], score, name, epsilon, status)
        return math.log(max(epsilon, 1e-12) / budget.epsilon)

    start = -math.log(budget.epsilon / (2.0 + min(repetitions.eta, 1.0)))
    ended = bracketed_secant(excess, start, math.log(LOWEST), math.log(AIM))
    if ended is None or found is None:
        raise CannotCertify(
            f"given epsilon={rounded_up(budget.epsilon)}, delta={rounded_up(budget.delta)} for a search with "
            f"{repetitions.text} trials; expected a noise level that certifies it; use fewer trials or a larger epsilon"
        )
    return found


def search_accountant(name: str | None) -> str:
    """The bound called `name`; "profile" if none is named."""
    if name is not None and name not in PROOFS:
        raise InvalidParameter(f"accountant={name!r} for a search", "'profile' or 'rdp'", "choose one of these")
    return name or "profile"


def plan_from_dict(fields: dict[str, Any]) -> Plan | SearchPlan:
    """The plan of one fit, or of a search."""
    return SearchPlan.from_dict(fields) if "repetitions" in fields else Plan.from_dict(fields)


def verify_any_plan(plan: Plan | SearchPlan) -> float:
    """Run the accountant of a plan again, from scratch; `PromiseBroken` if it states too little."""
    if isinstance(plan, Plan):
        return verify_plan(plan)
    for run in plan.runs:
        verify_plan(run)
    score = plan.score.queries
    whole = len(score) == 1 and type(score[0].sampler) is Everything and score[0].clip_norm >= HALF
    one_relation = all(run.budget.relation is plan.budget.relation for run in plan.runs)
    epsilon = _total(plan.runs, plan.repetitions, plan.budget, plan.accountant)
    stated = min(plan.budget.epsilon, plan.epsilon_achieved * (1.0 + 1e-6))
    if not (plan.bases and whole and one_relation and epsilon <= stated):
        raise PromiseBroken(
            f"given a search stating epsilon {rounded_down(stated)} that costs {rounded_up(epsilon)}; expected no more "
            "than stated; discard the plan and calibrate again"
        )
    return epsilon


verify_plan.register(SearchPlan, verify_any_plan)


def _distinct(plans: tuple[Plan, ...]) -> tuple[Plan, ...]:
    return tuple({plan.digest: plan for plan in plans}.values())


def _total(runs: tuple[Plan, ...], repetitions: Repetitions, budget: Budget, accountant: str) -> float:
    if accountant == "rdp":
        return renyi_certificate([run.event for run in runs], repetitions, budget.delta, budget.relation)
    base = profile_base([(run.event, run.accountant) for run in runs], budget.relation)
    return profile_epsilon(base, repetitions, budget.delta)
