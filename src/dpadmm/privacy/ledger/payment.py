"""One fit and the ledger that pays for it, or none: what an estimator needs of it all."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from numpy.typing import ArrayLike

from dpadmm.errors import SPENT, InvalidParameter, PromiseBroken
from dpadmm.privacy.budget import Budget
from dpadmm.privacy.events import Event
from dpadmm.privacy.ledger.ledger import Ledger
from dpadmm.privacy.ledger.verification import release_digest
from dpadmm.privacy.plan import Plan
from dpadmm.privacy.selection import SearchPlan, Selection


@contextmanager
def _saying(unless: tuple[type[BaseException], ...] = ()) -> Iterator[None]:
    try:
        yield
    except unless:
        raise
    except BaseException as ending:
        ending.add_note(SPENT)
        raise


class Payment:
    """check → reserving → commit for one fit on one data set; without a ledger, nothing.

    Parameters
    ----------
    ledger : None, Ledger, str or Path
        Who keeps the record.
    dataset : str or None
        Whose budget is charged.
    seeded : bool
        Whether the noise of the fit can be repeated.
    """

    def __init__(self, ledger: object, dataset: str | None, seeded: bool) -> None:
        if ledger is None and dataset is not None:
            raise InvalidParameter(
                f"dataset={dataset!r} without a ledger", "ledger=... too", "pass the ledger that is to be charged"
            )
        if not (ledger is None or isinstance(ledger, (Ledger, str, Path))):
            raise InvalidParameter(
                f"ledger of type {type(ledger).__name__}", "None, a path or a dpadmm.Ledger", "open one: Ledger(path)"
            )
        self._ledger = Ledger(ledger) if isinstance(ledger, (str, Path)) else ledger
        self._dataset, self._seeded = dataset, seeded
        self._receipt = ""

    def check(self, wanted: Budget | Plan | SearchPlan) -> None:
        """Refuse what would be refused later, before a row is read."""
        if self._ledger is not None:
            self._ledger.check(self._dataset, wanted, self._seeded)

    @property
    def receipt(self) -> str:
        """What the ledger gave for the charge; empty before, and without a ledger."""
        return self._receipt

    @contextmanager
    def reserving(self, plan: Plan | SearchPlan, receipt: str | None = None) -> Iterator[None]:
        """Charge the whole plan for the work within; whatever ends that work early says that the charge stays.

        With the `receipt` of an earlier charge nothing is charged: work under it goes on, if it is still open.
        """
        if self._ledger is not None:
            # A refusal charges nothing; an interruption may come before or after the charge.
            with _saying(unless=(Exception,)):
                if receipt is None:
                    receipt = self._ledger.reserve(self._dataset, plan, self._seeded)
                else:
                    self._ledger.require_reserved(receipt, self._dataset, plan)
                self._receipt = receipt
        elif receipt:
            raise PromiseBroken(
                "Got work that a ledger was charged for, without this ledger. Expected the same ledger and data set as "
                "at its beginning. Pass them again."
            )
        with _saying():
            yield

    def commit(self, spent: Event | Selection, weights: ArrayLike) -> None:
        """Note that the plan was carried out, and what was released."""
        if self._ledger is not None:
            self._ledger.commit(self._receipt, spent, self._seeded, release_digest(weights))
