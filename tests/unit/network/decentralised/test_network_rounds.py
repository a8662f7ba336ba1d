"""Rounds: without noise they reach the pooled minimum; a node may be missing, leave, or send nonsense."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest

from dpadmm.errors import Diverged, InvalidParameter, UnsupportedProblem
from dpadmm.network.decentralised import NetworkRounds, make_graph
from dpadmm.network.decentralised.algorithms.linearised import DPADMM, IPADMM
from dpadmm.network.decentralised.algorithms.minimising import ConsensusADMM
from dpadmm.network.decentralised.algorithms.recycled import RecycledADMM
from dpadmm.network.decentralised.minimising_rows import MinimisingRows
from dpadmm.network.decentralised.nodes import ExactNode
from dpadmm.network.decentralised.penalties_on_nodes import projected, prox_of_share, smoothed
from dpadmm.network.decentralised.rounds import NeighbourMissing
from dpadmm.problem import L1, Constraint, GroupL2, Huber, HuberisedHinge, Logistic, Problem, SquaredL2
from dpadmm.problem.smoothers import RingLaplacian
from dpadmm.rows.packed import PackedRows
from dpadmm.solvers.exact_minimiser import objective, solve_exactly

NODES, EACH, FEATURES = 6, 40, 4


def rows_of(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(NODES * EACH, FEATURES))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    return X, np.where(X @ [2.0, -1.0, 0.5, 0.0] + 0.3 * rng.normal(size=len(X)) > 0, 1.0, -1.0)


def problem_of(loss=Logistic(), penalty=SquaredL2(0.1)) -> Problem:  # noqa: B008
    return Problem(loss, penalty, Constraint.identity(FEATURES))


def exact_nodes(problem: Problem, clip: float = 1.0) -> list[ExactNode]:
    X, y = rows_of()
    parts = [slice(i * EACH, (i + 1) * EACH) for i in range(NODES)]
    return [ExactNode(MinimisingRows(PackedRows.of_mapped(X[part]), y[part], problem), clip) for part in parts]


def run_of(algorithm, graph: str = "ring", problem: Problem | None = None) -> NetworkRounds:
    problem = problem_of() if problem is None else problem
    return NetworkRounds(algorithm, problem, make_graph(graph, NODES), exact_nodes(problem))


def pooled(problem: Problem) -> tuple[np.ndarray, float]:
    """Minimum of (1/n)·Σ mean losses + r/n, and its value."""
    shared = Problem(problem.loss, type(problem.regularizer)(problem.regularizer.strength / NODES), problem.constraint)
    X, y = rows_of()
    found = solve_exactly(shared, X, y, 1e-9)
    return found, objective(shared, X, y, found)


@pytest.mark.parametrize(
    ("graph", "loss"), [("complete", HuberisedHinge()), ("ring", Logistic()), ("star", Logistic())]
)
def test_admm_without_noise_finds_the_pooled_minimum(graph, loss) -> None:
    problem = problem_of(loss)
    run = run_of(ConsensusADMM(rounds=150, rho=0.05), graph, problem)
    run.finish()
    best, _ = pooled(problem)
    assert np.abs(run.exchange.sent - best).max() < 0.02


@pytest.mark.parametrize("penalty", [SquaredL2(0.1), L1(0.2)])
@pytest.mark.parametrize("kind", [IPADMM, DPADMM])
def test_linearised_steps_without_noise_come_near_it_too(penalty, kind) -> None:
    problem = problem_of(penalty=penalty)
    run = run_of(kind(rounds=200, rho=0.05, diameter=20.0, output="average"), "complete", problem)
    run.finish()
    _, value = pooled(problem)
    X, y = rows_of()
    shared = Problem(problem.loss, type(penalty)(penalty.strength / NODES), problem.constraint)
    assert objective(shared, X, y, run.models.mean(axis=0)) < value + 0.01


def test_recycled_rounds_come_near_it_and_ask_every_second_time() -> None:
    run = run_of(RecycledADMM(rounds=200, rho=0.05))
    run.finish()
    assert run.algorithm.asked == 100
    assert np.abs(run.exchange.sent - pooled(problem_of())[0]).max() < 0.02


def test_one_round_is_what_the_formula_says() -> None:
    """x ← Π(prox((pull − g + h·x)/(2ρ|N| + h))), written out for each node and each local step."""
    algorithm = IPADMM(rounds=3, rho=0.3, diameter=4.0, radius=0.5, local_steps=2)
    run, problem = run_of(algorithm), problem_of()
    nodes, graph = exact_nodes(problem), make_graph("ring", NODES)
    x, dual, sent, q = np.zeros((NODES, FEATURES)), np.zeros((NODES, FEATURES)), np.zeros((NODES, FEATURES)), 0
    for _ in range(3):
        gathered = np.zeros_like(x)
        for _ in range(2):
            q += 1
            h = math.sqrt(2 * q) / 4.0
            for i in range(NODES):
                near = [(i - 1) % NODES, (i + 1) % NODES]
                pull = 2 * dual[i] + 0.3 * (sent[near[0]] + sent[near[1]] + 2 * sent[i])
                stiff = 2 * 0.3 * 2 + h
                moved = (pull - nodes[i].gradient(x[i]) + h * x[i]) / stiff / (1 + 0.1 / NODES / stiff)
                x[i] = moved * min(1.0, 0.5 / np.linalg.norm(moved))
            gathered += x
        sent = gathered / 2
        dual = dual - 0.15 * np.stack([2 * sent[i] - sent[i - 1] - sent[(i + 1) % NODES] for i in range(NODES)])
        run.round()
        assert np.allclose(run.exchange.sent, sent, atol=1e-12)
        assert np.allclose(run.exchange.dual, dual, atol=1e-12)
    assert graph == run.exchange.graph


def test_steps_grow_shorter_without_a_break_between_rounds() -> None:
    """h is monotone along the way: in the paper it falls at the beginning of each round."""
    run = run_of(IPADMM(rounds=4, local_steps=3))
    numbers = [run._state[1][0]]
    while not run.finished:
        run.round()
        numbers.append(run._state[1][0])
    assert [later - earlier for earlier, later in pairwise(numbers)] == [3.0] * 4


def test_duals_sum_to_zero_also_after_a_node_left() -> None:
    run = run_of(IPADMM(rounds=9, rho=0.1, diameter=5.0), "complete")
    for _ in range(3):
        run.round()
    assert np.abs(run.exchange.dual).max() > 1e-3
    assert np.abs(run.exchange.dual.sum(axis=0)).max() < 1e-12
    run.go_on_without({2})
    assert np.abs(run.exchange.dual.sum(axis=0)).max() < 1e-12
    run.finish()
    assert run.members == (0, 1, 3, 4, 5)
    assert run.models.shape == (5, FEATURES)
    assert np.abs(run.exchange.dual.sum(axis=0)).max() < 1e-12


def test_the_others_agree_on_their_own_minimum_after_a_node_left() -> None:
    """A dual that did not sum to zero would pull them elsewhere."""
    run = run_of(ConsensusADMM(rounds=150, rho=0.05), "complete")
    for _ in range(20):
        run.round()
    run.go_on_without({5})
    run.finish()
    X, y = rows_of()
    rest = Problem(Logistic(), SquaredL2(0.1 / 5), Constraint.identity(FEATURES))
    best = solve_exactly(rest, X[: 5 * EACH], y[: 5 * EACH], 1e-9)
    assert np.abs(run.exchange.sent - best).max() < 0.02


class Counting:
    noise_std = 0.0

    def __init__(self) -> None:
        self.asked = 0

    def gradient(self, x: np.ndarray) -> np.ndarray:
        self.asked += 1
        return np.zeros_like(x)


def test_a_missing_node_stops_the_round_before_anybody_is_asked() -> None:
    nodes = [Counting() for _ in range(NODES)]
    run = NetworkRounds(DPADMM(rounds=5), problem_of(), make_graph("ring", NODES), nodes)
    run.round()
    run.absent({3})
    with pytest.raises(NeighbourMissing, match="no answer from node 3"):
        run.finish()
    assert [node.asked for node in nodes] == [1] * NODES
    run.absent(())
    run.finish()
    assert [node.asked for node in nodes] == [5] * NODES


def test_who_leaves_is_not_asked_again_and_cannot_tear_the_graph() -> None:
    nodes = [Counting() for _ in range(NODES)]
    run = NetworkRounds(DPADMM(rounds=5), problem_of(), make_graph("star", NODES), nodes)
    run.round()
    with pytest.raises(InvalidParameter, match="pieces"):
        run.go_on_without({0})
    run.go_on_without({0}, make_graph("ring", NODES - 1))
    run.finish()
    assert [node.asked for node in nodes] == [1] + [5] * (NODES - 1)
    with pytest.raises(InvalidParameter, match="node 0, which is not in the network"):
        run.absent({0})
    with pytest.raises(InvalidParameter, match="after all 5"):
        run.round()


@pytest.mark.parametrize("nonsense", [np.nan, np.inf, 1e13])
def test_nonsense_is_refused_with_the_number_of_its_node(nonsense) -> None:
    run = run_of(DPADMM(rounds=5))
    messages = np.zeros((NODES, FEATURES))
    messages[4, 1] = nonsense
    with pytest.raises(Diverged, match="node 4 sent"):
        run.exchange.receive(messages)
    assert run.done == 0


def test_models_stay_in_the_ball() -> None:
    run = run_of(IPADMM(rounds=10, rho=1e-3, diameter=2.0, local_steps=1))
    seen: list[float] = []
    run.finish([lambda now: seen.append(float(np.linalg.norm(now.exchange.sent, axis=1).max()))])
    assert len(seen) == 10
    assert max(seen) <= 1.0 + 1e-12
    free = run_of(IPADMM(rounds=10, rho=1e-3, diameter=2.0, radius=math.inf, local_steps=1))
    free.finish()
    assert np.linalg.norm(free.exchange.sent, axis=1).max() > 1.0


def test_penalties_with_corners_are_for_gradients_only() -> None:
    with pytest.raises(UnsupportedProblem, match="'l1'"):
        run_of(ConsensusADMM(), problem=problem_of(penalty=L1(0.1)))
    run_of(IPADMM(), problem=problem_of(Huber(), L1(0.1)))


def test_an_l1_penalty_gives_exact_zeros() -> None:
    run = run_of(DPADMM(rounds=60, rho=0.05, diameter=20.0), problem=problem_of(penalty=L1(1.5)))
    run.finish()
    assert (run.models == 0).any()


class TestPartsOfAStep:
    """Each part alone, node by node."""

    @pytest.mark.parametrize(
        "penalty", [SquaredL2(0.7), L1(0.3), L1(0.3, (1.0, 0.0, 2.0, 1.0)), GroupL2(0.4, ((0, 1),))]
    )
    def test_prox(self, penalty) -> None:
        rng = np.random.default_rng(1)
        models, steps = rng.normal(size=(NODES, FEATURES)), rng.uniform(0.1, 5, NODES)
        found = prox_of_share(problem_of(penalty=penalty), models, steps, NODES)
        for model, step, each in zip(models, steps, found, strict=True):
            assert np.allclose(each, penalty.prox(model, step / NODES))

    def test_projection(self) -> None:
        models = np.array([[3.0, 4.0], [0.3, 0.4], [0.0, 0.0]])
        assert np.allclose(projected(models, 1.0), [[0.6, 0.8], [0.3, 0.4], [0.0, 0.0]])
        assert np.allclose(projected(models, math.inf), models)

    def test_smoothing(self) -> None:
        gradients = np.random.default_rng(2).normal(size=(3, 5, 2))
        smoother = RingLaplacian(2.0)
        for given, found in zip(gradients, smoothed(smoother, gradients), strict=True):
            assert np.allclose(smoother(given), found)
