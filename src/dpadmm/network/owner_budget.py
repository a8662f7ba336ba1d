"""The ledger of one owner, charged once for a run whatever crashes in between."""

from __future__ import annotations

from dataclasses import dataclass

from dpadmm.errors import PromiseBroken
from dpadmm.privacy.events import Event
from dpadmm.privacy.ledger import Ledger
from dpadmm.privacy.plan import Plan


@dataclass(frozen=True)
class OwnerBudget:
    """Who pays for the rows of a silo; without a ledger nothing is charged.

    Parameters
    ----------
    ledger : Ledger or None
        The owner's.
    dataset : str or None
        What the ledger calls the rows.
    """

    ledger: Ledger | None = None
    dataset: str | None = None

    def check(self, plan: Plan, seeded: bool, charged: bool) -> None:
        """Refuse what could not be paid; a run that was charged is paid already."""
        if self.ledger is not None and not charged:
            self.ledger.check(self.dataset, plan, seeded)

    def charge(self, receipt: str, plan: Plan, seeded: bool, resumed: bool) -> None:
        """Charge the whole plan; if `resumed`, unless a crash came between the charge and the note of it."""
        if self.ledger is not None:
            self.ledger.reserve(self.dataset, plan, seeded, receipt, resumed)

    def commit(self, receipt: str, spent: Event, plan: Plan, seeded: bool) -> None:
        """Note that the run was carried out as planned, to the last spare; else it stays reserved, and charged."""
        if self.ledger is not None and spent == plan.event:
            try:
                self.ledger.commit(receipt, spent, seeded)
            except PromiseBroken:
                return  # it was noted before a crash

    def standing(self, plan: Plan) -> tuple[float, float] | None:
        """ε charged so far and ε with this plan, at the δ of the limit; None without a ledger."""
        if self.ledger is None or self.dataset is None:
            return None
        return self.ledger.spent(self.dataset)[0], self.ledger.price(self.dataset, plan)
