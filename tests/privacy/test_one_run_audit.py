"""One fit with canaries: valid for every estimator, relation and table, near what theory expects, blind to nothing."""

from __future__ import annotations

from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from dpadmm import DPLinearRegression, DPLinearSVC, DPLogisticRegression, Ledger
from dpadmm.audit import Canaries, audit_one_run
from dpadmm.audit.one_run import _coins, _right_guesses, _with_canaries
from dpadmm.errors import BudgetExceeded, InvalidParameter, SchemeMismatch
from dpadmm.privacy.budget import Budget
from dpadmm.solvers.base import SOLVERS
from experiments.mutants import less_noise

ROWS = 1500


def table(seed=0, features=4):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(ROWS, features))
    return X, (X[:, 0] + 0.3 * rng.normal(size=ROWS) > 0).astype(int)


def logistic(epsilon=1.0, delta=1e-5, **more):
    return DPLogisticRegression(epsilon, delta, **{"classes": (0, 1), "random_state": 0, **more})


class TestHonestFits:
    def test_keys(self):
        result = audit_one_run(logistic(), *table(), canaries=100, guesses=60)
        assert (result.claimed, result.delta, result.confidence, result.runs) == (1.0, 1e-5, 0.99, 1)
        assert (result.canaries, result.guesses, result.solver, result.relation) == (100, 60, "auto", "replace-one")
        assert 0 <= result.correct <= 60
        assert result.lower_bound <= result.proven <= 1.0
        assert not result.refuted

    @pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
    def test_finds_what_is_there(self, relation):
        """At a large budget many canaries show, and never more than the budget allows."""
        result = audit_one_run(logistic(8.0, relation=relation), *table(), canaries=200)
        assert 0.3 * result.power < result.lower_bound <= 8.0

    def test_replace_one_with_a_declared_row_count(self):
        declared = audit_one_run(logistic(8.0, n_rows=ROWS, fit_intercept=False), *table(), canaries=100)
        assert declared == audit_one_run(logistic(8.0, fit_intercept=False), *table(), canaries=100)

    def test_add_remove_with_a_declared_row_count(self):
        """The bound of one run depends on its noise; the mean of five does little."""
        found = [
            audit_one_run(logistic(8.0, relation="add-remove", n_rows=ROWS, random_state=seed), *table(), canaries=400)
            for seed in range(5)
        ]
        bounds = [result.lower_bound for result in found]
        assert 0.5 * found[0].power < np.mean(bounds)
        assert max(bounds) <= 8.0

    @pytest.mark.parametrize(
        ("model", "labels"),
        [
            (DPLinearSVC(8.0, classes=(0, 1), random_state=0), lambda y: y),
            (DPLogisticRegression(8.0, classes=("a", "b", "c"), random_state=0), lambda y: np.array(["a", "c"])[y]),
            (DPLinearRegression(8.0, target_bounds=(0.0, 3.0), random_state=0), lambda y: 1.0 + y),
            (DPLinearRegression(8.0, loss="huber", target_bounds=(0.0, 3.0), random_state=0), lambda y: 1.0 + y),
            (DPLogisticRegression(8.0, bounds=(-4.0, 4.0), random_state=0), lambda y: y),
            (DPLogisticRegression(8.0, penalty="l1", alpha=1e-5, random_state=0), lambda y: y),
        ],
        ids=["svm", "softmax", "squared", "huber", "bounds", "l1"],
    )
    def test_every_estimator(self, model, labels):
        X, y = table()
        result = audit_one_run(model, X, labels(y), canaries=300)
        assert 0.0 < result.lower_bound <= 8.0

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("relation", "name"),
        [pair for pair in product(["replace-one", "add-remove"], SOLVERS) if pair != ("add-remove", "noisy-admm")],
    )
    @pytest.mark.parametrize("epsilon", [0.2, 1.0])
    def test_every_solver(self, name, relation, epsilon):
        result = audit_one_run(logistic(epsilon, solver=name, relation=relation), *table(), canaries=200)
        assert not result.refuted

    def test_hidden_passes_under_add_remove_are_refused(self):
        with pytest.raises(SchemeMismatch):
            audit_one_run(logistic(solver="noisy-admm", relation="add-remove"), *table(), canaries=200)

    def test_a_penalty_hides_canaries(self):
        """A strong one leaves nothing to guess from: audit without it, for it costs no privacy."""
        assert audit_one_run(logistic(8.0, penalty="l1", alpha=0.1), *table(), canaries=100).lower_bound == 0

    @pytest.mark.statistical
    def test_right_guesses_follow_the_gaussian(self):
        """Over seeds the share of right guesses is what μ predicts: neither a leak nor a lame attacker."""
        results = [audit_one_run(logistic(4.0, random_state=seed), *table(seed), canaries=200) for seed in range(20)]
        share = np.mean([result.correct / result.guesses for result in results])
        assert 0.70 < share < 0.80  # 0.757 for one Gaussian at (4, 1e-5)
        assert not any(result.refuted for result in results)

    def test_sparse_rows_and_frames(self):
        X, y = table()
        dense = audit_one_run(logistic(4.0), X, y, canaries=100)
        assert audit_one_run(logistic(4.0), pd.DataFrame(X), y, canaries=100) == dense
        by_csr = audit_one_run(logistic(4.0), sparse.csr_matrix(X), y, canaries=100)
        assert abs(by_csr.correct - dense.correct) <= 5

    def test_canaries_of_ones_own(self):
        rng = np.random.default_rng(1)
        X, y = table(features=60)
        rows, labels = 10 * np.eye(60)[rng.integers(0, 60, 40)], rng.integers(0, 2, 40)
        result = audit_one_run(logistic(8.0), X, y, Canaries(rows, labels, 1 - labels))
        assert result.canaries == 40
        assert not result.refuted
        assert not audit_one_run(logistic(8.0, relation="add-remove"), X, y, Canaries(rows, labels)).refuted


