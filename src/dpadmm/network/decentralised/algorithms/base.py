"""What an algorithm of a network is: how often it asks each node, and what nodes broadcast in a round."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from dpadmm.errors import UnsupportedProblem
from dpadmm.network.decentralised.exchange import Exchange
from dpadmm.network.decentralised.graphs import per_node
from dpadmm.network.decentralised.nodes import Node
from dpadmm.problem.problem import Problem
from dpadmm.problem.regularizers.separable import entrywise
from dpadmm.registry import Registry

Array = NDArray[np.float64]
State = tuple[Array, ...]
"""What nodes keep between rounds: arrays whose first axis is the nodes."""
Protection = Literal["gradients", "minima", "objectives", "none"]
"""What is noised in a node: its mean gradients, the minima it finds, the objectives it minimises, or nothing."""


class NetworkAlgorithm(Protocol):
    """Frozen public numbers.

    Attributes
    ----------
    protection : Protection
        What is noised.
    rounds : int
        How often every node broadcasts.
    rho : float
        Penalty parameter ρ of the consensus constraints.
    asked : int
        How many noisy answers each node gives in all.
    output : {"average", "last"}
        Which of its models the algorithm is meant to end with; both are released.
    """

    name: ClassVar[str]
    protection: ClassVar[Protection]

    @property
    def rounds(self) -> int: ...

    @property
    def rho(self) -> float: ...

    @property
    def asked(self) -> int: ...

    @property
    def output(self) -> str: ...

    def require_fits(self, problem: Problem) -> None:
        """Refuse a problem that the algorithm, or the proof of its noise, does not cover."""
        ...

    def start(self, n_nodes: int, problem: Problem) -> State: ...

    def advance(self, state: State, exchange: Exchange, nodes: Sequence[Node], problem: Problem) -> tuple[State, Array]:
        """State after the next round, and what each node broadcasts in it."""
        ...


NETWORK_ALGORITHMS: Registry[type[NetworkAlgorithm]] = Registry(
    "algorithm",
    homes={
        "admm": "dpadmm.network.decentralised.algorithms.minimising",
        "dp-admm": "dpadmm.network.decentralised.algorithms.linearised",
        "dvp": "dpadmm.network.decentralised.algorithms.minimising",
        "ipadmm": "dpadmm.network.decentralised.algorithms.linearised",
        "pvp": "dpadmm.network.decentralised.algorithms.minimising",
        "radmm": "dpadmm.network.decentralised.algorithms.recycled",
    },
)


def asked_minima(exchange: Exchange, nodes: Sequence[Node], ridge: float) -> tuple[Array, Array]:
    """Each node's answer to argmin f(w) + (ridge/2)‖w‖² − ⟨pull, w⟩ + ρ|N|·‖w‖², and the curvature it was asked at."""
    curvature = exchange.coupling + ridge
    centres = exchange.pull / per_node(curvature, exchange.sent)
    asked = zip(nodes, centres, curvature.tolist(), strict=True)
    return np.stack([node.minimiser(centre, each) for node, centre, each in asked]), curvature


def ridge_of(problem: Problem, n_nodes: int) -> float:
    """The share of one node in the ridge."""
    parts = entrywise(problem.regularizer, 1)
    return 0.0 if parts is None else parts[1] / n_nodes


def require_smooth(name: str, problem: Problem) -> None:
    """Refuse what local minima are not proved for: penalties with corners, and losses of several outputs."""
    parts = None if problem.loss.outputs > 1 else entrywise(problem.regularizer, problem.shape[0])
    if parts is None or parts[0].any():
        raise UnsupportedProblem(
            f"penalty {problem.regularizer.name!r}, a loss of {problem.loss.outputs} outputs and algorithm {name!r}",
            "no penalty or 'l2', and a loss of one output: its nodes find minima of smooth objectives",
            "use algorithm 'ipadmm'",
        )
