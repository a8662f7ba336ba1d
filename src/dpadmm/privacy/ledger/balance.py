"""What every data set has spent up to an entry: all that is needed to accept or refuse the next one.

Now and then an entry carries the balance before it, in the field `balance`, under the same hash as the rest of the
entry. Whoever opens a ledger reads on from the last such entry; whoever reads from the beginning compares all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from dpadmm.privacy.budget import Budget, Relation
from dpadmm.privacy.ledger.charge import Charge
from dpadmm.privacy.ledger.entries import Entry, Head, damaged, read_entries, require_chained
from dpadmm.privacy.ledger.names import known_as
from dpadmm.privacy.ledger.standing import Standing
from dpadmm.privacy.ledger.store import Log
from dpadmm.privacy.unit import Unit

# So many entries are read, at most, when a ledger is opened; or as many as there are data sets, if these are more.
INTERVAL = 64
# How the text of an entry with a balance begins: `balance` is the first of the sorted names of all fields.
MARK = '{"balance"'


@dataclass(frozen=True)
class Balance:
    """The state after the entry at `head`. Never changed: `after` makes the next one."""

    head: Head = field(default_factory=Head)
    ledger: str = ""
    standings: Mapping[str, Standing] = field(default_factory=dict)
    noted: int = 0

    @classmethod
    def read(cls, log: Log) -> Balance:
        """The balance now, from the last entry that carries one, or from the beginning if none does."""
        last = log.last_with(MARK, at_start=True)
        if last is None:
            return cls().after(log.entries(0))
        entries = log.entries(last.sequence - 2)
        if len(entries) < 2 or entries[1] != last:
            raise damaged(f"entry {last.sequence - 1} is missing")
        require_chained(entries[0].hash, last)
        return cls._from_dict(entries[0], last).after(entries[1:])

    def standing(self, dataset: object) -> Standing:
        """Where the data set called `dataset` stands, which must have been declared."""
        return self.standings[known_as(dataset, self.standings)]

    def after(self, entries: Iterable[Entry]) -> Balance:
        """The state after further entries, their chain checked, and the balances among them."""
        state, standings = self, dict(self.standings)
        for head, content in read_entries(self.head, entries):
            if "balance" in content:
                expected: Balance = replace(state, standings=standings)
                if content["balance"] != expected._to_dict():
                    raise damaged(f"entry {head.sequence} carries sums that are not those of the entries before it")
                state = replace(state, noted=head.sequence)
            try:
                ledger = _created(content, state.ledger) if content["kind"] == "create" else state.ledger
                if content["kind"] == "limit":
                    standings[content["dataset"]] = _limited(content, standings.get(content["dataset"]))
                elif content["kind"] == "reserve":
                    before = standings[content["dataset"]]
                    standings[before.dataset] = before.charged(charge_of(content), content["plan"])
            except (KeyError, ValueError, TypeError):
                raise contradiction(head) from None
            state = Balance(head, ledger, standings, state.noted)
        return replace(state, standings=standings)

    def note(self) -> dict[str, Any]:
        """The field for the next entry, if it should carry this balance; else nothing."""
        due = self.head.sequence + 1 - self.noted >= max(INTERVAL, len(self.standings))
        return {"balance": self._to_dict()} if due else {}

    def _to_dict(self) -> dict[str, Any]:
        accounts = {name: standing.to_dict() for name, standing in self.standings.items()}
        return {"ledger": self.ledger, "time": self.head.time, "order": list(accounts), "accounts": accounts}

    @classmethod
    def _from_dict(cls, before: Entry, carrier: Entry) -> Balance:
        try:
            fields = carrier.content["balance"]
            standings = {name: Standing.from_dict(name, fields["accounts"][name]) for name in fields["order"]}
            return cls(Head(before.sequence, before.hash, fields["time"]), fields["ledger"], standings)
        except (KeyError, ValueError, TypeError):
            raise damaged(f"entry {carrier.sequence} is not one that this library writes") from None


def contradiction(head: Head) -> Exception:
    """The refusal of an entry that cannot follow what was written before."""
    return damaged(f"entry {head.sequence} contradicts the entries before it")


def charge_of(content: Mapping[str, Any]) -> Charge:
    """The charge in an entry of the kind `reserve`."""
    cost = Charge(float(content["shift"]), float(content["slack"]))
    if not (cost.shift > 0 and cost.slack >= 0):
        raise ValueError("a charge that is no cost")
    return cost


def _created(content: Mapping[str, Any], ledger: str) -> str:
    if ledger or content["sequence"] != 1:
        raise ValueError("a second beginning")
    return str(content["ledger"])


def _limited(content: Mapping[str, Any], before: Standing | None) -> Standing:
    limit = Budget(content["epsilon"], content["delta"], Relation.parse(content["relation"]))
    unit = Unit.parse(content.get("unit", Unit.ROW))
    if before is None:
        return Standing(content["dataset"], content["owner"], limit, bool(content["test"]), unit=unit)
    if (
        before.unit is not unit
        or before.owner != content["owner"]
        or before.test != content["test"]
        or before.limit.relation != limit.relation
    ):
        raise ValueError("a limit set by another owner")
    return replace(before, limit=limit)
