"""The plan of a private search: base runs, score and law of their number, certified as one before a row is read."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from dpadmm.errors import CannotCertify, InvalidParameter, PromiseBroken, shown
from dpadmm.privacy.budget import Budget
from dpadmm.privacy.calibration import AIM, LOWEST, bracketed_secant, calibrate, verify_plan
from dpadmm.privacy.plan import PROMISED, Plan, Query, Request, promised_from_dict, require_digest
from dpadmm.privacy.plan_agreement import require_agreement, require_cost
from dpadmm.privacy.proofs import citations_of, cited, status
from dpadmm.privacy.questions import SCORE, CentredScore
from dpadmm.privacy.sampling import Everything
from dpadmm.privacy.selection.bounds import profile_base, profile_epsilon, renyi_certificate
from dpadmm.privacy.selection.repetitions import Repetitions
from dpadmm.privacy.selection.search_event import Selection
from dpadmm.privacy.unit import Unit
from dpadmm.privacy.wording import rounded_up
from dpadmm.stored_json import entries, exactly, listed, reading, record

HALF = 0.5
"""Scores lie in [0, 1]; less one half, one record contributes at most this much to their sum."""

PROOFS = {"profile": "selection-profile", "rdp": "selection-renyi"}
"""The claim by which each bound certifies a search."""


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
    def unit(self) -> Unit:
        """Whose data is protected."""
        return self.score.unit

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
        """The plan that `to_dict` wrote; `FileProblem` for anything else."""
        exactly(fields, "a search plan", (*PROMISED, "repetitions", "bases", "score"), ("digest",))
        with reading("a search plan"):
            budget, n_rows, accountant, achieved, status = promised_from_dict(fields)
            repetitions = record(Repetitions, fields["repetitions"], "the law of the trials")
            bases = tuple(Plan.from_dict(base) for base in listed(fields["bases"], "the fits of a search plan"))
            score = Plan.from_dict(fields["score"])
            made = cls(budget, n_rows, repetitions, bases, score, accountant, achieved, status)
            require_digest(fields, made.digest)
            return made

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
    unit: Unit = Unit.ROW,
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
    unit : Unit
        Whose data is protected; it must be that of the plans.

    Formal guarantees
    -----------------
    The bound of docs/proofs/tuning.md, computed from the very events the plan contains, is at most `budget.epsilon`
    at `budget.delta`. All inputs are public and no row is read.
    """
    name = search_accountant(accountant)
    budget.require_meaningful(n_rows, unit)
    found: SearchPlan | None = None

    def excess(less: float) -> float:
        nonlocal found
        single = Budget(math.exp(-less), budget.delta / repetitions.mean, budget.relation)
        score = calibrate(single, [Request(SCORE, 1, CentredScore(HALF))], Everything(), n_validation, unit=unit)
        plans = (*_distinct(bases(single)), score)
        epsilon = _total(plans, repetitions, budget, name)
        if epsilon <= budget.epsilon:
            proofs = status((*cited([PROOFS[name]]), *(each for plan in plans for each in citations_of(plan))))
            found = SearchPlan(budget, n_rows, repetitions, plans[:-1], score, name, epsilon, proofs)
        return math.log(max(epsilon, 1e-12) / budget.epsilon)

    start = -math.log(budget.epsilon / (2.0 + min(repetitions.eta, 1.0)))
    ended = bracketed_secant(excess, start, math.log(LOWEST), math.log(AIM))
    if ended is None or found is None:
        raise CannotCertify(
            f"Got epsilon={rounded_up(budget.epsilon)}, delta={rounded_up(budget.delta)} for a search with "
            f"{repetitions.text} trials. Expected a budget for which a noise level is found. "
            "Use fewer trials or a larger epsilon."
        )
    return found


def search_accountant(name: str | None) -> str:
    """The bound called `name`; "profile" if none is named."""
    if name is not None and name not in PROOFS:
        raise InvalidParameter(f"accountant={shown(name)} for a search", "'profile' or 'rdp'", "choose one of these")
    return name or "profile"


def plan_from_dict(fields: dict[str, Any]) -> Plan | SearchPlan:
    """The plan of one fit, or of a search; `FileProblem` for what is neither."""
    return SearchPlan.from_dict(fields) if "repetitions" in entries(fields, "a plan") else Plan.from_dict(fields)


def verify_any_plan(plan: Plan | SearchPlan) -> float:
    """Run the accountant of a plan again; `PromiseBroken` if it states too little or contradicts itself."""
    if isinstance(plan, Plan):
        return verify_plan(plan)
    require_any_agreement(plan)
    for run in plan.runs:
        verify_plan(run)
    epsilon = _total(plan.runs, plan.repetitions, plan.budget, plan.accountant)
    require_cost(min(plan.budget.epsilon, plan.epsilon_achieved * (1.0 + 1e-6)), epsilon)
    return epsilon


def require_any_agreement(plan: Plan | SearchPlan) -> None:
    """Refuse a plan, of a fit or of a search, of which one number contradicts another. No accountant is asked."""
    if isinstance(plan, Plan):
        return require_agreement(plan)
    for run in plan.runs:
        require_agreement(run)
    wrong = next((otherwise for holds, otherwise in _claims(plan) if not holds), None)
    if wrong is not None:
        raise PromiseBroken(f"Got a search {wrong}. Expected numbers that agree. Discard the plan and calibrate again.")


def _claims(plan: SearchPlan) -> Iterator[tuple[bool, str]]:
    """What must hold of the parts of a search, and what is wrong where it does not."""
    single, total, score = plan.base_budget, plan.budget, plan.score.queries
    yield len(plan.bases) > 0, "without a fit"
    yield all(run.unit is plan.unit for run in plan.runs), "whose parts protect different units"
    scored = len(score) == 1 and type(score[0].question) is CentredScore and score[0].count == 1
    yield scored, "that does not score each fit once"
    whole = type(score[0].sampler) is Everything and score[0].question == CentredScore(HALF)
    yield whole and score[0].clip_norm == HALF, "whose scores are not as far apart as they can be"
    yield all(run.budget == single for run in plan.runs), "whose parts promise different things"
    yield single.relation is total.relation, "whose parts promise different things"
    shared = math.isclose(single.delta * plan.repetitions.mean, total.delta, rel_tol=1e-9)
    yield shared and single.epsilon <= total.epsilon, "whose parts do not fit into its budget"
    rows = {base.n_rows + plan.score.n_rows for base in plan.bases}
    yield rows == {plan.n_rows}, "whose parts do not have its rows"
    yield plan.accountant in PROOFS, "without an accountant of searches"
    yield 0 < plan.epsilon_achieved <= total.epsilon * (1.0 + 1e-12), "that says it spends more than its budget"


verify_plan.register(SearchPlan, verify_any_plan)


def _distinct(plans: tuple[Plan, ...]) -> tuple[Plan, ...]:
    return tuple({plan.digest: plan for plan in plans}.values())


def _total(runs: tuple[Plan, ...], repetitions: Repetitions, budget: Budget, accountant: str) -> float:
    if accountant == "rdp":
        return renyi_certificate([run.event for run in runs], repetitions, budget.delta, budget.relation)
    base = profile_base([(run.event, run.accountant) for run in runs], budget.relation)
    return profile_epsilon(base, repetitions, budget.delta)
