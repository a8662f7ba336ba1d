"""What a ledger object has seen of its record, and the record inside one transaction."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from dpadmm.errors import FileProblem, PromiseBroken
from dpadmm.privacy.ledger.balance import Balance
from dpadmm.privacy.ledger.book import Book, Fit
from dpadmm.privacy.ledger.entries import Head, damaged, moment, require_chained, write_entry
from dpadmm.privacy.ledger.standing import Standing
from dpadmm.privacy.ledger.store import Log

# A clock may step back this far (a correction by the network) before new charges are refused.
CLOCK_TOLERANCE = timedelta(minutes=5)


@dataclass(frozen=True)
class Memory:
    """What a ledger object has seen: which record, up to which entry, and what it still knows of it."""

    ledger: str = ""
    head: Head = field(default_factory=Head)
    balance: Balance | None = None
    book: Book | None = None

    def continued(self, log: Log) -> Balance:
        """The balance now; a record that does not continue what was seen is refused."""
        self._require_there(log, self.head)
        known = self.balance
        now = Balance.read(log) if known is None else known.after(log.entries(known.head.sequence))
        if not now.ledger:
            raise damaged("the first entry is missing")
        if self.ledger and now.ledger != self.ledger:
            raise damaged(_SET_BACK)
        return now

    def continued_book(self, log: Log) -> Book:
        """The whole record now, checked from where this object has last read it as a whole."""
        self._require_there(log, self.head)
        known = Book() if self.book is None else self.book
        self._require_there(log, known.head)
        now = known.after(log.entries(known.head.sequence))
        if not now.balance.ledger:
            raise damaged("the first entry is missing")
        return now

    def _require_there(self, log: Log, head: Head) -> None:
        seen = head.sequence
        if seen and [entry.hash for entry in log.entries(seen - 1, seen)] != [head.hash]:
            raise damaged(_SET_BACK)

    def with_balance(self, balance: Balance) -> Memory:
        """The same, or what is known after a later look."""
        if balance.head.sequence < self.head.sequence:
            return self
        return replace(self, ledger=balance.ledger, head=balance.head, balance=balance)

    def with_book(self, book: Book) -> Memory:
        return replace(self.with_balance(book.balance), book=book)


_SET_BACK = "entries that were there before are gone or changed: it was exchanged or set back"


@dataclass
class Page:
    """The record inside one transaction, with what was spent up to now."""

    log: Log
    balance: Balance

    def append(self, kind: str, fields: dict[str, Any], timed: bool = True) -> None:
        """Write one entry; without `timed` it takes the time of the last one, and does not tell when it was written.

        If the clock has gone backwards new charges are refused; a commit takes the time of the last entry, so that no
        finished fit is lost; a limit, the act of an owner, starts the time anew.
        """
        now, last = self.log.now(), self.balance.head.time
        if kind == "reserve" and moment(now) + CLOCK_TOLERANCE < moment(last):
            raise FileProblem(
                f"a clock at {now}, before the last entry of the ledger at {last}",
                "a clock that does not go backwards",
                "set the clock; if it was ahead before, let an owner set a limit again, which starts the time anew; "
                "nothing was charged",
            )
        time = now if kind == "limit" else max(now, last) if timed else last
        entry = write_entry(self.balance.head, time, kind, {**fields, **self.balance.note()})
        self.log.append(entry)
        self.balance = self.balance.after([entry])

    def was_charged(self, receipt: str, dataset: str, plan_digest: str, resumed: bool) -> bool:
        """Whether this plan was charged under this receipt and is not finished; if not, the receipt must be new."""
        if not re.fullmatch("[0-9a-f]{32}", receipt):
            raise PromiseBroken("Got a receipt that is not 32 hexadecimal digits. Expected one made of a digest.")
        entry = self.log.last_with(f'"receipt": "{receipt}"')
        if entry is None:
            return False
        found = entry.content
        same = found["kind"] == "reserve" and (found["dataset"], found["plan_digest"]) == (dataset, plan_digest)
        if not (resumed and same):
            raise PromiseBroken("Got a receipt under which something was charged before. Expected a new one.")
        return True

    def fit(self, receipt: str) -> tuple[Standing, Fit]:
        """The reserved fit of a receipt and its data set; refused if it was committed before."""
        unknown = PromiseBroken("Got a receipt that this ledger never gave out. Expected one from `reserve`.")
        if not re.fullmatch("[0-9a-f]{32}", receipt):
            raise unknown
        # Of the entries of one receipt the last is found first: its commit, or else its reservation.
        entry = self.log.last_with(f'"receipt": "{receipt}"')
        if entry is None:
            raise unknown
        for before in self.log.entries(entry.sequence - 2, entry.sequence - 1):
            require_chained(before.hash, entry)
        content = entry.content
        if content["kind"] == "commit":
            raise PromiseBroken("Got a receipt that was committed before. Expected one receipt for each fit.")
        return self.balance.standing(content["dataset"]), Fit.reserved(content)
