"""full-admm: full-data DP gradient ADMM with heavy-ball momentum and tail averaging; used where `auto` does not reach.

One Gaussian release a step, so accounting is exact and no batch has to stay secret. Momentum and averaging act on
released gradients and are free.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

from dpadmm.errors import InvalidParameter, shown
from dpadmm.privacy.plan import Request
from dpadmm.privacy.questions import GRADIENT, ClippedGradient
from dpadmm.problem.checks import number
from dpadmm.problem.problem import Problem
from dpadmm.problem.smoothers import Identity, Smoother
from dpadmm.solvers import admm
from dpadmm.solvers.base import SOLVERS, Oracle, Setting

LONGEST = 300


@SOLVERS.register("full-admm")
@dataclass(frozen=True)
class FullADMM(admm.AveragedADMM):
    """v ← m v + Q⁻¹(G + ∇public + βAᵀ(Ax + By − c + λ));  x ← x − s v;  λ ← λ + ½(1 − m)(Ax + By − c);  y first.

    Momentum makes x slower to turn by 1/(1 − m). A dual that integrates at full rate then overtakes it and the blocks
    circle each other for ever: with small steps and curvature h the loop is stable iff (1 − m)(h + β) > κβ, κ the dual
    rate. κ = 1 − m is stable for all h but hardly damped; half of it is.

    Parameters
    ----------
    steps : int
        T.
    step_size : float
        η before momentum, capped by 1/(2g); the long-run step is η/(1 − m).
    momentum : float
        m in [0, 1).
    beta : float
        Penalty parameter β.
    averaging : {"all", "tail", "linear", "last"} or float
        Which iterates are averaged.
    smoother : Smoother
        Q⁻¹.
    """

    steps: int
    step_size: float
    momentum: float = 0.9
    beta: float = 0.1
    averaging: admm.Averaging = "tail"
    smoother: Smoother = field(default_factory=Identity)

    name: ClassVar[str] = "full-admm"
    samples: ClassVar[bool] = False
    numbers_per_weight: ClassVar[int] = 18

    def __post_init__(self) -> None:
        admm.require_whole(steps=self.steps)
        admm.require_positive(step_size=self.step_size, beta=self.beta)
        admm.require_known(averaging=self.averaging)
        _require_momentum(self.momentum)

    @classmethod
    def default(cls, problem: Problem, setting: Setting, batch_size: int, **chosen: Any) -> Self:
        """As many steps as the travel needs at the largest stable step, between 30 and 300.

        Where 300 are too few, momentum rises above 0.9 (to 0.97 at most) to lengthen the long-run step.
        """
        needed = setting.travel(problem) / (LONGEST * admm.capped(math.inf, problem))
        momentum = _require_momentum(chosen.setdefault("momentum", 1 - 1 / min(max(needed, 10.0), 30.0)))
        chosen.setdefault("beta", admm.default_beta(cls.beta, problem))
        return cls(**admm.full_data_schedule(problem, setting, chosen, LONGEST, gain=1 / (1 - momentum)))

    def requests(self, problem: Problem, clip_norm: float) -> tuple[Request, ...]:
        return (Request(GRADIENT, self.steps, ClippedGradient(clip_norm), full_data=True),)

    def update(self, state: admm.AveragedState, problem: Problem, oracle: Oracle) -> admm.AveragedState:
        step = admm.stable_step(admm.capped(self.step_size, problem), self.beta, problem)
        rate = (1 - self.momentum) / 2
        return self.advance(state, oracle.ask(GRADIENT, state.x), step, True, rate, self.momentum)


def _require_momentum(momentum: Any) -> float:
    value = number("momentum", momentum)
    if value >= 1:
        raise InvalidParameter(f"momentum={shown(momentum)}", "0 <= momentum < 1", "use about 0.9, or 0")
    return value
