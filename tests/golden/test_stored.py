"""Models and a ledger that were written earlier still open; `python -m tests.golden.test_stored` adds what is missing.

Statements of those called "facts" store facts; the others are of version 1, which stored sentences.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from dpadmm import Budget, Ledger, load_model
from dpadmm.privacy.ledger import verify

from .fits import FITS, logistic, table

STORED = Path(__file__).parent / "stored"
MODELS = {
    "logistic": "auto",
    "softmax": "auto, softmax",
    "hinge": "auto, hinge",
    "squared": "auto, squared",
    "huber": "auto, huber",
    "batches": "dp-vradmm",
    "exact": "full-admm, exact",
    "hidden": "noisy-admm",
    "bounds": "private bounds",
    "graph": "private graph",
    "search": "search",
    "facts-batches": "dp-vradmm",
    "facts-bounds": "private bounds",
    "facts-hidden": "noisy-admm",
    "facts-nominal": "auto, nominal rows",
    "facts-search": "search",
}


def scores(model):
    X, _ = table()
    return model.decision_function(X[:50]) if hasattr(model, "decision_function") else model.predict(X[:50])


@pytest.mark.parametrize("name", MODELS)
def test_a_stored_model_opens_and_predicts_as_it_did(name):
    model = load_model(STORED / name)
    np.testing.assert_allclose(scores(model), np.load(STORED / f"{name}.npy"), rtol=1e-12, atol=1e-12)
    assert "differentially private" in str(model.privacy_)


@pytest.mark.parametrize("name", MODELS)
def test_its_statement_is_the_one_that_was_stored(name):
    stored = json.loads((STORED / name / "model.json").read_text())["privacy"]
    read = json.loads(load_model(STORED / name).privacy_.to_json())
    if "version" in stored:
        # Its paragraph may be worded anew.
        del stored["statement"], read["statement"]
    assert read == stored


def test_a_stored_ledger_opens_and_is_charged_further(tmp_path):
    path = shutil.copy(STORED / "ledger.db", tmp_path / "ledger.db")
    ledger = Ledger(path)
    assert verify(path).ok
    before, spent = len(ledger.entries), ledger.spent("people")
    logistic(epsilon=0.5, ledger=ledger, dataset="people")
    assert len(ledger.entries) == before + 2
    assert ledger.spent("people")[0] > spent[0]
    assert verify(path).ok


def _write():
    """Never over what is there: it shows what earlier versions wrote."""
    STORED.mkdir(exist_ok=True)
    for name, fit in MODELS.items():
        if not (STORED / name).exists():
            fitted = FITS[fit]()
            folder = fitted.save(STORED / name)
            for unread in ("score.py", "score.sql"):
                (folder / unread).unlink()
            np.save(STORED / f"{name}.npy", scores(fitted))
    if not (STORED / "ledger.db").exists():
        ledger = Ledger.create(STORED / "ledger.db")
        ledger.set_limit("people", Budget(5.0, 1e-4), owner="the hospital", test=True)
        for _ in range(2):
            logistic(epsilon=0.5, ledger=ledger, dataset="people")


if __name__ == "__main__":
    _write()
