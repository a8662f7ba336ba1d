"""Is the record as it was written, were its charges computed truly, and does it hold what witnesses say?"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dpadmm.errors import DamagedRecord, DpadmmError, FileProblem, InvalidParameter, PromiseBroken
from dpadmm.privacy.ledger.book import Account, Book, Fit
from dpadmm.privacy.ledger.charge import Charge, charge
from dpadmm.privacy.ledger.entries import Entry
from dpadmm.privacy.ledger.store import store_at
from dpadmm.privacy.plan import Plan
from dpadmm.privacy.selection import SearchPlan, plan_from_dict, require_any_agreement


@dataclass(frozen=True)
class Verification:
    """What `verify` found; empty `problems` mean that the record is whole."""

    place: str
    entries: int
    head: str
    problems: tuple[str, ...]

    @property
    def ok(self) -> bool:
        return not self.problems

    def to_dict(self) -> dict[str, Any]:
        return {
            "ok": self.ok,
            "place": self.place,
            "entries": self.entries,
            "head": self.head,
            "problems": list(self.problems),
        }


def verify(place: str | Path, head: str | None = None, releases: Sequence[tuple[str, str]] = ()) -> Verification:
    """Read a ledger from its beginning and compute everything in it again.

    Parameters
    ----------
    place : str or Path
        As for `Ledger`.
    head : str, optional
        "number:hash" noted earlier. The record must still contain that entry.
    releases : sequence of (plan digest, release digest)
        Models that were trained under this ledger. Each must be committed in it.

    Formal guarantees
    -----------------
    A changed, inserted, moved or removed entry is found, except for entries removed from the end; those are found by
    a `head` or a model that is younger than what was left. Hashes carry no secret: whoever can write the whole record
    can write another consistent one, and only a head or a model kept elsewhere contradicts it.
    """
    store = store_at(place)
    try:
        with store.reading() as log:
            entries = log.entries(0)
    except DamagedRecord as problem:
        return Verification(store.place, 0, "", (problem.given,))
    try:
        problems = store.faults()
        book = Book().after(entries)
    except FileProblem as problem:
        return Verification(store.place, len(entries), "", (problem.given,))
    if not book.balance.ledger:
        problems.append("the first entry is missing")
    for account in book.accounts.values():
        problems += [what for fit in account.fits for what in _faults(account, fit)]
        problems += _overspent(account)
    problems += _missing(entries, book, head, releases)
    return Verification(store.place, len(entries), str(book.head), tuple(problems))


def release_digest(weights: ArrayLike) -> str:
    """SHA-256 of released weights: by it a model is found in the ledger that paid for it."""
    numbers = np.ascontiguousarray(weights, dtype="<f8")
    return hashlib.sha256(repr(numbers.shape).encode() + numbers.tobytes()).hexdigest()


def _faults(account: Account, fit: Fit) -> list[str]:
    """A charge below what the plan costs, or a plan that is not the one whose digest was noted."""
    name = f"fit {fit.receipt[:8]} on {account.dataset!r}"
    try:
        digest, honest, plan = _priced(json.dumps(fit.plan_fields), fit.charge.slack)
    except PromiseBroken:
        return [f"{name} has a plan that contradicts itself"]
    except (KeyError, ValueError, TypeError, ArithmeticError, DpadmmError):
        return [f"{name} has a plan that cannot be read or priced"]
    found = []
    if digest != fit.plan_digest:
        found.append(f"{name} has a plan that does not match its digest")
    if fit.charge.shift < honest.shift * (1.0 - 1e-5) or (not plan.event.full_batch and fit.charge.slack == 0.0):
        found.append(f"{name} was charged less than it costs")
    if plan.budget.relation is not account.limit.relation:
        found.append(f"{name} was certified for another relation than its data set")
    if plan.unit is not account.unit:
        found.append(f"{name} protects another unit of privacy than its data set")
    if fit.seeded and not account.test:
        found.append(f"{name} was seeded, and the data is not marked as a test")
    return found


@lru_cache(maxsize=64)
def _priced(plan_fields: str, slack: float) -> tuple[str, Charge, Plan | SearchPlan]:
    """Digest and true charge of a plan that agrees with itself; the same plan is often fitted many times."""
    plan = plan_from_dict(json.loads(plan_fields))
    require_any_agreement(plan)
    return plan.digest, charge(plan.event, plan.budget.relation, slack), plan


def _overspent(account: Account) -> list[str]:
    try:
        account.require_covers_spending()
    except InvalidParameter:
        return [f"{account.dataset!r} has spent more than its limit"]
    except (KeyError, ValueError, TypeError, ArithmeticError, DpadmmError):
        return [f"{account.dataset!r} has a first fit that cannot be judged"]
    return []


def _missing(entries: Sequence[Entry], book: Book, head: str | None, releases: Sequence[tuple[str, str]]) -> list[str]:
    found = []
    if head is not None:
        number, digest = _parsed(head)
        if number > len(entries) or entries[number - 1].hash != digest:
            found.append(f"entry {number}, which was noted elsewhere, is gone or changed: the record was set back")
    paid = {
        (fit.plan_digest, fit.release) for account in book.accounts.values() for fit in account.fits if fit.committed
    }
    found += [
        f"this ledger holds no finished charge for the model with release digest {release[:12]}…: it was trained "
        "without this ledger, or the ledger was set back; name the right ledger, or count its ε in addition"
        for plan_digest, release in releases
        if (plan_digest, release) not in paid
    ]
    return found


def _parsed(head: str) -> tuple[int, str]:
    number, _, digest = head.partition(":")
    if not (number.isdigit() and int(number) >= 1 and len(digest) == 64):
        raise InvalidParameter(f"head {head!r}", "number:hash, as `show` prints it", "pass the head noted earlier")
    return int(number), digest
