"""Signals that end a program, held back where a step must be finished or undone first."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any, Self

ENDING = (signal.SIGINT, signal.SIGTERM)


class _Ended(BaseException):
    """A signal arrived whose default is to end the process without tidying up."""


class HeldSignals:
    """A block that Ctrl-C and termination do not cut in two.

    Signals that arrive in the block wait for its end, except within `let_through`. There they have their usual effect,
    but one that would end the process at once is an exception first, so that the block can tidy up. Python runs signal
    handlers in the main thread alone: in other threads there is nothing to hold back.
    """

    def __init__(self) -> None:
        self._waiting: list[int] = []
        self._holding = True
        self._usual: dict[int, Any] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            found = {number: signal.getsignal(number) for number in ENDING}
            self._usual = {number: usual for number, usual in found.items() if usual not in (None, signal.SIG_IGN)}
            for number in self._usual:
                signal.signal(number, self._arrived)
        return self

    @contextmanager
    def let_through(self) -> Iterator[None]:
        """A part of the block that may be interrupted."""
        self._holding = False
        try:
            for number in self._taken():
                self._arrived(number, None)
            yield
        finally:
            self._holding = True

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, usual in self._usual.items():
            signal.signal(number, usual)
        for number in self._taken():
            signal.raise_signal(number)

    def _arrived(self, number: int, frame: FrameType | None) -> None:
        usual: Callable[[int, FrameType | None], Any] | signal.Handlers = self._usual[number]
        if self._holding:
            self._waiting.append(number)
        elif callable(usual) and not isinstance(usual, signal.Handlers):
            usual(number, frame)
        else:
            # Asked for again when the block has tidied up, which then ends the process.
            self._waiting.append(number)
            raise _Ended

    def _taken(self) -> list[int]:
        taken, self._waiting = self._waiting, []
        return taken
