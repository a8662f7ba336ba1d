"""Rows with few entries stay sparse in second moments and changes of coordinates, and answer as dense ones do."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from dpadmm import kernels
from dpadmm.oracles import local, wide
from dpadmm.oracles.local import LocalRows
from dpadmm.privacy.statistics import JointMoments
from dpadmm.problem.losses import Logistic, Softmax
from dpadmm.problem.rowmap import RowMap

N, D = 401, 60
ENGINES = pytest.mark.parametrize("engine", ["numpy", "compiled"])


def raw(dtype, seed=0):
    rng = np.random.default_rng(seed)
    rows = sparse.random_array((N, D), density=0.08, format="csr", rng=rng, data_sampler=rng.standard_normal)
    rows = sparse.csr_matrix(rows, dtype=dtype)
    rows.data[rows.indptr[7] : rows.indptr[8]] = np.nan  # counts as zero
    rows.data[rows.indptr[9] : rows.indptr[10]] = 1e30
    return rows


def both(rowmap, dtype=np.float64, classes=2, weights=None):
    rng = np.random.default_rng(1)
    loss = Logistic() if classes == 2 else Softmax(classes)
    target = rng.choice([-1.0, 1.0], N) if classes == 2 else rng.integers(0, classes, N)
    X = raw(dtype)
    with np.errstate(all="ignore"):
        found = [LocalRows(rowmap.pack(rows), target, loss, rowmap.row_norm, weights) for rows in (X, X.toarray())]
    assert found[0]._stays_sparse
    return found


def same(answers):
    one, two = (answer if isinstance(answer, tuple) else (answer,) for answer in answers)
    for a, b in zip(one, two, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-11)


@pytest.fixture(params=["one block", "many"])
def blocks(request, monkeypatch):
    if request.param == "many":
        monkeypatch.setattr(wide, "BLOCK_ENTRIES", 1 << 9)
        monkeypatch.setattr(wide, "shortest_run", lambda features: 1)
        monkeypatch.setattr(local, "MOMENT_ENTRIES", 1 << 11)


@ENGINES
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "rowmap",
    [RowMap(), RowMap(2.0, False), RowMap.declare(3.0, True, (0, 0.5), D)],
    ids=["unit rows", "no intercept", "bounds"],
)
@pytest.mark.usefixtures("blocks")
def test_they_answer_as_dense_rows_do(rowmap, dtype, engine):
    rows = both(rowmap, dtype)
    matrix = np.random.default_rng(2).standard_normal((rows[0].n_features, 5))
    with kernels.use(engine), np.errstate(all="ignore"):
        same(each.moment_sums(JointMoments(0.3, 1, 0.5, rowmap.non_negative)) for each in rows)
        same(each.feature_moment_sum() for each in rows)
        turned = [each.transformed(matrix) for each in rows]
        same(each._norms for each in turned)
        same(each.second_moment_sum() for each in turned)


@ENGINES
@pytest.mark.usefixtures("blocks")
def test_with_weights_and_classes(engine):
    weights = np.random.default_rng(3).uniform(size=N)
    rows = both(RowMap(), classes=4, weights=weights)
    with kernels.use(engine), np.errstate(all="ignore"):
        same(each.moment_sums(JointMoments(0.3, 4, 0.5)) for each in rows)
        same(each.transformed(np.eye(D + 1)).second_moment_sum() for each in rows)


def test_rows_with_many_entries_are_made_dense():
    X = sparse.csr_matrix(np.random.default_rng(0).standard_normal((20, 10)))
    assert not LocalRows(RowMap().pack(X), np.ones(20), Logistic())._stays_sparse
