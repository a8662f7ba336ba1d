"""Statements as version 1 wrote them, made for models of today."""

from __future__ import annotations

from typing import Any

from dpadmm.privacy.statement import PrivacyStatement
from dpadmm.privacy.version1 import VersionOne
from dpadmm.privacy.wording import version1 as words
from dpadmm.privacy.wording.version1 import SAFE, Sides


def stated(model: Any, sides: Sides = SAFE, **changed: Any) -> PrivacyStatement:
    """What version 1 would have said of a fitted model, in the digits of one side; further assumptions aside."""
    facts, plan = model.privacy_.facts, model.plan_
    said = {
        "epsilon": facts.epsilon,
        "delta": facts.delta,
        "relation": facts.relation,
        "epsilon_achieved": facts.epsilon_achieved,
        "unit": "one row of the table",
        "mechanisms": words.mechanisms(facts, sides),
        "accountant": facts.accountant,
        "proof_status": plan.proof_status,
        "assumptions": words.assumptions(facts),
        "seeded": facts.seeded,
        "solver": model.privacy_.solver,
        "plan_digest": plan.digest,
        "arithmetic": words.arithmetic(facts),
        "outlook": words.outlook(facts.outlook, sides),
        "budget_split": words.split(facts.split),
        "arithmetic_name": facts.arithmetic,
    }
    return PrivacyStatement(VersionOne(**{**said, **changed}))
