"""The facts a plan implies, and where a stored statement says otherwise."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from dpadmm._version import __version__
from dpadmm.privacy.arithmetic import Arithmetic, weakest
from dpadmm.privacy.assumptions import Assumption, assumptions_of, standing_assumptions
from dpadmm.privacy.budget_split import split_of
from dpadmm.privacy.facts import (
    Facts,
    Outlook,
    QueryFacts,
    RunFacts,
    SearchFacts,
    Share,
)
from dpadmm.privacy.outlook import outlook
from dpadmm.privacy.plan import Plan, Query
from dpadmm.privacy.proofs import claims_of
from dpadmm.privacy.questions import HiddenWalk
from dpadmm.privacy.selection.search_plan import PROOFS, SearchPlan
from dpadmm.privacy.unit import Protected

IMPLIED = (
    *("subject", "epsilon", "delta", "relation", "epsilon_achieved", "accountant", "proofs", "unit", "plan_digest"),
    *("arithmetic", "queries", "search", "split", "outlook"),
)
"""What the statement of a model says because its plan does."""
CLOSE = 1e-6
"""Relative; of shares and signals, which a special function gives in other last digits elsewhere."""


def facts_of(
    plan: Plan | SearchPlan,
    solver: str,
    assumptions: Iterable[str | Assumption] = (),
    seeded: bool = False,
    subject: str = "model",
    candidates: int = 0,
) -> Facts:
    """What is to be stated of a release by this plan; `candidates` are those of a search."""
    runs = plan.runs if isinstance(plan, SearchPlan) else (plan,)
    return Facts(
        subject=subject,
        epsilon=plan.budget.epsilon,
        delta=plan.budget.delta,
        relation=str(plan.budget.relation),
        epsilon_achieved=plan.epsilon_achieved,
        accountant=plan.accountant,
        proofs=claims_of(runs, () if isinstance(plan, Plan) else (PROOFS[plan.accountant],)),
        unit=Protected(plan.unit, plan.n_rows),
        solvers=(solver,),
        seeded=seeded,
        plan_digest=plan.digest,
        library_version=__version__,
        arithmetic=str(weakest(run.arithmetic for run in runs)),
        queries=queries_of(plan) if isinstance(plan, Plan) else (),
        assumptions=assumptions_of((*standing_assumptions(plan), *assumptions)),
        search=None if isinstance(plan, Plan) else _search(plan, candidates),
        split=tuple(Share(part.name, part.share) for part in split_of(plan)) if isinstance(plan, Plan) else (),
        outlook=outlook(runs[0].budget, runs[0].n_rows),
    )


def queries_of(plan: Plan) -> tuple[QueryFacts, ...]:
    """What a fit asks of the rows."""
    return tuple(query_facts(query, plan) for query in plan.queries)


def query_facts(query: Query, plan: Plan) -> QueryFacts:
    """One query of a plan."""
    return QueryFacts(
        kind=query.kind,
        question=query.question.name,
        count=query.count,
        sampler=query.sampler.name,
        expected=query.denominator,
        clip=query.clip_norm,
        moves=plan.budget.relation.record_distance * query.clip_norm,
        multiplier=query.noise_multiplier,
        discrete=plan.arithmetic is Arithmetic.EXACT,
        rounding=_rounding(query),
    )


def contradictions(facts: Facts, plan: Plan | SearchPlan) -> tuple[str, ...]:
    """Names of what the statement of a model says otherwise than its plan.

    The plan must agree with itself (`require_any_agreement`). Assumptions may be more than follow from it, not fewer.
    How many candidates a search had is no part of its plan, and is taken as stated.
    """
    stated = facts.search.candidates if facts.search is not None else 0
    implied = facts_of(plan, "", candidates=stated)
    wrong = [name for name in IMPLIED if not _agree(getattr(facts, name), getattr(implied, name))]
    if not set(implied.assumptions) <= set(facts.assumptions):
        wrong.append("assumptions")
    return tuple(wrong)


def restated(facts: Facts, plan: Plan | SearchPlan) -> Facts:
    """The same release as if by another plan."""
    stated = facts.search.candidates if facts.search is not None else 0
    implied = facts_of(plan, "", candidates=stated)
    return replace(facts, **{name: getattr(implied, name) for name in (*IMPLIED, "assumptions")})


def _rounding(query: Query) -> float | None:
    """Of hidden passes alone."""
    if not isinstance(query.question, HiddenWalk):
        return None
    return query.question.passage.rounding_of(query.noise_multiplier)


def _search(plan: SearchPlan, candidates: int) -> SearchFacts:
    single = plan.base_budget
    fits = tuple(RunFacts(base.n_rows, queries_of(base)) for base in plan.bases)
    score = RunFacts(plan.score.n_rows, queries_of(plan.score))
    return SearchFacts(candidates, single.epsilon, single.delta, plan.repetitions, fits, score)


def _agree(stated: Any, implied: Any) -> bool:
    """Equal, but for the last digits of shares and signals."""
    if isinstance(stated, tuple) and isinstance(implied, tuple):
        return len(stated) == len(implied) and all(map(_agree, stated, implied))
    if isinstance(stated, Share) and isinstance(implied, Share):
        close = math.isclose(stated.share, implied.share, rel_tol=CLOSE, abs_tol=CLOSE)
        return stated.step == implied.step and close
    if isinstance(stated, Outlook) and isinstance(implied, Outlook):
        return stated.least == implied.least and math.isclose(stated.signal, implied.signal, rel_tol=CLOSE)
    return bool(stated == implied)
