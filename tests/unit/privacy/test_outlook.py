"""A public rule says where a budget is too small for the rows, and the statement repeats it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from dpadmm import DPLogisticRegression
from dpadmm.privacy.accountants.gaussian import gaussian_shift
from dpadmm.privacy.budget import Budget, Relation
from dpadmm.privacy.facts import Outlook
from dpadmm.privacy.outlook import LEAST_SIGNAL, outlook, signal
from dpadmm.privacy.statement import PrivacyStatement
from dpadmm.privacy.wording import sentence

STORED = Path(__file__).parents[2] / "golden" / "stored"
WARNING = "no better than predicting the commonest class"


def fitted(n_rows, epsilon=1.0, X=None, **more):
    X = np.random.default_rng(0).uniform(-1, 1, (n_rows, 3)) if X is None else X
    model = DPLogisticRegression(epsilon, 1e-6, classes=[0, 1], random_state=0, **more)
    return model.fit(X, np.arange(n_rows) % 2)


@pytest.mark.parametrize("relation", list(Relation))
def test_signal_counts_rows_in_units_of_what_one_record_can_move(relation):
    budget = Budget(0.3, 1e-6, relation)
    factor = 1 if relation is Relation.REPLACE_ONE else 2
    assert signal(budget, 500) == pytest.approx(factor * 500 * gaussian_shift(0.3, 1e-6))


def test_the_sentence_appears_just_below_the_threshold():
    mu = gaussian_shift(1.0, 1e-6)
    enough = int(np.ceil(LEAST_SIGNAL / mu))
    assert outlook(Budget(1.0, 1e-6), enough) is None
    found = outlook(Budget(1.0, 1e-6), enough - 1)
    assert found == Outlook(signal(Budget(1.0, 1e-6), enough - 1), LEAST_SIGNAL)
    assert WARNING in sentence.outlook(found)
    assert outlook(Budget(1.0, 1e-6, Relation.ADD_REMOVE), enough - 1) is None


@pytest.mark.parametrize("solver", ["auto", "full-admm"])
def test_the_statement_says_so(solver):
    hopeless, fine = fitted(20, solver=solver).privacy_, fitted(2000, solver=solver).privacy_
    assert WARNING in hopeless.text
    assert WARNING in hopeless.to_json()
    assert WARNING not in fine.text
    assert fine.outlook == ""
    assert PrivacyStatement.from_dict(hopeless.to_dict()) == hopeless


def test_it_depends_on_public_numbers_alone():
    tables = (np.zeros((20, 3)), np.eye(3)[np.arange(20) % 3], np.full((20, 3), 1e9))
    assert len({fitted(20, X=X).privacy_.text for X in tables}) == 1


def test_statements_of_older_models_are_read():
    fields = json.loads((STORED / "logistic" / "model.json").read_text())["privacy"]
    del fields["outlook"]
    assert PrivacyStatement.from_dict(fields).outlook == ""


def test_where_it_warns_an_easy_problem_is_not_learned_and_where_it_does_not_it_can_be():
    """Twenty features that each matter: near a coin's accuracy below the threshold, far above it at 30 times that."""
    accuracy = {}
    for n_rows in (25, 900):
        scores = []
        for seed in range(10):
            rng = np.random.default_rng(seed)
            X = rng.uniform(-1, 1, (n_rows + 1000, 20))
            y = (X.sum(axis=1) > 0).astype(int)
            model = DPLogisticRegression(1.0, 1e-5, classes=[0, 1], random_state=seed).fit(X[:n_rows], y[:n_rows])
            scores.append(model.score(X[n_rows:], y[n_rows:]))
        accuracy[bool(model.privacy_.outlook)] = np.mean(scores)
    assert accuracy[True] < 0.6
    assert accuracy[False] > 0.75
