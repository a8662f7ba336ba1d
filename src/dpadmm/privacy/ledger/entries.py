"""What is written down: entries of JSON text, each bound to all before it by a hash."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

from dpadmm.errors import DamagedRecord

FORMAT = 1
GENESIS = "0" * 64
KINDS = ("create", "limit", "reserve", "commit")


@dataclass(frozen=True)
class Entry:
    """One entry as it is stored: its number, its text, and the hash of the text and of everything before it."""

    sequence: int
    text: str
    hash: str

    @cached_property
    def content(self) -> Mapping[str, Any]:
        """The fields of the text, which are not to be changed."""
        return dict(json.loads(self.text))


@dataclass(frozen=True)
class Head:
    """The last entry. Kept elsewhere, it is a witness: whoever shortens or rewrites the record cannot reproduce it."""

    sequence: int = 0
    hash: str = GENESIS
    time: str = ""

    def __str__(self) -> str:
        return f"{self.sequence}:{self.hash}"


def write_entry(head: Head, time: str, kind: str, fields: dict[str, Any]) -> Entry:
    """The entry that follows `head`."""
    content = {"sequence": head.sequence + 1, "time": time, "kind": kind, **fields}
    text = json.dumps(content, sort_keys=True, allow_nan=False)
    return Entry(head.sequence + 1, text, chain(head.hash, text))


def chain(previous: str, text: str) -> str:
    """SHA-256 of the previous hash and the text.

    Examples
    --------
    >>> chain(GENESIS, "{}")[:8]
    '5649d09e'
    """
    return hashlib.sha256(f"{previous}\n{text}".encode()).hexdigest()


def require_chained(previous: str, entry: Entry) -> None:
    """Refuse an entry that is not the one that was written after the hash `previous`."""
    if entry.hash != chain(previous, entry.text):
        raise damaged(f"entry {entry.sequence}, or its hash, was changed after it was written")


def read_entries(head: Head, entries: Iterable[Entry]) -> Iterator[tuple[Head, Mapping[str, Any]]]:
    """The content of `entries`, which must continue the chain at `head`, each with the head it makes.

    Formal guarantees
    -----------------
    An entry that was changed, removed from the middle, inserted or moved breaks the chain and is refused. Removal of
    the *last* entries leaves a shorter valid chain: only a witness kept elsewhere shows that.
    """
    for entry in entries:
        if entry.sequence != head.sequence + 1:
            raise damaged(f"entry {head.sequence + 1} is missing")
        require_chained(head.hash, entry)
        try:
            content = entry.content
            known = content["kind"] in KINDS and content["sequence"] == entry.sequence
            time = str(content["time"])
            moment(time)
            # An owner who sets a limit starts the time anew, should a clock have run ahead.
            known = known and (time >= head.time or content["kind"] == "limit")
        except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
            known, time = False, ""
        if not known:
            raise damaged(f"entry {entry.sequence} is not one that this library writes")
        head = Head(entry.sequence, entry.hash, time)
        yield head, content


def damaged(what: str) -> DamagedRecord:
    """The refusal of a record that cannot be trusted."""
    return DamagedRecord(
        f"a ledger in which {what}",
        "the record as this library wrote it",
        "restore it from a backup; until then count every budget in it as spent",
    )


def stamp(time: datetime) -> str:
    """UTC to the microsecond, in a form that sorts as text."""
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def moment(text: str) -> datetime:
    """The inverse of `stamp`."""
    return datetime.fromisoformat(text)
