"""Graphs by name, at random, or from a file."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

from dpadmm.errors import FileProblem, InvalidParameter
from dpadmm.network.decentralised.graphs import NodeGraph, number_of_nodes
from dpadmm.problem.checks import count, number
from dpadmm.registry import Registry

Edges = list[tuple[int, int]]
GRAPHS: Registry[Callable[..., NodeGraph]] = Registry("graph")
LARGEST_FILE = 1 << 24


def make_graph(name: str, n_nodes: int, **options: Any) -> NodeGraph:
    """The graph called `name` on `n_nodes` nodes.

    Parameters
    ----------
    name : str
        "complete", "ring", "star", "torus", "random-regular" (options `degree`, `seed`) or "erdos-renyi" (options
        `probability`, `seed`); or the path of a file with an edge a line.
    n_nodes : int
        How many nodes; a file must name as many.

    Examples
    --------
    >>> make_graph("star", 4).edges
    ((0, 1), (0, 2), (0, 3))
    """
    if name not in GRAPHS and Path(name).suffix:
        return _of_this_size(read_graph(name), n_nodes)
    try:
        return GRAPHS[name](number_of_nodes(n_nodes), **options)
    except TypeError:
        raise InvalidParameter(
            f"options {', '.join(sorted(options))} for graph {name!r}",
            "degree and seed for 'random-regular', probability and seed for 'erdos-renyi', none for others",
            "remove the option",
        ) from None


@GRAPHS.register("complete")
def complete(n_nodes: int) -> NodeGraph:
    """Everybody with everybody."""
    return NodeGraph(n_nodes, tuple(combinations(range(n_nodes), 2)))


@GRAPHS.register("ring")
def ring(n_nodes: int) -> NodeGraph:
    """Each node with the one before and the one after it; two nodes have one edge."""
    return NodeGraph(n_nodes, tuple({_ordered(i, (i + 1) % n_nodes) for i in range(n_nodes)}))


@GRAPHS.register("star")
def star(n_nodes: int) -> NodeGraph:
    """Node 0 with everybody else."""
    return NodeGraph(n_nodes, tuple((0, i) for i in range(1, n_nodes)))


@GRAPHS.register("torus")
def torus(n_nodes: int) -> NodeGraph:
    """A rectangle of nodes, as square as can be, whose opposite sides meet."""
    height = max(side for side in range(1, math.isqrt(n_nodes) + 1) if n_nodes % side == 0)
    width = n_nodes // height
    if height < 3:
        raise InvalidParameter(
            f"{n_nodes} nodes on a torus",
            "a product of two numbers of at least 3, such as 9, 12 or 100",
            "choose another number of nodes, or graph 'ring'",
        )
    right = {_ordered(i, i - i % width + (i + 1) % width) for i in range(n_nodes)}
    down = {_ordered(i, (i + width) % n_nodes) for i in range(n_nodes)}
    return NodeGraph(n_nodes, tuple(right | down))


@GRAPHS.register("random-regular")
def random_regular(n_nodes: int, degree: int = 4, seed: int = 0) -> NodeGraph:
    """Every node with `degree` neighbours, drawn at random by the public `seed`."""
    degree = count("degree", degree, minimum=1)
    if degree >= n_nodes or degree * n_nodes % 2:
        raise InvalidParameter(
            f"degree={degree} for {n_nodes} nodes",
            "a degree below the number of nodes, their product even",
            "choose another degree",
        )
    drawn = _networkx().random_regular_graph(degree, n_nodes, seed=count("seed", seed))
    return NodeGraph(n_nodes, tuple(drawn.edges))


@GRAPHS.register("erdos-renyi")
def erdos_renyi(n_nodes: int, probability: float | None = None, seed: int = 0) -> NodeGraph:
    """Each pair with the same `probability`, 2·ln(n)/n if left out, drawn by the public `seed`."""
    chance = min(1.0, 2 * math.log(n_nodes) / n_nodes) if probability is None else number("probability", probability)
    if chance > 1:
        raise InvalidParameter(f"probability={chance:g}", "0 <= probability <= 1", "choose another probability")
    return NodeGraph(n_nodes, tuple(_networkx().gnp_random_graph(n_nodes, chance, seed=count("seed", seed)).edges))


def read_graph(path: str | Path) -> NodeGraph:
    """The graph of a text file: the numbers of two nodes a line, from 0; empty lines and `# …` are skipped."""
    edges = [_edge(line, place, path) for place, line in enumerate(_lines(Path(path)), 1) if line.split("#")[0].strip()]
    if not edges:
        raise FileProblem(
            f"the file {path} without an edge", "the numbers of two nodes a line", "write one edge a line"
        )
    return NodeGraph(1 + max(map(max, edges)), tuple(edges))


def _of_this_size(graph: NodeGraph, n_nodes: int) -> NodeGraph:
    if graph.n_nodes != n_nodes:
        raise InvalidParameter(
            f"a graph of {graph.n_nodes} nodes for {n_nodes} tables", "one node a table", "correct the file"
        )
    return graph


def _lines(path: Path) -> list[str]:
    try:
        if path.stat().st_size > LARGEST_FILE:
            raise FileProblem(f"the file {path} of more than 16 MiB", "a shorter one", "name each edge once")
        return path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        raise FileProblem(f"the file {path}, which cannot be read as text", "a text file", "check the path") from None


def _edge(line: str, place: int, path: str | Path) -> tuple[int, int]:
    try:
        first, second = map(int, line.split("#")[0].split())
    except ValueError:
        raise FileProblem(
            f"line {place} of {path}, which is no edge", "the numbers of two nodes, such as '0 1'", "correct the line"
        ) from None
    return first, second


def _ordered(i: int, j: int) -> tuple[int, int]:
    return min(i, j), max(i, j)


def _networkx() -> Any:
    try:
        import networkx
    except ImportError:
        raise InvalidParameter(
            "a random graph without the package networkx", "it to be installed", "pip install 'dpadmm[network]'"
        ) from None
    return networkx
