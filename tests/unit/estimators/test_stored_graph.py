"""Graphs given as matrices come back from model files as they were, and take little room there."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from dpadmm import DPLogisticRegression, load_model
from dpadmm.errors import InvalidParameter
from dpadmm.estimators.loading import checksum
from dpadmm.oracles.mechanisms import Granular

FEATURES, EDGES = 500, 2000


def edges():
    rng = np.random.default_rng(0)
    return [(int(i), int(j), float(w)) for i, j, w in zip(*_ends(rng), rng.uniform(0.1, 1, EDGES), strict=True)]


def _ends(rng):
    first = rng.integers(0, FEATURES - 1, EDGES)
    return first, rng.integers(first + 1, FEATURES)


def matrix():
    phi = sparse.lil_matrix((EDGES, FEATURES))
    for row, (i, j, weight) in enumerate(edges()):
        phi[row, i], phi[row, j] = weight, -weight
    return phi.tocsr()


def fitted(graph, features=FEATURES):
    rng = np.random.default_rng(1)
    X = rng.uniform(-1, 1, (400, features))
    model = DPLogisticRegression(
        1.0, 1e-6, penalty="graph", graph=graph, classes=[0, 1], solver="full-admm", steps=2, random_state=0
    )
    return model.fit(X, (X[:, 0] > 0).astype(int)), X


@pytest.mark.parametrize("form", [matrix, lambda: matrix().toarray()], ids=["sparse", "array"])
def test_a_matrix_comes_back_and_trains_again(form, tmp_path):
    model, X = fitted(form())
    model.save(tmp_path / "model")
    assert sum((tmp_path / "model" / name).stat().st_size for name in ("model.npz", "model.json")) < 150_000
    loaded = load_model(tmp_path / "model")
    assert type(loaded.graph) is type(model.graph)
    assert abs(loaded.graph - model.graph).max() == 0.0
    again = clone(loaded).set_params(random_state=0).fit(X, (X[:, 0] > 0).astype(int))
    assert np.array_equal(again.weights_, model.weights_)


@pytest.mark.parametrize("kind", [object, "float16", complex, str])
@pytest.mark.parametrize("penalty", ["graph", "l1"])
def test_a_matrix_that_no_file_could_hold_is_refused_before_anything_is_asked(kind, penalty, monkeypatch):
    monkeypatch.setattr(Granular, "release", None)
    model = DPLogisticRegression(1.0, 1e-6, penalty=penalty, graph=np.array([[1, -1]]).astype(kind), classes=[0, 1])
    with pytest.raises(InvalidParameter, match="graph matrix of type"):
        model.fit(np.ones((40, 2)), np.arange(40) % 2)


@pytest.mark.parametrize("kind", [bool, "int8", int, "float32", float])
def test_whole_and_real_numbers_are_stored(kind, tmp_path):
    model, _ = fitted(np.array([[1, 0], [1, 1]]).astype(kind), 2)
    assert load_model(model.save(tmp_path / "model")).graph.dtype == np.dtype(kind)


def test_edges_stay_words(tmp_path):
    model, _ = fitted(edges())
    model.save(tmp_path / "model")
    assert [tuple(edge) for edge in load_model(tmp_path / "model").graph] == model.graph


@pytest.mark.parametrize(("columns", "kind"), [(6, int), (6, float), (2, float)])
def test_arrays_that_earlier_versions_wrote_as_lists_are_arrays_again(columns, kind, tmp_path):
    graph = np.array([[1, -1, *[0] * (columns - 2)]], dtype=kind)
    fitted([(0, 1)], columns)[0].save(tmp_path / "model")
    place = tmp_path / "model" / "model.json"
    words = json.loads(place.read_text())
    words["parameters"]["graph"] = graph.tolist()
    words.pop("checksum")
    place.write_text(json.dumps({**words, "checksum": checksum(words)}))
    loaded = load_model(tmp_path / "model").graph
    assert isinstance(loaded, np.ndarray)
    assert np.array_equal(loaded, graph)
