"""ssADMM: subsampled stochastic ADMM by gradient perturbation (Chen & Lee 2020, Algorithm 1), releasing the sparse y.

x ← [x/η + β(y − λ) − (g + u)]·η/(1 + ηβ);  y ← prox_{r/β}(x + λ);  λ ← λ + x − y   (equations 16–18, λ = dual/β).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

from dpadmm.privacy.plan import Request
from dpadmm.privacy.questions import GRADIENT, ClippedGradient
from dpadmm.problem.checks import count
from dpadmm.problem.problem import Problem
from dpadmm.problem.smoothers import Identity, Smoother
from dpadmm.solvers import admm
from dpadmm.solvers.base import SOLVERS, Oracle, Setting


@SOLVERS.register("ssadmm")
@dataclass(frozen=True)
class SSADMM(admm.AveragedADMM):
    """Parameters
    ----------
    steps : int
        T.
    step_size : float
        η₀; the step in epoch h is η₀/h, capped by 1/(2g).
    epoch_steps : int
        Steps that make one epoch.
    beta : float
        Penalty parameter, 0.25 in the paper.
    averaging : {"all", "tail", "linear", "last"} or float
        A number is the share at the end. The paper's theorem averages; its experiments return the
        last iterate.
    smoother : Smoother
        Post-processing of the noisy direction.
    """

    steps: int
    step_size: float
    epoch_steps: int
    beta: float = 0.25
    averaging: admm.Averaging = "tail"
    smoother: Smoother = field(default_factory=Identity)

    name: ClassVar[str] = "ssadmm"
    samples: ClassVar[bool] = True
    numbers_per_weight: ClassVar[int] = 18

    def __post_init__(self) -> None:
        admm.require_whole(steps=self.steps, epoch_steps=self.epoch_steps)
        admm.require_positive(step_size=self.step_size, beta=self.beta)
        admm.require_known(averaging=self.averaging)

    @classmethod
    def default(cls, problem: Problem, setting: Setting, batch_size: int, **chosen: Any) -> Self:
        """10 to 40 epochs; η₀ such that Σ η_t is the travel the noise allows."""
        epoch = max(1, math.ceil(setting.n_rows / batch_size))
        steps = chosen.pop("steps", None)
        steps = admm.sampled_steps(problem, setting, batch_size) if steps is None else count("steps", steps, minimum=1)
        harmonic = sum(1.0 / (1 + t // epoch) for t in range(steps))
        fields = {
            "steps": steps,
            "epoch_steps": epoch,
            "step_size": setting.travel(problem) / harmonic,
            "beta": admm.default_beta(cls.beta, problem),
            "averaging": admm.short_share(problem),
        }
        return cls(**{**fields, **chosen})

    def requests(self, problem: Problem, clip_norm: float) -> tuple[Request, ...]:
        return (Request(GRADIENT, self.steps, ClippedGradient(clip_norm)),)

    def eta(self, t: int, problem: Problem) -> float:
        """Step size number t (from 1)."""
        return admm.capped(self.step_size / (1 + (t - 1) // self.epoch_steps), problem)

    def update(self, state: admm.AveragedState, problem: Problem, oracle: Oracle) -> admm.AveragedState:
        step = admm.stable_step(self.eta(state.t + 1, problem), self.beta, problem)
        return self.advance(state, oracle.ask(GRADIENT, state.x), step, y_first=False)
