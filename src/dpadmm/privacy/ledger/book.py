"""The whole record, read from its beginning: every data set with every fit, for those who look or verify."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from itertools import accumulate
from typing import Any

from dpadmm.privacy.ledger.balance import Balance, charge_of, contradiction
from dpadmm.privacy.ledger.charge import Charge
from dpadmm.privacy.ledger.entries import Entry, Head
from dpadmm.privacy.ledger.names import known_as
from dpadmm.privacy.ledger.standing import Standing
from dpadmm.privacy.ledger.sums import Sums
from dpadmm.privacy.plan import Plan
from dpadmm.privacy.selection import SearchPlan, plan_from_dict


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

    @classmethod
    def reserved(cls, content: Mapping[str, Any]) -> Fit:
        """The fit in an entry of the kind `reserve`."""
        receipt, time, digest = content["receipt"], content["time"], content["plan_digest"]
        return cls(receipt, time, content["plan"], digest, charge_of(content), bool(content["seeded"]))

    @property
    def plan(self) -> Plan | SearchPlan:
        return plan_from_dict(dict(self.plan_fields))


@dataclass(frozen=True)
class Account(Standing):
    """One data set: its owner, its limit, its fits."""

    fits: tuple[Fit, ...] = ()

    @classmethod
    def of(cls, standing: Standing, fits: Iterable[Fit]) -> Account:
        values = {each.name: getattr(standing, each.name) for each in fields(Standing)}
        return cls(**values, fits=tuple(fits))

    def spent_after(self, count: int) -> float:
        """ε of the first `count` fits at the δ of the limit; a first fit accepted by its own certificate keeps it."""
        return self.epsilon_of(self._sums_after[count])

    @cached_property
    def _sums_after(self) -> list[Sums]:
        return list(accumulate((fit.charge for fit in self.fits), Sums.plus, initial=Sums()))

    def _first_plan(self) -> Plan | SearchPlan | None:
        return self.fits[0].plan if self.fits else None


@dataclass(frozen=True)
class Book:
    """The record up to the entry at `head`. Never changed: `after` makes the next one."""

    balance: Balance = field(default_factory=Balance)
    fits: Mapping[str, Mapping[str, Fit]] = field(default_factory=dict)

    @property
    def head(self) -> Head:
        return self.balance.head

    @cached_property
    def accounts(self) -> Mapping[str, Account]:
        """All data sets, in the order of their declaration."""
        standings = self.balance.standings.items()
        return {name: Account.of(standing, self.fits.get(name, {}).values()) for name, standing in standings}

    def account(self, dataset: object) -> Account:
        """The account called `dataset`, which must have been declared."""
        return self.accounts[known_as(dataset, self.accounts)]

    def after(self, entries: Iterable[Entry]) -> Book:
        """The record after further entries, their chain and their sums checked."""
        entries = list(entries)
        if not entries:
            return self
        balance = self.balance.after(entries)
        fits = {name: dict(known) for name, known in self.fits.items()}
        receipts = {receipt for known in fits.values() for receipt in known}
        for entry in entries:
            content = entry.content
            try:
                if content["kind"] == "reserve":
                    fit = Fit.reserved(content)
                    if fit.receipt in receipts:
                        raise ValueError("a receipt given out twice")
                    receipts.add(fit.receipt)
                    fits.setdefault(content["dataset"], {})[fit.receipt] = fit
                elif content["kind"] == "commit":
                    known = fits[content["dataset"]]
                    known[content["receipt"]] = _committed(content, known[content["receipt"]])
            except (KeyError, ValueError, TypeError):
                raise contradiction(Head(entry.sequence)) from None
        return Book(balance, fits)


def _committed(content: Mapping[str, Any], fit: Fit) -> Fit:
    if fit.committed:
        raise ValueError("a fit committed twice")
    return replace(fit, committed=True, release=content["release"])
