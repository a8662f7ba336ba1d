"""Tables of every shape and make train, unchanged and without a second copy."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from scipy import sparse

from dpadmm import DPLogisticRegression, Ledger
from dpadmm.errors import DpadmmError, InvalidData, InvalidParameter
from dpadmm.oracles.local import LocalRows
from dpadmm.privacy.budget import Budget
from dpadmm.problem import Logistic
from dpadmm.problem.norms import finite_rows
from dpadmm.problem.rowmap import RowMap
from dpadmm.solvers.full import FullADMM

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (300, 6))
Y = (X[:, 0] > 0).astype(int)


def fit(table, y=Y, **more):
    return DPLogisticRegression(classes=[0, 1], delta=1e-6, random_state=0, **more).fit(table, y)


def frozen(table):
    table = table.copy()
    table.flags.writeable = False
    return table


DENSE = {
    "non-contiguous": lambda: np.repeat(X, 2, axis=1)[:, ::2],
    "read-only": lambda: frozen(X),
    "fortran": lambda: np.asfortranarray(X),
    "big-endian": lambda: X.astype(">f8"),
    "objects": lambda: X.astype(object),
    "negative-stride": lambda: X[::-1].copy()[::-1],
}


@pytest.mark.parametrize("engine", ["numpy", "compiled"])
@pytest.mark.parametrize("solver", ["auto", "dp-sadmm"])
@pytest.mark.parametrize("make", DENSE)
def test_dense_tables_of_every_make_give_the_same_model(make, solver, engine, monkeypatch):
    monkeypatch.setenv("DPADMM_KERNELS", engine)
    table = DENSE[make]()
    before = table.copy()
    found = fit(table, solver=solver, steps=5)
    np.testing.assert_allclose(found.weights_, fit(X, solver=solver, steps=5).weights_, rtol=1e-9)
    np.testing.assert_array_equal(table, before)


def test_integers_and_booleans():
    whole = np.round(3 * X)
    expected = fit(whole).weights_
    for dtype in (np.int8, np.int64, ">i4", object):
        np.testing.assert_allclose(fit(whole.astype(dtype)).weights_, expected, rtol=1e-9)
    ones = X > 0
    np.testing.assert_allclose(fit(ones).weights_, fit(ones.astype(float)).weights_, rtol=1e-9)


def wide_indices(table):
    table = table.copy()
    table.indices, table.indptr = table.indices.astype(np.int64), table.indptr.astype(np.int64)
    return table


def unsorted(table):
    table = table.copy()
    for i in range(table.shape[0]):
        row = slice(table.indptr[i], table.indptr[i + 1])
        table.indices[row], table.data[row] = table.indices[row][::-1], table.data[row][::-1]
    table.has_sorted_indices = False
    return table


def duplicated(table):
    rows = np.repeat(np.arange(table.shape[0]), np.diff(table.indptr))
    halves = np.concatenate([table.data / 2] * 2), (np.concatenate([rows] * 2), np.concatenate([table.indices] * 2))
    coordinates = sparse.coo_matrix(halves, shape=table.shape)
    order = np.argsort(coordinates.row, kind="stable")
    indptr = np.concatenate([[0], np.cumsum(np.bincount(coordinates.row, minlength=table.shape[0]))])
    return sparse.csr_matrix((coordinates.data[order], coordinates.col[order], indptr), shape=table.shape)


SPARSE = {"int64 indices": wide_indices, "unsorted": unsorted, "duplicates": duplicated, "csc": sparse.csc_matrix}


@pytest.mark.parametrize("engine", ["numpy", "compiled"])
# Not "auto": where noise floors eigenvalues, rounding decides between equally good bases, and the seeded noise with it.
@pytest.mark.parametrize("solver", ["full-admm", "dp-sadmm"])
@pytest.mark.parametrize("make", SPARSE)
def test_sparse_tables_of_every_make_give_the_same_model(make, solver, engine, monkeypatch):
    monkeypatch.setenv("DPADMM_KERNELS", engine)
    plain = sparse.csr_matrix(np.where(RNG.uniform(size=X.shape) < 0.5, X, 0))
    table = SPARSE[make](plain)
    data = table.data.copy()
    found = fit(table, solver=solver, steps=5).weights_
    np.testing.assert_allclose(found, fit(plain, solver=solver, steps=5).weights_, rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(found, fit(plain.toarray(), solver=solver, steps=5).weights_, rtol=1e-8, atol=1e-12)
    np.testing.assert_array_equal(table.data, data)


@pytest.mark.parametrize("engine", ["numpy", "compiled"])
@pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("rows", ["zeros", "denormal", "huge"])
def test_rows_without_size(rows, make, engine, monkeypatch):
    monkeypatch.setenv("DPADMM_KERNELS", engine)
    table = X.copy()
    table[:50] = {"zeros": 0.0, "denormal": 5e-324, "huge": 1e308}[rows]
    for intercept in (False, True):
        model = fit(make(table), fit_intercept=intercept, solver="dp-sadmm", steps=10)
        assert np.isfinite(model.weights_).all()


def test_an_empty_table_is_refused():
    with pytest.raises((DpadmmError, ValueError)):
        fit(np.empty((0, 3)), np.empty(0))


@pytest.mark.parametrize("engine", ["numpy", "compiled"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("solver", ["auto", "dp-sadmm"])
@pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix], ids=["dense", "csr"])
def test_training_takes_at_most_three_tenths_more_memory_than_the_table(make, solver, dtype, engine, monkeypatch):
    monkeypatch.setenv("DPADMM_KERNELS", engine)
    table = make(np.random.default_rng(1).standard_normal((60_000, 200)).astype(dtype))
    y = np.arange(60_000) % 2
    size = (
        table.nbytes
        if isinstance(table, np.ndarray)
        else sum(part.nbytes for part in (table.data, table.indices, table.indptr))
    )
    # Once before: finding the noise takes memory, too, the same for every table, and is remembered.
    fit(table, y, solver=solver, steps=4, batch_size=200)
    tracemalloc.start()
    fit(table, y, solver=solver, steps=4, batch_size=200)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak <= 0.3 * size


@pytest.mark.parametrize("engine", ["numpy", "compiled"])
def test_a_wide_sparse_table_takes_no_more(engine, monkeypatch):
    monkeypatch.setenv("DPADMM_KERNELS", engine)
    rng = np.random.default_rng(1)
    columns = np.sort(rng.integers(0, 4000, (60_000, 80), dtype=np.int32), axis=1)
    starts = np.arange(0, columns.size + 1, 80, dtype=np.int32)
    table = sparse.csr_matrix((rng.random(columns.size, dtype=np.float32), columns.ravel(), starts), (60_000, 4000))
    table.sum_duplicates()
    y = np.arange(60_000) % 2
    fit(table, y, steps=4)
    tracemalloc.start()
    fit(table, y, steps=4)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak <= 0.3 * (table.data.nbytes + table.indices.nbytes + table.indptr.nbytes)


def test_a_table_on_disk_is_read_in_blocks(tmp_path):
    np.save(tmp_path / "table.npy", np.random.default_rng(1).standard_normal((50_000, 100)))
    table = np.load(tmp_path / "table.npy", mmap_mode="r")
    y = np.arange(50_000) % 2
    tracemalloc.start()
    model = fit(table, y, steps=4)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak <= 0.35 * table.nbytes
    np.testing.assert_allclose(model.weights_, fit(np.array(table), y, steps=4).weights_, rtol=1e-9)


def test_an_interrupted_fit_leaves_no_files_but_its_charge(tmp_path, monkeypatch):
    ledger = Ledger.create(tmp_path / "ledger.db")
    ledger.set_limit("table", Budget(10.0, 1e-2), owner="Ada", test=True)

    def interrupted(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(FullADMM, "update", interrupted)
    before = {path.name for path in tmp_path.rglob("*")}
    with pytest.raises(KeyboardInterrupt) as caught:
        fit(X, solver="full-admm", ledger=ledger, dataset="table")
    assert any("counts as spent" in note for note in getattr(caught.value, "__notes__", []))
    left = {path.name for path in tmp_path.rglob("*")} - before
    assert all("ledger" in name for name in left)
    assert ledger.spent("table")[0] > 0


def test_rows_are_shared_with_the_caller():
    packed = LocalRows(X, np.ones(len(X)), Logistic())
    assert np.shares_memory(packed._X, X)
    assert not packed._X.flags.writeable
    assert X.flags.writeable


@pytest.mark.parametrize("index", [3, 7, -1])
def test_sparse_indices_outside_the_table_are_refused(index):
    rows = sparse.csr_matrix((np.ones(2), np.array([0, 1]), np.array([0, 1, 2])), shape=(2, 3))
    rows.indices[1] = index
    with pytest.raises(InvalidData, match="index arrays"):
        RowMap().pack(rows)


@pytest.mark.parametrize("starts", [[0, 2, 1], [0, 1, 9], [0, -1, 2]])
def test_sparse_rows_that_end_before_they_begin_are_refused(starts):
    rows = sparse.csr_matrix((np.ones(2), np.array([0, 1]), np.array([0, 1, 2])), shape=(2, 3))
    rows.indptr[:] = starts
    for look in (finite_rows, RowMap().pack):
        with pytest.raises(InvalidData, match="index arrays"):
            look(rows)


def test_bounds_too_narrow_to_divide_by_are_refused():
    with pytest.raises(InvalidParameter, match="bounds"):
        RowMap.declare(1.0, True, (0.0, 1e-310), 2)


def test_a_row_that_cannot_be_mapped_counts_as_zero():
    with np.errstate(all="ignore"):  # as in `fit`
        packed = RowMap(1.0, False, (0.0,), (0.0,)).pack(np.zeros((1, 1)))
    assert (packed.factors, packed.norms) == (0, 0)
