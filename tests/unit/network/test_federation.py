"""A federation is fitted like a table, and what cannot be done with one is said plainly."""

from __future__ import annotations

import numpy as np
import pytest

from dpadmm import DPLinearRegression, DPSearchCV, PrivateQuantileClipper
from dpadmm.errors import InvalidData, InvalidParameter, UnsupportedProblem
from dpadmm.network import Federation
from dpadmm.network.owner_budget import OwnerBudget
from dpadmm.network.traffic_page import traffic_page
from dpadmm.privacy.budget import Budget
from dpadmm.privacy.ledger import Ledger
from dpadmm.privacy.statement import PrivacyStatement
from tests.unit.network.parties import small_model, split, table


@pytest.fixture
def federation():
    return Federation.embedded(split(*table(), 3), 1)


@pytest.mark.parametrize(
    ("chosen", "words"),
    [
        ({"solver": "noisy-admm"}, "reads all rows at each step"),
        ({"solver": "dp-sadmm"}, "reads all rows at each step"),
        ({"solver": "dp-sgd"}, "reads all rows at each step"),
        ({"classes": None}, "Declare the classes"),
        ({"class_weight": {0: 1.0, 1: 2.0}}, "drop class_weight"),
        ({"n_rows": 120, "relation": "add-remove"}, "n_rows of the federation alone"),
        ({"random_state": 3}, "pass ledgers, or a seed, to the federation"),
        ({"bounds": PrivateQuantileClipper((np.zeros(3), np.ones(3)), share=0.2)}, "cannot be written down"),
    ],
    ids=str,
)
def test_what_owners_cannot_do_together_is_refused(federation, chosen, words):
    with pytest.raises((InvalidParameter, UnsupportedProblem)) as refusal:
        small_model(**chosen).fit(federation)
    assert words.lower() in str(refusal.value).lower()


def test_a_search_a_transformer_and_labels_beside_are_refused(federation):
    with pytest.raises(InvalidData, match="rows of many owners"):
        DPSearchCV(small_model(penalty="l1"), {"alpha": [1e-3, 1e-2]}).fit(federation, np.zeros(1))
    with pytest.raises(InvalidData, match="rows of many owners"):
        PrivateQuantileClipper((np.zeros(3), np.ones(3)), epsilon=1.0, delta=1e-4).fit(federation)
    with pytest.raises(InvalidParameter, match="owners keep their labels"):
        small_model().fit(federation, np.zeros(120))


def test_ids_of_persons_are_refused(federation):
    with pytest.raises(UnsupportedProblem, match="ids of persons for a table of many owners"):
        small_model().fit(federation, person=np.arange(len(table()[1])))


def test_the_statement_says_both_epsilons_and_survives_a_file(federation):
    model = small_model().fit(federation)
    second = federation.proposal.epsilon_if_all_collude
    text = str(model.privacy_)
    assert "of the 3 owners at most 1 collude" in text
    assert f"would be {second:.3g}"[:12] in text
    assert "the number of each owner stays its own" in text
    assert str(PrivacyStatement.from_dict(model.privacy_.to_dict())) == text
    assert not model.privacy_.contradictions(model.plan_)


def test_a_seeded_federation_is_said_to_be_not_private():
    model = small_model().fit(Federation.embedded(split(*table(), 3), 1, seed=1))
    assert model.privacy_.seeded
    assert "NOT private" in str(model.privacy_)


def test_a_fitted_model_is_saved_and_loaded(federation, tmp_path):
    from dpadmm import load_model

    model = small_model().fit(federation)
    model.save(tmp_path / "model")
    assert np.array_equal(load_model(tmp_path / "model").coef_, model.coef_)


def test_each_owner_pays_from_its_own_ledger_and_the_charge_is_finished(tmp_path):
    tables = split(*table(), 3)
    ledgers = {}
    for name in tables:
        ledger = Ledger.create(tmp_path / f"{name}.db")
        ledger.set_limit("rows", Budget(1.0, 1e-4), owner=name)
        ledgers[name] = ledger, "rows"
    small_model().fit(Federation.embedded(tables, 1, ledgers=ledgers))
    for ledger, _ in ledgers.values():
        (fit,) = ledger.account("rows").fits
        assert fit.committed
    with pytest.raises(Exception, match="would have spent"):
        small_model().fit(Federation.embedded(tables, 1, ledgers=ledgers))


def test_a_regression_learns_its_line():
    rng = np.random.default_rng(0)
    X = rng.uniform(-0.5, 0.5, (6000, 2))
    y = X @ [1.0, -1.0]
    tables = [(X[k::3], y[k::3]) for k in range(3)]
    model = DPLinearRegression(1.0, 1e-5, fit_intercept=False, target_bounds=(-1.0, 1.0), row_norm=1.0)
    found = model.fit(Federation.embedded(tables, 1)).coef_
    assert np.abs(found - [1.0, -1.0]).max() < 0.3


def test_without_a_ledger_nothing_is_charged():
    budget = OwnerBudget()
    plan = Federation.embedded(split(*table(), 3)).for_model(small_model())._proposal.plan
    budget.check(plan, False, False)
    budget.charge("0" * 32, plan, False, False)
    assert budget.standing(plan) is None


def test_the_page_shows_every_exchange_and_escapes_its_words():
    exchanges = []
    federation = Federation.embedded(split(*table(), 3), 1, observe=exchanges.append)
    model = small_model().fit(federation)
    page = traffic_page("<b>", federation.proposal, exchanges, str(model.privacy_), [("accuracy", "1 < 2")])
    assert "&lt;b&gt;" in page
    assert "1 &lt; 2" in page
    assert page.count("masked sum") == 6
    for number in range(1, 7):
        assert f"question {number}," in page
    assert "<script" not in page
