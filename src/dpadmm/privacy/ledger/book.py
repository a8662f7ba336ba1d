"""The record read from its beginning: which data sets there are, who owns them, what they may spend and have spent."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from dpadmm.errors import BudgetExceeded, CannotCertify, InvalidParameter, PromiseBroken
from dpadmm.privacy.budget import Budget, Relation
from dpadmm.privacy.ledger.charge import SLACK_SHARE, Charge, judged_epsilon, next_slack, total_epsilon
from dpadmm.privacy.ledger.entries import Entry, Head, damaged, read_entries
from dpadmm.privacy.plan import Plan
from dpadmm.privacy.selection import SearchPlan, plan_from_dict, verify_any_plan
from dpadmm.privacy.wording import rounded_up


@dataclass(frozen=True)
class Fit:
    """One reserved fit. It is charged whether or not it was committed."""

    receipt: str
    time: str
    plan_fields: Mapping[str, Any]
    plan_digest: str
    charge: Charge
    seeded: bool
    committed: bool = False
    release: str | None = None

    @property
    def plan(self) -> Plan | SearchPlan:
        return plan_from_dict(dict(self.plan_fields))


@dataclass(frozen=True)
class Account:
    """One data set: its owner, its limit, its fits."""

    dataset: str
    owner: str
    limit: Budget
    test: bool
    fits: tuple[Fit, ...] = ()

    @property
    def charges(self) -> list[Charge]:
        return [fit.charge for fit in self.fits]

    @property
    def next_slack(self) -> float:
        """Slack of the next mini-batch fit."""
        return next_slack(self.limit, sum(fit.charge.slack > 0 for fit in self.fits))

    @property
    def spent(self) -> tuple[float, float]:
        """(ε, δ) of everything charged, at the δ of the limit; (0, 0) before the first fit."""
        return (self.spent_after(len(self.fits)), self.limit.delta) if self.fits else (0.0, 0.0)

    def spent_after(self, count: int) -> float:
        """ε of the first `count` fits at the δ of the limit; a first fit accepted by its own certificate keeps it."""
        charges = self.charges[:count]
        if count == 1 and judged_epsilon(charges, self.limit) > self.limit.epsilon:
            return self.fits[0].plan.epsilon_achieved
        return total_epsilon(charges, self.limit.delta)

    def spent_with(self, charge: Charge) -> float:
        """ε after one more fit, at the δ of the limit."""
        return total_epsilon([*self.charges, charge], self.limit.delta)

    def require_open(self, relation: Relation, seeded: bool, what: str = "fit") -> None:
        """Refuse a fit under another relation, or with noise that can be repeated."""
        if relation is not self.limit.relation:
            raise BudgetExceeded(
                f"given a {what} certified for {relation}; expected {self.limit.relation}, the relation of the limit "
                f"on {self.dataset!r}; train under that relation"
            )
        if seeded and not self.test:
            raise PromiseBroken(
                f"given a seeded {what} on {self.dataset!r}; expected secret noise, without which nothing is private; "
                "use random_state=None, or a data set that its owner marked as a test"
            )

    def require_room(self, plan: Plan | SearchPlan, charge: Charge) -> None:
        """Refuse a fit after which more than the limit would be spent.

        Formal guarantees
        -----------------
        A first fit may instead be judged by its own certificate, run again here: if its Gaussian does not fit, no
        later fit does, so it stays alone (docs/proofs/ledger.md, Claim 2).
        """
        judged = judged_epsilon([*self.charges, charge], self.limit)
        if judged <= self.limit.epsilon or (not self.fits and _within(plan, self.limit)):
            return
        raise self._too_dear(judged, kind_of(plan))

    def require_room_for(self, budget: Budget) -> None:
        """Refuse a budget so large that every plan for it will be refused: needs no plan, and so no table."""
        from dpadmm.privacy.accountants.gaussian import gaussian_shift

        # A plan uses at least 0.99 of its ε (`calibrate`).
        least = Budget(0.99 * budget.epsilon, budget.delta, budget.relation)
        if not self.fits and least.epsilon <= self.limit.epsilon and budget.delta <= self.limit.delta:
            return
        judged = judged_epsilon([*self.charges, Charge(gaussian_shift(least.epsilon, least.delta))], self.limit)
        if judged > self.limit.epsilon:
            raise self._too_dear(judged, kind_of(budget))

    def _too_dear(self, judged: float, what: str) -> BudgetExceeded:
        return BudgetExceeded(
            f"given a {what} after which {self.dataset!r} would have spent epsilon = {rounded_up(judged)} at "
            f"delta = {rounded_up(self.limit.delta)}; expected at most {rounded_up(self.limit.epsilon)}; "
            "use a smaller epsilon or delta, or fewer fits; nothing was charged"
        )

    def require_covers_spending(self) -> None:
        """Refuse a limit below what is spent already."""
        judged = judged_epsilon(self.charges, self.limit)
        alone = len(self.fits) == 1 and _within(self.fits[0].plan, self.limit)
        if self.fits and judged > self.limit.epsilon and not alone:
            raise InvalidParameter(
                f"a limit of epsilon = {rounded_up(self.limit.epsilon)} at delta = {rounded_up(self.limit.delta)} on "
                f"{self.dataset!r}",
                f"at least what is spent, epsilon = {rounded_up(judged)} at that delta, {SLACK_SHARE:.0%} of which is "
                "kept for mini-batch fits"
                if judged < math.inf
                else "a larger delta: mini-batch fits and searches have used more than this one keeps for them",
                "choose a larger limit; what is spent cannot be taken back",
            )


def kind_of(wanted: Budget | Plan | SearchPlan) -> str:
    """What asks to be paid for, in a word."""
    return "search" if isinstance(wanted, SearchPlan) else "fit"


def _within(plan: Plan | SearchPlan, limit: Budget) -> bool:
    """Whether a plan, its accountant run again, keeps to a limit by itself."""
    if plan.budget.delta > limit.delta or plan.epsilon_achieved > limit.epsilon:
        return False
    try:
        return verify_any_plan(plan) <= limit.epsilon
    except (PromiseBroken, CannotCertify):
        return False


@dataclass(frozen=True)
class Book:
    """The state after the entry at `head`. Never changed: `after` makes the next one."""

    head: Head = field(default_factory=Head)
    ledger: str = ""
    accounts: Mapping[str, Account] = field(default_factory=dict)
    receipts: Mapping[str, str] = field(default_factory=dict)

    def account(self, dataset: object) -> Account:
        """The account called `dataset`, which must have been declared."""
        if dataset is None:
            raise InvalidParameter(
                "a ledger without the name of a data set", "dataset='name'", "say whose budget is to be charged"
            )
        if not isinstance(dataset, str) or dataset not in self.accounts:
            raise InvalidParameter(
                f"dataset={dataset!r}, which this ledger does not hold",
                "one of: " + (", ".join(map(repr, self.accounts)) or "(none was declared)"),
                "correct the name, or let the owner set a limit: "
                "dpadmm ledger limit PATH --dataset NAME --epsilon E --delta D",
            )
        return self.accounts[dataset]

    def fit(self, receipt: str) -> tuple[Account, Fit]:
        """The reserved fit of a receipt."""
        if receipt not in self.receipts:
            raise PromiseBroken("given a receipt that this ledger never gave out; expected one from `reserve`")
        account = self.accounts[self.receipts[receipt]]
        return account, next(fit for fit in reversed(account.fits) if fit.receipt == receipt)

    def after(self, entries: Iterable[Entry]) -> Book:
        """The state after further entries, their chain checked."""
        accounts, receipts = dict(self.accounts), dict(self.receipts)
        fits: dict[str, dict[str, Fit]] = {}
        ledger, head = self.ledger, self.head
        for head, content in read_entries(self.head, entries):
            try:
                if content["kind"] == "create":
                    ledger = _created(content, ledger)
                elif content["kind"] == "limit":
                    accounts[content["dataset"]] = _limited(content, accounts.get(content["dataset"]))
                else:
                    name = content["dataset"]
                    known = fits.setdefault(name, {fit.receipt: fit for fit in accounts[name].fits})
                    fit = _reserved(content) if content["kind"] == "reserve" else _committed(content, known)
                    if (fit.receipt in receipts) != fit.committed:
                        raise ValueError("a receipt given out twice")
                    known[fit.receipt], receipts[fit.receipt] = fit, name
            except (KeyError, ValueError, TypeError):
                raise damaged(f"entry {head.sequence} contradicts the entries before it") from None
        for name, known in fits.items():
            accounts[name] = replace(accounts[name], fits=tuple(known.values()))
        return Book(head, ledger, accounts, receipts)


def _created(content: Mapping[str, Any], ledger: str) -> str:
    if ledger or content["sequence"] != 1:
        raise ValueError("a second beginning")
    return str(content["ledger"])


def _limited(content: Mapping[str, Any], before: Account | None) -> Account:
    limit = Budget(content["epsilon"], content["delta"], Relation.parse(content["relation"]))
    if before is None:
        return Account(content["dataset"], content["owner"], limit, bool(content["test"]))
    if before.owner != content["owner"] or before.test != content["test"] or before.limit.relation != limit.relation:
        raise ValueError("a limit set by another owner")
    return replace(before, limit=limit)


def _reserved(content: Mapping[str, Any]) -> Fit:
    cost = Charge(float(content["shift"]), float(content["slack"]))
    if not (cost.shift > 0 and cost.slack >= 0):
        raise ValueError("a charge that is no cost")
    return Fit(
        content["receipt"], content["time"], content["plan"], content["plan_digest"], cost, bool(content["seeded"])
    )


def _committed(content: Mapping[str, Any], known: Mapping[str, Fit]) -> Fit:
    fit = known[content["receipt"]]
    if fit.committed:
        raise ValueError("a fit committed twice")
    return replace(fit, committed=True, release=content["release"])
