"""Entries as they are read: each bound to all before it, in the order of time."""

from __future__ import annotations

import pytest

from dpadmm.errors import FileProblem
from dpadmm.privacy.ledger.entries import Entry, Head, chain, read_entries, write_entry

EARLY, LATE = "2026-03-01T10:00:00.000000Z", "2026-03-01T10:00:00.000001Z"


def heads(*entries: Entry) -> list[Head]:
    return [head for head, _ in read_entries(Head(), entries)]


def entry_after(head: Head, time: str, kind: str) -> Entry:
    return write_entry(head, time, kind, {"what": "census"})


@pytest.mark.parametrize("kind", ["create", "reserve", "commit"])
def test_an_entry_before_the_time_of_the_last_one_is_refused(kind):
    """With a hash that fits: whoever can write entries cannot date one back."""
    first = entry_after(Head(), LATE, "create")
    (head,) = heads(first)
    with pytest.raises(FileProblem, match="entry 2 is not one"):
        heads(first, entry_after(head, EARLY, kind))


@pytest.mark.parametrize(("time", "kind"), [(LATE, "reserve"), (EARLY, "reserve"), (EARLY, "commit")])
def test_an_entry_at_the_same_time_or_later_is_read(time, kind):
    first = entry_after(Head(), EARLY, "create")
    (head,) = heads(first)
    assert heads(first, entry_after(head, time, kind))[-1].time == time


def test_a_limit_starts_the_time_anew():
    first = entry_after(Head(), LATE, "create")
    (head,) = heads(first)
    limit = entry_after(head, EARLY, "limit")
    *_, head = heads(first, limit)
    assert head.time == EARLY
    assert heads(first, limit, entry_after(head, EARLY, "reserve"))[-1].sequence == 3


@pytest.mark.parametrize("kind", ["erase", "", None])
def test_other_kinds_are_refused(kind):
    with pytest.raises(FileProblem, match="entry 1 is not one"):
        heads(entry_after(Head(), EARLY, kind))


def test_an_entry_that_says_another_number_is_refused():
    text = entry_after(Head(sequence=4), EARLY, "create").text
    with pytest.raises(FileProblem, match="entry 1 is not one"):
        heads(Entry(1, text, chain(Head().hash, text)))
