"""Audits of promises to persons: neighbours that differ in a person of fifty rows, and mistakes they refute."""

from __future__ import annotations

import numpy as np
import pytest

from dpadmm import DPLogisticRegression, DPSearchCV
from dpadmm.audit import audit_fit, audit_model, audit_solver
from dpadmm.audit.neighbours import MANY, of_persons, worst_pair
from dpadmm.errors import InvalidParameter, UnsupportedProblem
from dpadmm.preparation import PrivateQuantileClipper
from dpadmm.privacy.budget import Relation
from dpadmm.privacy.sampling import Batch
from dpadmm.rows.owned import Owned
from dpadmm.rows.person_rows import PersonRows
from dpadmm.solvers.base import SOLVERS

SUMMING = [name for name in SOLVERS if not SOLVERS[name].hidden]


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
@pytest.mark.parametrize("solver", SUMMING)
def test_no_solver_is_refuted_by_a_person_of_fifty_rows(solver, relation):
    result = audit_solver(solver, 1.0, runs=200, relation=relation, random_state=1, unit="person")
    assert not result.refuted


@pytest.mark.statistical
@pytest.mark.slow
@pytest.mark.parametrize("solver", SUMMING)
def test_no_solver_is_refuted_by_many_runs(solver):
    assert not audit_solver(solver, 1.0, runs=5000, random_state=2, unit="person").refuted


@pytest.mark.slow
def test_an_audit_of_persons_sees_nearly_all_there_is_to_see():
    result = audit_solver("full-admm", 1.0, runs=2000, random_state=3, unit="person")
    assert 0.6 < result.lower_bound < 1.0


def test_hidden_passes_promise_nothing_to_persons():
    with pytest.raises(UnsupportedProblem):
        audit_solver("noisy-admm", 1.0, runs=200, unit="person")
    with pytest.raises(InvalidParameter, match="unit"):
        audit_solver("auto", 1.0, runs=200, unit="owner")


def test_forgotten_weights_are_refuted(monkeypatch):
    """Moments of fifty rows that each weigh one move fifty times as far."""
    monkeypatch.setattr(Owned, "shares", lambda self, n_rows: np.ones(n_rows))
    assert audit_solver("auto", 1.0, runs=400, random_state=4, unit="person").refuted


def test_rescaled_weights_are_refuted(monkeypatch):
    """Divided by the largest, all weights of the others depend on whether somebody has a single row."""
    honest = Owned.shares

    def rescaled(self, n_rows):
        found = honest(self, n_rows)
        return found / found[:MANY].max()

    monkeypatch.setattr(Owned, "shares", rescaled)
    assert audit_solver("auto", 1.0, runs=400, random_state=5, unit="person").refuted


def test_drawing_rows_instead_of_persons_is_refuted(monkeypatch):
    """A person of fifty rows, each drawn by itself, takes part nearly always, and is accounted for as one row."""
    rate, rng, honest = 0.05, np.random.default_rng(6), PersonRows.ask

    def by_rows(self, question, at, batch):
        if batch.rows is not None:
            sizes = np.bincount(self._persons.of_row, minlength=self.n_rows)
            batch = Batch(np.flatnonzero(rng.random(self.n_rows) < 1 - (1 - rate) ** sizes))
        return honest(self, question, at, batch)

    model = DPLogisticRegression(
        1.0,
        0.01,
        solver="dp-sgd",
        relation="add-remove",
        sampler="poisson",
        steps=4,
        batch_size=1,
        clip_norm=0.1,
        fit_intercept=False,
        classes=(0, 1),
        random_state=7,
    )
    tables = [of_persons(each) for each in worst_pair(20, Relation.ADD_REMOVE)]
    assert not audit_fit(model, *tables, runs=700).refuted
    monkeypatch.setattr(PersonRows, "ask", by_rows)
    assert audit_fit(model, *tables, runs=700).refuted


def persons(count=400):
    rng = np.random.default_rng(0)
    ids = np.repeat(np.arange(count), 1 + rng.poisson(2, count))
    X = rng.uniform(-1, 1, (len(ids), 3))
    return X, (X[:, 0] > 0).astype(int), ids


def fitted(**changes):
    X, y, ids = persons()
    chosen = {"epsilon": 1.0, "delta": 1e-3, "classes": [0, 1], "row_norm": 2.0, **changes}
    return DPLogisticRegression(**chosen).fit(X, y, person=ids)


FEW_QUERIES = {"solver": "full-admm", "steps": 3}
LEARNED = {**FEW_QUERIES, "row_norm": None, "bounds": PrivateQuantileClipper(bounds=(-4, 4), rounds=3, share=0.2)}


@pytest.mark.parametrize(
    "changes",
    [
        FEW_QUERIES,
        LEARNED,
        pytest.param({}, marks=pytest.mark.slow),
        pytest.param({"relation": "add-remove", "n_rows": 400}, marks=pytest.mark.slow),
        pytest.param({"solver": "dp-vradmm", "steps": 20, "batch_size": 100}, marks=pytest.mark.slow),
    ],
    ids=["full data", "learned bounds", "auto", "add-remove", "variance reduction"],
)
def test_saved_models_are_attacked_by_a_person(changes):
    model = fitted(**changes)
    result = audit_model(model, runs=200, random_state=8)
    assert not result.refuted
    assert result.rehearsed or "bounds" in changes


def test_counts_without_weights_are_refuted_on_a_saved_model(monkeypatch):
    model = fitted(**LEARNED)
    monkeypatch.setattr(Owned, "shares", lambda self, n_rows: np.ones(n_rows))
    assert audit_model(model, runs=200, random_state=9).refuted


@pytest.mark.slow
def test_searches_are_attacked_by_a_person():
    X, y, ids = persons()
    model = DPLogisticRegression(1.0, 1e-3, classes=[0, 1], row_norm=2.0, penalty="l1")
    search = DPSearchCV(model, {"alpha": [1e-4, 1e-3]}, mean_trials=2).fit(X, y, person=ids)
    assert not audit_model(search.best_estimator_, runs=200, random_state=10).refuted
