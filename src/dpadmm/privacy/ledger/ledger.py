"""`Ledger`: reserve before training, commit after it, refuse what would exceed the limit of the data set."""

from __future__ import annotations

import getpass
import uuid
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

from dpadmm._version import __version__
from dpadmm.errors import InvalidParameter, PromiseBroken
from dpadmm.privacy.budget import Budget
from dpadmm.privacy.events import Event
from dpadmm.privacy.ledger.balance import Balance
from dpadmm.privacy.ledger.book import Account, Book
from dpadmm.privacy.ledger.charge import Charge, charge
from dpadmm.privacy.ledger.entries import FORMAT, Entry, Head, write_entry
from dpadmm.privacy.ledger.memory import Memory, Page
from dpadmm.privacy.ledger.names import plain, require_distinct, usable
from dpadmm.privacy.ledger.standing import Standing, kind_of, limit_fields
from dpadmm.privacy.ledger.store import Log, Store, store_at
from dpadmm.privacy.plan import Plan
from dpadmm.privacy.selection import SearchPlan, Selection, require_any_agreement
from dpadmm.privacy.unit import Unit
from dpadmm.signals import HeldSignals


class Ledger:
    """What every data set has spent: open an existing record.

    Parameters
    ----------
    place : str or Path
        A file, or postgresql://user@host/database for a team. It must exist: see `create`.

    Notes
    -----
    *Formal guarantees.* A plan is charged in full by `reserve`, before training; a crash leaves it charged, and nothing
    is ever refunded. Fits on one data set add up as Gaussians and are refused before their total exceeds the limit
    the owner set; this holds when each fit is chosen after seeing all earlier models (docs/proofs/ledger.md). Fits on
    parts of a data set, as in cross-validation, are charged as if on all of it. A data set is what its owner calls by
    one name: nothing is computed from rows, so that two names for the same people are two accounts.

    A ledger object holds no connection. `copy.deepcopy` gives the same ledger and pickling another door to it, so
    that scikit-learn's `clone`, threads and worker processes cannot spend outside it. It remembers the last entry it
    saw and refuses a place that was exchanged or set back since.

    Examples
    --------
    >>> import tempfile
    >>> ledger = Ledger.create(Path(tempfile.mkdtemp()) / "ledger.db")
    >>> ledger.set_limit("census", Budget(1.0, 1e-5), owner="Ada")
    >>> ledger.spent("census")
    (0.0, 0.0)
    """

    def __init__(self, place: str | Path) -> None:
        self._store: Store = store_at(place)
        self._memory = Memory()
        self._read()

    @classmethod
    def create(cls, place: str | Path) -> Self:
        """Make an empty ledger at a new place and open it."""
        fields = {"ledger": uuid.uuid4().hex, "format": FORMAT, "library": __version__}
        with HeldSignals():
            store_at(place).create(lambda now: write_entry(Head(), now, "create", fields))
        return cls(place)

    # -- limits --------------------------------------------------------------------------------------------------

    def set_limit(
        self,
        dataset: str,
        limit: Budget,
        owner: str | None = None,
        test: bool | None = None,
        unit: str | None = None,
    ) -> None:
        """Declare a data set with what all fits on it may spend together, or change that limit.

        Parameters
        ----------
        dataset : str
            The owner's name for the data.
        limit : Budget
            (ε, δ) and the relation under which every fit must be certified. A limit below what is spent is refused.
        owner : str, optional
            Who answers for the data; by default the user of the operating system. Only the same owner may change it.
        test : bool, optional
            Marks data that is not private. Only then are seeded fits accepted. Fixed by the first limit.
        unit : {"row", "person", "owner"}, optional
            Whose data the limit protects; by default single rows. Fixed by the first limit. Fits that protect
            something else are refused, because their costs cannot be added to it.
        """
        name, owner = usable("dataset", dataset), usable("owner", _user() if owner is None else owner)
        protects = None if unit is None else Unit.parse(unit)
        with self._page(self._store.writing) as page:
            known = page.balance.standings
            if name not in known and dataset in known:
                # Declared by a version that kept names as they were given.
                name = dataset
            if name in known:
                _require_same(known[name], limit, owner, test, protects)
                standing = replace(known[name], limit=limit)
                standing.require_covers_spending()
            else:
                require_distinct(name, known)
                standing = Standing(name, owner, limit, bool(test), unit=protects or Unit.ROW)
            limits = limit_fields(limit, standing.unit)
            fields = {"dataset": name, "owner": standing.owner, **limits, "test": standing.test}
            page.append("limit", fields)

    # -- spending ------------------------------------------------------------------------------------------------

    def check(self, dataset: str | None, wanted: Budget | Plan | SearchPlan, seeded: bool = False) -> None:
        """Refuse, before any row is read, a budget or plan that `reserve` would refuse now. Charges nothing.

        A budget alone is refused only if every plan for it would be.
        """
        account = self._read().standing(dataset)
        relation = wanted.relation if isinstance(wanted, Budget) else wanted.budget.relation
        account.require_open(relation, seeded, kind_of(wanted))
        if isinstance(wanted, Budget):
            account.require_room_for(wanted)
        else:
            require_any_agreement(wanted)
            account.require_unit(wanted.unit, kind_of(wanted))
            account.require_room(wanted, charge(wanted.event, relation, account.next_slack))

    def price(self, dataset: str | None, plan: Plan | SearchPlan) -> float:
        """ε that everything charged to a data set would come to with `plan`, at the δ of its limit. Charges nothing.

        Like `spent`, no promise where fits were chosen after looking at earlier models.
        """
        require_any_agreement(plan)
        account = self._read().standing(dataset)
        account.require_unit(plan.unit, kind_of(plan))
        return account.spent_with(charge(plan.event, plan.budget.relation, account.next_slack))

    def reserve(
        self,
        dataset: str | None,
        plan: Plan | SearchPlan,
        seeded: bool = False,
        receipt: str | None = None,
        resumed: bool = False,
    ) -> str:
        """Charge `plan` and return the receipt for `commit`; or raise `BudgetExceeded` and charge nothing.

        A plan of which one number contradicts another is refused with `PromiseBroken`: what it costs says nothing.

        Parameters
        ----------
        dataset, plan
            What is charged, and for what.
        seeded : bool
            Whether the noise can be repeated. Refused unless the data set is marked as a test.
        receipt : str, optional
            32 hexadecimal digits that are used for nothing else, from whoever may crash between the charge and a note
            of it. Refused if something was charged under it before.
        resumed : bool
            After such a crash: what was charged under the receipt before is not charged again.
        """
        require_any_agreement(plan)
        account = self._read().standing(dataset)
        while True:
            # Mini-batch fits take a second to price: outside the lock, and again if another fit came first.
            cost = charge(plan.event, plan.budget.relation, account.next_slack)
            with self._page(self._store.writing) as page:
                account = page.balance.standing(dataset)
                if receipt is not None and page.was_charged(receipt, account.dataset, plan.digest, resumed):
                    return receipt
                if cost.slack <= account.next_slack:
                    account.require_open(plan.budget.relation, seeded, kind_of(plan))
                    account.require_unit(plan.unit, kind_of(plan))
                    account.require_room(plan, cost)
                    receipt = uuid.uuid4().hex if receipt is None else receipt
                    page.append("reserve", {"dataset": account.dataset, **_fit_fields(receipt, plan, cost, seeded)})
                    return receipt

    def require_reserved(self, receipt: str, dataset: str | None, plan: Plan | SearchPlan) -> None:
        """Refuse a receipt under which work on this plan cannot go on: of another fit, or committed already."""
        with self._page(self._store.reading) as page:
            account, fit = page.fit(receipt)
        if fit.plan.digest != plan.digest or account.dataset != self._read().standing(dataset).dataset:
            raise PromiseBroken(
                "Got a receipt of another plan or data set. Expected that of the work which goes on. Pass the ledger "
                "and the data set that were charged for it."
            )

    def commit(self, receipt: str, spent: Event | Selection, seeded: bool = False, release: str | None = None) -> None:
        """Note that a reserved plan was carried out exactly.

        Parameters
        ----------
        receipt : str
            From `reserve`.
        spent : Event
            What the oracle performed. Anything but the reserved event is refused.
        seeded : bool
            Whether the noise can be repeated. Refused unless the data set is marked as a test.
        release : str, optional
            Digest of the released model (`release_digest`), by which `verify` finds it again.
        """
        with self._page(self._store.writing) as page:
            account, fit = page.fit(receipt)
            account.require_open(account.limit.relation, seeded, kind_of(fit.plan))
            if fit.plan.event != spent or fit.seeded != seeded:
                raise PromiseBroken(
                    "Got a fit that differs from the one reserved. Expected the reserved queries, noise and seeding. "
                    "The reservation stays charged, and the model must not be released."
                )
            # How long a search took would tell its secret number of trials.
            timed = not isinstance(fit.plan, SearchPlan)
            page.append("commit", {"dataset": account.dataset, "receipt": receipt, "release": release}, timed)

    # -- looking -------------------------------------------------------------------------------------------------

    def spent(self, dataset: str) -> tuple[float, float]:
        """(ε, δ) of everything charged to a data set, committed or not; (0, 0) before the first fit.

        What these fits cost together if they were all fixed in advance. Where later ones, or when to stop, were decided
        after looking at earlier models, only the limit is promised (docs/proofs/ledger.md, "Spent is no promise").
        """
        return self._read().standing(dataset).spent

    def account(self, dataset: str) -> Account:
        """Owner, limit and fits of one data set, the record read and checked from its beginning."""
        return self._read_all().account(dataset)

    @property
    def accounts(self) -> tuple[Account, ...]:
        """All data sets, in the order of their declaration, the record read and checked from its beginning."""
        return tuple(self._read_all().accounts.values())

    @property
    def entries(self) -> tuple[Entry, ...]:
        """The whole record, as it is stored."""
        with self._store.reading() as log:
            return tuple(log.entries(0))

    @property
    def head(self) -> Head:
        """The last entry: note it elsewhere to be able to tell later whether the record was set back."""
        return self._read().head

    @property
    def place(self) -> str:
        return self._store.place

    # -- the record ----------------------------------------------------------------------------------------------

    def _read(self) -> Balance:
        with self._page(self._store.reading) as page:
            return page.balance

    def _read_all(self) -> Book:
        memory = self._memory
        with self._store.reading() as log:
            book = memory.continued_book(log)
        self._memory = self._memory.with_book(book)
        return book

    @contextmanager
    def _page(self, transaction: Callable[[], AbstractContextManager[Log]]) -> Iterator[Page]:
        # Taken before the transaction begins: what another thread records later need not be in it.
        memory = self._memory
        with transaction() as log:
            page = Page(log, memory.continued(log))
            yield page
        self._memory = self._memory.with_balance(page.balance)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_memory": replace(self._memory, balance=None, book=None)}

    def __repr__(self) -> str:
        return f"Ledger({self.place!r})"


