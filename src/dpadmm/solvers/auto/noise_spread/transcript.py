"""What an oracle answered to `auto`: noisy numbers that were paid for, kept so that they can be looked at again."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpadmm.errors import QueryRefused
from dpadmm.problem.hidden_pass_program import Program
from dpadmm.problem.problem import Problem
from dpadmm.problem.regularizers import Zero
from dpadmm.problem.spiked_map import SpikedMap
from dpadmm.solvers.auto.solver import Auto, AutoState
from dpadmm.solvers.base import Oracle, Solver

Array = NDArray[np.float64]

QUICK_FEATURES = 400
"""Up to here a replay takes some hundredths of a second, if there is no penalty."""


class AutoOracle:
    """Refuses what `auto` never asks of a table with a second moment."""

    def difference(self, x: Array, anchor: Array, clip_norm: float, kind: str = "difference") -> Array:
        raise QueryRefused(f"a transcript of auto holds no {kind!r}")

    def row_moments(self) -> tuple[Array, ...]:
        raise QueryRefused("a transcript of auto holds no row moments")

    def noisy_pass(self, program: Program) -> None:
        raise QueryRefused("a transcript of auto holds no hidden passes")

    def last_state(self) -> tuple[Array, Array]:
        raise QueryRefused("a transcript of auto holds no hidden passes")


@dataclass(frozen=True, eq=False)
class Transcript:
    """The answers to one run of `auto`, in the order they were given, with the public numbers of the run.

    `noise` is the public standard deviation of the noise on each kind of answer.
    """

    solver: Auto
    problem: Problem
    noise: dict[str, float]
    moments: tuple[Array, Array]
    gradients: tuple[tuple[str, Array], ...]
    second_moment: Array | None = None
    curvatures: tuple[Array, ...] = ()

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
        oracle, state = Tape(self), self.solver.init(self.problem)
        for _ in range(self.solver.steps):
            state = self.solver.update(state, self.problem, oracle)
        return state


@dataclass(eq=False)
class Listener(AutoOracle):
    """Passes on every question and answer of a run of `auto`, and keeps the answers."""

    oracle: Oracle
    heard_moments: list[tuple[Array, Array]] = field(default_factory=list)
    heard_gradients: list[tuple[str, Array]] = field(default_factory=list)
    heard_second_moments: list[Array] = field(default_factory=list)
    heard_curvatures: list[Array] = field(default_factory=list)

    def moments(self) -> tuple[Array, Array]:
        self.heard_moments.append(self.oracle.moments())
        return self.heard_moments[-1]

    def gradient(self, x: Array, kind: str = "gradient") -> Array:
        answer = self.oracle.gradient(x, kind)
        self.heard_gradients.append((kind, answer))
        return answer

    def second_moment(self) -> Array:
        self.heard_second_moments.append(self.oracle.second_moment())
        return self.heard_second_moments[-1]

    def feature_curvature(self, x: Array, weights: Array) -> Array:
        self.heard_curvatures.append(self.oracle.feature_curvature(x, weights))
        return self.heard_curvatures[-1]

    def change_coordinates(self, matrix: Array | SpikedMap) -> None:
        self.oracle.change_coordinates(matrix)

    def noise_std(self, kind: str) -> float:
        return self.oracle.noise_std(kind)

    def transcript(self, solver: Solver[Any], problem: Problem) -> Transcript:
        assert isinstance(solver, Auto)
        kinds = ["moments", *dict.fromkeys(kind for kind, _ in self.heard_gradients)]
        kinds += ["second moment"] if self.heard_second_moments else []
        kinds += ["curvature"] if self.heard_curvatures else []
        return Transcript(
            solver,
            problem,
            {kind: self.noise_std(kind) for kind in kinds},
            self.heard_moments[0],
            tuple(self.heard_gradients),
            self.heard_second_moments[0] if self.heard_second_moments else None,
            tuple(self.heard_curvatures),
        )


class Tape(AutoOracle):
    """An oracle that gives the answers of a transcript again, whatever is asked."""

    def __init__(self, transcript: Transcript) -> None:
        self._transcript, self._gradients = transcript, iter(transcript.gradients)
        self._curvatures = iter(transcript.curvatures)

    def moments(self) -> tuple[Array, Array]:
        return self._transcript.moments

    def gradient(self, x: Array, kind: str = "gradient") -> Array:
        return next(self._gradients)[1]

    def second_moment(self) -> Array:
        if self._transcript.second_moment is None:
            raise QueryRefused("the transcript holds no second moment")
        return self._transcript.second_moment

    def feature_curvature(self, x: Array, weights: Array) -> Array:
        return next(self._curvatures)

    def change_coordinates(self, matrix: Array | SpikedMap) -> None:
        pass

    def noise_std(self, kind: str) -> float:
        return self._transcript.noise[kind]
