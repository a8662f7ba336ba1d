"""noisy-admm: noisy gradient ADMM with one row an iteration, of which only the last state is seen.

Chan, Xie & Zhao 2024, Algorithm 1. The passes happen inside the oracle (`dpadmm.problem.program` says what a visit to
a row does), because later noise hides a row only from those who never saw the state in between. So there is nothing to
average, to watch or to stop early. `dpadmm plan --solver noisy-admm` shows what else the same promise would buy.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from dpadmm.errors import UnsupportedProblem
from dpadmm.privacy.passage import NOISY_PASS, Passage
from dpadmm.privacy.plan import Request
from dpadmm.problem.checks import count
from dpadmm.problem.problem import Problem
from dpadmm.problem.program import Program
from dpadmm.problem.smoothers import Identity, Smoother
from dpadmm.solvers import admm
from dpadmm.solvers.base import SOLVERS, Oracle, Setting, Solution

Array = NDArray[np.float64]

COUPLING = 0.2
"""Default ηβ‖A‖². More hides earlier rows sooner, but shortens the step and not the noise."""

VISITS, MOST_PASSES = 500_000, 30
"""Default passes make about so many visits: the noise of a visit grows more slowly than the root of the passes."""

AMPLIFIED, GROWTH = 0.6, 0.2
"""Noise of E passes over that of one Gaussian release, about 0.6·E^0.2; for choosing a step, not for accounting."""

REACH = 1.0
"""Standard deviation that noise may give each coefficient in a default fit, times `row_norm`."""


@dataclass(frozen=True, eq=False)
class Visiting:
    """Passes made so far, the program they follow, and the state once it is released."""

    passes: int
    program: Program
    released: tuple[Array, Array] | None = None


@SOLVERS.register("noisy-admm")
@dataclass(frozen=True)
class NoisyADMM:
    """Parameters
    ----------
    n_rows : int
        Public number of rows: visits in a pass.
    steps : int
        Passes, each in a fresh secret order; they compose, so that the noise grows with their root.
    step_size : float
        η, at most 1/L.
    beta : float
        Penalty parameter β.
    convexity : {"general", "strong"}
        With "strong" the quadratic part of the penalty joins the loss, and if there is no intercept earlier rows are
        forgotten exponentially.
    smoother : Smoother
        Must be the identity: no proof covers another.
    """

    n_rows: int
    steps: int
    step_size: float
    beta: float
    convexity: Literal["general", "strong"] = "general"
    smoother: Smoother = field(default_factory=Identity)

    name: ClassVar[str] = "noisy-admm"
    samples: ClassVar[bool] = False

    def __post_init__(self) -> None:
        admm.require_whole(n_rows=self.n_rows, steps=self.steps)
        admm.require_positive(step_size=self.step_size, beta=self.beta)
        admm.require_known(convexity=self.convexity)

    @classmethod
    def default(cls, problem: Problem, setting: Setting, batch_size: int, **chosen: Any) -> Self:
        """Up to 30 passes; a step that lets noise accumulate to `REACH`; ηβ‖A‖² = `COUPLING`."""
        usual = min(max(round(VISITS / setting.n_rows), 1), MOST_PASSES)
        passes = count("steps", chosen.setdefault("steps", usual), minimum=1)
        # One visit adds η·noise to each coefficient, and all of them together √visits times as much.
        alone = setting.record_distance * setting.clip_norm / setting.gaussian_mu
        noise = AMPLIFIED * passes**GROWTH * alone
        step = REACH / (noise * math.sqrt(passes * setting.n_rows) * problem.row_norm)
        step = chosen.setdefault("step_size", min(step, 0.5 / problem.smoothness))
        admm.require_positive(step_size=step)
        chosen.setdefault("beta", COUPLING / (step * max(problem.constraint.norm_squared, 1e-12)))
        return cls(**{"n_rows": setting.n_rows, **chosen})

    def requests(self, problem: Problem, clip_norm: float) -> tuple[Request, ...]:
        passage = Passage.of(self._program(problem), self.n_rows)
        return (Request(NOISY_PASS, self.steps, clip_norm, full_data=True, passage=passage),)

    def init(self, problem: Problem) -> Visiting:
        return Visiting(0, self._program(problem))

    def update(self, state: Visiting, problem: Problem, oracle: Oracle) -> Visiting:
        oracle.noisy_pass(state.program)
        passes = state.passes + 1
        return replace(state, passes=passes, released=oracle.last_state() if passes == self.steps else None)

    def finish(self, state: Visiting, problem: Problem) -> Solution:
        assert state.released is not None, "a run makes all its passes"
        x, dual = state.released
        y = state.program.auxiliary(x, dual)
        return Solution(problem.constraint.recover(x, y), x, y, self.steps)

    def _program(self, problem: Problem) -> Program:
        if type(self.smoother) is not Identity:
            raise UnsupportedProblem(
                "smoothing for hidden passes", "smoothing=None", "drop the smoothing, or use solver='full-admm'"
            )
        return Program(problem, self.step_size, self.beta)
