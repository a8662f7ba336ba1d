"""Who exchanges models with whom: a public, connected, undirected graph of nodes."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from dpadmm.errors import InvalidParameter
from dpadmm.problem.checks import count

Array = NDArray[np.float64]
MOST_NODES = 10_000


@dataclass(frozen=True)
class NodeGraph:
    """Nodes 0 to n − 1 and the pairs of them that exchange messages.

    Parameters
    ----------
    n_nodes : int
        At least 2.
    edges : tuple of (i, j)
        Each pair once, in either order. Every node must be reachable from every other.

    Examples
    --------
    >>> NodeGraph(3, ((0, 1), (1, 2))).degrees.tolist()
    [1.0, 2.0, 1.0]
    """

    n_nodes: int
    edges: tuple[tuple[int, int], ...]

    def __post_init__(self) -> None:
        nodes = number_of_nodes(self.n_nodes)
        object.__setattr__(self, "n_nodes", nodes)
        object.__setattr__(self, "edges", _in_order(self.edges, nodes))
        self._require_connected()

    @cached_property
    def adjacency(self) -> Any:
        """CSR matrix with a one for each pair, both ways."""
        first, second = np.array(self.edges).T
        pairs = (np.concatenate([first, second]), np.concatenate([second, first]))
        return sparse.csr_array((np.ones(len(pairs[0])), pairs), shape=(self.n_nodes, self.n_nodes))

    @cached_property
    def degrees(self) -> Array:
        """How many neighbours each node has."""
        return np.asarray(self.adjacency.sum(axis=1), dtype=np.float64)

    def neighbour_sum(self, values: Array) -> Array:
        """For each node the sum of its neighbours' values, which stand along the first axis."""
        flat = values.reshape(self.n_nodes, -1)
        return np.asarray(self.adjacency @ flat).reshape(values.shape)

    def differences(self, values: Array) -> Array:
        """For each node Σ (own value − neighbour's value): the Laplacian of the graph."""
        return per_node(self.degrees, values) * values - self.neighbour_sum(values)

    def without(self, nodes: Collection[int]) -> NodeGraph:
        """The graph of the other nodes, numbered anew in their order; refused if it falls apart."""
        kept = [node for node in range(self.n_nodes) if node not in nodes]
        number = {node: place for place, node in enumerate(kept)}
        edges = tuple((number[i], number[j]) for i, j in self.edges if i in number and j in number)
        return NodeGraph(len(kept), edges)

    def _require_connected(self) -> None:
        pieces, piece = connected_components(self.adjacency, directed=False) if self.edges else (self.n_nodes, None)
        if pieces == 1:
            return
        apart = 1 if piece is None else int(np.flatnonzero(piece != piece[0])[0])
        raise InvalidParameter(
            f"a graph in {pieces} pieces: no path leads from node 0 to node {apart}",
            "a connected graph, or the nodes would never agree on one model",
            "add edges between the pieces; for a random graph choose more edges or another seed",
        )


def number_of_nodes(n_nodes: int) -> int:
    """A whole number that a network can have of nodes."""
    nodes = count("n_nodes", n_nodes, minimum=2)
    if nodes > MOST_NODES:
        raise InvalidParameter(f"{nodes} nodes", f"at most {MOST_NODES}", "use fewer nodes")
    return nodes


def per_node(numbers: Array, values: Array) -> Array:
    """One number a node, shaped to multiply what stands along the first axis of `values`."""
    return numbers.reshape(-1, *[1] * (values.ndim - 1))


def _in_order(edges: Iterable[Any], nodes: int) -> tuple[tuple[int, int], ...]:
    """Each pair with its smaller number first, sorted; what is no pair of two nodes is refused."""
    found = [_pair(edge, nodes) for edge in edges]
    if len(set(found)) != len(found):
        raise InvalidParameter("a pair of nodes twice", "each pair once, in either order", "remove the second one")
    return tuple(sorted(found))


def _pair(edge: Any, nodes: int) -> tuple[int, int]:
    try:
        first, second = (count("a node of an edge", node) for node in edge)
    except TypeError:
        first = second = -1
    except ValueError as error:
        if isinstance(error, InvalidParameter):
            raise
        first = second = -1
    if first == second or not (0 <= first < nodes and 0 <= second < nodes):
        raise InvalidParameter(
            f"an edge that does not join two different nodes of {nodes}",
            f"pairs of different numbers from 0 to {nodes - 1}",
            "correct the edge",
        )
    return min(first, second), max(first, second)
