"""Proximal DP-SGD and DP-GD: x ← prox_{ηr}(x − η(G + ∇public)); penalties on the coefficients themselves only."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from dpadmm.errors import UnsupportedProblem
from dpadmm.privacy.plan import Request
from dpadmm.privacy.questions import GRADIENT, ClippedGradient
from dpadmm.problem.checks import count
from dpadmm.problem.problem import Problem
from dpadmm.problem.regularizers import Zero
from dpadmm.problem.regularizers.base import checked_prox
from dpadmm.problem.smoothers import Identity, Smoother
from dpadmm.solvers import admm
from dpadmm.solvers.base import SOLVERS, Oracle, Setting, Solution, Traits

LONGEST_STEP = 1.5
"""η·g of the longest step. Below 2 a gradient step brings no two points farther apart. The analysis of ADMM, which
stops at 1/2, is not needed here, and longer steps are better where noise leaves room (`experiments/proximal.py`)."""


class ProximalState(NamedTuple):
    t: int
    x: admm.Array
    total: admm.Array
    weight: float


@SOLVERS.register("dp-sgd")
@dataclass(frozen=True)
class ProximalSGD(Traits):
    """Parameters
    ----------
    steps : int
        T.
    step_size : float
        Constant η, capped by 1.5/g.
    averaging : {"all", "tail", "linear", "last"} or float
        Which iterates are averaged, a number being the share of them at the end; "last" keeps exact zeros.
    smoother : Smoother
        Laplacian smoothing turns this into DP-LSSGD.
    """

    steps: int
    step_size: float
    averaging: admm.Averaging = "tail"
    smoother: Smoother = field(default_factory=Identity)

    name: ClassVar[str] = "dp-sgd"
    samples: ClassVar[bool] = True

    def __post_init__(self) -> None:
        admm.require_whole(steps=self.steps)
        admm.require_positive(step_size=self.step_size)
        admm.require_known(averaging=self.averaging)

    @classmethod
    def default(cls, problem: Problem, setting: Setting, batch_size: int, **chosen: Any) -> Self:
        """10 to 40 epochs; η such that Tη is the travel the noise allows."""
        steps = chosen.pop("steps", None)
        if steps is None:
            steps = admm.sampled_steps(problem, setting, batch_size, LONGEST_STEP)
        step_size = setting.travel(problem) / count("steps", steps, minimum=1)
        averaging = admm.averaged_share(step_size, problem, LONGEST_STEP)
        return cls(**{"steps": steps, "step_size": step_size, "averaging": averaging, **chosen})

    def requests(self, problem: Problem, clip_norm: float) -> tuple[Request, ...]:
        return (Request(GRADIENT, self.steps, ClippedGradient(clip_norm), full_data=not self.samples),)

    def init(self, problem: Problem) -> ProximalState:
        if not problem.constraint.is_identity:
            raise UnsupportedProblem(
                f"solver {self.name!r} with a penalty on linear combinations of the coefficients",
                "a penalty on the coefficients themselves",
                "use an ADMM solver, for instance 'full-admm', for fused, graph and other structured penalties",
            )
        if not isinstance(self.smoother, Identity) and not isinstance(problem.regularizer, Zero):
            raise UnsupportedProblem(
                f"solver {self.name!r} with smoothing and a penalty, which together have another fixed point",
                "smoothing without a penalty, or a penalty without smoothing",
                "use an ADMM solver, for instance 'full-admm', for both",
            )
        x = problem.zeros()[0]
        return ProximalState(0, x, np.zeros_like(x), 0.0)

    def update(self, state: ProximalState, problem: Problem, oracle: Oracle) -> ProximalState:
        eta = admm.capped(self.step_size, problem, LONGEST_STEP)
        direction = oracle.ask(GRADIENT, state.x) + problem.public_gradient(state.x)
        x = _shrink(state.x - eta * self.smoother(direction), problem, eta)
        weight = admm.averaging_weight(self.averaging, state.t + 1, self.steps)
        return ProximalState(state.t + 1, x, state.total + weight * x, state.weight + weight)

    def finish(self, state: ProximalState, problem: Problem) -> Solution:
        x = state.total / state.weight
        return Solution(x, x, x, self.steps)


@SOLVERS.register("dp-gd")
@dataclass(frozen=True)
class ProximalGD(ProximalSGD):
    """The same iteration on full-data gradients: exact accounting, no secret batches."""

    name: ClassVar[str] = "dp-gd"
    samples: ClassVar[bool] = False

    @classmethod
    def default(cls, problem: Problem, setting: Setting, batch_size: int, **chosen: Any) -> Self:
        """As many steps as the travel needs at the largest stable step, between 30 and 1000."""
        return cls(**admm.full_data_schedule(problem, setting, chosen, longest=1000, longest_step=LONGEST_STEP))


def _shrink(x: admm.Array, problem: Problem, eta: float) -> admm.Array:
    """prox of the regulariser on the penalised coordinates; the free ones, at the end, stay."""
    penalised = problem.constraint.n_auxiliary
    out = x.copy()
    out[:penalised] = checked_prox(problem.regularizer, x[:penalised], eta)
    return out
