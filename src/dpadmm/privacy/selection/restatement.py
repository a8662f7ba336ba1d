"""What a stored statement must say, because its plan does: the library says it again, and compares."""

from __future__ import annotations

from dpadmm.privacy.plan import Plan
from dpadmm.privacy.selection.plan import SearchPlan
from dpadmm.privacy.selection.statement import search_statement, stated_candidates
from dpadmm.privacy.statement import PrivacyStatement
from dpadmm.privacy.wording import EARLIER, SAFE, Sides

DERIVED = (
    *("epsilon", "delta", "relation", "epsilon_achieved", "unit", "mechanisms", "accountant", "proof_status"),
    *("arithmetic", "arithmetic_name", "budget_split", "outlook", "subject"),
)
"""What a statement of a model says because its plan does."""


def contradictions(statement: PrivacyStatement, plan: Plan | SearchPlan) -> tuple[str, ...]:
    """Names of what a model's statement says otherwise than its plan, in the digits of any version.

    The plan must agree with itself (`require_any_agreement`). Assumptions may be more than follow from it, not fewer.
    """
    honest = [restated(statement, plan, sides) for sides in (SAFE, EARLIER)]
    wrong = [name for name in DERIVED if getattr(statement, name) not in [getattr(each, name) for each in honest]]
    if not set(honest[0].assumptions) <= set(statement.assumptions):
        wrong.append("assumptions")
    return tuple(wrong)


def restated(statement: PrivacyStatement, plan: Plan | SearchPlan, sides: Sides = SAFE) -> PrivacyStatement:
    """What the library says about a plan; how many candidates a search had is no part of it, and is taken as stated."""
    if isinstance(plan, SearchPlan):
        return search_statement(plan, statement.solver, stated_candidates(statement), (), False, sides)
    return PrivacyStatement.of(plan, statement.solver, (), seeded=False, sides=sides)
