"""What nodes sent each other so far, and what follows from it: the pull of neighbours and the dual variables.

| symbol | word        | meaning                                                              |
|--------|-------------|----------------------------------------------------------------------|
| w̃ᵢ    | `sent`      | what node i broadcast last                                           |
| Σₖ w̃ᵢᵏ | `total`     | sum of all its broadcasts                                            |
| γᵢ     | `dual`      | −(ρ/2) Σⱼ (total of i − total of j), over the neighbours j of i      |
| ρ      | `rho`       | penalty parameter of the consensus constraints                       |

Node i can compute γᵢ from what it sent and received. Written this way, γ sums to zero over the nodes of any graph, and
also of the graph that is left when a node leaves: nothing is corrected afterwards.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dpadmm.errors import Diverged, QueryRefused
from dpadmm.network.decentralised.graphs import NodeGraph, per_node

Array = NDArray[np.float64]
FARTHEST_MESSAGE = 1e12
"""A message of larger norm is refused: it is no model, and sums of such messages lose all digits."""


class Exchange:
    """The messages of all nodes, in rounds in which everybody sends once.

    Parameters
    ----------
    graph : NodeGraph
        Who hears whom.
    rho : float
        ρ > 0.
    shape : tuple of int
        Of a message. All messages before the first round are zero, which is public.
    """

    def __init__(self, graph: NodeGraph, rho: float, shape: tuple[int, ...]) -> None:
        self.graph, self.rho = graph, rho
        self.sent = np.zeros((graph.n_nodes, *shape))
        self.total = np.zeros_like(self.sent)
        self.rounds = 0

    @property
    def coupling(self) -> Array:
        """2ρ|Nᵢ|: the curvature that the consensus constraints give to node i."""
        return 2.0 * self.rho * self.graph.degrees

    @property
    def dual(self) -> Array:
        """γ of each node; its sum over the nodes is zero."""
        return -0.5 * self.rho * self.graph.differences(self.total)

    @property
    def pull(self) -> Array:
        """2γᵢ + ρ(Σⱼ w̃ⱼ + |Nᵢ| w̃ᵢ): what is linear in w in the augmented Lagrangian of node i, with its sign turned."""
        own = per_node(self.graph.degrees, self.sent) * self.sent
        return 2.0 * self.dual + self.rho * (self.graph.neighbour_sum(self.sent) + own)

    @property
    def average(self) -> Array:
        """Mean of all broadcasts of each node."""
        return self.total / max(1, self.rounds)

    def receive(self, messages: Array) -> None:
        """One round of broadcasts; all of them are refused if one is no finite model of the right shape."""
        if messages.shape != self.sent.shape:
            raise QueryRefused("messages of another shape than the model, or of another number of nodes")
        norms = np.linalg.norm(messages.reshape(len(messages), -1), axis=1)
        # NaN and infinity fail the comparison too.
        wrong = np.flatnonzero(~(norms <= FARTHEST_MESSAGE))
        if wrong.size:
            raise Diverged(
                f"node {wrong[0]} sent numbers that are not finite or far too large to be a model; "
                "use a smaller diameter, a projection, or more noise-free curvature (a larger rho)"
            )
        self.sent = messages.copy()
        self.total += messages
        self.rounds += 1

    def regrouped(self, graph: NodeGraph, kept: Sequence[int]) -> Exchange:
        """The same exchange among the nodes `kept`, by another graph of them."""
        made = Exchange(graph, self.rho, self.sent.shape[1:])
        made.sent, made.total = self.sent[list(kept)].copy(), self.total[list(kept)].copy()
        made.rounds = self.rounds
        return made
