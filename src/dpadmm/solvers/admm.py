"""The linearised ADMM step and the averages shared by the ADMM family.

| symbol | word                 | meaning                                                    |
|--------|----------------------|------------------------------------------------------------|
| x      | primal block         | enters the loss                                            |
| y      | auxiliary block      | enters the regulariser, Ax + By = c                        |
| dual   | scaled dual λ        | augmented term (β/2)‖Ax + By − c + λ‖²                     |
| beta   | penalty parameter    | β                                                          |
| eta    | step size            | η of the papers; the step taken is s = 1/(1/η + β‖A‖²)     |
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpadmm.errors import InvalidParameter, shown
from dpadmm.problem.checks import count, number
from dpadmm.problem.problem import Problem
from dpadmm.problem.smoothers import Smoother
from dpadmm.solvers.base import Setting, Solution, Traits
from dpadmm.solvers.step_after_gradient import Iterate as Iterate
from dpadmm.solvers.step_after_gradient import Tail

Array = NDArray[np.float64]
Averaging = Literal["all", "tail", "linear", "last"] | float
"""Which iterates are averaged: a number is the share of them at the end, "tail" is half, "linear" weighs by number."""
SHARES: dict[str, float] = {"all": 1.0, "tail": 0.5, "last": 0.0}
LONGEST_STEP = 0.5
"""η·g of the longest step, g the public smoothness of one row's loss, that the analysis of ADMM allows."""


@dataclass(frozen=True, eq=False)
class Average:
    """Running weighted sums of the iterates: averaging is free, because iterates are already released."""

    x: Array
    y: Array
    dual: Array
    weight: float = 0.0

    @classmethod
    def empty(cls, problem: Problem) -> Average:
        return cls(*problem.zeros())

    def add(self, point: Iterate, weight: float) -> Average:
        if weight == 0:
            return self
        return Average(
            self.x + weight * point.x, self.y + weight * point.y, self.dual + weight * point.dual, self.weight + weight
        )

    @classmethod
    def of(cls, sums: Iterate, weight: float) -> Average:
        return cls(sums.x, sums.y, sums.dual, weight)

    @property
    def mean(self) -> Iterate:
        return Iterate(self.x / self.weight, self.y / self.weight, self.dual / self.weight)


class AveragedState(NamedTuple):
    """Steps taken, all blocks and their sums in one vector, and the weight of the sums."""

    t: int
    blocks: Array
    tail: Tail
    weight: float = 0.0

    @property
    def x(self) -> Array:
        return self.tail.x(self.blocks)

    @property
    def point(self) -> Iterate:
        return self.tail.point(self.blocks)

    @property
    def average(self) -> Average:
        return Average.of(self.tail.sums(self.blocks), self.weight)


class AveragedADMM(Traits):
    """Start at zero, end with the average: what the algorithms of the family have in common."""

    steps: int
    beta: float
    averaging: Averaging
    smoother: Smoother

    def init(self, problem: Problem) -> AveragedState:
        tail = Tail(problem, self.smoother)
        return AveragedState(0, tail.start(), tail)

    def advance(
        self,
        state: AveragedState,
        gradient: Array,
        step: float,
        y_first: bool,
        rate: float = 1.0,
        momentum: float = 0.0,
    ) -> AveragedState:
        """One step with a released gradient."""
        t = state.t + 1
        weight = averaging_weight(self.averaging, t, self.steps)
        blocks = state.tail.step(state.blocks, gradient, step, self.beta, weight, y_first, rate, momentum)
        return AveragedState(t, blocks, state.tail, state.weight + weight)

    def finish(self, state: AveragedState, problem: Problem) -> Solution:
        return release(problem, state.average, self.beta, self.steps)


def averaging_weight(averaging: Averaging, step: int, steps: int) -> float:
    """Weight of iterate number `step` (from 1) out of `steps`."""
    if averaging == "linear":
        return float(step)
    share = SHARES[averaging] if isinstance(averaging, str) else averaging
    return float(step == steps or step > (1 - share) * steps)


def averaged_share(step_size: float, problem: Problem, longest_step: float = LONGEST_STEP) -> float:
    """Share of the iterates to average: half where the step is what the noise allows, less the more it is capped.

    A capped step leaves the iterates on their way: what noise they have is small, and earlier ones are behind.
    """
    return 0.5 * capped(step_size, problem, longest_step) / step_size


