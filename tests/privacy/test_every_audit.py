"""Every estimator with every solver stays below its claim at two budgets, under both relations."""

from __future__ import annotations

import pytest

from dpadmm.audit import audit_fit, audit_solver, worst_tables
from dpadmm.privacy.budget import Relation
from dpadmm.solvers.base import SOLVERS
from experiments.audit import DELTA, ESTIMATORS, ROWS, estimator_audit

BUDGETS = (0.2, 1.0)
SMALL_CLIP = 0.1


@pytest.mark.parametrize("epsilon", BUDGETS)
@pytest.mark.parametrize("name", list(ESTIMATORS))
def test_every_estimator(name, epsilon):
    result = estimator_audit(name, epsilon, runs=250)
    assert (result.claimed, result.runs) == (epsilon, 250)
    assert result.lower_bound <= result.proven <= epsilon


@pytest.mark.slow
@pytest.mark.parametrize("name", list(ESTIMATORS))
def test_every_estimator_comes_near_its_claim(name):
    """The pair is the worst there is: an audit that saw nothing would mean nothing."""
    result = estimator_audit(name, 1.0, runs=2000)
    assert 0.6 * result.power <= result.lower_bound <= 1.0


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", BUDGETS)
@pytest.mark.parametrize("solver", [name for name in SOLVERS if name != "auto"])
@pytest.mark.parametrize("name", list(ESTIMATORS))
def test_every_estimator_with_every_solver(name, solver, epsilon):
    assert not estimator_audit(name, epsilon, runs=250, solver=solver, clip_norm=SMALL_CLIP).refuted


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", BUDGETS)
@pytest.mark.parametrize("name", list(SOLVERS))
def test_every_solver_under_add_remove(name, epsilon):
    assert not audit_solver(name, epsilon, runs=300, relation="add-remove", random_state=0).refuted


@pytest.mark.slow
@pytest.mark.parametrize("name", list(ESTIMATORS))
def test_every_estimator_under_add_remove(name):
    kind, declared, labels = ESTIMATORS[name]
    model = kind(1.0, DELTA, steps=2, fit_intercept=False, relation="add-remove", random_state=0, **declared)
    assert not audit_fit(model, *worst_tables(labels, ROWS, Relation.ADD_REMOVE), runs=300).refuted
