"""RADMM: every second round asks no node, and uses the gradient that the minimum before it gives away."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dpadmm.network.decentralised.algorithms.base import NETWORK_ALGORITHMS, State, asked_minima, ridge_of
from dpadmm.network.decentralised.algorithms.minimising import DualPerturbation
from dpadmm.network.decentralised.exchange import Exchange
from dpadmm.network.decentralised.graphs import per_node
from dpadmm.network.decentralised.nodes import Node
from dpadmm.problem.problem import Problem

Array = NDArray[np.float64]


@NETWORK_ALGORITHMS.register("radmm")
@dataclass(frozen=True)
class RecycledADMM(DualPerturbation):
    """Zhang, Khalili and Liu (2019).

    At a perturbed minimum w of node i, ∇f(w) + noise = pull − (2ρ|N| + ridge)·w: released numbers alone. The next round
    steps along it, w ← (pull − that + L·w)/(2ρ|N| + ridge + L) with L the smoothness of the loss, and asks nothing.
    """

    name: ClassVar[str] = "radmm"

    @property
    def asked(self) -> int:
        return (self.rounds + 1) // 2

    def start(self, n_nodes: int, problem: Problem) -> State:
        return (np.zeros((n_nodes, *problem.shape)),)

    def advance(self, state: State, exchange: Exchange, nodes: Sequence[Node], problem: Problem) -> tuple[State, Array]:
        ridge, pull = ridge_of(problem, len(nodes)), exchange.pull
        if exchange.rounds % 2 == 0:
            found, curvature = asked_minima(exchange, nodes, ridge)
            return (pull - per_node(curvature, found) * found,), found
        smooth = problem.smoothness
        stepped = pull - state[0] + smooth * exchange.sent
        return state, stepped / per_node(exchange.coupling + ridge + smooth, stepped)
