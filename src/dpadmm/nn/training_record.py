"""A training on disk, in one SQLite file: killed at any moment, it goes on with the next step and fresh noise.

The file holds the weights that training began with, the state of the gate and every noisy answer. All of these are
public or released; neither rows nor noise nor the state of a generator are in it. Later weights follow from answers.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpadmm.errors import FileProblem, PromiseBroken
from dpadmm.files import usable_path
from dpadmm.privacy.plan import Plan
from dpadmm.stored_json import parse, reading, unreadable

VERSION = 2
WHAT = "the record of a training"
TABLES = """
CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS answers (step INTEGER PRIMARY KEY, answer BLOB NOT NULL);
"""


@dataclass(frozen=True, eq=False)
class Beginning:
    """What a training is before its first step.

    Attributes
    ----------
    plan : Plan
        What will be asked.
    weights : bytes
        The numbers of the network, as a file of NumPy.
    receipt : str
        Of the ledger, or nothing.
    """

    plan: Plan
    weights: bytes
    receipt: str
    seeded: bool


class TrainingRecord:
    """Keeps each answer, with the state of the gate, before anybody sees it.

    While a record is open no other process can open it: SQLite holds a lock that ends with the process.
    """

    def __init__(self, connection: sqlite3.Connection, precision: type[np.floating[Any]]) -> None:
        self._connection, self._precision = connection, precision

    @property
    def has_begun(self) -> bool:
        return self._fact("plan") is not None

    def begin(self, beginning: Beginning) -> None:
        """Note a new training; nothing is asked before this is on the disk."""
        facts = {
            "version": str(VERSION),
            "plan": beginning.plan.digest,
            "weights": beginning.weights,
            "receipt": beginning.receipt,
            "seeded": "yes" if beginning.seeded else "no",
        }
        with self._connection as transaction:
            transaction.executemany("INSERT INTO facts VALUES (?, ?)", facts.items())

    def resumed(self, plan: Plan) -> Beginning:
        """What was noted at the beginning; refused if it was of another plan, or has ended."""
        if self._fact("version") != str(VERSION):
            raise unreadable(WHAT, "of another version")
        if self._fact("plan") != plan.digest:
            raise PromiseBroken(
                "Got the record of a training by another plan. Expected one of the same budget, rows, rate, steps and "
                "clip. Train with the settings it was begun with, or choose another file."
            )
        if self._fact("finished") is not None:
            raise PromiseBroken(
                "Got the record of a training that has ended. Expected one that was interrupted. Use what it returned, "
                "or choose another file, which costs the budget again."
            )
        weights, receipt = self._fact("weights"), self._fact("receipt")
        if not isinstance(weights, bytes) or not isinstance(receipt, str):
            raise unreadable(WHAT, "without the weights it began with")
        return Beginning(plan, weights, receipt, self._fact("seeded") != "no")

    @property
    def gate_state(self) -> dict[str, Any] | None:
        """What was asked so far; None before the first answer."""
        stored = self._fact("gate")
        return None if stored is None else parse(stored, "the state of a gate")

    @property
    def answers(self) -> list[NDArray[Any]]:
        """All answers so far, in their order."""
        stored = self._connection.execute("SELECT step, answer FROM answers ORDER BY step").fetchall()
        numbers = [number for number, _ in stored]
        if numbers != list(range(self.answered)) or not all(isinstance(content, bytes) for _, content in stored):
            raise unreadable(WHAT, "without an answer to each question")
        return [np.frombuffer(content, dtype=self._precision) for _, content in stored]

    @property
    def answered(self) -> int:
        """How many answers the gate has counted."""
        state = self.gate_state
        with reading("the state of a gate"):
            return 0 if state is None else sum(answered for _, answered in state["queries"].values())

    def keep(self, gate_state: dict[str, Any], kind: str, answer: Any) -> None:
        """One transaction, on the disk before this returns."""
        content = np.asarray(answer, dtype=self._precision).tobytes()
        with self._connection as transaction:
            transaction.execute("INSERT OR REPLACE INTO facts VALUES ('gate', ?)", (json.dumps(gate_state),))
            transaction.execute(
                "INSERT INTO answers SELECT count(*), ? FROM answers",
                (content,),
            )

    def finish(self) -> None:
        """Note that the result was released; the answers are no longer needed, and go."""
        with self._connection as transaction:
            transaction.execute("INSERT INTO facts VALUES ('finished', 'yes')")
            transaction.execute("DELETE FROM answers")

    def _fact(self, name: str) -> Any:
        found = self._connection.execute("SELECT value FROM facts WHERE name = ?", (name,)).fetchone()
        return None if found is None else found[0]


@contextmanager
def training_record(place: object, precision: type[np.floating[Any]]) -> Iterator[TrainingRecord]:
    """The record in a file, which is made if it is not there."""
    path = usable_path(place, WHAT)
    if not path.parent.is_dir():
        raise FileProblem(f"{path}, in a folder that does not exist", "a folder that does", "make the folder first")
    connection = None
    try:
        connection = _locked(path)
        yield TrainingRecord(connection, precision)
    except sqlite3.Error as problem:
        raise _refusal(path, problem) from None
    finally:
        if connection is not None:
            connection.close()


def _locked(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=0.0)
    try:
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        connection.execute("PRAGMA synchronous = EXTRA")
        connection.execute("BEGIN EXCLUSIVE")  # the lock stays until the connection is closed
        connection.commit()
        connection.executescript(TABLES)
    except BaseException:
        connection.close()
        raise
    return connection


def _refusal(path: Path, problem: sqlite3.Error) -> FileProblem:
    if getattr(problem, "sqlite_errorcode", None) == sqlite3.SQLITE_BUSY:
        return FileProblem(
            f"{path}, which another process trains with", "a file that nobody else uses", "wait until it has ended"
        )
    return FileProblem(
        f"{path}, which is no record of a training, or cannot be written",
        "a new file, or one that dpadmm.nn.fit began, on a disk with space",
        "choose another file, or free some space and train on with this one",
    )
