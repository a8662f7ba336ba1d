"""Sparse rows are summed and turned entry by entry where that is faster, and answer as dense ones do."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import sparse

from dpadmm import kernels
from dpadmm.kernels import compiled, numpy_kernels
from dpadmm.privacy.arithmetic import shortest_run
from dpadmm.privacy.questions import FeatureMoment, JointMoments, SecondMoment
from dpadmm.problem.losses import Logistic, Softmax
from dpadmm.problem.rowmap import RowMap
from dpadmm.rows import local, wide
from dpadmm.rows.local import LocalRows
from dpadmm.rows.packed import PackedRows
from tests.asking import EVERY_ROW, moment_sums

N, D = 401, 60
ENGINES = pytest.mark.parametrize("engine", ["numpy", "compiled"])


def raw(dtype, seed=0):
    rng = np.random.default_rng(seed)
    rows = sparse.random_array((N, D), density=0.08, format="csr", rng=rng, data_sampler=rng.standard_normal)
    rows = sparse.csr_matrix(rows, dtype=dtype)
    rows.data[rows.indptr[7] : rows.indptr[8]] = np.nan  # counts as zero
    rows.data[rows.indptr[9] : rows.indptr[10]] = 1e30
    long = sparse.csr_matrix(rng.standard_normal((5, D)), dtype=dtype)
    return sparse.csr_matrix(sparse.vstack([rows[:200], long, rows[200:]], format="csr"))[:N]


def both(rowmap, dtype=np.float64, classes=2, weights=None):
    rng = np.random.default_rng(1)
    loss = Logistic() if classes == 2 else Softmax(classes)
    target = rng.choice([-1.0, 1.0], N) if classes == 2 else rng.integers(0, classes, N)
    X = raw(dtype)
    with np.errstate(all="ignore"):
        found = [
            LocalRows(PackedRows.of(rowmap, rows), target, loss, rowmap.row_norm, weights) for rows in (X, X.toarray())
        ]
    return found


def same(answers):
    one, two = (answer if isinstance(answer, tuple) else (answer,) for answer in answers)
    for a, b in zip(one, two, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-11)


@pytest.fixture(params=["one block", "many"])
def blocks(request, monkeypatch):
    for engine in (compiled, numpy_kernels):
        monkeypatch.setattr(engine, "PAIR_COST", 0)  # entry by entry, however many
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
    matrix = np.random.default_rng(2).standard_normal((rows[0].space.n_features, 5))
    with kernels.use(engine), np.errstate(all="ignore"):
        same(moment_sums(each, JointMoments(0.3, 1, 0.5, rowmap.non_negative)) for each in rows)
        same(each.ask(FeatureMoment(), (), EVERY_ROW) for each in rows)
        turned = [each.transformed(matrix) for each in rows]
        same(each._norms for each in turned)
        same(each.ask(SecondMoment(), (), EVERY_ROW) for each in turned)


@ENGINES
@pytest.mark.usefixtures("blocks")
def test_with_weights_and_classes(engine):
    weights = np.random.default_rng(3).uniform(size=N)
    rows = both(RowMap(), classes=4, weights=weights)
    with kernels.use(engine), np.errstate(all="ignore"):
        same(moment_sums(each, JointMoments(0.3, 4, 0.5)) for each in rows)
        same(each.transformed(np.eye(D + 1)).ask(SecondMoment(), (), EVERY_ROW) for each in rows)


def test_the_pairs_of_rows_with_many_entries_are_not_few():
    X = sparse.csr_matrix(np.random.default_rng(0).standard_normal((20, 10)))
    assert not LocalRows(PackedRows.of(RowMap(), X), np.ones(20), Logistic())._pairs_are_few()
    one_long = sparse.csr_matrix((np.ones(4000), np.arange(4000), [0, 4000, *[4000] * 999]), shape=(1000, 4000))
    assert LocalRows(PackedRows.of(RowMap(), one_long), np.ones(1000), Logistic())._pairs_are_few()


@pytest.mark.parametrize("entries", [0, 3, 20, 40])
def test_replacing_a_row_moves_the_norm_of_no_other(entries):
    """Bit by bit, however long the rows are: what a row contributes is a function of the row alone."""
    rng = np.random.default_rng(0)
    matrix = rng.standard_normal((41, 41))
    lengths = np.where(np.arange(2000) % 2, 21, 20)  # on both sides of half the features, and in the mean just there
    rows = np.where(np.argsort(rng.random((2000, 40)), axis=1) < lengths[:, None], rng.standard_normal((2000, 40)), 0)
    other = rows.copy()
    other[0] = np.where(np.arange(40) < entries, 1.0, 0.0)
    norms = [
        LocalRows(PackedRows.of(RowMap(), sparse.csr_matrix(each)), np.ones(2000), Logistic())
        .transformed(matrix)
        ._norms[1:]
        for each in (rows, other)
    ]
    np.testing.assert_array_equal(*norms)


@pytest.mark.parametrize(("features", "entries"), [(16, 2), (24, 3), (300, 37), (300, 12), (300, 300)])
def test_blocks_are_no_more_than_are_charged(features, entries):
    n = 60_000
    starts = np.arange(n + 1) * entries
    places = np.tile(np.arange(entries, dtype=np.int32), n)
    table = PackedRows.of(
        RowMap(), sparse.csr_matrix((np.ones(n * entries, np.float32), places, starts), shape=(n, features))
    )
    rows = LocalRows(table, np.ones(n), Logistic()).transformed(np.eye(features + 1))
    charged = math.ceil(n / shortest_run(features + 1))
    assert sum(1 for _ in rows._blocks()) <= charged
    assert sum(1 for _ in wide.scaled_blocks(table)) <= charged


def test_long_rows_that_stand_together_are_not_all_in_one_block():
    n, d = 40_000, 300
    lengths = np.where(np.arange(n) < 10_000, d, 1)
    places = np.concatenate([np.tile(np.arange(d, dtype=np.int32), 10_000), np.zeros(30_000, dtype=np.int32)])
    starts = np.concatenate([[0], np.cumsum(lengths)])
    table = PackedRows.of(RowMap(), sparse.csr_matrix((np.ones(len(places), np.float32), places, starts), shape=(n, d)))
    sizes = [rows.nnz for rows, _ in wide.scaled_blocks(table)]
    assert max(sizes) <= max(wide.BLOCK_ENTRIES + n, shortest_run(d + 1) * (d + 1))
    assert sum(sizes) == len(places) + n
