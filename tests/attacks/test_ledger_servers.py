"""A PostgreSQL server that dies while charges are committed: what it confirmed must be there when it comes back."""

from __future__ import annotations

import multiprocessing
import random
import time

from dpadmm import Budget, Ledger
from dpadmm.errors import FileProblem
from dpadmm.privacy.ledger import verify
from tests.privacy.ledger_places import SMALL, new_database, postgres_process

from .campaign import Campaign

WRITERS = 3
FORK = multiprocessing.get_context("fork")

DEATHS = Campaign(
    "ledger",
    "a PostgreSQL server dies in the middle of commits and is started again",
    "a charge made without an answer was said not to be recorded",
    sample=1,
    full=15,
)


def spend(place, diary) -> None:
    """Charge until the server is gone; write down what was confirmed, and what the last refusal said."""
    with open(diary, "w", encoding="utf-8") as stream:
        try:
            ledger = Ledger(place)
            while True:
                print("r", ledger.reserve("census", SMALL), file=stream, flush=True)
        except FileProblem as problem:
            print("uncertain" if "ledger show" in str(problem) else "refused", file=stream, flush=True)


def test_a_server_that_dies_loses_nothing_it_confirmed(tmp_path):
    chance = random.Random(7)
    with postgres_process() as server, DEATHS.begin() as tally:
        place = new_database(server.address)
        Ledger.create(place).set_limit("census", Budget(100.0, 1e-5), owner="Ada")
        known: set[str] = set()
        for run in tally.each():
            diaries = [tmp_path / f"{run}.{number}" for number in range(WRITERS)]
            writers = [FORK.Process(target=spend, args=(place, diary)) for diary in diaries]
            for writer in writers:
                writer.start()
            time.sleep(1.0 + chance.random())
            server.die()
            for writer in writers:
                writer.join()
            server.start()
            lines = [line.split() for diary in diaries for line in diary.read_text().splitlines()]
            confirmed = {line[1] for line in lines if line[0] == "r"}
            there = {fit.receipt for fit in Ledger(place).account("census").fits}
            if missing := len((known | confirmed) - there):
                tally.defect(f"{missing} confirmed charges are lost")
            if len(there - known - confirmed) > sum(line == ["uncertain"] for line in lines):
                tally.defect("a charge was made that was said not to be recorded")
            if not verify(place).ok:
                tally.defect("the record is damaged")
            known = there
