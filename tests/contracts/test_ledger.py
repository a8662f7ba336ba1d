"""The ledger: charged before training, never overspent, safe across clone, grid search, processes and crashes."""

from __future__ import annotations

import copy
import pickle
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from dpadmm import Budget, DPLogisticRegression, Ledger
from dpadmm.errors import BudgetExceeded, FileProblem, InvalidData, InvalidParameter, PromiseBroken
from dpadmm.privacy.accountants.gaussian import gaussian_epsilon, gaussian_shift
from dpadmm.privacy.calibration import calibrate
from dpadmm.privacy.events import Event
from dpadmm.privacy.plan import Request
from dpadmm.privacy.sampling import Everything, Poisson

LIMIT = Budget(1.0, 1e-5)


def plan(epsilon: float = 0.5, sampler=None, delta: float = 1e-6, relation: str = "replace-one"):
    return calibrate(Budget(epsilon, delta, relation), [Request("gradient", 10, 1.0)], sampler or Everything(), 1000)


@pytest.fixture
def table():
    X = np.random.default_rng(0).uniform(-1, 1, (400, 3))
    return X, (X[:, 0] > 0).astype(int)


def test_full_data_plans_add_up_as_one_gaussian(tmp_path):
    ledger = Ledger(tmp_path / "ledger.jsonl", LIMIT)
    for _ in range(3):
        ledger.reserve(plan(0.3, delta=1e-5))
    mu = gaussian_shift(0.3, 1e-5) * np.sqrt(3)
    epsilon, delta = ledger.spent
    assert epsilon == pytest.approx(gaussian_epsilon(mu, 1e-5), rel=1e-3)
    assert delta == 1e-5


def test_sampled_plans_add_up_by_basic_composition(tmp_path):
    ledger = Ledger(tmp_path / "ledger.jsonl", LIMIT, "basic")
    ledger.reserve(plan(0.4, Poisson(0.1)))
    ledger.reserve(plan(0.4))
    epsilon, delta = ledger.spent
    assert 0.79 <= epsilon <= 0.8
    assert delta == pytest.approx(2e-6)


def test_what_would_exceed_the_limit_is_refused_and_not_charged(tmp_path):
    ledger = Ledger(tmp_path / "ledger.jsonl", LIMIT, "basic")
    ledger.reserve(plan(0.7, Poisson(0.1)))
    before = ledger.spent
    with pytest.raises(BudgetExceeded, match="smaller epsilon"):
        ledger.reserve(plan(0.4, Poisson(0.1)))
    assert ledger.spent == before


def test_a_gaussian_ledger_takes_full_data_plans_only(tmp_path):
    ledger = Ledger(tmp_path / "ledger.jsonl", LIMIT)
    with pytest.raises(BudgetExceeded, match="composition='basic'"):
        ledger.reserve(plan(0.1, Poisson(0.1)))
    assert ledger.spent == (0.0, 0.0)


def test_a_plan_for_another_relation_is_refused(tmp_path):
    with pytest.raises(BudgetExceeded, match="relation"):
        Ledger(tmp_path / "ledger.jsonl", LIMIT).reserve(plan(relation="add-remove"))


def test_commit_compares_what_was_done(tmp_path):
    ledger = Ledger(tmp_path / "ledger.jsonl", LIMIT)
    promised = plan()
    receipt = ledger.reserve(promised)
    with pytest.raises(PromiseBroken):
        ledger.commit(receipt, Event(()))
    with pytest.raises(PromiseBroken):
        ledger.commit("unknown", promised.event)
    ledger.commit(receipt, promised.event)


def test_a_refused_fit_leaves_the_model_unfitted(tmp_path, table):
    ledger = Ledger(tmp_path / "ledger.jsonl", LIMIT)
    model = DPLogisticRegression(0.9, 1e-5, classes=[0, 1], ledger=ledger, random_state=0)
    model.fit(*table)
    with pytest.raises(BudgetExceeded):
        clone(model).fit(*table)
    assert len(ledger.plans) == 1


def test_grid_search_charges_every_fit(tmp_path, table):
    ledger = Ledger(tmp_path / "ledger.jsonl", Budget(5.0, 1e-5))
    model = DPLogisticRegression(0.5, 1e-6, classes=[0, 1], ledger=ledger, random_state=0)
    GridSearchCV(model, {"alpha": [1e-4, 1e-3]}, cv=2, n_jobs=2).fit(*table)
    assert len(ledger.plans) == 2 * 2 + 1


def test_copies_are_the_same_account(tmp_path):
    ledger = Ledger(tmp_path / "ledger.jsonl", LIMIT)
    copy.deepcopy(ledger).reserve(plan(0.2))
    pickle.loads(pickle.dumps(ledger)).reserve(plan(0.2))
    assert len(ledger.plans) == 2


def _try_to_spend(path):
    try:
        Ledger(path, LIMIT, "basic").reserve(plan(0.3, Poisson(0.1)))
    except BudgetExceeded:
        return 0
    return 1


def test_racing_processes_never_overspend(tmp_path):
    path = tmp_path / "ledger.jsonl"
    with ProcessPoolExecutor(4) as pool:
        granted = sum(pool.map(_try_to_spend, [path] * 8))
    assert granted == 3
    assert Ledger(path, LIMIT, "basic").spent[0] <= 1.0


def test_a_crash_after_reserving_stays_charged(tmp_path, table, monkeypatch):
    ledger = Ledger(tmp_path / "ledger.jsonl", LIMIT)
    monkeypatch.setattr("dpadmm.estimators.base.run", lambda *a, **k: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        DPLogisticRegression(0.5, classes=[0, 1], ledger=ledger).fit(*table)
    assert len(ledger.plans) == 1


def test_the_limit_in_the_file_stands(tmp_path):
    Ledger(tmp_path / "ledger.jsonl", LIMIT)
    with pytest.raises(InvalidParameter, match="limit"):
        Ledger(tmp_path / "ledger.jsonl", Budget(9.0, 1e-5))
    with pytest.raises(InvalidParameter, match="composition"):
        Ledger(tmp_path / "ledger.jsonl", LIMIT, "basic")


def test_a_change_of_directory_does_not_open_a_new_account(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ledger = Ledger("ledger.jsonl", LIMIT)
    ledger.reserve(plan(0.2))
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert len(pickle.loads(pickle.dumps(ledger)).plans) == 1


def test_an_emptied_file_is_refused(tmp_path):
    ledger = Ledger(tmp_path / "ledger.jsonl", LIMIT)
    ledger.path.unlink()
    with pytest.raises(InvalidParameter, match="as it was created"):
        ledger.reserve(plan(0.2))


def test_bad_rows_cost_nothing(tmp_path, table):
    ledger = Ledger(tmp_path / "ledger.jsonl", LIMIT)
    X = table[0].copy()
    X[0, 0] = np.nan
    with pytest.raises(InvalidData):
        DPLogisticRegression(0.5, classes=[0, 1], ledger=ledger).fit(X, table[1])
    assert ledger.plans == ()


def test_a_corrupt_file_is_refused(tmp_path):
    (tmp_path / "ledger.jsonl").write_text('{"limit": [1.0,')
    with pytest.raises(FileProblem, match="backup"):
        Ledger(tmp_path / "ledger.jsonl", LIMIT)
