"""What a solver is, what it may ask, and the one loop that runs them all."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpadmm.errors import Diverged
from dpadmm.privacy.plan import Request
from dpadmm.privacy.questions import Kind
from dpadmm.problem.hidden_pass_program import Program
from dpadmm.problem.problem import Problem
from dpadmm.problem.spiked_map import SpikedMap
from dpadmm.registry import Registry

Array = NDArray[np.float64]
State = TypeVar("State")
A = TypeVar("A")
Tick = Callable[[int], None]
"""Called with the number of steps done."""

LEAST_NUMBERS = 6
"""Float64 numbers that a fit of a table of few rows holds at a time for each weight of its model, whatever the solver:
measured and rounded down, as are those of the solvers."""


class Oracle(Protocol):
    """The solver's whole view of the data."""

    def ask(self, kind: Kind[A], *at: Any) -> A:
        """The noisy answer to a question that the solver requested, at released points."""
        ...

    def walk(self, program: Program, tick: Callable[[int], None] | None = None) -> tuple[Array, Array]:
        """(x, λ) after all hidden passes: every row once a pass in a secret order, one noisy step each.

        The only state that is ever answered. `tick` hears how many passes are made.
        """
        ...

    def change_coordinates(self, matrix: Array | SpikedMap) -> None:
        """From now on rows are Pᵀ row and points are z with x = P z. P is public: made from released numbers."""
        ...

    def noise_std(self, kind: str) -> float:
        """Public standard deviation of the noise on each entry of an answer."""
        ...


@dataclass(frozen=True)
class Setting:
    """The public numbers from which a solver chooses its defaults.

    Parameters
    ----------
    n_rows : int
        Public number of rows.
    gaussian_mu : float
        μ of the single Gaussian release that spends the whole budget: δ = Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ).
    record_distance : float
        2 under replace-one, 1 under add-remove.
    clip_norm : float
        Clip of one record's gradient.
    sampling_rate : float
        Share of the rows in a mini-batch; 1 if every query reads them all.
    """

    n_rows: int
    gaussian_mu: float
    record_distance: float
    clip_norm: float
    sampling_rate: float = 1.0

    def travel(self, problem: Problem) -> float:
        """Total step length Σ η_t at which accumulated noise starts to cost more than further progress gains.

        With noise of standard deviation Δ√T/(nμ) on each of T mean gradients, noise moves the iterate by about
        η√T · Δ√T/(nμ) · √d; the travel that keeps this at a fixed multiple of the model's own scale is
        proportional to nμ/(Δ√d). The factor 16 was chosen on a9a, ipums_br, mushrooms and w8a
        (`experiments/travel.py`); regression, whose curvature does not fade on the way, needs a quarter of it
        (`experiments/regression.py`).
        """
        factor = 16.0 if problem.loss.curvature_fades else 4.0
        reach = signal_to_noise(self.n_rows, self.gaussian_mu, self.record_distance, problem)
        return factor * reach / (self.clip_norm * problem.row_norm)


def signal_to_noise(n_rows: int, gaussian_mu: float, record_distance: float, problem: Problem) -> float:
    """nμ/(Δ√d): one row's largest pull on a mean, over the norm of the noise that hides it, times n.

    The larger, the farther the iterates can go (`Setting.travel`) and the less a gradient needs clipping.
    """
    return n_rows * gaussian_mu / (record_distance * math.sqrt(problem.shape[0]))


@dataclass(frozen=True, eq=False)
class Solution:
    """What is released. `coefficients` is the sparse, feasible block wherever the constraint has one."""

    coefficients: Array
    x: Array
    y: Array
    steps: int


