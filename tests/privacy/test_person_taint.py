"""With every answer replaced, nothing visible depends on the rows, on how many there are, or on whose they are."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from dpadmm import DPLinearRegression, DPLogisticRegression, PrivateGraph, PrivateQuantileClipper

from .taint import differences, observe

PERSONS, D = 60, 4


def table(seed, sizes, wild):
    """Rows of sixty persons; of wild ones nothing is alike, and some are not finite."""
    rng = np.random.default_rng(seed)
    ids = rng.permutation(np.repeat([f"secret {seed} {each}" for each in range(PERSONS)], sizes))
    X = rng.uniform(-1, 1, (len(ids), D))
    if wild:
        X = X * 10.0 ** rng.integers(-300, 300, (len(ids), 1))
    return X, (rng.random(len(ids)) < 0.5).astype(int), ids


TAME = table(0, np.ones(PERSONS, dtype=int), wild=False)
WILD = table(1, 1 + np.arange(PERSONS) % 50, wild=True)
COMMON = {"row_norm": 1.0, "delta": 1e-3, "verbose": 1}
STEPS = {"bounds": PrivateQuantileClipper((-2.0, 2.0)), "penalty": "graph", "graph": PrivateGraph(share=0.3)}
SETTINGS = {
    **{solver: {"solver": solver} for solver in ("auto", "full-admm", "dp-sadmm", "dp-vradmm", "dp-sgd", "mpadmm")},
    "add-remove": {"solver": "dp-sadmm", "relation": "add-remove", "n_rows": 70},
    "auto, add-remove": {"relation": "add-remove", "n_rows": 70},
    "learned bounds and graph": STEPS,
    "class weights": {"class_weight": {0: 1.0, 1: 5.0}},
    "zero": {"invalid_rows": "zero"},
}


def seen(model, held, folder):
    X, y, ids = held
    model.fit = partial(model.fit, person=ids)
    found = observe(model, X, y, folder)
    found["attributes"] = None  # the fit that was replaced holds the ids; what it set is saved, and compared as files
    return found


@pytest.mark.parametrize("key", SETTINGS)
@pytest.mark.parametrize("classes", [(0, 1), (0, 1, 2)], ids=["logistic", "softmax"])
def test_nothing_depends_on_the_data(key, classes, tmp_path):
    more = dict(SETTINGS[key])
    if "class_weight" in more:
        more["class_weight"] = {**more["class_weight"], **dict.fromkeys(classes[2:], 1.0)}
    models = [DPLogisticRegression(classes=list(classes), **COMMON, **more) for _ in range(2)]
    one, two = (
        seen(model, held, tmp_path / str(k)) for k, (model, held) in enumerate(zip(models, (TAME, WILD), strict=False))
    )
    assert differences(one, two) == []
    assert one["failure"] is None
    assert len([query for query in one["queries"] if query[0] == "released"]) >= 3


@pytest.mark.parametrize("change", ["missing id", "one person less", "no id at all", "two columns"])
def test_no_refusal_quotes_an_id_or_counts_rows(change, tmp_path):
    X, y, ids = WILD
    ids = ids.astype(object)
    if change == "missing id":
        ids[3] = None
    if change == "one person less":
        ids[ids == ids[0]] = ids[ids != ids[0]][0]
    if change == "no id at all":
        ids[:] = None
    if change == "two columns":
        ids = np.stack([ids, ids], axis=1)
    model = DPLinearRegression(target_bounds=(0, 1), n_rows=PERSONS, **COMMON)
    failure = seen(model, (X, y, ids), tmp_path)["failure"]
    assert failure is not None
    assert "secret" not in str(failure)
    assert str(len(y)) not in str(failure)
