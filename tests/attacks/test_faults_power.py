"""The power fails between any two requests: what was confirmed is there, and no output is there in half."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from dpadmm import Ledger
from dpadmm.errors import FileProblem
from dpadmm.privacy.ledger import verify

from .campaign import Campaign
from .faulty import FaultyProcess, charges, each_case, faulty_process, saved, trained
from .power import Disk, Request, read_record

OUTPUTS = Campaign(
    "faults",
    "the power fails between any two requests of `save` and `dpadmm fit`; what was not flushed is lost, or some of it",
    "models and outputs were not flushed: a reported one could be empty files after a power cut",
    sample=40,
    full=1500,
)
CHARGES = Campaign(
    "faults",
    "the power fails between any two requests of a ledger: every confirmed charge is there, and the record is sound",
    "none",
    sample=30,
    full=1200,
)
CHANCES = (None, 1, 2)
"""After each request: the least that may be left, and two draws of what may be left."""


@pytest.fixture(scope="module")
def faulty() -> Iterator[FaultyProcess]:
    with faulty_process() as process:
        yield process


def record_of(faulty: FaultyProcess, task: str) -> tuple[str, list[Request]]:
    """The folder in which a task was done, and its requests."""
    folder, log = faulty.folder(), faulty.notes / "record"
    log.unlink(missing_ok=True)
    assert faulty.carry_out(task, folder, log=str(log)).succeeded
    return str(folder), read_record(log)


def cuts(faulty: FaultyProcess, tasks: list[str]) -> tuple[list[tuple[str, int, int | None]], dict]:
    records = {task: record_of(faulty, task) for task in tasks}
    every = [
        (task, done, chance)
        for task, (_, requests) in records.items()
        for done in range(len(requests) + 1)
        for chance in CHANCES
    ]
    return every, records


def left_after(faulty: FaultyProcess, record: tuple[str, list[Request]], done: int, chance: int | None) -> Path:
    """The folder after a power cut that follows `done` requests."""
    place, requests = record
    disk = Disk(faulty.template, place)
    for request in requests[:done]:
        disk.apply(request)
    target = faulty.notes / "after"
    shutil.rmtree(target, ignore_errors=True)
    disk.cut(target, None if chance is None else random.Random(1000 * done + chance))
    return target


def marked(requests: list[Request], done: int) -> list[str]:
    return [request.one for request in requests[:done] if request.kind == "mark"]


MODELS = {"save": "deep/saved", "save over a model": "old", "fit": "model", "fit over a model": "trained"}


def test_outputs_after_a_power_cut(faulty: FaultyProcess) -> None:
    with OUTPUTS.begin() as tally:
        every, records = cuts(faulty, list(MODELS))
        for task, done, chance in each_case(tally, every):
            folder = left_after(faulty, records[task], done, chance)
            where, over = folder / MODELS[task], "over" in task
            if task.startswith("save"):
                found = saved(where)
            else:
                found = trained(where, faulty.template / "trained" if over else None)
            case = f"{task}, after request {done}, {chance}"
            returned = "returned" in marked(records[task][1], done)
            if found not in ({"new"} if returned else {"new", "old" if over else "none"}):
                tally.defect(f"{case}: {found}")
            if task.startswith("fit") and found == "new" and charges(folder) != (1, 1):
                tally.defect(f"{case}: a model that was not paid for: {charges(folder)}")


def test_charges_after_a_power_cut(faulty: FaultyProcess) -> None:
    with CHARGES.begin() as tally:
        every, records = cuts(faulty, ["reserve and commit", "new ledger"])
        for task, done, chance in each_case(tally, every):
            folder = left_after(faulty, records[task], done, chance)
            marks = marked(records[task][1], done)
            case = f"{task}, after request {done}, {chance}"
            if task == "new ledger":
                if found := wrong_new(folder / "fresh.db", "returned" in marks):
                    tally.defect(f"{case}: {found}")
                continue
            if problems := verify(folder / "ledger.db").problems:
                tally.defect(f"{case}: {problems}")
                continue
            fits = Ledger(folder / "ledger.db").account("people").fits
            told = {tuple(mark.split()) for mark in marks if mark != "returned"}
            there = {("reserved", fit.receipt) for fit in fits}
            there |= {("committed", fit.receipt) for fit in fits if fit.committed}
            if not told <= there:
                tally.defect(f"{case}: lost {told - there}")


def wrong_new(path: Path, returned: bool) -> str:
    """What is wrong with a ledger that was being made."""
    if not path.exists():
        return "a ledger was lost" if returned else ""
    try:
        problems = verify(path).problems
    except FileProblem as problem:
        return str(problem)
    return str(problems) if problems else "" if not returned or Ledger(path).accounts else "a limit was lost"


def test_a_power_cut_without_flushes_would_be_seen(faulty: FaultyProcess) -> None:
    """The attack itself: with the flushes left out of the record, models and charges are lost."""
    for task, name in (("fit", "model"), ("save", "deep/saved")):
        place, requests = record_of(faulty, task)
        dry = (place, [request for request in requests if request.kind != "fsync"])
        folder = left_after(faulty, dry, len(dry[1]), None)
        assert not (folder / name).exists()
        if task == "fit":
            assert charges(folder) == (0, 0)
