"""ADMM whose nodes minimise their objective in each round: without noise, with noise on the minimum, or inside it.

w ← argmin f(w) + r(w)/n − ⟨pull, w⟩ + ρ|N|·‖w‖². Nodes differ in what they answer, the algorithm does not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dpadmm.network.decentralised.algorithms.base import (
    NETWORK_ALGORITHMS,
    Protection,
    State,
    asked_minima,
    require_smooth,
    ridge_of,
)
from dpadmm.network.decentralised.algorithms.linearised import require_output
from dpadmm.network.decentralised.exchange import Exchange
from dpadmm.network.decentralised.nodes import Node
from dpadmm.problem.checks import count, number
from dpadmm.problem.problem import Problem

Array = NDArray[np.float64]


@NETWORK_ALGORITHMS.register("admm")
@dataclass(frozen=True)
class ConsensusADMM:
    """Decentralised ADMM without noise: never private, for comparison.

    Parameters
    ----------
    rounds : int
        t: how often nodes broadcast.
    rho : float
        ρ > 0.
    output : {"average", "last"}
        Which model is the result; the other one is released too.
    """

    rounds: int = 100
    rho: float = 1e-3
    output: str = "last"

    name: ClassVar[str] = "admm"
    protection: ClassVar[Protection] = "none"

    def __post_init__(self) -> None:
        object.__setattr__(self, "rounds", count("rounds", self.rounds, minimum=1))
        object.__setattr__(self, "rho", number("rho", self.rho, strict=True))
        require_output(self.output)

    @property
    def asked(self) -> int:
        return self.rounds

    def require_fits(self, problem: Problem) -> None:
        require_smooth(self.name, problem)

    def start(self, n_nodes: int, problem: Problem) -> State:
        return ()

    def advance(self, state: State, exchange: Exchange, nodes: Sequence[Node], problem: Problem) -> tuple[State, Array]:
        return (), asked_minima(exchange, nodes, ridge_of(problem, len(nodes)))[0]


@NETWORK_ALGORITHMS.register("pvp")
@dataclass(frozen=True)
class PrimalPerturbation(ConsensusADMM):
    """Zhang and Zhu (2017), primal variable perturbation: noise on the minimum that each node found."""

    name: ClassVar[str] = "pvp"
    protection: ClassVar[Protection] = "minima"


@NETWORK_ALGORITHMS.register("dvp")
@dataclass(frozen=True)
class DualPerturbation(ConsensusADMM):
    """Zhang and Zhu (2017), dual variable perturbation: a random linear term in what each node minimises."""

    name: ClassVar[str] = "dvp"
    protection: ClassVar[Protection] = "objectives"
