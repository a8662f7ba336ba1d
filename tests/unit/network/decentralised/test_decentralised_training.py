"""The whole call: what each owner is asked to pay, what is promised, and how bad input is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dpadmm import Budget, Ledger
from dpadmm.errors import (
    SPENT,
    BudgetExceeded,
    CannotCertify,
    InvalidData,
    InvalidParameter,
    SchemeMismatch,
    UnsupportedProblem,
)
from dpadmm.network.decentralised import deal, make_graph, train_decentralised
from dpadmm.network.decentralised.algorithms import NETWORK_ALGORITHMS
from dpadmm.network.decentralised.algorithms.linearised import DPADMM
from dpadmm.network.decentralised.promises import HeuristicClaim, NodePromise, NoPromise
from dpadmm.privacy.calibration import verify_plan

CLASSES = ("no", "yes")
SHORT = {"rounds": 4, "rho": 0.05}


def tables(nodes: int = 4, each: int = 50) -> list[tuple[np.ndarray, np.ndarray]]:
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (nodes * each, 3))
    return deal(X, np.where(X[:, 0] > 0, "yes", "no"), nodes)


def train(given=None, epsilon=2.0, delta=1e-3, **choices):
    choices = {"classes": CLASSES, "options": SHORT, "random_state": 0, **choices}
    return train_decentralised(tables() if given is None else given, epsilon, delta, **choices)


@pytest.mark.parametrize("algorithm", NETWORK_ALGORITHMS.names())
@pytest.mark.parametrize("graph", ["complete", "ring"])
def test_every_algorithm_trains_on_text_labels(algorithm, graph) -> None:
    options = {"rounds": 40, "rho": 0.05, "output": "average"}
    model = train(tables(4, 400), 5.0, algorithm=algorithm, graph=graph, options=options, price="as-published")
    X, y = tables(4, 400)[1]
    assert model.weights.shape == (4, 3)
    assert np.mean(model.predict(X) == y) > 0.8
    assert np.mean(model.predict(X, node=2) == y) > 0.8
    assert [promise.node for promise in model.promises] == [0, 1, 2, 3]


@pytest.mark.parametrize("algorithm", ["ipadmm", "dp-admm", "pvp", "dvp", "radmm"])
def test_a_seed_repeats_the_run_and_nodes_have_noise_of_their_own(algorithm) -> None:
    one, two, other = (train(algorithm=algorithm, random_state=seed) for seed in (1, 1, 2))
    assert np.array_equal(one.last, two.last)
    assert not np.array_equal(one.last, other.last)
    X, y = tables()[0]
    same = train([(X, y)] * 4, algorithm=algorithm, graph="complete")
    assert len({tuple(each) for each in same.last}) == 4


class TestPromises:
    """What is said of each node."""

    def test_proved_ones_are_about_the_rows_of_one_node(self) -> None:
        given = [*tables(), (np.zeros((200, 3)), np.full(200, "no"))]
        model = train(given, algorithm="ipadmm", random_state=None)
        assert model.private
        for promise, (X, _) in zip(model.promises, given, strict=True):
            assert isinstance(promise, NodePromise)
            assert promise.statement.facts.unit.number == len(X)
            assert promise.statement.epsilon == 2.0
            assert "towards its neighbours and everybody who sees the exchange" in promise.text
            assert "each row is held by this node alone" in promise.text
            assert "40 noisy gradient releases" in promise.text

    def test_local_minima_are_stated_with_their_proof(self) -> None:
        text = train(algorithm="pvp", random_state=None).promises[0].text
        assert "4 noisy local minimum releases" in text
        assert "docs/proofs/decentralised.md" in text
        assert "which one row can move by at most 2" in text

    def test_a_seeded_run_promises_nothing(self) -> None:
        assert not train(random_state=3).private

    @pytest.mark.parametrize("algorithm", ["dvp", "radmm"])
    def test_heuristic_ones_say_so(self, algorithm) -> None:
        published = train(algorithm=algorithm, price="as-published", random_state=None).promises[0]
        bounded = train(algorithm=algorithm, random_state=None).promises[0]
        for promise in (published, bounded):
            assert isinstance(promise, HeuristicClaim)
            assert not promise.holds
            assert "HEURISTIC, no promise" in promise.text
        assert published.epsilon > 2.0 >= bounded.epsilon > 1.99
        assert published.noise_std < bounded.noise_std
        assert "no proof supports" in published.text
        assert "no proof supports" not in bounded.text

    def test_no_noise_is_named_as_that(self) -> None:
        promise = train(algorithm="admm", random_state=None).promises[0]
        assert isinstance(promise, NoPromise)
        assert "NOT private" in promise.text

    def test_mini_batches_are_certified_by_their_accountant(self) -> None:
        model = train(sampler="truncated-poisson", batch_size=10)
        assert model.promises[0].statement.accountant == "pld"

    def test_add_remove_takes_declared_sizes(self) -> None:
        model = train(relation="add-remove", n_rows=[45] * 4)
        assert "n_rows was declared" in model.promises[0].text

    def test_plans_stand_a_second_look(self) -> None:
        model = train(algorithm="pvp")
        assert verify_plan(model.declared.plans([50])[0]) <= 2.0
        assert verify_plan(replace(model.declared, algorithm="ipadmm").plans([50])[0]) <= 2.0


class TestLedgers:
    """Each owner pays alone, before the first round."""

    def test_each_owner_is_charged_once(self, tmp_path: Path) -> None:
        paths = [tmp_path / f"owner{i}.ledger" for i in range(4)]
        ledgers = [_opened(path, 10.0) for path in paths]
        train(ledgers=ledgers, datasets=["rows"] * 4, random_state=None)
        assert [len(ledger.account("rows").fits) for ledger in ledgers] == [1] * 4

    def test_nobody_is_charged_where_one_cannot_pay(self, tmp_path: Path) -> None:
        ledgers = [_opened(tmp_path / f"owner{i}.ledger", 0.5 if i == 2 else 10.0) for i in range(4)]
        with pytest.raises(BudgetExceeded):
            train(ledgers=ledgers, datasets=["rows"] * 4, random_state=None)
        assert [len(ledger.account("rows").fits) for ledger in ledgers] == [0] * 4

    def test_who_leaves_stays_charged_and_the_others_are_stated(self, tmp_path: Path) -> None:
        ledgers = [_opened(tmp_path / f"owner{i}.ledger", 10.0) for i in range(4)]

        def drop(run) -> None:
            if run.done == 2:
                run.go_on_without({1})

        model = train(ledgers=ledgers, datasets=["rows"] * 4, random_state=None, observers=[drop])
        fits = [ledger.account("rows").fits[0] for ledger in ledgers]
        assert [fit.committed for fit in fits] == [True, False, True, True]
        assert model.members == (0, 2, 3)
        assert model.weights.shape == (3, 3)
        assert "left before the end" in model.promises[1].text
        assert model.private
        assert np.array_equal(model.decision(np.eye(3), node=3), model.weights[2])

    def test_an_interruption_leaves_everybody_charged(self, tmp_path: Path) -> None:
        ledgers = [_opened(tmp_path / f"owner{i}.ledger", 10.0) for i in range(4)]

        def interrupt(run) -> None:
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt) as ending:
            train(ledgers=ledgers, datasets=["rows"] * 4, random_state=None, observers=[interrupt])
        assert SPENT in ending.value.__notes__
        assert [len(ledger.account("rows").fits) for ledger in ledgers] == [1] * 4

    @pytest.mark.parametrize("algorithm", ["dvp", "radmm", "admm"])
    def test_nothing_heuristic_is_paid_for(self, tmp_path: Path, algorithm) -> None:
        with pytest.raises(UnsupportedProblem, match="a ledger with algorithm"):
            train(algorithm=algorithm, ledgers=[tmp_path / "a"] * 4, datasets=["rows"] * 4)


def _opened(path: Path, epsilon: float) -> Ledger:
    ledger = Ledger.create(path)
    ledger.set_limit("rows", Budget(epsilon, 1e-2))
    return ledger


@pytest.mark.parametrize(
    ("choices", "error", "message"),
    [
        ({"classes": None}, InvalidParameter, "without classes"),
        ({"algorithm": "admmm"}, InvalidParameter, "algorithm 'admmm'"),
        ({"options": {"steps": 3}}, InvalidParameter, "options steps"),
        ({"options": {"rho": 0}}, InvalidParameter, "rho"),
        ({"options": {"rounds": 0}}, InvalidParameter, "rounds"),
        ({"options": {"output": "best"}}, InvalidParameter, "'average' or 'last'"),
        ({"loss": "absolute"}, InvalidParameter, "'logistic'"),
        ({"penalty": "fused"}, (InvalidParameter, UnsupportedProblem), "decentralised|graph"),
        ({"algorithm": "pvp", "penalty": "l1"}, UnsupportedProblem, "'l1'"),
        ({"algorithm": "pvp", "sampler": "fixed", "batch_size": 5}, SchemeMismatch, "mini-batches"),
        ({"algorithm": "pvp", "relation": "add-remove"}, SchemeMismatch, "under add-remove"),
        ({"algorithm": "dvp", "sampler": "fixed", "batch_size": 5}, SchemeMismatch, "mini-batches"),
        ({"algorithm": "radmm", "relation": "add-remove"}, SchemeMismatch, "under add-remove"),
        ({"algorithm": "admm", "sampler": "poisson", "batch_size": 5}, SchemeMismatch, "mini-batches"),
        ({"algorithm": "dvp", "options": {"rho": 1e-9}}, CannotCertify, "whatever the noise"),
        ({"sampler": "fixed"}, InvalidParameter, "without batch_size"),
        ({"sampler": "with-replacement", "batch_size": 5}, SchemeMismatch, "several times"),
        ({"graph": "torus"}, InvalidParameter, "4 nodes on a torus"),
        ({"alphas": 3}, InvalidParameter, "arguments alphas"),
        ({"n_rows": [1, 2]}, InvalidParameter, "2 n_rows for 4 nodes"),
        ({"delta": 0.1}, InvalidParameter, "delta < 1/n"),
        ({"price": "free"}, InvalidParameter, "price='free'"),
        ({"algorithm": DPADMM()}, InvalidParameter, "options beside algorithm of type DPADMM"),
        ({"algorithm": 5, "options": {}}, InvalidParameter, "algorithm of type int"),
        (
            {"graph": make_graph("ring", 4), "graph_options": {"seed": 1}},
            InvalidParameter,
            "graph_options beside graph",
        ),
        ({"graph": make_graph("ring", 5)}, InvalidParameter, "another number of nodes than the 4 tables"),
        ({"algorithm": "pvp", "smoothing": 1.0}, InvalidParameter, "options rho, rounds, smoother"),
        ({"random_state": -1}, InvalidParameter, "random_state"),
    ],
)
def test_bad_choices_are_refused(choices, error, message) -> None:
    with pytest.raises(error, match=message):
        train(**choices)


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        (tables()[:1], InvalidParameter, "at least two nodes"),
        ([*tables(), 5], InvalidParameter, "node 4 that is no pair"),
        ([*tables(), (np.zeros((0, 3)), np.zeros(0))], InvalidData, "at node 4 X with 0 sample"),
        ([*tables(), (np.zeros((5, 2)), np.full(5, "no"))], InvalidParameter, "2 features at node 4, and 3 at node 0"),
        ([*tables(), (np.full((50, 3), np.nan), np.full(50, "no"))], InvalidData, "at node 4 X with NaN"),
        ([*tables(), (np.zeros((50, 3)), np.full(50, "perhaps"))], InvalidData, "at node 4 y with .* label outside"),
    ],
)
def test_bad_tables_are_refused(given, error, message) -> None:
    with pytest.raises(error, match=message):
        train(given)


def test_regression_and_sparse_tables() -> None:
    from scipy import sparse

    rng = np.random.default_rng(1)
    X = rng.uniform(-1, 1, (400, 3)) / 2
    y = X @ [1.0, -0.5, 0.0]
    for loss in ("squared", "huber"):
        options = {"rounds": 60, "rho": 0.05, "diameter": 20.0, "local_steps": 2}
        model = train_decentralised(
            deal(sparse.csr_matrix(X), y, 4),
            20.0,
            1e-4,
            loss=loss,
            target_bounds=(-1, 1),
            options=options,
            penalty="l1",
        )
        assert np.mean(np.abs(model.predict(X) - y)) < 0.7 * np.mean(np.abs(y))


def test_three_classes() -> None:
    rng = np.random.default_rng(3)
    X = rng.uniform(-1, 1, (1200, 3)) / np.sqrt(3)
    y = X.argmax(axis=1)
    options = {"rounds": 40, "rho": 0.02, "diameter": 200.0, "local_steps": 2}
    model = train_decentralised(deal(X, y, 3), 20.0, 1e-4, classes=[0, 1, 2], options=options)
    assert model.weights.shape == (3, 3, 3)
    assert np.mean(model.predict(X) == y) > 0.8
    with pytest.raises(UnsupportedProblem, match="3 outputs"):
        train_decentralised(deal(X, y, 3), 20.0, 1e-4, classes=[0, 1, 2], algorithm="pvp")


def test_an_intercept_and_declared_bounds_are_folded_into_predictions() -> None:
    rng = np.random.default_rng(2)
    X = rng.uniform(100, 200, (800, 2))
    y = np.where(X[:, 0] > 150, 1, 0)
    options = {"rounds": 60, "rho": 0.05, "diameter": 100.0}
    model = train_decentralised(
        deal(X, y, 4), 10.0, 1e-4, classes=[0, 1], fit_intercept=True, bounds=(100, 200), row_norm=2.0, options=options
    )
    assert np.mean(model.predict(X) == y) > 0.9
    with pytest.raises(InvalidParameter, match="another width"):
        model.predict(X[:, :1])


def test_rows_change_no_public_number() -> None:
    """Everything but the models is the same on other rows of the same shape."""
    X, y = tables()[0]
    one, two = train(algorithm="ipadmm"), train([(np.ones_like(X), y)] * 4, algorithm="ipadmm")
    assert [p.text for p in one.promises] == [p.text for p in two.promises]
    assert not np.array_equal(one.last, two.last)


def test_what_is_released_is_saved(tmp_path: Path) -> None:
    model = train(random_state=None)
    model.save(tmp_path / "run")
    held = np.load(tmp_path / "run" / "models.npz")
    assert np.array_equal(held["average"], model.average)
    told = json.loads((tmp_path / "run" / "network.json").read_text(encoding="utf-8"))
    assert told["private"]
    assert (told["nodes"], told["edges"], told["rounds"]) == (4, 6, 4)
    assert told["promises"][3].startswith("Node 3, towards its neighbours")
