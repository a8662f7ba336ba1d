"""Graphs of nodes: what they are made of, and how broken ones are refused."""

from __future__ import annotations

import numpy as np
import pytest

from dpadmm.errors import FileProblem, InvalidParameter
from dpadmm.network.decentralised import NodeGraph, make_graph, read_graph
from dpadmm.network.decentralised.graph_kinds import GRAPHS

DEGREES = {"complete": 11, "ring": 2, "torus": 4, "random-regular": 4}


@pytest.mark.parametrize("name", GRAPHS.names())
def test_every_kind_is_connected_and_of_its_degree(name: str) -> None:
    graph = make_graph(name, 12)
    assert graph.n_nodes == 12
    assert graph.degrees.sum() == 2 * len(graph.edges)
    if name in DEGREES:
        assert set(graph.degrees) == {DEGREES[name]}


def test_a_star_has_one_centre() -> None:
    assert make_graph("star", 5).degrees.tolist() == [4, 1, 1, 1, 1]


def test_two_nodes_on_a_ring_have_one_edge() -> None:
    assert make_graph("ring", 2).edges == ((0, 1),)


def test_random_graphs_are_repeated_by_their_seed() -> None:
    assert make_graph("random-regular", 20, seed=3) == make_graph("random-regular", 20, seed=3)
    assert make_graph("random-regular", 20, seed=3) != make_graph("random-regular", 20, seed=4)


def test_differences_are_those_to_each_neighbour() -> None:
    graph, values = make_graph("ring", 5), np.arange(10.0).reshape(5, 2) ** 2
    by_hand = [2 * values[i] - values[i - 1] - values[(i + 1) % 5] for i in range(5)]
    assert np.allclose(graph.differences(values), by_hand)
    assert np.allclose(graph.differences(values).sum(axis=0), 0)


def test_what_is_left_of_a_graph_is_numbered_anew() -> None:
    assert make_graph("ring", 5).without({1}).edges == ((0, 3), (1, 2), (2, 3))


def test_a_star_without_its_centre_falls_apart() -> None:
    with pytest.raises(InvalidParameter, match="3 pieces: no path leads from node 0 to node 1"):
        make_graph("star", 4).without({0})


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        (((0, 1), (2, 3)), "2 pieces: no path leads from node 0 to node 2"),
        ((), "4 pieces"),
        (((0, 0), (1, 2)), "does not join two different nodes"),
        (((0, 4),), "does not join two different nodes"),
        (((0, 1), (1, 0)), "twice"),
        (((0, 1, 2),), "does not join two different nodes"),
        ((5,), "does not join two different nodes"),
        (((0, 1.5),), "an integer >= 0"),
    ],
)
def test_broken_graphs_are_refused(edges: tuple[tuple[int, int], ...], message: str) -> None:
    with pytest.raises(InvalidParameter, match=message):
        NodeGraph(4, edges)


@pytest.mark.parametrize(
    ("name", "nodes", "options", "message"),
    [
        ("torus", 7, {}, "a product of two numbers of at least 3"),
        ("random-regular", 5, {"degree": 3}, "their product even"),
        ("random-regular", 4, {"degree": 4}, "a degree below the number of nodes"),
        ("erdos-renyi", 30, {"probability": 0.01}, "pieces"),
        ("erdos-renyi", 5, {"probability": 2}, "probability <= 1"),
        ("ring", 5, {"degree": 3}, "remove the option|Remove the option"),
        ("moebius", 5, {}, "choose a known graph|Choose a known graph"),
        ("ring", 1, {}, "an integer >= 2"),
        ("ring", 10**6, {}, "at most 10000"),
    ],
)
def test_graphs_that_cannot_be_are_refused(name, nodes, options, message) -> None:
    with pytest.raises(InvalidParameter, match=message):
        make_graph(name, nodes, **options)


def test_a_graph_is_read_from_a_file(tmp_path) -> None:
    path = tmp_path / "hospitals.txt"
    path.write_text("# who talks to whom\n0 1\n\n1 2  # by night\n")
    assert read_graph(path).edges == ((0, 1), (1, 2))
    assert make_graph(str(path), 3).n_nodes == 3
    with pytest.raises(InvalidParameter, match="a graph of 3 nodes for 4 tables"):
        make_graph(str(path), 4)


@pytest.mark.parametrize(
    ("text", "message"), [("0 1\n1 two\n", "line 2"), ("0 1 2\n", "line 1"), ("# nothing\n", "without an edge")]
)
def test_what_is_wrong_in_a_file_is_named(tmp_path, text, message) -> None:
    path = tmp_path / "graph.txt"
    path.write_text(text)
    with pytest.raises(FileProblem, match=message):
        read_graph(path)


def test_a_file_that_is_not_there_is_named(tmp_path) -> None:
    with pytest.raises(FileProblem, match=r"missing\.txt"):
        read_graph(tmp_path / "missing.txt")