class Traits:
    """What a solver needs and takes, as most of them do; a solver overrides what is otherwise for it.

    Attributes
    ----------
    samples : bool
        True if it works on mini-batches, False if every query reads all rows.
    hidden : bool
        Whether only the last state is released, and noise hides the visit to each row.
    takes_clip, takes_smoother : bool
        Whether it can be given the clip of a row's gradient, and a smoother.
    stand_in : str or None
        The solver to use instead where this one does not fit what is asked of it; None if it is then refused.
    numbers_per_weight : int
        Float64 numbers that a fit holds at a time for each weight of its model.
    """

    samples: ClassVar[bool] = False
    hidden: ClassVar[bool] = False
    takes_clip: ClassVar[bool] = True
    takes_smoother: ClassVar[bool] = True
    stand_in: ClassVar[str | None] = None
    numbers_per_weight: ClassVar[int] = LEAST_NUMBERS

    @classmethod
    def fits(cls, problem: Problem) -> bool:
        """Whether it has a way with the loss."""
        return True

    def all_steps(self: Solver[State], problem: Problem, oracle: Oracle, tick: Tick) -> State:
        """From the first state to the last. How many steps there are never depends on the data."""
        state = self.init(problem)
        for step in range(self.steps):
            state = self.update(state, problem, oracle)
            tick(step + 1)
        return state

    def why_no_transcript(self, problem: Problem) -> str:
        """Why the noise of this solver's answers is not followed to its coefficients; empty if it is."""
        return "only solver 'auto' has them: how noise travels through the other solvers is not modelled"


class Solver(Protocol[State]):
    """Frozen public fields; `update` is a pure function of the state and the oracle's answer. See `Traits`."""

    name: ClassVar[str]
    samples: ClassVar[bool]
    hidden: ClassVar[bool]
    takes_clip: ClassVar[bool]
    takes_smoother: ClassVar[bool]
    stand_in: ClassVar[str | None]
    numbers_per_weight: ClassVar[int]

    @classmethod
    def fits(cls, problem: Problem) -> bool: ...

    def why_no_transcript(self, problem: Problem) -> str: ...

    @property
    def steps(self) -> int: ...

    @classmethod
    def default(cls, problem: Problem, setting: Setting, batch_size: int, **chosen: Any) -> Self:
        """Usable public defaults; `chosen` overrides any field."""
        ...

    def requests(self, problem: Problem, clip_norm: float) -> tuple[Request, ...]: ...

    def init(self, problem: Problem) -> State: ...

    def update(self, state: State, problem: Problem, oracle: Oracle) -> State: ...

    def all_steps(self, problem: Problem, oracle: Oracle, tick: Tick) -> State: ...

    def finish(self, state: State, problem: Problem) -> Solution: ...


SOLVERS: Registry[type[Solver[Any]]] = Registry(
    "solver",
    homes={
        "auto": "dpadmm.solvers.auto.solver",
        "dp-gd": "dpadmm.solvers.baselines.proximal",
        "dp-sadmm": "dpadmm.solvers.sadmm",
        "dp-sgd": "dpadmm.solvers.baselines.proximal",
        "dp-vradmm": "dpadmm.solvers.vradmm",
        "full-admm": "dpadmm.solvers.full_admm",
        "mpadmm": "dpadmm.solvers.mpadmm",
        "noisy-admm": "dpadmm.solvers.noisy_admm",
        "ssadmm": "dpadmm.solvers.ssadmm",
    },
)

Observer = Callable[[int, int], None]
"""Called with (steps done, steps in all). It learns nothing but the clock."""


def run(solver: Solver[Any], problem: Problem, oracle: Oracle, observers: Iterable[Observer] = ()) -> Solution:
    """Initialise, update `solver.steps` times, finish. The number of steps never depends on the data."""
    observers = tuple(observers)

    def tick(step: int) -> None:
        for observe in observers:
            observe(step, solver.steps)

    state = solver.all_steps(problem, oracle, tick)
    solution = solver.finish(state, problem)
    if not np.all(np.isfinite(solution.coefficients)):
        raise Diverged("the released coefficients are not finite; use a smaller step or fewer steps")
    return solution
