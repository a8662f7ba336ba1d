"""What the coordinator writes down: each question before it is sent, each total before it is used.

A question is sent again as the same bytes after a crash: computed once more, its last digits could differ, and another
question under an answered number is refused. Totals are public: each is noised by all silos.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dpadmm.files import replacing
from dpadmm.network.encoding import decode, encode
from dpadmm.network.messages import Ask, read_as
from dpadmm.stored_json import read_words, unreadable

Counts = NDArray[np.int64]


class Journal(Protocol):
    """Questions and totals of one run, over all its epochs."""

    skipped: int
    """How many questions were answered in earlier epochs."""

    def asked(self, question: Ask) -> Ask:
        """The question as it was written down first."""
        ...

    def answered(self, number: int, total: Counts) -> None: ...

    def answer(self, number: int) -> Counts | None:
        """The total of a question of the run, if it is known."""
        ...


class MemoryJournal:
    """For runs that need not outlive their process."""

    def __init__(self) -> None:
        self.skipped = 0
        self._totals: dict[int, Counts] = {}

    def begin_epoch(self) -> None:
        """What was answered so far is not asked again."""
        self.skipped = len(self._totals)

    def asked(self, question: Ask) -> Ask:
        return question

    def answered(self, number: int, total: Counts) -> None:
        self._totals[number] = total

    def answer(self, number: int) -> Counts | None:
        return self._totals.get(number)


class FolderJournal:
    """A folder with a file for each question and each total."""

    def __init__(self, folder: Path, epoch: int) -> None:
        self._folder, self._epoch = folder, epoch
        folder.mkdir(exist_ok=True)
        self.skipped = self._begun()

    def _begun(self) -> int:
        """Questions answered before this epoch, written down when it began."""
        place = self._folder / f"epoch-{self._epoch}.json"
        if not place.exists():
            known = len(list(self._folder.glob("total-*.bin")))
            with replacing(place) as stream:
                stream.write(json.dumps({"answered before": known}).encode())
        return int(json.loads(read_words(place))["answered before"])

    def asked(self, question: Ask) -> Ask:
        place = self._folder / f"question-{self._epoch}-{question.number}.bin"
        if not place.exists():
            with replacing(place) as stream:
                stream.write(encode(*question.content))  # type: ignore[arg-type]
        kept = read_as(Ask, decode(read_words(place)))
        if (kept.session, kept.kind) != (question.session, question.kind):
            raise unreadable("the journal of this run", "with questions of another session")
        return kept

    def answered(self, number: int, total: Counts) -> None:
        with replacing(self._folder / f"total-{number}.bin") as stream:
            stream.write(total.astype("<i8").tobytes())

    def answer(self, number: int) -> Counts | None:
        place = self._folder / f"total-{number}.bin"
        if not place.exists():
            return None
        return np.frombuffer(read_words(place), dtype="<i8").astype(np.int64)
