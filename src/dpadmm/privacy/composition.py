"""Several fits on the same rows as one plan: their queries one after another, certified anew."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace

from dpadmm.errors import CannotCertify, InvalidParameter, SchemeMismatch
from dpadmm.privacy.accountants import Accountant, default_accountant, make_accountant
from dpadmm.privacy.arithmetic import RESERVED_SHARE, Arithmetic, weakest
from dpadmm.privacy.budget import Budget
from dpadmm.privacy.events import Event
from dpadmm.privacy.plan import Plan
from dpadmm.privacy.proofs import cited, claims_for, status
from dpadmm.privacy.wording import rounded_up

MARGIN = 1.01
"""By how much setting aside a part of δ may raise ε."""

LARGEST_EPSILON = 700.0
"""Beyond which e^ε leaves the floating-point range."""


def compose_plans(plans: Sequence[Plan], delta: float) -> Plan:
    """The plan of all fits together, at `delta`.

    Parameters
    ----------
    plans : sequence of Plan
        Of fits on the same rows, under one relation and for one unit of privacy. Others are refused.
    delta : float
        At which to state ε.

    Formal guarantees
    -----------------
    The event is the adaptive composition of all events, certified by its default accountant. For fits in exact
    arithmetic the distance of their noise from the Gaussian is taken off `delta` first (docs/proofs/float.md,
    Theorem 2). The arithmetic is the weakest among them.

    The plans must have been fixed in advance: the total of fits that were chosen, or ended, after looking at earlier
    ones is no promise (docs/proofs/ledger.md, "Spent is no promise"); the limit of a ledger is one.
    """
    _require_one_table(plans)
    relation, n_rows = plans[0].budget.relation, plans[0].n_rows
    unit = plans[0].unit
    replace(plans[0].budget, delta=delta).require_meaningful(n_rows, unit)
    queries = tuple(itertools.chain.from_iterable(plan.queries for plan in plans))
    event = Event(tuple(query.part for query in queries))
    _require_one_accountant(event)
    judge = make_accountant(default_accountant(event))
    epsilon = _certified(judge, event, plans, delta)
    budget = Budget(epsilon, delta, relation)
    claims = (*judge.claims(event, relation), *claims_for(unit))
    proofs = status(cited(claims, (query.question for query in queries)))
    arithmetic = weakest(plan.arithmetic for plan in plans)
    return Plan(budget, n_rows, queries, judge.name, epsilon, proofs, arithmetic, unit)


def _require_one_table(plans: Sequence[Plan]) -> None:
    if not plans:
        raise InvalidParameter("no plan", "at least one plan", "pass the plans of the fits to add up")
    units = sorted({str(plan.unit) for plan in plans})
    if len(units) > 1:
        raise InvalidParameter(
            f"parts that protect different units ({' and '.join(units)})",
            "parts that protect the same",
            "fit all parts with the same ids, or state them one by one: what is promised to a row says nothing of "
            "somebody who has several",
        )
    relations = sorted({str(plan.budget.relation) for plan in plans})
    if len(relations) > 1:
        raise InvalidParameter(
            f"parts under different relations ({' and '.join(relations)})",
            "parts that promise the same",
            "fit all parts under one relation",
        )
    rows = sorted({plan.n_rows for plan in plans})
    if len(rows) > 1:
        raise InvalidParameter(
            f"parts with different numbers of {plans[0].unit.plural} ({', '.join(map(str, rows))})",
            f"parts that were fitted on the same {plans[0].unit.plural}",
            "fit all parts on one table; where each person is in one table only, state each table by itself",
        )


def _require_one_accountant(event: Event) -> None:
    if event.hidden and any(part.sampler.name not in ("full", "permutation") for part in event.parts):
        raise SchemeMismatch(
            "Got hidden passes (solver 'noisy-admm') together with mini-batches. Expected fits that one accountant "
            "certifies. State them one by one, or charge them to a ledger, which adds them up."
        )


def _certified(judge: Accountant, event: Event, plans: Sequence[Plan], delta: float) -> float:
    relation = plans[0].budget.relation
    epsilon = judge.certify(event, delta, relation)
    if any(plan.arithmetic is Arithmetic.EXACT for plan in plans) and math.isfinite(epsilon):
        most = MARGIN * epsilon
        rest = delta - _set_aside(plans, most, delta) if most < LARGEST_EPSILON else 0.0
        epsilon = judge.certify(event, rest, relation) if rest > 0 else math.inf
        epsilon = epsilon if epsilon <= most else math.inf
    if not 0 < epsilon < math.inf:
        raise CannotCertify(
            f"Got delta={rounded_up(delta)}, at which these parts have no finite positive epsilon. Expected a delta "
            "at which they have one. Choose another delta."
        )
    return epsilon


def _set_aside(plans: Sequence[Plan], epsilon: float, delta: float) -> float:
    """(1 + e^ε)·Σ τ: each exact fit kept its distance τ from the Gaussian below its reserve over 1 + e^(its own ε)."""
    budgets = [plan.budget for plan in plans if plan.arithmetic is Arithmetic.EXACT]
    distances = math.fsum(RESERVED_SHARE * budget.delta / (1.0 + math.exp(budget.epsilon)) for budget in budgets)
    return max(RESERVED_SHARE * delta, (1.0 + math.exp(epsilon)) * distances)
