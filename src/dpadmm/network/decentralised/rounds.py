"""The rounds of a network: everybody answers and sends, or the round waits; nodes may leave between two rounds."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from dpadmm.errors import DpadmmError, InvalidParameter
from dpadmm.network.decentralised.algorithms.base import NetworkAlgorithm
from dpadmm.network.decentralised.exchange import Exchange
from dpadmm.network.decentralised.graphs import NodeGraph
from dpadmm.network.decentralised.nodes import Node
from dpadmm.problem.problem import Problem

Array = NDArray[np.float64]


class NeighbourMissing(DpadmmError):
    """A node does not answer; nothing was asked of anybody in this round."""


class NetworkRounds:
    """One run: nodes, who hears whom, and what was sent so far.

    Parameters
    ----------
    algorithm, problem
        Public.
    graph : NodeGraph
        One node for each of `nodes`.
    nodes : sequence of Node
        Their barriers.

    Examples
    --------
    A node that does not answer stops the round before anybody is asked. It comes back, or the others go on without it:

    >>> from dpadmm.network.decentralised.algorithms.minimising import ConsensusADMM
    >>> from dpadmm.network.decentralised.graph_kinds import make_graph
    >>> from dpadmm.problem import Constraint, Logistic, Problem, Zero
    >>> class Still:
    ...     noise_std = 0.0
    ...     def minimiser(self, centre, curvature):
    ...         return centre
    >>> problem = Problem(Logistic(), Zero(), Constraint.identity(2))
    >>> run = NetworkRounds(ConsensusADMM(rounds=3), problem, make_graph("ring", 4), [Still() for _ in range(4)])
    >>> run.absent({2})
    >>> run.round()
    Traceback (most recent call last):
    ...
    dpadmm.network.decentralised.rounds.NeighbourMissing: Got no answer from node 2. Expected one from every node ...
    >>> run.go_on_without({2})
    >>> run.round()
    >>> run.members, run.done
    ((0, 1, 3), 1)
    """

    def __init__(self, algorithm: NetworkAlgorithm, problem: Problem, graph: NodeGraph, nodes: Sequence[Node]) -> None:
        if graph.n_nodes != len(nodes):
            raise InvalidParameter(
                f"a graph of {graph.n_nodes} nodes for {len(nodes)} tables", "one node a table", "correct the graph"
            )
        algorithm.require_fits(problem)
        self.algorithm, self.problem = algorithm, problem
        self.members = tuple(range(graph.n_nodes))
        self.exchange = Exchange(graph, algorithm.rho, problem.shape)
        self.least_degree = float(graph.degrees.min())
        self._nodes = list(nodes)
        self._state = algorithm.start(graph.n_nodes, problem)
        self._absent: set[int] = set()

    @property
    def done(self) -> int:
        """Rounds so far."""
        return self.exchange.rounds

    @property
    def finished(self) -> bool:
        return self.done >= self.algorithm.rounds

    def absent(self, nodes: Collection[int]) -> None:
        """These nodes do not answer for now; an empty set says that all are back."""
        self._absent = self._known(nodes)

    def round(self) -> None:
        """One round. A node that is absent stops it before any node is asked, so that no answer is lost."""
        if self._absent:
            raise NeighbourMissing(
                f"Got no answer from node {', '.join(map(str, sorted(self._absent)))}. Expected one from every node of "
                "the graph; nothing was asked in this round. Wait until it is back, or go on without it "
                "(`go_on_without`): what it sent counts on, and its privacy stays as promised."
            )
        if self.finished:
            raise InvalidParameter(f"a round after all {self.algorithm.rounds}", "no more", "make a new run")
        self._state, messages = self.algorithm.advance(self._state, self.exchange, self._nodes, self.problem)
        self.exchange.receive(messages)

    def go_on_without(self, nodes: Collection[int], graph: NodeGraph | None = None) -> None:
        """A new epoch among the others, by the graph that is left of the old one, or by another graph of them.

        Duals follow from what was sent and from the new graph, so they still sum to zero. Noise is on gradients, or on
        what a curvature divides, and needs no change. No answer is asked again.
        """
        leaving = self._known(nodes)
        places = [place for place, member in enumerate(self.members) if member not in leaving]
        gone = {place for place, member in enumerate(self.members) if member in leaving}
        left = self.exchange.graph.without(gone) if graph is None else graph
        if left.n_nodes != len(places):
            raise InvalidParameter(
                f"a graph of {left.n_nodes} nodes for the {len(places)} that are left", "one of them", "correct it"
            )
        self.exchange = self.exchange.regrouped(left, places)
        self.least_degree = min(self.least_degree, float(left.degrees.min()))
        self.members = tuple(self.members[place] for place in places)
        self._nodes = [self._nodes[place] for place in places]
        self._state = tuple(part[places] for part in self._state)
        self._absent -= leaving

    def finish(self, observers: Iterable[RoundObserver] = ()) -> None:
        """All rounds that are left."""
        observers = tuple(observers)
        while not self.finished:
            self.round()
            for observe in observers:
                observe(self)

    @property
    def models(self) -> Array:
        """What the algorithm is meant to end with, one model a member."""
        return self.exchange.average if self.algorithm.output == "average" else self.exchange.sent

    def _known(self, nodes: Collection[int]) -> set[int]:
        if unknown := set(nodes) - set(self.members):
            raise InvalidParameter(
                f"node {min(unknown)}, which is not in the network", f"nodes among {len(self.members)}", "correct it"
            )
        return set(nodes)


RoundObserver = Callable[[NetworkRounds], None]
"""Called with the run after each round: `done`, `algorithm.rounds`, and what was sent, in `exchange`."""
