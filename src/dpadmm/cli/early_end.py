"""When a command ends early, its message says whether the budget was spent and what was written."""

from __future__ import annotations

import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, Self

from dpadmm.errors import SPENT, DpadmmError, UncertainCharge
from dpadmm.signals import ENDING


class Stopped(BaseException):
    """Ctrl-C or a request to terminate, with the number of its signal."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


class Outcome(str):
    """A sentence about budget and output that may be printed with an error."""

    spent: bool

    def __new__(cls, text: str, spent: bool) -> Self:
        outcome = super().__new__(cls, text)
        outcome.spent = spent
        return outcome

    @classmethod
    def of(cls, error: BaseException) -> Outcome | None:
        """What was noted with an error, if anything was."""
        notes = getattr(error, "__notes__", ())
        spent = cls("Training had begun: nothing was released, and the budget counts as spent.", True)
        return next((note for note in notes if isinstance(note, cls)), spent if SPENT in notes else None)


class Training:
    """A command that spends a budget and writes a model.

    Whatever ends the block early is given a note that says whether the budget was spent and the model written. A model
    that was paid for and cannot be written where it should be is saved in a folder for temporary files, if that works.

    Parameters
    ----------
    out : Path
        Where the model is written.
    dataset : str or None
        What a ledger is charged for, if there is one.
    """

    def __init__(self, out: Path, dataset: str | None = None) -> None:
        self._out = out
        self._charged = "" if dataset is None else f" and stays charged to {dataset}"
        self._model: Any = None
        self._written = False

    def trained(self, model: Any) -> None:
        """From here on there is a model."""
        self._model = model

    def written(self) -> None:
        """From here on the model is on the disk."""
        self._written = True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        if problem is None:
            return
        outcome = self._outcome(problem)
        if isinstance(problem, KeyboardInterrupt):
            # Typer would turn it into an exit code and lose the note.
            problem = Stopped(signal.SIGINT)
            problem.add_note(outcome)
            raise problem from None
        problem.add_note(outcome)

    def _outcome(self, problem: BaseException) -> Outcome:
        if self._written:
            return Outcome(f"The model is complete in {self._out}; its budget is spent{self._charged}.", True)
        if self._model is not None:
            return Outcome(
                f"The model was trained, so its budget is spent{self._charged}; nothing was written to {self._out}. "
                + self._rescue(problem),
                True,
            )
        if SPENT in getattr(problem, "__notes__", ()):
            begun = "Training had begun: nothing was released, nothing was written, and the budget counts as spent"
            return Outcome(f"{begun}{self._charged}.", True)
        if isinstance(problem, UncertainCharge):
            maybe = "Training had not begun and nothing was written, but the ledger may have recorded the charge"
            return Outcome(f"{maybe}: if `dpadmm ledger show` has it, the budget counts as spent.", True)
        return Outcome("Training had not begun: no budget was used, and nothing was written.", False)

    def _rescue(self, problem: BaseException) -> str:
        lost = "The model is lost."
        if not isinstance(problem, Exception):
            return lost
        try:
            folder = Path(tempfile.mkdtemp(prefix="dpadmm-model-"))
        except OSError:
            return lost
        try:
            self._model.save(folder)
        except (OSError, DpadmmError):
            with suppress(OSError):
                folder.rmdir()
            return lost
        return f"The model, without its report, is in {folder}: move it from there; dpadmm.load_model opens it."


@contextmanager
def stopping() -> Iterator[None]:
    """Turn the signals that end a program into `Stopped`, so that it can tidy up and say what happened."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise Stopped(number)

    for number in ENDING:
        # Whoever starts a program in the background may have it ignore Ctrl-C.
        if signal.getsignal(number) not in (signal.SIG_IGN, None):
            signal.signal(number, stop)
    try:
        yield
    except Stopped as again:
        sys.exit(128 + again.number)
