"""A lasso that asks for curvature keeps to its plan, in every way of holding rows, and says so."""

import numpy as np
import pytest
from scipy import sparse

from dpadmm import DPLinearSVC, DPLogisticRegression, PrivateGraph
from dpadmm.errors import UnsupportedProblem
from dpadmm.privacy.budget import Budget
from dpadmm.privacy.ledger import Ledger
from dpadmm.problem import Logistic
from dpadmm.solvers.auto.rules import choose_rules, loss_model

FEATURES = 6


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(8)
    X = rng.standard_normal((20_000, FEATURES)) * (rng.random((20_000, FEATURES)) < 0.4)
    return X, np.where(X @ [2.0, -1.0, 0.0, 0.0, 0.0, 0.5] + 0.3 * rng.standard_normal(len(X)) > 0, 1, -1)


def fit(X, y, **options):
    return DPLogisticRegression(1.0, 1e-6, penalty="l1", alpha=1e-4, random_state=3, **options).fit(X, y)


def test_the_statement_names_the_release_and_its_proof(table):
    statement = fit(*table).privacy_
    assert sum("curvature" in mechanism for mechanism in statement.mechanisms) == 1
    assert "docs/proofs/auto.md" in statement.proof_status


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array, np.asfortranarray], ids=["dense", "csr", "fortran"])
@pytest.mark.parametrize("precision", [np.float32, np.float64])
def test_rows_are_left_as_they_were(table, form, precision):
    X, y = table
    given = form(X.astype(precision))
    before = given.copy()
    model = fit(given, y)
    difference = given - before
    assert (difference.nnz if sparse.issparse(difference) else np.count_nonzero(difference)) == 0
    assert np.allclose(model.coef_, fit(X.astype(precision), y).coef_, atol=1e-3)


@pytest.mark.parametrize("arithmetic", ["granular", "exact"])
@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
def test_what_was_promised_is_performed(table, arithmetic, relation):
    declared = {"n_rows": 20_000} if relation == "add-remove" else {}
    model = fit(*table, arithmetic=arithmetic, relation=relation, classes=[-1, 1], **declared)
    assert any("curvature" in mechanism for mechanism in model.privacy_.mechanisms)
    assert model.score(*table) > 0.8


@pytest.mark.slow
def test_its_noise_is_followed_to_the_coefficients(table):
    found = fit(*table).coef_std_
    assert np.isfinite(found).all()
    assert 0 < found.max() < 1


def test_a_ridge_asks_for_none(table):
    model = DPLogisticRegression(1.0, 1e-6, penalty="l2", alpha=1e-4, random_state=3).fit(*table)
    assert not any("curvature" in mechanism for mechanism in model.privacy_.mechanisms)


def test_a_learned_graph_without_edges_leaves_a_lasso_that_keeps_to_the_plan_of_a_graph():
    options = {"penalty": "graph", "graph": PrivateGraph(share=0.1), "alpha": 1e-4, "classes": [-1, 1]}
    rng = np.random.default_rng(8)
    X = rng.standard_normal((20_000, FEATURES))
    y = np.where(X @ [2.0, -1.0, 0.0, 0.0, 0.0, 0.5] + 0.3 * rng.standard_normal(len(X)) > 0, 1, -1)
    model = DPLogisticRegression(1.0, 1e-6, random_state=3, **options).fit(X, y)
    assert not any("curvature" in mechanism for mechanism in model.privacy_.mechanisms)


def test_rules_that_ask_for_the_curvature_of_another_loss_cost_nothing(table, tmp_path):
    ledger = Ledger.create(tmp_path / "ledger.db")
    ledger.set_limit("table", Budget(5.0, 1e-4))
    rules = choose_rules(5000.0, FEATURES + 1, 2, loss_model(Logistic()), True)
    model = DPLinearSVC(1.0, 1e-6, solver_options={"rules": rules}, ledger=ledger, dataset="table")
    with pytest.raises(UnsupportedProblem, match="logistic"):
        model.fit(*table)
    assert ledger.spent("table")[0] == 0
