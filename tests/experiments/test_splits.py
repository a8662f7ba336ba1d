"""Accuracy over many splits: every seed splits anew, rivals are picked in stages, leads are over the same splits."""

import numpy as np
import pytest

from experiments import splits

ROWS = np.arange(30.0)[:, None], np.arange(30), np.arange(30.0, 40.0)[:, None], np.arange(30, 40)


@pytest.fixture(autouse=True)
def small(monkeypatch, tmp_path):
    monkeypatch.setattr(splits, "train_test", lambda name: ROWS)
    monkeypatch.setattr(splits, "RESULTS", tmp_path / "splits.json")
    splits.all_rows.cache_clear()
    yield
    splits.all_rows.cache_clear()


def test_a_split_has_every_row_once_and_as_many_to_train_on_as_usual():
    X, y, X_test, y_test = splits.split("table", 3)
    assert (len(y), len(y_test)) == (30, 10)
    assert sorted([*y, *y_test]) == list(range(40))
    assert np.array_equal(X.ravel(), y)
    assert np.array_equal(X_test.ravel(), y_test)
    assert not np.array_equal(splits.split("table", 4)[1], y)


def test_rivals_are_picked_in_stages_and_leads_are_over_the_splits_of_both(monkeypatch):
    def computed(fits, results, jobs):
        for fit in fits:
            _, _, method, seed = fit
            level = {"auto": 0.9, "dp-sgd": 0.85, splits.ORACLE[5]: 0.92}.get(method, 0.5)
            results[splits.key(fit)] = level + 0.01 * (seed % 3)

    monkeypatch.setattr(splits, "compute", computed)
    results = {}
    solvers, settings = splits.compete("a9a", 1.0, results, 1)
    assert solvers[0] == "dp-sgd"
    assert settings[0] == splits.ORACLE[5]
    assert len(splits.scores(results, "a9a", 1.0, splits.ORACLE[6], splits.FEW)) == splits.FEW
    cells = splits.row(results, "a9a", 1.0, (solvers, settings))
    assert cells[4] == "+0.0500 ± 0.0000"
    assert cells[6] == "-0.0200 ± 0.0000"
    assert "-0.0200" in splits.page([cells])
