"""Decentralised ADMM: how far one row moves what a node sends, and audits of its broadcasts, each with its mutants."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from dpadmm.audit import gaussian_lower_bound
from dpadmm.errors import Diverged, PromiseBroken, QueryRefused
from dpadmm.network.decentralised import NetworkRounds, make_graph, train_decentralised
from dpadmm.network.decentralised import descent_to_minimum as minimum_module
from dpadmm.network.decentralised.algorithms.linearised import DPADMM, IPADMM
from dpadmm.network.decentralised.algorithms.minimising import PrimalPerturbation
from dpadmm.network.decentralised.descent_to_minimum import rounding_share, step_length
from dpadmm.network.decentralised.minimising_rows import MinimisingRows
from dpadmm.network.decentralised.node_plans import plans_of_nodes
from dpadmm.network.decentralised.nodes import GradientNode, MinimumNode, PerturbedNode
from dpadmm.network.decentralised.objective_price import PerturbedObjective
from dpadmm.oracles.gate import Gate
from dpadmm.oracles.private import PrivateOracle
from dpadmm.privacy.budget import Budget
from dpadmm.privacy.questions import LocalMinimum
from dpadmm.privacy.questions.local_minimum import ROUNDING_SHARE
from dpadmm.privacy.sampling import Batch
from dpadmm.problem import Constraint, Huber, HuberisedHinge, Logistic, Problem, Squared, Zero
from dpadmm.randomness import make_streams
from dpadmm.rows.local import LocalRows
from dpadmm.rows.packed import PackedRows

LOSSES = [Logistic(), HuberisedHinge(0.05), Squared(), Huber(0.5)]
CLIP = 0.4
DELTA = 0.1


def problem_of(loss, features: int = 3) -> Problem:
    return Problem(loss, Zero(), Constraint.identity(features))


def minimum(X, y, loss, centre, curvature, clip=CLIP) -> np.ndarray:
    """m·μ·(w − a), as the rows of a node answer it before noise."""
    rows = MinimisingRows(PackedRows.of_mapped(X), y, problem_of(loss, X.shape[1]))
    return np.asarray(rows.ask(LocalMinimum(clip), (centre, curvature), Batch(None)))


def wild(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(1, 8)), int(rng.integers(1, 5))
    X = rng.normal(size=(n, d))
    X /= np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1.0) / rng.choice([1.0, 1e-3])
    return (
        X,
        rng.normal(size=n) * 10.0 ** rng.integers(-1, 6),
        rng.normal(size=d) * rng.choice([0, 1, 100]),
        float(10.0 ** rng.uniform(-1, 2)),
    )


def worst_move(seed: int, loss, clip=CLIP, asked=CLIP) -> float:
    """How far replacing the first row of a random table moves the answer, in units of 2C."""
    X, y, centre, curvature = wild(seed)
    y = np.sign(y) if isinstance(loss, (Logistic, HuberisedHinge)) else y
    before = minimum(X, y, loss, centre, curvature, asked)
    moves = []
    for row, target in product((X[0], -X[0], X[0][::-1], 0 * X[0]), (y[0], -y[0])):
        other, labels = X.copy(), y.copy()
        other[0], labels[0] = row, target
        moves.append(np.linalg.norm(minimum(other, labels, loss, centre, curvature, asked) - before))
    return float(max(moves)) / (2 * clip)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), loss=st.sampled_from(LOSSES))
def test_no_row_moves_a_local_minimum_further_than_declared(seed, loss) -> None:
    assert worst_move(seed, loss) <= 1.0 + ROUNDING_SHARE


def test_the_bound_is_reached() -> None:
    """Antipodal rows far on the steep side of their loss."""
    centre = np.array([-1e3])
    one, other = (np.array([[sign]]) for sign in (1.0, -1.0))
    moved = minimum(one, np.array([1.0]), Logistic(), centre, 5.0) - minimum(
        other, np.array([1.0]), Logistic(), -centre, 5.0
    )
    assert np.linalg.norm(moved) > 0.999 * 2 * CLIP


class TestMutantsOfTheSensitivity:
    """The test above must fail for these."""

    def found(self, loss, clip=CLIP, asked=CLIP) -> float:
        return max(worst_move(seed, loss, clip, asked) for seed in range(25))

    def test_clip_forgotten(self) -> None:
        assert self.found(Squared(), asked=1e6) > 10.0

    def test_half_the_sensitivity(self) -> None:
        assert self.found(Huber(0.5), clip=CLIP / 2) > 1.5

    @pytest.mark.parametrize(("longer", "least", "most"), [(1.0, 0.0, 1.0), (1.5, 2.0, math.inf)])
    def test_a_step_too_long(self, monkeypatch, longer, least, most) -> None:
        """Many rows on the bend of their loss: steps then swing around the minimum, and one row changes the swing."""
        monkeypatch.setattr(minimum_module, "step_length", lambda L, mu: longer * step_length(L, mu))
        X, y, loss = np.ones((100, 1)), np.ones(100), HuberisedHinge(0.05)
        other = np.vstack([-X[:1], X[1:]])
        centres = (np.array([place]) for place in np.linspace(0.7, 1.3, 61))
        moves = [minimum(X, y, loss, at, 2.0) - minimum(other, y, loss, at, 2.0) for at in centres]
        assert least <= np.abs(moves).max() / (2 * CLIP) <= most


def test_steps_contract_at_the_steepest_loss() -> None:
    """Both extreme curvatures of the objective shrink by the same factor, 1 − sμ."""
    for smooth, curvature in product((1e-3, 0.25, 10.0), (1e-3, 0.2, 50.0)):
        step = step_length(smooth, curvature)
        assert abs(1 - step * (smooth + curvature)) <= 1 - step * curvature


def test_what_rounding_could_show_is_refused() -> None:
    X, y = np.eye(3)[:1], np.ones(1)
    for centre, curvature in ((np.full(3, 1e20), 1.0), (np.zeros(3), 1e-12)):
        with pytest.raises(QueryRefused, match="rounding shows"):
            minimum(X, y, Logistic(), centre, curvature)
    assert rounding_share(1e3, 0.2, 0.25, 1.0, 45_000, 104) < ROUNDING_SHARE


def test_rounding_is_what_was_charged_at_most() -> None:
    """Against 50 digits, with the very same public steps."""
    from mpmath import exp, mp, mpf

    mp.dps = 50
    X, y, centre, curvature = (
        np.array([[0.6, -0.8], [0.1, 0.3]]),
        np.array([1.0, -1.0]),
        np.array([300.0, -120.0]),
        0.01,
    )
    with np.errstate(all="ignore"):
        computed = minimum(X, y, Logistic(), centre, curvature)
    rows = [[mpf(float(value)) for value in row] for row in X]
    a, mu, step = [mpf(float(value)) for value in centre], mpf(curvature), mpf(step_length(0.25, curvature))
    v = [mpf(0), mpf(0)]
    for _ in range(minimum_module.steps_needed(0.25, curvature, 1e-6)):
        total = [mpf(0), mpf(0)]
        for row, label in zip(rows, y, strict=True):
            margin = sum(r * (c + w) for r, c, w in zip(row, a, v, strict=True))
            slope = -mpf(float(label)) / (1 + exp(mpf(float(label)) * margin))
            norm = mp.sqrt(sum(r * r for r in row))
            cut = max(-CLIP / norm, min(CLIP / norm, slope))
            total = [t + cut * r for t, r in zip(total, row, strict=True)]
        v = [(1 - step * mu) * w - step / 2 * t for w, t in zip(v, total, strict=True)]
    exact = [2 * mu * w for w in v]
    error = math.sqrt(sum(float(c - e) ** 2 for c, e in zip(computed.tolist(), exact, strict=True)))
    assert error <= CLIP * (rounding_share(324.0, curvature, 0.25, CLIP, 2, 2))


# -- the barrier ---------------------------------------------------------------------------------------------------


def private_nodes(algorithm, plan, X, y, problem, seeds) -> list:
    """Node 0 with the rows, and a neighbour with rows that hold nothing."""
    nodes = []
    for rows, labels, seed in ((X, y, seeds[0]), (np.zeros_like(X), y, seeds[1])):
        streams = make_streams(seed)
        if algorithm.protection == "minima":
            held = MinimisingRows(PackedRows.of_mapped(rows), labels, problem)
            nodes.append(MinimumNode(PrivateOracle(held, Gate(plan), streams)))
        else:
            held = LocalRows(rows, labels, problem.loss)
            nodes.append(GradientNode(PrivateOracle(held, Gate(plan), streams)))
    return nodes


def broadcasts(algorithm, plan, X, y, clip, seeds) -> np.ndarray:
    """All that node 0 sent."""
    problem, sent = problem_of(Logistic(), X.shape[1]), []
    nodes = private_nodes(algorithm, plan, X, y, problem, seeds)
    run = NetworkRounds(algorithm, problem, make_graph("ring", 2), nodes)
    run.finish([lambda now: sent.append(now.exchange.sent[0].copy())])
    return np.array(sent)


def plan_of(algorithm, epsilon=1.0, rows=4, clip=0.5):
    return plans_of_nodes(algorithm, Budget(epsilon, DELTA), [rows], clip)[0]


def lower_bound(algorithm, plan, runs=2500, clip=0.5) -> float:
    """ε that the broadcasts of one round give away, at the pair of tables that hurts most."""
    X, other, y = np.zeros((4, 1)), np.zeros((4, 1)), np.ones(4)
    X[0], other[0] = 1.0, -1.0
    scores = [
        [
            broadcasts(algorithm, plan, table, y, clip, (2 * i + j * 10**7, 2 * i + 1 + j * 10**7)).sum()
            for i in range(runs)
        ]
        for j, table in enumerate((X, other))
    ]
    return gaussian_lower_bound(-np.array(scores[0]), -np.array(scores[1]), DELTA).epsilon


def halved(plan):
    """Half the noise of the plan."""
    return replace(plan, queries=tuple(replace(q, noise_multiplier=q.noise_multiplier / 2) for q in plan.queries))


ONE_ROUND = {
    "dp-admm": DPADMM(rounds=1, rho=0.1, diameter=1e3, radius=math.inf),
    "pvp": PrimalPerturbation(rounds=1, rho=5.0),
}


@pytest.mark.statistical
@pytest.mark.parametrize("name", ONE_ROUND)
def test_an_audit_of_broadcasts_stays_below_the_claim_and_near_it(name) -> None:
    algorithm = ONE_ROUND[name]
    assert 0.55 < lower_bound(algorithm, plan_of(algorithm)) <= 1.0


@pytest.mark.statistical
@pytest.mark.parametrize("name", ONE_ROUND)
def test_the_audit_refutes_half_the_noise(name) -> None:
    algorithm = ONE_ROUND[name]
    assert lower_bound(algorithm, halved(plan_of(algorithm))) > 1.0


@pytest.mark.statistical
def test_an_audit_of_several_rounds_and_local_steps_and_of_one_local_step_forgotten() -> None:
    """The sum of all broadcasts; the mutant pays for one of eight local steps, and shows what the barrier prevents."""
    algorithm = IPADMM(rounds=2, rho=0.05, diameter=1e3, radius=math.inf, local_steps=8)
    plan = plan_of(algorithm)
    assert lower_bound(algorithm, plan, 600) <= 1.0
    cheap = plan_of(replace(algorithm, local_steps=1))
    queries = tuple(replace(query, count=16) for query in cheap.queries)
    assert lower_bound(algorithm, replace(cheap, queries=queries), 600) > 1.0


def test_a_step_that_was_not_planned_is_refused() -> None:
    algorithm = IPADMM(rounds=2, local_steps=3)
    short = plan_of(replace(algorithm, local_steps=2))
    with pytest.raises(QueryRefused, match="all 4 planned"):
        broadcasts(algorithm, short, np.zeros((4, 1)), np.ones(4), 0.5, (1, 2))


def test_a_round_that_was_not_made_leaves_the_promise_unkept() -> None:
    X, y = np.zeros((40, 2)), np.where(np.arange(40) % 2, 1, -1)

    class Stopping(Exception):
        pass

    def stop(run: NetworkRounds) -> None:
        run.exchange.rounds = run.algorithm.rounds

    with pytest.raises(PromiseBroken):
        train_decentralised(
            [(X, y)] * 2, 1.0, 1e-3, classes=[-1, 1], options={"rounds": 3}, observers=[stop], random_state=None
        )


def test_a_neighbour_that_sends_infinity_stops_before_a_row_is_read() -> None:
    """Without the check a row that is zero where another is not would show itself as NaN."""

    class Malicious:
        noise_std = 0.0

        def minimiser(self, centre: np.ndarray, curvature: float) -> np.ndarray:
            return np.full_like(centre, np.inf)

    algorithm = PrimalPerturbation(rounds=3, rho=1.0)
    problem = problem_of(Logistic(), 2)
    oracle = PrivateOracle(
        MinimisingRows(PackedRows.of_mapped(np.eye(2)), np.ones(2), problem),
        Gate(plan_of(algorithm, rows=2)),
        make_streams(1),
    )
    run = NetworkRounds(algorithm, problem, make_graph("ring", 2), [MinimumNode(oracle), Malicious()])
    with pytest.raises(Diverged, match="node 1 sent"):
        run.round()
    assert oracle.spent.parts[0].count == 1


def test_points_that_overflow_are_refused_by_the_barrier() -> None:
    algorithm = PrimalPerturbation(rounds=3, rho=1.0)
    problem = problem_of(Logistic(), 2)
    rows = MinimisingRows(PackedRows.of_mapped(np.eye(2)), np.ones(2), problem)
    node = MinimumNode(PrivateOracle(rows, Gate(plan_of(algorithm, rows=2)), make_streams(1)))
    for centre, curvature, error in (
        (np.array([np.nan, 0.0]), 1.0, Diverged),
        (np.array([1e300, 0.0]), 1.0, Diverged),
        (np.zeros(3), 1.0, QueryRefused),
        (np.zeros(2), math.inf, QueryRefused),
        (np.zeros(2), -1.0, QueryRefused),
    ):
        with pytest.raises(error):
            node.minimiser(centre, curvature)
    with pytest.raises(QueryRefused):
        node.gradient(np.zeros(2))


def test_models_outside_the_ball_never_leave_a_node() -> None:
    """And without the projection they would: the mutant that the theory of the paper forgets."""
    X, y = np.ones((4, 1)), np.ones(4)
    bounded = IPADMM(rounds=5, rho=1e-3, diameter=3.0, local_steps=1)
    sent = broadcasts(bounded, plan_of(bounded), X, y, 0.5, (1, 2))
    assert np.abs(sent).max() <= 1.5 * (1 + 1e-12)
    free = replace(bounded, radius=math.inf)
    assert np.abs(broadcasts(free, plan_of(free), X, y, 0.5, (1, 2))).max() > 1.5


# -- perturbed objectives ------------------------------------------------------------------------------------------


class TestObjectivePrice:
    """Claim 4 against the exact law in one dimension, where everything can be integrated."""

    priced = PerturbedObjective(1, 0.5, 3, 0.25, 0.4)

    def divergence(self, noise: float, alpha: float) -> float:
        """Rényi divergence of argmin f + (μ/2)w² + Nw on two tables, by the density of w."""
        w = np.linspace(-60, 60, 400_001) * noise / self.priced.curvature

        def log_density(labels: np.ndarray) -> np.ndarray:
            slopes = -labels[:, None] / (1 + np.exp(labels[:, None] * w))
            bends = np.abs(slopes) * (1 - np.abs(slopes))
            held = slopes.sum(axis=0) / 3 + self.priced.curvature * w
            stretch = bends.sum(axis=0) / 3 + self.priced.curvature
            return -(held**2) / (2 * noise**2) + np.log(stretch) - math.log(noise * math.sqrt(2 * math.pi))

        p, q = log_density(np.array([1.0, 1.0, 1.0])), log_density(np.array([-1.0, 1.0, 1.0]))
        return float(np.log(np.trapezoid(np.exp(alpha * p + (1 - alpha) * q), w)) / (alpha - 1))

    @pytest.mark.parametrize("noise", [0.5, 1.0, 4.0])
    def test_the_bound_holds(self, noise) -> None:
        priced = replace(self.priced, clip_norm=1.0)  # logistic, never clipped
        for alpha in (1.5, 2.0, 5.0, 20.0):
            shift = priced.shift(noise)
            folded = math.log(2) + ((alpha - 1) * shift) ** 2 / 2 + norm.logcdf((alpha - 1) * shift)
            bound = priced.log_volume + shift**2 / 2 + folded / (alpha - 1)
            assert self.divergence(noise, alpha) <= bound

    def test_the_price_of_the_papers_is_too_low(self) -> None:
        many = replace(self.priced, answers=100, n_rows=452, curvature=0.198, clip_norm=1.0)
        budget = Budget(1.0, 1e-5)
        assert many.epsilon(many.optimistic_noise(budget), 1e-5) > 2.0
        assert 0.99 < many.epsilon(many.noise(budget), 1e-5) <= 1.0

    def test_more_noise_costs_less_and_more_answers_cost_more(self) -> None:
        assert self.priced.epsilon(2.0, 1e-5) < self.priced.epsilon(1.0, 1e-5)
        assert replace(self.priced, answers=5).epsilon(1.0, 1e-5) > self.priced.epsilon(1.0, 1e-5)

    def test_a_perturbed_node_answers_as_often_as_planned(self) -> None:
        rows = MinimisingRows(PackedRows.of_mapped(np.eye(2)), np.ones(2), problem_of(Logistic(), 2))
        node = PerturbedNode(rows, 0.1, 1.0, 2, make_streams(3).noise)
        answers = [node.minimiser(np.zeros(2), 1.0) for _ in range(2)]
        assert not np.array_equal(*answers)
        with pytest.raises(QueryRefused, match="all planned minima"):
            node.minimiser(np.zeros(2), 1.0)
