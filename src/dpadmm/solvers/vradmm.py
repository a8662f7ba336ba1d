"""DP-VRADMM: variance-reduced stochastic ADMM with a smoother (Liu et al. 2022, Algorithm 1), repaired.

The printed algorithm uses the exact snapshot gradient, also to reset the dual: a deterministic leak. Here the snapshot
gradient p̂ carries its own noise and stands wherever the exact one stood; the mini-batch difference is clipped to
c_t = f·min(2l, g‖x_t − x̃‖), a bound computed from released points, and noised in proportion
(docs/proofs/sensitivity.md, Claim 1, rows 3 and 5). No difference exceeds c_t at f = 1. Typical ones are far smaller,
because a margin moves by much less than ‖x − x̃‖, so a small f saves noise and biases little. With an exact oracle and
f = 1 this is SVRG-ADMM. The paper asks for η ≤ 1/(16g) where strongly convex; forty passes of such steps end far from
the minimum, and 1/(2g) is stable.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, Self

import numpy as np

from dpadmm.errors import InvalidParameter
from dpadmm.privacy.plan import Request
from dpadmm.privacy.questions import DIFFERENCE, SNAPSHOT, ClippedGradient, GradientDifference
from dpadmm.problem.checks import count, number
from dpadmm.problem.problem import Problem
from dpadmm.problem.smoothers import Identity, Smoother
from dpadmm.solvers import admm
from dpadmm.solvers.base import SOLVERS, Oracle, Setting, Solution, Traits
from dpadmm.solvers.step_after_gradient import Iterate, Tail

EPOCHS, AVERAGED = 100, 1 / 3
"""Snapshots, and the share of the epochs that is averaged where the noise sets the step."""
TRAVEL = 1.1
"""The way the steps go together, in units of `Setting.travel`: more, because the last third of it is averaged."""
LEAST_FRACTION, MOST_FRACTION, USUAL_MARGIN, SNAPSHOT_REACH = 0.05, 0.5, 0.5, 100.0
"""All were chosen on training rows (`python -m experiments.variance_reduction`)."""


def usual_fraction(problem: Problem, epoch_travel: float) -> float:
    """f of differences that save noise and still hold the iterates near the snapshot.

    Margins move by about ‖x − x̃‖/√d, so that f near 1/√d hardly clips a row. But the differences are all that an epoch
    sees of the curvature. Where noise is small an epoch goes far, and differences clipped so tightly no longer stop it:
    iterates swing from one side of the minimum to the other, farther each time. So f grows with the way of an epoch.
    """
    typical = max(LEAST_FRACTION, USUAL_MARGIN / math.sqrt(problem.shape[0]))
    return min(MOST_FRACTION, max(typical, epoch_travel * problem.smoothness / SNAPSHOT_REACH))


@dataclass(frozen=True, eq=False)
class VRADMMState:
    t: int
    blocks: admm.Array
    tail: Tail
    inner: int
    snapshot: admm.Array
    snapshot_gradient: admm.Array
    average: admm.Average

    @property
    def point(self) -> Iterate:
        return self.tail.point(self.blocks)

    @property
    def epoch(self) -> admm.Average:
        """Sums over the steps since the snapshot."""
        return admm.Average.of(self.tail.sums(self.blocks), float(self.inner))


@SOLVERS.register("dp-vradmm")
@dataclass(frozen=True)
class VRADMM(Traits):
    """Parameters
    ----------
    epochs : int
        S, the number of snapshots.
    inner_steps : int
        m, steps between snapshots.
    step_size : float
        Constant η, capped by 1/(2g).
    rate : float
        Public sampling rate of the mini-batches, needed for the budget split.
    clip_fraction : float
        f, the public clip of a difference as a share of the largest difference there can be.
    expected_clip : float
        c/l at which the split of the budget between snapshots and differences is optimal.
    gradient_clip : float
        l, the clip of one record's gradient; fixed by `default`.
    averaging : {"all", "tail", "linear", "last"} or float
        Which epoch means are averaged; the paper takes "all" (general) or "last" (strong).
    total_steps : int or None
        Stop after this many steps, in the middle of the last epoch if need be; None runs every epoch to its end.
    snapshots : {"mean", "last"}
        Where the next snapshot is taken: at the mean of the epoch, as in the paper, or where the epoch ended. There
        differences start at zero, and gradients are not half an epoch old; `default` takes "last".
    beta, convexity, smoother
        As in DP-SADMM. "strong" restarts each epoch at the snapshot with dual −(1/β)pinv(Aᵀ)p̂.
    """

    epochs: int
    inner_steps: int
    step_size: float
    rate: float
    gradient_clip: float
    clip_fraction: float = 1.0
    expected_clip: float = 1.0
    beta: float = 0.1
    averaging: admm.Averaging = "tail"
    convexity: Literal["general", "strong"] = "general"
    total_steps: int | None = None
    snapshots: Literal["mean", "last"] = "mean"
    smoother: Smoother = field(default_factory=Identity)

    name: ClassVar[str] = "dp-vradmm"
    samples: ClassVar[bool] = True
    numbers_per_weight: ClassVar[int] = 36

    def __post_init__(self) -> None:
        admm.require_whole(epochs=self.epochs, inner_steps=self.inner_steps, steps=self.steps)
        admm.require_positive(
            step_size=self.step_size,
            rate=self.rate,
            gradient_clip=self.gradient_clip,
            clip_fraction=self.clip_fraction,
            expected_clip=self.expected_clip,
            beta=self.beta,
        )
        if self.clip_fraction > 1:
            raise InvalidParameter(
                f"clip_fraction={self.clip_fraction:g}", "a number above 0 and at most 1", "choose a smaller share"
            )
        admm.require_known(averaging=self.averaging, convexity=self.convexity, snapshots=self.snapshots)

    @property
    def steps(self) -> int:
        return self.epochs * self.inner_steps if self.total_steps is None else self.total_steps

    @classmethod
    def default(cls, problem: Problem, setting: Setting, batch_size: int, **chosen: Any) -> Self:
        """A hundred epochs that together visit each row ten to forty times, or as many epochs of the given steps.

        Snapshots read all rows, so that their noise does not depend on how often they are taken, and the more of them
        there are, the shorter are the differences between them.
        """
        if "gradient_clip" in chosen:
            raise InvalidParameter("gradient_clip as an option", "clip_norm of the fit", "pass clip_norm instead")
        steps, epochs = chosen.pop("steps", None), count("epochs", chosen.pop("epochs", EPOCHS), minimum=1)
        usual = admm.sampled_steps(problem, setting, batch_size, admm.LONGEST_STEP / TRAVEL)
        whole = usual if steps is None else count("steps", steps, minimum=1)
        inner = count("inner_steps", chosen.pop("inner_steps", math.ceil(whole / min(epochs, whole))), minimum=1)
        if steps is not None:
            epochs = math.ceil(steps / inner)
        travel = TRAVEL * setting.travel(problem)
        tight = usual_fraction(problem, travel / epochs)
        fraction = number("clip_fraction", chosen.pop("clip_fraction", tight), strict=True)
        expected_clip = number("expected_clip", chosen.pop("expected_clip", fraction / 2), strict=True)
        step_size = travel / (1 + expected_clip) / (epochs * inner)
        fields = {
            "epochs": epochs,
            "inner_steps": inner,
            "total_steps": steps,
            "step_size": step_size,
            "beta": admm.default_beta(cls.beta, problem),
            "rate": setting.sampling_rate,
            "gradient_clip": setting.clip_norm,
            "clip_fraction": fraction,
            "expected_clip": expected_clip,
            "averaging": _averaged(step_size, problem),
            "snapshots": "last",
        }
        return cls(**{**fields, **chosen})

    def requests(self, problem: Problem, clip_norm: float) -> tuple[Request, ...]:
        """Budget shares l : c between snapshots and differences minimise the noise of their sum."""
        split = self.rate * math.sqrt(self.inner_steps / self.expected_clip)
        return (
            Request(SNAPSHOT, self.epochs, ClippedGradient(clip_norm), full_data=True),
            Request(DIFFERENCE, self.steps, GradientDifference(2 * clip_norm), relative_noise=split),
        )

    def eta(self, problem: Problem) -> float:
        return admm.capped(self.step_size, problem)

    def difference_clip(self, x: admm.Array, snapshot: admm.Array, problem: Problem) -> float:
        """f·min(2l, g‖x − x̃‖); no record's clipped gradient moves further than that at f = 1."""
        row_smoothness = problem.loss.curvature_bound * problem.row_norm**2
        farthest = min(2 * self.gradient_clip, row_smoothness * float(np.linalg.norm(x - snapshot)))
        return self.clip_fraction * farthest

    def init(self, problem: Problem) -> VRADMMState:
        tail = Tail(problem, self.smoother)
        start = tail.start()
        zero = tail.x(start)
        return VRADMMState(0, start, tail, 0, zero, np.zeros_like(zero), admm.Average.empty(problem))

    def update(self, state: VRADMMState, problem: Problem, oracle: Oracle) -> VRADMMState:
        if state.t % self.inner_steps == 0:
            state = self._take_snapshot(state, problem, oracle)
        x = state.tail.x(state.blocks)
        clip = self.difference_clip(x, state.snapshot, problem)
        gradient = state.snapshot_gradient + oracle.ask(DIFFERENCE, x, state.snapshot, clip)
        step = admm.stable_step(self.eta(problem), self.beta, problem)
        blocks = state.tail.step(state.blocks, gradient, step, self.beta, weight=1.0, y_first=True)
        return self._closed(replace(state, t=state.t + 1, blocks=blocks, inner=state.inner + 1))

    def finish(self, state: VRADMMState, problem: Problem) -> Solution:
        return admm.release(problem, state.average, self.beta, self.steps)

    def _take_snapshot(self, state: VRADMMState, problem: Problem, oracle: Oracle) -> VRADMMState:
        snapshot = state.epoch.mean.x if state.t and self.snapshots == "mean" else state.point.x
        gradient = oracle.ask(SNAPSHOT, snapshot)
        point = state.point
        if self.convexity == "strong":
            if problem.ridge <= 0:
                raise InvalidParameter("convexity='strong' without a ridge", "ridge > 0", "add an l2 part")
            whole = gradient + problem.public_gradient(snapshot)
            point = Iterate(snapshot, point.y, -problem.constraint.adjoint_pinv(whole) / self.beta)
        blocks = state.tail.with_point(state.blocks, point)
        return replace(state, blocks=blocks, inner=0, snapshot=snapshot, snapshot_gradient=gradient)

    def _closed(self, state: VRADMMState) -> VRADMMState:
        """Add the mean of an epoch that has just ended."""
        if state.t % self.inner_steps and state.t < self.steps:
            return state
        number = math.ceil(state.t / self.inner_steps)
        weight = admm.averaging_weight(self.averaging, number, self.epochs)
        return replace(state, average=state.average.add(state.epoch.mean, weight))


def _averaged(step_size: float, problem: Problem) -> admm.Averaging:
    """A third of the epochs, less where the step is capped; half in regression, whose curvature does not fade."""
    if not problem.loss.curvature_fades:
        return "tail"
    return 2 * AVERAGED * admm.averaged_share(step_size, problem)
