"""DP-SADMM: stochastic ADMM with noisy mini-batch gradients and a smoother (Liu et al. 2022, Algorithm 2).

y ← argmin r(y) + (β/2)‖Ax + By − c + λ‖²;  x ← x − s_t Q⁻¹(G + ∇public + βAᵀ(Ax + By − c + λ));  λ ← λ + Ax + By − c.
With an exact oracle on mini-batches this is STOC-ADMM.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Self

from dpadmm.errors import InvalidParameter
from dpadmm.privacy.plan import Request
from dpadmm.privacy.questions import GRADIENT, ClippedGradient
from dpadmm.problem.checks import count
from dpadmm.problem.problem import Problem
from dpadmm.problem.smoothers import Identity, Smoother
from dpadmm.solvers import admm
from dpadmm.solvers.base import SOLVERS, Oracle, Setting


@SOLVERS.register("dp-sadmm")
@dataclass(frozen=True)
class SADMM(admm.AveragedADMM):
    """Step sizes: η_t = min(1/(2g), η₀/√t) for general convex problems; for strongly convex ones (ridge μ > 0)
    η_t = min(1/(2g), 2‖Q‖/(μ(t + t₀))), t₀ = 4g‖Q‖/μ, the printed rule being circular (docs/paper-map.md).

    Parameters
    ----------
    steps : int
        T.
    step_size : float
        η₀.
    beta : float
        Penalty parameter β.
    averaging : {"all", "tail", "linear", "last"} or float
        A number is the share at the end. The papers average all iterates ("all"; "linear" weights
        when strongly convex).
    convexity : {"general", "strong"}
        Which schedule.
    smoother : Smoother
        Q⁻¹.
    """

    steps: int
    step_size: float
    beta: float = 0.1
    averaging: admm.Averaging = "tail"
    convexity: Literal["general", "strong"] = "general"
    smoother: Smoother = field(default_factory=Identity)

    name: ClassVar[str] = "dp-sadmm"
    samples: ClassVar[bool] = True
    numbers_per_weight: ClassVar[int] = 18

    def __post_init__(self) -> None:
        admm.require_whole(steps=self.steps)
        admm.require_positive(step_size=self.step_size, beta=self.beta)
        admm.require_known(averaging=self.averaging, convexity=self.convexity)

    @classmethod
    def default(cls, problem: Problem, setting: Setting, batch_size: int, **chosen: Any) -> Self:
        """10 to 40 epochs; η₀ such that Σ η_t is the travel the noise allows."""
        steps = chosen.pop("steps", None)
        steps = admm.sampled_steps(problem, setting, batch_size) if steps is None else count("steps", steps, minimum=1)
        step_size = setting.travel(problem) / (2 * math.sqrt(steps))
        beta = admm.default_beta(cls.beta, problem)
        averaging = admm.short_share(problem)
        return cls(**{"steps": steps, "step_size": step_size, "beta": beta, "averaging": averaging, **chosen})

    def requests(self, problem: Problem, clip_norm: float) -> tuple[Request, ...]:
        return (Request(GRADIENT, self.steps, ClippedGradient(clip_norm)),)

    def eta(self, t: int, problem: Problem) -> float:
        """Step size number t (from 1)."""
        if self.convexity == "general":
            return admm.capped(self.step_size / math.sqrt(t), problem)
        if problem.ridge <= 0:
            raise InvalidParameter("convexity='strong' without a ridge", "ridge > 0", "add an l2 part to the penalty")
        norm = self.smoother.norm_inverse(problem.shape[0])
        shift = 4 * problem.smoothness * norm / problem.ridge
        return admm.capped(2 * norm / (problem.ridge * (t + shift)), problem)

    def update(self, state: admm.AveragedState, problem: Problem, oracle: Oracle) -> admm.AveragedState:
        step = admm.stable_step(self.eta(state.t + 1, problem), self.beta, problem)
        return self.advance(state, oracle.ask(GRADIENT, state.x), step, y_first=True)
