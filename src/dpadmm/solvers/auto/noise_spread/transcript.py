"""What an oracle answered to a solver: noisy numbers that were paid for, kept so that they can be looked at again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from dpadmm.errors import QueryRefused
from dpadmm.privacy.questions import MOMENTS, SECOND_MOMENT, Kind
from dpadmm.problem.hidden_pass_program import Program
from dpadmm.problem.problem import Problem
from dpadmm.problem.regularizers import Zero
from dpadmm.problem.spiked_map import SpikedMap
from dpadmm.solvers.auto.solver import Auto, AutoState
from dpadmm.solvers.base import Oracle, Solver

A = TypeVar("A")
Array = NDArray[np.float64]

QUICK_FEATURES = 400
"""Up to here a replay takes some hundredths of a second, if there is no penalty."""


@dataclass(frozen=True, eq=False)
class Transcript:
    """The answers to one run of `auto`, in the order they were given, with the public numbers of the run.

    `noise` is the public standard deviation of the noise on each kind of answer.
    """

    solver: Auto
    problem: Problem
    noise: dict[str, float]
    answers: tuple[tuple[str, Any], ...]

    def answers_to(self, kind: Kind[A]) -> tuple[A, ...]:
        """All answers of one kind."""
        return tuple(answer for asked, answer in self.answers if asked == kind)

    @property
    def moments(self) -> tuple[Array, Array]:
        return self.answers_to(MOMENTS)[0]

    @property
    def second_moment(self) -> Array | None:
        return next(iter(self.answers_to(SECOND_MOMENT)), None)

    @property
    def penalised(self) -> bool:
        """Whether each round of a replay runs an ADMM of its own."""
        return not (isinstance(self.problem.regularizer, Zero) and self.problem.constraint.is_identity)

    @property
    def quick(self) -> bool:
        """Whether replays take a second or so."""
        return not self.penalised and self.problem.shape[0] <= QUICK_FEATURES

    def final_state(self) -> AutoState:
        """Where the run ended, by giving the solver the same answers again."""
        return self.solver.all_steps(self.problem, Tape(self), lambda step: None)


class Listener:
    """Passes on every question of a solver to an oracle, and keeps the answers."""

    def __init__(self, oracle: Oracle) -> None:
        self._oracle = oracle
        self.heard: list[tuple[str, Any]] = []

    def ask(self, kind: Kind[A], *at: Any) -> A:
        answer = self._oracle.ask(kind, *at)
        self.heard.append((kind, answer))
        return answer

    def walk(self, program: Program, tick: Callable[[int], None] | None = None) -> tuple[Array, Array]:
        raise QueryRefused("hidden passes have no transcript")

    def change_coordinates(self, matrix: Array | SpikedMap) -> None:
        self._oracle.change_coordinates(matrix)

    def noise_std(self, kind: str) -> float:
        return self._oracle.noise_std(kind)

    def transcript(self, solver: Solver[Any], problem: Problem) -> Transcript:
        noise = {kind: self.noise_std(kind) for kind, _ in self.heard}
        # Only this solver has transcripts: the others say so in `why_no_transcript`.
        return Transcript(cast(Auto, solver), problem, noise, tuple(self.heard))


class Tape:
    """An oracle that gives the answers of a transcript again, those of each kind in their order, whatever is asked."""

    def __init__(self, transcript: Transcript) -> None:
        self._noise = transcript.noise
        self._answers: dict[str, Iterator[Any]] = {
            kind: iter(transcript.answers_to(Kind(kind))) for kind in transcript.noise
        }

    def ask(self, kind: Kind[A], *at: Any) -> A:
        answer: A | None = next(self._answers.get(kind, iter(())), None)
        if answer is None:
            raise QueryRefused(f"the transcript holds no more answers to {kind!r}")
        return answer

    def walk(self, program: Program, tick: Callable[[int], None] | None = None) -> tuple[Array, Array]:
        raise QueryRefused("hidden passes have no transcript")

    def change_coordinates(self, matrix: Array | SpikedMap) -> None:
        """Answers are in the coordinates in which they were given."""

    def noise_std(self, kind: str) -> float:
        return self._noise[kind]
