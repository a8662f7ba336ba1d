"""Every estimator with every solver stays below its claim at two budgets, under both relations, or is refused."""

from __future__ import annotations

from itertools import product

import pytest

from dpadmm.audit import audit_fit, audit_solver, worst_tables
from dpadmm.errors import InvalidParameter, SchemeMismatch, UnsupportedProblem
from dpadmm.privacy.budget import Relation
from dpadmm.solvers.base import SOLVERS
from experiments.audit import DELTA, ESTIMATORS, ROWS, estimator_audit

BUDGETS = (0.2, 1.0)
SMALL_CLIP = 0.1
UNPROVED = {
    ("softmax regression", "noisy-admm"): UnsupportedProblem,
    ("logistic regression, exact", "noisy-admm"): InvalidParameter,
}
"""What has no proof is refused, so that there is nothing to audit."""


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
@pytest.mark.parametrize(
    ("name", "solver"),
    [pair for pair in product(ESTIMATORS, SOLVERS) if pair[1] != "auto" and pair not in UNPROVED],
)
def test_every_estimator_with_every_solver(name, solver, epsilon):
    assert not estimator_audit(name, epsilon, runs=250, solver=solver, clip_norm=SMALL_CLIP).refuted


@pytest.mark.parametrize(("name", "solver"), list(UNPROVED))
def test_pairs_without_a_proof_are_refused(name, solver):
    with pytest.raises(UNPROVED[name, solver]):
        estimator_audit(name, 1.0, runs=250, solver=solver, clip_norm=SMALL_CLIP)


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", BUDGETS)
@pytest.mark.parametrize("name", [name for name in SOLVERS if name != "noisy-admm"])
def test_every_solver_under_add_remove(name, epsilon):
    assert not audit_solver(name, epsilon, runs=300, relation="add-remove", random_state=0).refuted


def test_hidden_passes_under_add_remove_are_refused():
    with pytest.raises(SchemeMismatch):
        audit_solver("noisy-admm", 1.0, runs=300, relation="add-remove", random_state=0)


@pytest.mark.slow
@pytest.mark.parametrize("name", list(ESTIMATORS))
def test_every_estimator_under_add_remove(name):
    kind, declared, labels = ESTIMATORS[name]
    model = kind(1.0, DELTA, steps=2, fit_intercept=False, relation="add-remove", random_state=0, **declared)
    assert not audit_fit(model, *worst_tables(labels, ROWS, Relation.ADD_REMOVE), runs=300).refuted