def _fit_fields(receipt: str, plan: Plan | SearchPlan, cost: Charge, seeded: bool) -> dict[str, Any]:
    return {
        "receipt": receipt,
        "plan": plan.to_dict(),
        "plan_digest": plan.digest,
        "shift": cost.shift,
        "slack": cost.slack,
        "seeded": seeded,
    }


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return "unknown"


def _require_same(before: Standing, limit: Budget, owner: str, test: bool | None, unit: Unit | None) -> None:
    if plain(before.owner) != owner:
        raise InvalidParameter(
            f"owner {owner!r} for {before.dataset!r}, which {before.owner!r} declared",
            "one owner for each data set",
            "ask the owner, or use another name for other data",
        )
    if before.limit.relation is not limit.relation or test not in (None, before.test):
        raise InvalidParameter(
            f"another relation or test mark for {before.dataset!r} than it was declared with",
            f"{before.limit.relation}, {'test data' if before.test else 'private data'}",
            "keep them: they are fixed when a data set is declared",
        )
    if unit not in (None, before.unit):
        raise InvalidParameter(
            f"a limit for {unit.plural if unit else ''} on {before.dataset!r}, which was declared for "
            f"{before.unit.plural}",
            f"unit {str(before.unit)!r}",
            "keep the unit: it is fixed when a data set is declared. Choose another name for another unit",
        )
