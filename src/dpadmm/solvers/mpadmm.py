"""mpADMM: model perturbation (Chen & Lee 2020, Algorithm 2), with the right sensitivity and noise on x alone.

One full-data step a release: x ← [x/η + β(y − λ) − g]·η/(1 + ηβ) + N(0, σ_x²), then y and λ from the noisy x.
Replacing one record moves x by at most Δ_x = 2lη/(n(1 + ηβ)); the paper's (24) lacks the η. Since the step is linear
in g, noise σ_x on x is noise σ_x(β + 1/η) on the gradient, which is how the oracle adds it: what is charged is a mean
of clipped gradients (docs/proofs/sensitivity.md, Claim 1).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

from dpadmm.privacy.plan import Request
from dpadmm.privacy.questions import GRADIENT, ClippedGradient
from dpadmm.problem.problem import Problem
from dpadmm.problem.smoothers import Identity, Smoother
from dpadmm.solvers import admm
from dpadmm.solvers.base import SOLVERS, Oracle, Setting


@SOLVERS.register("mpadmm")
@dataclass(frozen=True)
class MPADMM(admm.AveragedADMM):
    """Parameters
    ----------
    steps : int
        T, the number of epochs and of releases.
    step_size : float
        Constant η, capped by 1/(2g).
    beta : float
        Penalty parameter, 0.5 in the paper.
    averaging : {"all", "tail", "linear", "last"} or float
        The paper returns the last iterate.
    smoother : Smoother
        Post-processing of the noisy direction.
    """

    steps: int
    step_size: float
    beta: float = 0.5
    averaging: admm.Averaging = "tail"
    smoother: Smoother = field(default_factory=Identity)

    name: ClassVar[str] = "mpadmm"
    samples: ClassVar[bool] = False
    numbers_per_weight: ClassVar[int] = 18

    def __post_init__(self) -> None:
        admm.require_whole(steps=self.steps)
        admm.require_positive(step_size=self.step_size, beta=self.beta)
        admm.require_known(averaging=self.averaging)

    @classmethod
    def default(cls, problem: Problem, setting: Setting, batch_size: int, **chosen: Any) -> Self:
        """As many steps as the travel needs at the largest stable step, between 30 and 1000."""
        chosen.setdefault("beta", admm.default_beta(cls.beta, problem))
        return cls(**admm.full_data_schedule(problem, setting, chosen, longest=1000))

    def requests(self, problem: Problem, clip_norm: float) -> tuple[Request, ...]:
        return (Request(GRADIENT, self.steps, ClippedGradient(clip_norm), full_data=True),)

    def model_gain(self, problem: Problem) -> float:
        """η/(1 + ηβ): how far x moves per unit of gradient, so that Δ_x = 2l/n times this."""
        return admm.stable_step(admm.capped(self.step_size, problem), self.beta, problem)

    def update(self, state: admm.AveragedState, problem: Problem, oracle: Oracle) -> admm.AveragedState:
        return self.advance(state, oracle.ask(GRADIENT, state.x), self.model_gain(problem), y_first=False)
