"""The privacy statement of a search: the law of the trials, what one trial does, and the total."""

from __future__ import annotations

from dpadmm.privacy.arithmetic import weakest
from dpadmm.privacy.outlook import outlook
from dpadmm.privacy.plan import Plan
from dpadmm.privacy.selection.plan import SearchPlan
from dpadmm.privacy.statement import PrivacyStatement, arithmetic_words, describe, standing_assumptions
from dpadmm.privacy.wording import SAFE, Sides

SECRET = (
    "the number of trials stays secret, and so does the time the search took: with them the model would tell more",
    "which rows train and which score was decided without looking at them",
    "the candidates were listed without looking at these rows",
)


def search_statement(
    plan: SearchPlan,
    solver: str,
    candidates: int,
    assumptions: tuple[str, ...],
    seeded: bool,
    sides: Sides = SAFE,
) -> PrivacyStatement:
    """What a search promises; `solver` is that of the winner."""
    arithmetic = weakest(run.arithmetic for run in plan.runs)
    return PrivacyStatement(
        epsilon=plan.budget.epsilon,
        delta=plan.budget.delta,
        relation=str(plan.budget.relation),
        epsilon_achieved=plan.epsilon_achieved,
        unit="one row of the table",
        mechanisms=(_law(plan, candidates, sides), *(_fit(base, sides) for base in plan.bases), _score(plan, sides)),
        accountant=plan.accountant,
        proof_status=plan.proof_status,
        assumptions=(*standing_assumptions(plan), *SECRET, *assumptions),
        seeded=seeded,
        solver=solver,
        plan_digest=plan.digest,
        arithmetic=arithmetic_words(arithmetic, plan.queries),
        arithmetic_name=str(arithmetic),
        outlook=outlook(plan.base_budget, plan.bases[0].n_rows, sides),
    )


def stated_candidates(statement: PrivacyStatement) -> int:
    """How many candidates a statement speaks of; 0 if it does not."""
    law = " ".join(statement.mechanisms[:1])
    number = law.removeprefix("a private search over ").split(" candidate")[0]
    return int(number) if number.isdecimal() else 0


def _law(plan: SearchPlan, candidates: int, sides: Sides) -> str:
    single = plan.base_budget
    each = f"({sides.up(single.epsilon, 4)}, {sides.up(single.delta, 4)})-private by itself"
    text = (
        f"a private search over {candidates} candidate{'s' if candidates > 1 else ''}: a secret number of trials "
        f"({plan.repetitions.text}), each with a candidate drawn at random and each {each}; "
        "only the trial with the best noisy score is released, with that score"
    )
    none = (
        f"there is none, with probability {plan.repetitions.nothing:.2g}, or " if plan.repetitions.nothing > 0 else ""
    )
    return f"{text}; where {none}every trial fails, a public default is released"


def _fit(plan: Plan, sides: Sides) -> str:
    """A fit that a trial may make."""
    distance = plan.budget.relation.record_distance
    asked = ", and ".join(describe(query, distance, sides=sides) for query in plan.queries)
    return f"in a trial a fit on {plan.n_rows} training rows: {asked}"


def _score(plan: SearchPlan, sides: Sides) -> str:
    query = plan.score.queries[0]
    return f"in a trial a score on {plan.score.n_rows} other rows, centred: {describe(query, sides=sides)}"
