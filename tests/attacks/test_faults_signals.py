"""Ctrl-C, termination and kills at every stage: no lost charge, no half output, nothing left, and a true message."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from dpadmm.privacy.ledger import verify

from .campaign import Campaign
from .faulty import (
    COUNT,
    SAVED,
    SIGNAL,
    Ending,
    FaultyProcess,
    charges,
    each_case,
    faulty_process,
    leftovers,
    saved,
    trained,
)

STAGES = {
    "before the table is read": "unused",
    "before the charge": "spent",
    "after the charge": "spent",
    "in training": "spent",
    "after training": "spent",
    "after the commit": "spent",
    "before writing": "spent",
    "after writing": "spent",
    "in telling": "spent",
}
"""Where a fit is stopped, and what its message must say: on the way to a charge, the careful answer."""
NUMBERS = (signal.SIGINT, signal.SIGTERM)
STOPPED = Campaign(
    "faults",
    "`dpadmm fit` is interrupted or terminated before every request to the disk and at every stage",
    "termination left hidden folders and said nothing; an interruption never said whether the budget was spent",
    sample=8,
    full=900,
)
SAVING = Campaign(
    "faults",
    "`save` and the making of a ledger are interrupted or terminated before every request to the disk",
    "an interrupted `save` left half of a model, a terminated one a hidden file",
    sample=20,
    full=500,
)
KILLED = Campaign(
    "faults",
    "`dpadmm fit` is killed before every request to the disk: the output is whole or not there, the charge recorded",
    "none",
    sample=5,
    full=300,
)


@pytest.fixture(scope="module")
def faulty() -> Iterator[FaultyProcess]:
    with faulty_process() as process:
        yield process


def requests(faulty: FaultyProcess, task: str) -> range:
    """The numbers of the requests to the disk that a task makes, removals included."""
    return range(1, faulty.carry_out(task, faulty.folder(), how=SIGNAL, code=0).count + 1)


def test_stopped_fits(faulty: FaultyProcess) -> None:
    every: list[tuple[str, int, str]] = [
        ("fit", number, str(nth)) for nth in requests(faulty, "fit") for number in NUMBERS
    ]
    every += [("fit over a model", NUMBERS[nth % 2], str(nth)) for nth in requests(faulty, "fit over a model")]
    with STOPPED.begin() as tally:
        for task, number, nth in each_case(tally, every):
            folder = faulty.folder()
            end = faulty.carry_out(task, folder, nth=int(nth), how=SIGNAL, code=int(number))
            before = faulty.template / "trained" if "over" in task else None
            for what in wrong_stop(end, number, folder, before):
                tally.defect(f"{task}, request {nth}, {number.name}: {what}: {end.words[:300]}")


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("stage", STAGES)
def test_fits_stopped_at_each_stage(faulty: FaultyProcess, stage: str, number: signal.Signals) -> None:
    folder = faulty.folder()
    end = faulty.carry_out("fit", folder, how=COUNT, stage=stage, code=int(number))
    assert wrong_stop(end, number, folder, None) == [], end.words
    assert ("no budget was used" in end.words) == (STAGES[stage] == "unused"), end.words


def wrong_stop(end: Ending, number: signal.Signals, folder: Path, before: Path | None) -> list[str]:
    """What is not as it must be after a fit that was stopped."""
    wrong = []
    if end.code != 128 + number or end.error or "Traceback" in end.words or "Exception ignored" in end.words:
        wrong.append(f"exit code {end.code}, {end.error}")
    complete = "is complete in" in end.words
    found = trained(folder / ("model" if before is None else "trained"), before)
    if found != ("new" if complete else "none" if before is None else "old"):
        wrong.append(f"the output is {found}")
    if left := leftovers(folder):
        wrong.append(f"left {left}")
    said_spent, said_unused = "budget is spent" in end.words or "counts as spent" in end.words, "no budget" in end.words
    charged, committed = charges(folder)
    if said_spent == said_unused or (said_unused and charged) or (complete and not committed):
        wrong.append(f"{charged} charges, {committed} committed")
    return wrong


TASKS = (*SAVED, "new ledger")


def test_stopped_saves(faulty: FaultyProcess) -> None:
    every = [(task, nth, number) for task in TASKS for nth in requests(faulty, task) for number in NUMBERS]
    with SAVING.begin() as tally:
        for task, nth, number in each_case(tally, every):
            folder, (name, before) = faulty.folder(), SAVED.get(task, ("fresh.db", ""))
            end = faulty.carry_out(task, folder, nth=nth, how=SIGNAL, code=int(number))
            case = f"{task}, request {nth}, {number.name}"
            if task in SAVED and saved(folder / name) not in ("new", before):
                tally.defect(f"{case}: {saved(folder / name)}")
            if task not in SAVED and (folder / name).exists() and verify(folder / name).problems:
                tally.defect(f"{case}: a damaged ledger")
            if left := leftovers(folder):
                tally.defect(f"{case}: left {left}")
            # By default termination ends the process: it still does, after tidying up.
            if (end.status, end.error) != ((-15, None) if number == signal.SIGTERM else (0, "KeyboardInterrupt")):
                tally.defect(f"{case}: ended with {end.status}, {end.error}")


def test_killed_fits(faulty: FaultyProcess) -> None:
    with KILLED.begin() as tally:
        for nth in each_case(tally, list(requests(faulty, "fit"))):
            folder = faulty.folder()
            end = faulty.carry_out("fit", folder, nth=nth, how=SIGNAL, code=int(signal.SIGKILL))
            found, (charged, committed) = trained(folder / "model"), charges(folder)
            if end.status != -9 or found == "half" or (found == "new" and not committed):
                tally.defect(f"request {nth}: status {end.status}, output {found}, {charged} charged, {committed}")
            if any(not name.startswith(".dpadmm-") for name in leftovers(folder)):
                tally.defect(f"request {nth}: left {leftovers(folder)}")
