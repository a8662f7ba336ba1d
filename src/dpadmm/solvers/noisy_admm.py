"""noisy-admm: noisy gradient ADMM with one row an iteration, of which only the last state is seen.

Chan, Xie & Zhao 2024, Algorithm 1. The passes happen inside the oracle (`dpadmm.problem.hidden_pass_program` says
what a visit to a row does), because later noise hides a row only from those who never saw the state in between. So
there is nothing to average, to watch or to stop early. `dpadmm plan --solver noisy-admm` shows what else the same
promise would buy.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from dpadmm.errors import UnsupportedProblem
from dpadmm.privacy.accountants.gaussian import gaussian_epsilon
from dpadmm.privacy.budget import Budget
from dpadmm.privacy.calibration import calibrate
from dpadmm.privacy.passage import NOISY_PASS, Passage
from dpadmm.privacy.plan import Request
from dpadmm.privacy.questions import HiddenWalk
from dpadmm.privacy.sampling import Everything
from dpadmm.privacy.state_grid import Footing
from dpadmm.problem.checks import count
from dpadmm.problem.hidden_pass_program import Program
from dpadmm.problem.problem import Problem
from dpadmm.problem.smoothers import Identity, Smoother
from dpadmm.solvers import admm
from dpadmm.solvers.base import SOLVERS, Oracle, Setting, Solution, Tick, Traits

Array = NDArray[np.float64]

COUPLING = 0.2
"""Default ηβ‖A‖². More hides earlier rows sooner, but shortens the step and not the noise."""

VISITS, MOST_PASSES = 500_000, 30
"""Default passes make about so many visits: the noise of a visit grows more slowly than the root of the passes."""

REACH, REGRESSION_REACH = 1.0, 0.25
"""Standard deviation that noise may give each coefficient in a default fit, times `row_norm`; regression, whose
coefficients are smaller, gets a quarter, as it does of the travel of other solvers."""

USUAL_DELTA = 1e-5
"""δ at which a default step looks up the noise to expect; the plan itself is made for the δ of the budget."""


@dataclass(frozen=True, eq=False)
class Visiting:
    """The program that all passes follow, and the state once it is released."""

    program: Program
    released: tuple[Array, Array] | None = None


@SOLVERS.register("noisy-admm")
@dataclass(frozen=True)
class NoisyADMM(Traits):
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
    hidden: ClassVar[bool] = True

    def __post_init__(self) -> None:
        admm.require_whole(n_rows=self.n_rows, steps=self.steps)
        admm.require_positive(step_size=self.step_size, beta=self.beta)
        admm.require_known(convexity=self.convexity)

    @classmethod
    def default(cls, problem: Problem, setting: Setting, batch_size: int, **chosen: Any) -> Self:
        """Up to 30 passes; a step that lets noise accumulate to `REACH`; ηβ‖A‖² = `COUPLING`."""
        usual = min(max(round(VISITS / setting.n_rows), 1), MOST_PASSES)
        passes = count("steps", chosen.setdefault("steps", usual), minimum=1)
        strength = max(problem.constraint.norm_squared, 1e-12)
        if "step_size" not in chosen:
            # The noise depends on η through ηβ only, so that any small step will do to ask for it.
            trial = 0.5 / problem.smoothness
            noise = _expected_noise(Program(problem, trial, COUPLING / (trial * strength)), setting, passes)
            # One visit adds η·noise to each coefficient, and all of them together √visits times as much.
            reach = (REACH if problem.loss.curvature_fades else REGRESSION_REACH) / problem.row_norm
            chosen["step_size"] = min(reach / (noise * math.sqrt(passes * setting.n_rows)), trial)
        admm.require_positive(step_size=chosen["step_size"])
        chosen.setdefault("beta", COUPLING / (chosen["step_size"] * strength))
        return cls(**{"n_rows": setting.n_rows, **chosen})

    def requests(self, problem: Problem, clip_norm: float) -> tuple[Request, ...]:
        footing = Footing.of(self._program(problem), self.n_rows, self.steps, clip_norm)
        passage = Passage.of(footing)
        return (Request(NOISY_PASS, self.steps, HiddenWalk(clip_norm, passage)),)

    def init(self, problem: Problem) -> Visiting:
        return Visiting(self._program(problem))

    def update(self, state: Visiting, problem: Problem, oracle: Oracle) -> Visiting:
        """All passes at once: no state between them is ever seen."""
        return replace(state, released=oracle.walk(state.program))

    def all_steps(self, problem: Problem, oracle: Oracle, tick: Tick) -> Visiting:
        state = self.init(problem)
        return replace(state, released=oracle.walk(state.program, tick))

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


def _expected_noise(program: Program, setting: Setting, passes: int) -> float:
    """Noise on one row's gradient, as large as for the budget with the same Gaussian at δ = `USUAL_DELTA`."""
    delta = min(USUAL_DELTA, 0.5 / setting.n_rows)
    budget = Budget(max(gaussian_epsilon(setting.gaussian_mu, delta), 1e-3), delta)
    footing = Footing.of(program, setting.n_rows, passes, setting.clip_norm)
    request = Request(NOISY_PASS, passes, HiddenWalk(setting.clip_norm, Passage.of(footing)))
    return calibrate(budget, [request], Everything(), setting.n_rows).queries[0].noise_std