class TestBrokenFits:
    @pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
    def test_without_noise(self, relation):
        with less_noise(1e-3):
            result = audit_one_run(logistic(relation=relation), *table(), canaries=100)
        assert result.correct == result.guesses
        assert result.refuted

    @pytest.mark.slow
    @pytest.mark.parametrize("name", list(SOLVERS))
    def test_every_solver_without_noise(self, name):
        with less_noise(1e-3):
            assert audit_one_run(logistic(solver=name), *table(), canaries=200).refuted

    def test_with_a_noise_that_the_power_says_is_seen(self):
        honest = audit_one_run(logistic(), *table(), canaries=300)
        assert 0.1 < honest.detectable_noise < 0.3
        with less_noise(0.8 * honest.detectable_noise):
            assert audit_one_run(logistic(), *table(), canaries=300).refuted


class TestCostsAndSecrets:
    def test_the_fit_is_charged(self, tmp_path):
        ledger = Ledger.create(tmp_path / "book.db")
        ledger.set_limit("people", Budget(1.1, 1e-5))
        model = logistic(random_state=None, ledger=ledger, dataset="people")
        assert not audit_one_run(model, *table(), canaries=50).refuted
        (account,) = ledger.accounts
        assert len(account.fits) == 1
        with pytest.raises(BudgetExceeded):
            audit_one_run(model, *table(), canaries=50)

    def test_the_estimator_stays_unfitted_and_unchanged(self):
        model = logistic(bounds=(-3.0, 3.0))
        before = model.get_params()
        audit_one_run(model, *table(), canaries=50)
        assert model.get_params() == before
        assert not hasattr(model, "coef_")

    def test_coins_are_fair_secret_and_not_the_noise(self):
        assert not np.array_equal(_coins(200, None), _coins(200, None))
        assert np.array_equal(_coins(200, 3), _coins(200, 3))
        assert 4600 < _coins(10_000, None).sum() < 5400

    def test_a_canary_that_is_gone_leaves_no_row(self):
        """A row of zeros would not do: its intercept is a contribution, and the pair no add-remove neighbours."""
        (X, y), coins = table(), np.array([True, False, True])
        model, canaries = logistic(relation="add-remove"), Canaries(np.ones((3, 4)), np.array([0, 1, 1]))
        rows, labels = _with_canaries(model, X, y, canaries, coins)
        assert rows.shape == (ROWS + 2, 4)
        assert labels[-2:].tolist() == [0, 1]
        assert model.n_rows == ROWS + 1

    def test_the_attacker_says_nothing_about_the_middle(self):
        evidence, coins = np.array([3.0, -3.0, 0.1, -0.1]), np.array([True, False, False, True])
        assert _right_guesses(evidence, coins, 2) == 2
        assert _right_guesses(evidence, coins, 4) == 2


class TestBadInput:
    @pytest.mark.parametrize(
        ("options", "said"),
        [
            ({"canaries": 5}, "canaries"),
            ({"canaries": 100, "guesses": 101}, "guesses"),
            ({"canaries": 100, "guesses": 1}, "guesses"),
            ({"canaries": 100, "confidence": 1.0}, "probabilities"),
            ({"canaries": Canaries(np.zeros((30, 3)), np.zeros(30), np.ones(30))}, "columns of the table"),
            ({"canaries": Canaries(np.full((30, 4), np.nan), np.zeros(30), np.ones(30))}, "finite"),
            ({"canaries": Canaries(np.zeros((30, 4)), np.zeros(30))}, "another target"),
            ({"canaries": Canaries(np.zeros((30, 4)), np.zeros(30), np.zeros(30))}, "another target"),
        ],
    )
    def test_is_refused(self, options, said):
        with pytest.raises(InvalidParameter, match=said):
            audit_one_run(logistic(), *table(), **options)

    def test_structure_in_the_columns_is_refused(self):
        model = logistic(penalty="graph", graph=[(0, 1)])
        with pytest.raises(InvalidParameter, match="columns of their own"):
            audit_one_run(model, *table(), canaries=50)
