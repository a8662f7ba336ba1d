"""Where one data set stands: its owner, its limit, and the sums of what was charged, without the fits themselves."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

from dpadmm.errors import BudgetExceeded, CannotCertify, InvalidParameter, PromiseBroken
from dpadmm.privacy.budget import Budget, Relation
from dpadmm.privacy.ledger.charge import SLACK_SHARE, Charge, judged_epsilon, next_slack, total_epsilon
from dpadmm.privacy.ledger.sums import Sums
from dpadmm.privacy.plan import Plan
from dpadmm.privacy.selection import SearchPlan, plan_from_dict, verify_any_plan
from dpadmm.privacy.unit import Unit, as_stored
from dpadmm.privacy.wording import rounded_up


@dataclass(frozen=True)
class Standing:
    """What a decision about the next fit on a data set needs to know.

    Attributes
    ----------
    sums : Sums
        Of every fit charged so far.
    only_plan : mapping or None
        The plan of the first fit for as long as it is the only one, which may be judged by its own certificate.
    unit : Unit
        Whose data the limit protects.
    """

    dataset: str
    owner: str
    limit: Budget
    test: bool
    sums: Sums = field(default_factory=Sums)
    only_plan: Mapping[str, Any] | None = None
    unit: Unit = Unit.ROW

    @property
    def next_slack(self) -> float:
        """Slack of the next mini-batch fit."""
        return next_slack(self.limit, self.sums.sampled)

    @property
    def spent(self) -> tuple[float, float]:
        """(ε, δ) of everything charged, at the δ of the limit; (0, 0) before the first fit."""
        return (self.epsilon_of(self.sums), self.limit.delta) if self.sums.fits else (0.0, 0.0)

    def epsilon_of(self, sums: Sums) -> float:
        """ε at the δ of the limit; a first fit accepted by its own certificate keeps it."""
        first = self._first_plan()
        if sums.fits == 1 and first is not None and judged_epsilon(sums, self.limit) > self.limit.epsilon:
            return first.epsilon_achieved
        return total_epsilon(sums, self.limit.delta)

    def _first_plan(self) -> Plan | SearchPlan | None:
        return None if self.only_plan is None else plan_from_dict(dict(self.only_plan))

    def spent_with(self, charge: Charge) -> float:
        """ε after one more fit, at the δ of the limit."""
        return total_epsilon(self.sums.plus(charge), self.limit.delta)

    def charged(self, cost: Charge, plan_fields: Mapping[str, Any]) -> Self:
        """Where the data set stands after one more fit."""
        return replace(self, sums=self.sums.plus(cost), only_plan=None if self.sums.fits else plan_fields)

    def require_unit(self, unit: Unit, what: str = "fit") -> None:
        """Refuse a fit that protects something else than the limit does: the two cannot be added up."""
        if unit is not self.unit:
            raise BudgetExceeded(
                f"Got a {what} that protects {unit.plural}. Expected one that protects {self.unit.plural}, as "
                f"the limit on {self.dataset!r} does: costs of different units do not add up. {_TO_PROTECT[self.unit]}"
            )

    def require_open(self, relation: Relation, seeded: bool, what: str = "fit") -> None:
        """Refuse a fit under another relation, or with noise that can be repeated."""
        if relation is not self.limit.relation:
            raise BudgetExceeded(
                f"Got a {what} certified for {relation}. Expected {self.limit.relation}, the relation of the limit "
                f"on {self.dataset!r}. Train under that relation."
            )
        if seeded and not self.test:
            raise PromiseBroken(
                f"Got a seeded {what} on {self.dataset!r}. Expected secret noise, without which nothing is private. "
                "Use random_state=None, or a data set that its owner marked as a test."
            )

    def require_room(self, plan: Plan | SearchPlan, charge: Charge) -> None:
        """Refuse a fit after which more than the limit would be spent.

        Formal guarantees
        -----------------
        A first fit may instead be judged by its own certificate, run again here: if its Gaussian does not fit, no
        later fit does, so it stays alone (docs/proofs/ledger.md, Claim 2).
        """
        judged = judged_epsilon(self.sums.plus(charge), self.limit)
        if judged <= self.limit.epsilon or (not self.sums.fits and _within(plan, self.limit)):
            return
        raise self._too_dear(judged, kind_of(plan))

    def require_room_for(self, budget: Budget) -> None:
        """Refuse a budget so large that every plan for it will be refused: needs no plan, and so no table."""
        from dpadmm.privacy.accountants.gaussian import gaussian_shift

        # A plan uses at least 0.99 of its ε (`calibrate`).
        least = Budget(0.99 * budget.epsilon, budget.delta, budget.relation)
        if not self.sums.fits and least.epsilon <= self.limit.epsilon and budget.delta <= self.limit.delta:
            return
        judged = judged_epsilon(self.sums.plus(Charge(gaussian_shift(least.epsilon, least.delta))), self.limit)
        if judged > self.limit.epsilon:
            raise self._too_dear(judged, kind_of(budget))

    def _too_dear(self, judged: float, what: str) -> BudgetExceeded:
        return BudgetExceeded(
            f"Got a {what} after which {self.dataset!r} would have spent epsilon = {rounded_up(judged)} at "
            f"delta = {rounded_up(self.limit.delta)}. Expected at most {rounded_up(self.limit.epsilon)}. "
            "Use a smaller epsilon or delta, or fewer fits. Nothing was charged."
        )

    def require_covers_spending(self) -> None:
        """Refuse a limit below what is spent already."""
        judged = judged_epsilon(self.sums, self.limit)
        if not self.sums.fits or judged <= self.limit.epsilon:
            return
        first = self._first_plan()
        if self.sums.fits == 1 and first is not None and _within(first, self.limit):
            return
        raise InvalidParameter(
            f"a limit of epsilon = {rounded_up(self.limit.epsilon)} at delta = {rounded_up(self.limit.delta)} on "
            f"{self.dataset!r}",
            f"at least what is spent, epsilon = {rounded_up(judged)} at that delta, {SLACK_SHARE:.0%} of which is "
            "kept for mini-batch fits"
            if judged < math.inf
            else "a larger delta: mini-batch fits and searches have used more than this one keeps for them",
            "choose a larger limit; what is spent cannot be taken back",
        )

    def to_dict(self) -> dict[str, Any]:
        return {
            "owner": self.owner,
            **limit_fields(self.limit, self.unit),
            "test": self.test,
            **self.sums.to_dict(),
            "only_plan": None if self.only_plan is None else dict(self.only_plan),
        }

    @classmethod
    def from_dict(cls, dataset: str, fields: Mapping[str, Any]) -> Self:
        limit = Budget(fields["epsilon"], fields["delta"], Relation.parse(fields["relation"]))
        only = fields["only_plan"]
        unit = Unit.parse(fields.get("unit", Unit.ROW))
        return cls(dataset, fields["owner"], limit, bool(fields["test"]), Sums.from_dict(fields), only, unit)


def kind_of(wanted: Budget | Plan | SearchPlan) -> str:
    """What asks to be paid for, in a word."""
    return "search" if isinstance(wanted, SearchPlan) else "fit"


_TO_PROTECT = {
    Unit.ROW: "Fit without ids of persons, or let the owner declare another data set for such fits.",
    Unit.PERSON: "Give the ids of the persons to `fit`, or let the owner declare another data set for such fits.",
    Unit.OWNER: "Let the owner declare another data set for such fits.",
}


def limit_fields(limit: Budget, unit: Unit) -> dict[str, Any]:
    """A limit as it is written down."""
    fields = {"epsilon": limit.epsilon, "delta": limit.delta, "relation": str(limit.relation)}
    return {**fields, **as_stored(unit)}


def _within(plan: Plan | SearchPlan, limit: Budget) -> bool:
    """Whether a plan, its accountant run again, keeps to a limit by itself."""
    if plan.budget.delta > limit.delta or plan.epsilon_achieved > limit.epsilon:
        return False
    try:
        return verify_any_plan(plan) <= limit.epsilon
    except (PromiseBroken, CannotCertify):
        return False
