"""What several fits on the same rows promise together: by the accountant, never by adding up ε."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

from dpadmm.errors import CannotCertify, InvalidParameter
from dpadmm.privacy.accountants import default_accountant, make_accountant
from dpadmm.privacy.budget import Budget
from dpadmm.privacy.events import Event
from dpadmm.privacy.plan import Plan
from dpadmm.privacy.statement import PrivacyStatement


def compose_statements(*parts: Any, delta: float | None = None) -> PrivacyStatement:
    """One statement for all private parts of a pipeline, or for several models of the same rows.

    Parameters
    ----------
    parts
        Fitted private models and transformers, or pipelines of them; what holds no promise counts for nothing, so a
        step that learns from rows without one must not be among them.
    delta : float, optional
        At which to state ε; by default the largest of the parts'.

    Formal guarantees
    -----------------
    The parts are an adaptive composition of their plans' events, certified by the exact Gaussian accountant if all of
    them read all rows at each query, else by the privacy-loss accountant (docs/proofs/composition.md). Parts on
    different rows, or under different relations, have no common statement here.
    """
    fitted = list(_fitted(parts))
    if not fitted:
        raise InvalidParameter("nothing private", "fitted private models or transformers", "fit them first")
    plans = [part.plan_ for part in fitted]
    if len({(plan.budget.relation, plan.n_rows) for plan in plans}) > 1:
        raise InvalidParameter(
            "parts under different relations, or with different numbers of rows",
            "parts that promise the same to the same rows",
            "fit all parts on one table, under one relation",
        )
    whole = _composed(plans, max(plan.budget.delta for plan in plans) if delta is None else delta)
    assumptions = dict.fromkeys(itertools.chain.from_iterable(part.privacy_.assumptions for part in fitted))
    names = " and then ".join(part.privacy_.solver for part in fitted)
    standing = PrivacyStatement.of(whole, names, (), False).assumptions
    return PrivacyStatement.of(
        whole,
        names,
        tuple(assumption for assumption in assumptions if assumption not in standing),
        any(part.privacy_.seeded for part in fitted),
    )


def _fitted(parts: Any) -> Iterator[Any]:
    for part in parts:
        if hasattr(part, "plan_") and hasattr(part, "privacy_"):
            yield part
        elif hasattr(part, "steps"):
            yield from _fitted(step for _, step in part.steps)


def _composed(plans: list[Plan], delta: float) -> Plan:
    first = plans[0]
    queries = tuple(itertools.chain.from_iterable(plan.queries for plan in plans))
    event = Event(tuple(query.part for query in queries))
    judge = make_accountant(default_accountant(event))
    epsilon = judge.certify(event, delta, first.budget.relation)
    if not 0 < epsilon < float("inf"):
        raise CannotCertify(
            f"given delta={delta:g}, at which these parts have no finite epsilon; expected a larger one; raise delta"
        )
    statuses = dict.fromkeys(plan.proof_status for plan in plans)
    budget = Budget(epsilon, delta, first.budget.relation)
    return Plan(budget, first.n_rows, queries, judge.name, epsilon, "; ".join(statuses))
