"""IPADMM (several noisy linearised steps between two broadcasts) and DP-ADMM (one step).

x ← Π( prox( (pull − ĝ(x) + h·x) / (2ρ|N| + h) ) ),  h = √(2q)/D · √(C² + d·σ²),  q the number of the step,

with ĝ the smoothed noisy mean gradient, σ its noise, d its entries, C its clip, D the assumed diameter of the set of
models and Π the projection to the ball of radius D/2. In `docs/decentralised.md` stands where this differs from the
papers and why.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dpadmm.errors import InvalidParameter, shown
from dpadmm.network.decentralised.algorithms.base import NETWORK_ALGORITHMS, Protection, State
from dpadmm.network.decentralised.exchange import Exchange
from dpadmm.network.decentralised.graphs import per_node
from dpadmm.network.decentralised.nodes import Node
from dpadmm.network.decentralised.penalties_on_nodes import projected, prox_of_share, smoothed
from dpadmm.problem.checks import count, number
from dpadmm.problem.problem import Problem
from dpadmm.problem.smoothers import Identity, Smoother

Array = NDArray[np.float64]


@dataclass(frozen=True)
class LinearisedSteps:
    """What both have in common.

    Parameters
    ----------
    rounds : int
        t: how often nodes broadcast.
    rho : float
        ρ > 0.
    diameter : float
        D > 0: of the set of models; long steps where it is large.
    radius : float or None
        Of the ball that models are projected to; D/2 if left out. Infinity projects nothing.
    output : {"average", "last"}
        Which model is the result; the other one is released too.
    smoother : Smoother
        What is done to noisy gradients.
    """

    rounds: int = 100
    rho: float = 1e-3
    diameter: float = 100.0
    radius: float | None = None
    output: str = "average"
    smoother: Smoother = field(default_factory=Identity)

    protection: ClassVar[Protection] = "gradients"

    def __post_init__(self) -> None:
        object.__setattr__(self, "rounds", count("rounds", self.rounds, minimum=1))
        object.__setattr__(self, "rho", number("rho", self.rho, strict=True))
        object.__setattr__(self, "diameter", number("diameter", self.diameter, strict=True))
        radius = self.diameter / 2 if self.radius is None else self.radius
        object.__setattr__(self, "radius", number("radius", radius, strict=True, finite=False))
        require_output(self.output)

    @property
    def steps_a_round(self) -> int:
        return 1

    @property
    def asked(self) -> int:
        return self.rounds * self.steps_a_round

    def require_fits(self, problem: Problem) -> None:
        """Every loss fits: gradients are clipped."""

    def start(self, n_nodes: int, problem: Problem) -> State:
        return np.zeros((n_nodes, *problem.shape)), np.zeros(n_nodes)

    def advance(self, state: State, exchange: Exchange, nodes: Sequence[Node], problem: Problem) -> tuple[State, Array]:
        models, numbers = state
        pull, coupling, gathered = exchange.pull, exchange.coupling, np.zeros_like(models)
        for _ in range(self.steps_a_round):
            numbers = numbers + 1.0
            proximity = np.sqrt(2.0 * numbers) * self._steepness(nodes, problem)
            asked = np.stack([node.gradient(model) for node, model in zip(nodes, models, strict=True)])
            stepped = pull - smoothed(self.smoother, asked) + per_node(proximity, models) * models
            stiffness = coupling + proximity
            moved = prox_of_share(problem, stepped / per_node(stiffness, models), 1.0 / stiffness, len(nodes))
            models = projected(moved, self._radius)
            gathered += models
        return (models, numbers), gathered / self.steps_a_round

    def _steepness(self, nodes: Sequence[Node], problem: Problem) -> Array:
        """√(C² + d·σ²)/D of each node."""
        clip, entries = problem.gradient_bound, math.prod(problem.shape)
        bound = clip if math.isfinite(clip) else problem.row_norm
        noise = np.array([node.noise_std for node in nodes])
        return np.asarray(np.sqrt(bound**2 + entries * noise**2) / self.diameter)

    @property
    def _radius(self) -> float:
        return math.inf if self.radius is None else self.radius


@NETWORK_ALGORITHMS.register("ipadmm")
@dataclass(frozen=True)
class IPADMM(LinearisedSteps):
    """Huang and Gong (2020): `local_steps` noisy steps between two broadcasts of their mean. The average is the result.

    Examples
    --------
    >>> IPADMM(rounds=100, local_steps=10).asked
    1000
    """

    local_steps: int = 10
    name: ClassVar[str] = "ipadmm"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "local_steps", count("local_steps", self.local_steps, minimum=1))

    @property
    def steps_a_round(self) -> int:
        return self.local_steps


@NETWORK_ALGORITHMS.register("dp-admm")
@dataclass(frozen=True)
class DPADMM(LinearisedSteps):
    """Huang et al. (2019): one noisy step between two broadcasts. The last model is the result."""

    output: str = "last"
    name: ClassVar[str] = "dp-admm"


def require_output(output: str) -> None:
    """Refuse any other name of a result."""
    if output not in ("average", "last"):
        raise InvalidParameter(f"output={shown(output)}", "'average' or 'last'", "choose one of these")