def short_share(problem: Problem) -> float:
    """Share of the iterates to average where steps shrink: the last ones are quiet already, and earlier ones behind.

    Not so in regression, whose curvature does not fade: early iterates have arrived.
    """
    return 0.1 if problem.loss.curvature_fades else 0.5


def start(problem: Problem) -> Iterate:
    return Iterate(*problem.zeros())


def stable_step(eta: float, beta: float, problem: Problem) -> float:
    """s = η/γ with γ = 1 + ηβ‖AᵀA‖: the majoriser that keeps the linearised step stable for every smoother."""
    return 1.0 / (1.0 / eta + beta * problem.constraint.norm_squared)


def capped(eta: float, problem: Problem, longest: float = LONGEST_STEP) -> float:
    """η ≤ `longest`/g."""
    largest = longest / problem.smoothness
    return eta if eta < largest else largest


def default_beta(base: float, problem: Problem) -> float:
    """β in the units of the problem: unchanged when rows are measured in another unit, and when A is multiplied.

    Coefficients go with 1/row_norm and curvature with row_norm², so a fixed β would make the penalty step useless for
    large rows and the primal step useless for small ones or a large ‖A‖.
    """
    return base * problem.row_norm**2 / max(problem.constraint.norm_squared, 1e-12)


def auxiliary(problem: Problem, point: Iterate, beta: float) -> Iterate:
    """Iterate with y ← argmin_y r(y) + (β/2)‖Ax + By − c + λ‖²."""
    y = problem.constraint.auxiliary_update(problem.regularizer, point.x, point.y, point.dual, beta)
    return Iterate(point.x, y, point.dual)


def dual_ascent(problem: Problem, point: Iterate, rate: float = 1.0) -> Iterate:
    """Iterate with λ ← λ + rate·(Ax + By − c)."""
    return Iterate(point.x, point.y, point.dual + rate * problem.constraint.residual(point.x, point.y))


def release(problem: Problem, average: Average, beta: float, steps: int) -> Solution:
    """Coefficients from averaged blocks: one more y-step restores the exact zeros that averaging blurs."""
    point = auxiliary(problem, average.mean, beta)
    return Solution(problem.constraint.recover(point.x, point.y), point.x, point.y, steps)


def full_data_schedule(
    problem: Problem,
    setting: Setting,
    chosen: dict[str, Any],
    longest: int,
    gain: float = 1.0,
    longest_step: float = LONGEST_STEP,
) -> dict[str, Any]:
    """Fields `steps`, `step_size` and `averaging`: `gain`·Σ η is the travel the noise allows; `chosen` overrides.

    As many steps as the travel needs at the largest stable step, but at least 30 and at most `longest`.
    """
    travel = setting.travel(problem) / gain
    steps = chosen.pop("steps", None)
    if steps is None:
        steps = min(longest, max(30, math.ceil(travel / capped(math.inf, problem, longest_step))))
    step_size = travel / count("steps", steps, minimum=1)
    averaging = averaged_share(step_size, problem, longest_step)
    return {"steps": steps, "step_size": step_size, "averaging": averaging, **chosen}


def sampled_steps(problem: Problem, setting: Setting, batch_size: int, longest_step: float = LONGEST_STEP) -> int:
    """As many mini-batch steps as the travel needs at the largest stable step, but 10 to 40 epochs."""
    epoch = setting.n_rows / batch_size
    needed = setting.travel(problem) / capped(math.inf, problem, longest_step)
    return max(1, math.ceil(min(max(needed, 10 * epoch), 40 * epoch)))


def require_positive(**values: Any) -> None:
    for name, value in values.items():
        number(name, value, strict=True)


def require_whole(**values: Any) -> None:
    for name, value in values.items():
        count(name, value, minimum=1)


def require_known(**choices: Any) -> None:
    """Refuse an unknown averaging or convexity before anything is asked of the data."""
    known = {
        "averaging": (*SHARES, "linear"),
        "convexity": ("general", "strong"),
        "snapshots": ("mean", "last"),
    }
    for name, choice in choices.items():
        if choice not in known[name] and not (name == "averaging" and _is_share(choice)):
            listed = ", ".join(map(repr, known[name])) + (" or a share from 0 to 1" if name == "averaging" else "")
            raise InvalidParameter(f"{name}={shown(choice)}", f"one of {listed}", "choose one of these")


def _is_share(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1
