"""Processes and threads that open, charge and close one ledger file all at once: every confirmed charge must stay."""

from __future__ import annotations

import multiprocessing
import os
import shutil
from functools import partial
from pathlib import Path
from threading import Thread

from dpadmm import Budget, Ledger
from dpadmm.errors import FileProblem
from dpadmm.privacy.ledger import verify
from tests.privacy.ledger_places import SMALL

from .campaign import Campaign

# `make attack` takes 40 of the 200 runs that a night has time for.
RUNS = int(os.environ.get("DPADMM_LEDGER_STRESS", "40"))
PROCESSES, THREADS, ROUNDS = 4, 4, 2
FORK = multiprocessing.get_context("fork")

STRESS = Campaign(
    "ledger",
    "4 processes of 4 threads open, read, charge, commit and close one file",
    "3 processes of 4 threads damaged 4 of 6 files and lost 2 confirmed charges",
    sample=5,
    full=RUNS,
)


def made(path) -> Ledger:
    ledger = Ledger.create(path)
    ledger.set_limit("census", Budget(50.0, 1e-5), owner="Ada")
    return ledger


def at_once(*works) -> None:
    """Run each in a process of its own, and wait for all."""
    running = [FORK.Process(target=work) for work in works]
    for process in running:
        process.start()
    for process in running:
        process.join()


def work(path, diary) -> None:
    threads = [
        Thread(target=spend, args=(path, diary.with_name(f"{diary.name}.{number}"))) for number in range(THREADS)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def spend(path, diary) -> None:
    """Charge, and write down, flushed, what was confirmed; look at the ledger in between."""
    with open(diary, "w", encoding="ascii") as stream:
        for number in range(ROUNDS):
            ledger = Ledger(path)
            receipt = ledger.reserve("census", SMALL)
            print("r", receipt, file=stream, flush=True)
            if number % 2:
                verify(path)
            Ledger(path).spent("census")
            ledger.commit(receipt, SMALL.event)
            print("c", receipt, file=stream, flush=True)


def lost(path, folder: Path, expected: int) -> list[str]:
    """What is wrong with a ledger, against the diaries of those who used it."""
    lines = [line.split() for diary in folder.glob("diary.*") for line in diary.read_text().splitlines()]
    reserved = {receipt for kind, receipt in lines if kind == "r"}
    committed = {receipt for kind, receipt in lines if kind == "c"}
    found = []
    if len(reserved) != expected or len(committed) != expected:
        found.append(f"{expected - len(committed)} of {expected} charges were refused or ended by an error")
    try:
        problems = verify(path).problems
        fits = Ledger(path).account("census").fits
    except FileProblem as problem:
        return [*found, f"the ledger cannot be read: {problem.given}"]
    there = [fit.receipt for fit in fits]
    if missing := len(reserved - set(there)) + len(committed - {fit.receipt for fit in fits if fit.committed}):
        found.append(f"{missing} confirmed entries are lost")
    if len(there) != len(set(there)):
        found.append("a charge was made twice")
    return [*found, *problems]


def test_threads_and_processes_on_one_file(tmp_path):
    with STRESS.begin() as tally:
        for run in tally.each():
            folder = tmp_path / str(run)
            folder.mkdir()
            path = folder / "ledger.db"
            made(path)
            at_once(*(partial(work, path, folder / f"diary.{n}") for n in range(PROCESSES)))
            for problem in lost(path, folder, PROCESSES * THREADS * ROUNDS):
                tally.defect(problem)
            shutil.rmtree(folder)
