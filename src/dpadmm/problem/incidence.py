"""Edges of a public graph and their incidence matrix: one row weight·(e_i − e_j) per edge."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from dpadmm.errors import InvalidParameter
from dpadmm.problem.checks import Array, count, number

#: (i, j) or (i, j, weight).
EdgeList: TypeAlias = Sequence[tuple[int, int] | tuple[int, int, float]]


@dataclass(frozen=True, eq=False)
class Edges:
    """Checked edges between the nodes 0, …, n_nodes − 1.

    Examples
    --------
    >>> Edges.parse([(0, 1), (1, 2, 0.5)], n_nodes=3).incidence().toarray().tolist()
    [[1.0, -1.0, 0.0], [0.0, 0.5, -0.5]]
    """

    tail: Array
    head: Array
    weight: Array
    n_nodes: int

    @classmethod
    def parse(cls, edges: EdgeList, n_nodes: int) -> Edges:
        """Check a list of (i, j) or (i, j, weight); weights are positive, nodes known, and no edge is a loop."""
        n_nodes = count("number of nodes", n_nodes, minimum=1)
        parsed = [_edge(edge, n_nodes) for edge in edges]
        tail, head, weight = zip(*parsed, strict=True) if parsed else ((), (), ())
        return cls(np.array(tail, dtype=np.intp), np.array(head, dtype=np.intp), np.array(weight, dtype=float), n_nodes)

    @classmethod
    def chain(cls, n_nodes: int) -> Edges:
        """Neighbours on a line: row i of the incidence matrix is x_{i+1} − x_i."""
        nodes = np.arange(count("number of nodes", n_nodes, minimum=1))
        return cls(nodes[1:], nodes[:-1], np.ones(n_nodes - 1), n_nodes)

    def __len__(self) -> int:
        return int(self.tail.size)

    def incidence(self, extra_columns: int = 0) -> Any:
        """The sparse matrix with one row weight·(e_tail − e_head) per edge, and `extra_columns` of zeros at the end."""
        rows = np.tile(np.arange(len(self)), 2)
        columns = np.concatenate([self.tail, self.head])
        values = np.concatenate([self.weight, -self.weight])
        return sparse.csr_array((values, (rows, columns)), shape=(len(self), self.n_nodes + extra_columns))

    def components(self, kept: Array | None = None) -> Array:
        """The connected component of every node, if only the edges marked in `kept` (default: all) are there."""
        kept = np.ones(len(self), dtype=bool) if kept is None else kept
        links = (np.ones(int(kept.sum())), (self.tail[kept], self.head[kept]))
        graph = sparse.coo_array(links, shape=(self.n_nodes, self.n_nodes))
        labels: Array = connected_components(graph, directed=False)[1]
        return labels


def signed_incidence(edges: EdgeList, n_nodes: int) -> Any:
    """One row weight·e_i − weight·e_j an edge; a negative weight is a negative relation, |weight|·(e_i + e_j).

    Examples
    --------
    >>> signed_incidence([(0, 1, 0.5), (1, 2, -1.0)], n_nodes=3).toarray().tolist()
    [[0.5, -0.5, 0.0], [0.0, 1.0, 1.0]]
    """
    sizes = [(edge[0], edge[1], abs(edge[2] if len(edge) == 3 else 1.0)) for edge in edges]
    signs = np.array([math.copysign(1.0, edge[2] if len(edge) == 3 else 1.0) for edge in edges])
    parsed = Edges.parse(sizes, n_nodes)
    heads = np.concatenate([parsed.weight, -signs * parsed.weight])
    rows, columns = np.tile(np.arange(len(parsed)), 2), np.concatenate([parsed.tail, parsed.head])
    return sparse.csr_array((heads, (rows, columns)), shape=(len(parsed), n_nodes))


def _edge(edge: Any, n_nodes: int) -> tuple[int, int, float]:
    ends = tuple(edge)
    if len(ends) not in (2, 3):
        raise InvalidParameter(f"an edge of {len(ends)} numbers", "(i, j) or (i, j, weight)", "rewrite the edges")
    i, j = count("edge end", ends[0]), count("edge end", ends[1])
    if i == j or max(i, j) >= n_nodes:
        raise InvalidParameter(
            f"edge ({i}, {j})", f"two different nodes between 0 and {n_nodes - 1}", "correct or drop this edge"
        )
    return i, j, number("edge weight", ends[2] if len(ends) == 3 else 1.0, strict=True)
