"""Bytes of a ledger's file flipped one after the other, in every page: `verify` must find each."""

from __future__ import annotations

import random

from dpadmm import Budget, Ledger
from dpadmm.errors import FileProblem
from dpadmm.privacy.ledger import verify
from tests.privacy.ledger_places import SMALL

from .campaign import FULL, Campaign

FITS = 7
# The number of the SQLite version that wrote last, which says nothing about entries.
UNKNOWN = {97, 98, 99}

FLIPS = Campaign(
    "ledger",
    "a byte of the file is flipped: in `make attack` every byte of a ledger of 5 pages",
    "a quarter of the bytes of 4 pages missed, all in the empty space of an inner page",
    sample=150,
    full=5 * 4096,
)


def found(path) -> bool:
    try:
        return not verify(path).ok
    except FileProblem:
        return True


def test_every_flipped_byte_is_found(tmp_path):
    path = tmp_path / "ledger.db"
    ledger = Ledger.create(path)
    ledger.set_limit("census", Budget(3.0, 1e-5), owner="Ada")
    for _ in range(FITS):
        ledger.commit(ledger.reserve("census", SMALL), SMALL.event)
    raw = path.read_bytes()
    assert len(raw) == FLIPS.full
    chance = random.Random(11)
    places = list(range(len(raw))) if FULL else sorted({*range(100), *chance.sample(range(len(raw)), FLIPS.sample)})
    with FLIPS.begin() as tally, path.open("r+b", buffering=0) as stream:
        for number in tally.each():
            place = places[number]
            stream.seek(place)
            stream.write(bytes([raw[place] ^ (1 << chance.randrange(8))]))
            if place not in UNKNOWN and not found(path):
                tally.defect(f"byte {place} of page {1 + place // 4096}")
            stream.seek(place)
            stream.write(raw[place : place + 1])
    assert verify(path).ok
