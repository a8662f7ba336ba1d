"""Tables of every shape and make train, unchanged and without a second copy."""

from __future__ import annotations

import tracemalloc
from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from dpadmm import DPLogisticRegression, Ledger, PrivateSecondMoment, kernels
from dpadmm.errors import DpadmmError, InvalidData, InvalidParameter
from dpadmm.privacy.budget import Budget
from dpadmm.privacy.questions import ClippedGradient
from dpadmm.privacy.sampling import Batch
from dpadmm.problem import Logistic, Softmax
from dpadmm.problem.rowmap import RowMap
from dpadmm.rows.local import LocalRows
from dpadmm.rows.norms import finite_rows
from dpadmm.rows.packed import PackedRows
from dpadmm.solvers.full_admm import FullADMM

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (300, 6))
Y = (X[:, 0] > 0).astype(int)


def fit(table, y=Y, **more):
    return DPLogisticRegression(classes=[0, 1], delta=1e-6, random_state=0, **more).fit(table, y)


def limited_ledger(folder):
    ledger = Ledger.create(folder / "ledger.db")
    ledger.set_limit("table", Budget(10.0, 1e-2), owner="Ada", test=True)
    return ledger


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
    "matrix": lambda: np.matrix(X),
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


def test_float32_stays_float32_in_either_order_of_bytes():
    for kind, packed in (("<f4", np.float32), (">f4", np.float32), (">f8", np.float64), ("f2", np.float64)):
        assert PackedRows.of(RowMap(), X.astype(kind)).X.dtype == packed


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


def strided(table):
    """Columns and values side by side, as in a structured array."""
    entries = np.empty(table.nnz, dtype=[("column", table.indices.dtype), ("value", table.data.dtype)])
    entries["column"], entries["value"] = table.indices, table.data
    table = table.copy()
    table.data, table.indices = entries["value"], entries["column"]
    return table


SPARSE = {
    "int64 indices": wide_indices,
    "unsorted": unsorted,
    "duplicates": duplicated,
    "strided": strided,
    "csc": sparse.csc_matrix,
    "coo": sparse.coo_matrix,
}


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
    ledger = limited_ledger(tmp_path)

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
        PackedRows.of(RowMap(), rows)


@pytest.mark.parametrize("make", [sparse.csc_matrix, sparse.coo_matrix, sparse.bsr_matrix])
@pytest.mark.parametrize("index", [300, 40_000, -1, -100_000])
def test_so_are_those_of_other_formats_before_they_are_converted(make, index):
    table = make(X)
    (table.row if table.format == "coo" else table.indices)[-1] = index
    with pytest.raises(InvalidData, match="index arrays"):
        fit(table)


def test_fractional_indices_are_refused():
    table = sparse.csr_matrix(X)
    table.indices = table.indices + 0.5
    with pytest.raises(InvalidData, match="index arrays"):
        fit(table)


def test_the_arrays_of_a_sparse_table_stay_those_of_the_caller():
    table = sparse.csr_matrix(X)
    table.indices = own = table.indices.astype(np.int64)
    fit(table)
    assert table.indices is own


@pytest.mark.parametrize("outputs", [1, 9])
@pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix])
def test_bounds_may_lie_anywhere(make, outputs):
    """A kernel that took a stride for none would cut at other bounds than those a row was measured with."""
    apart = np.full((6, 2), 5000.0)
    apart[:, 0] = 0.5
    loss, y = (Logistic(), 2.0 * Y - 1) if outputs == 1 else (Softmax(outputs), Y)
    rows = LocalRows(PackedRows.of(RowMap(1.0, True, np.zeros(6), apart[:, 0]), make(np.abs(X) * 9)), y, loss)
    point = RNG.standard_normal(rows.space.point_shape)
    with kernels.use("compiled"):
        longest = max(
            np.linalg.norm(rows.ask(ClippedGradient(0.1), (point,), Batch(np.array([i])))) for i in range(len(X))
        )
    assert longest <= 0.1


def test_masked_cells_are_no_numbers():
    masked = np.ma.masked_array(X, mask=np.arange(X.size).reshape(X.shape) == 7)
    with pytest.raises(InvalidData, match="finite"):
        fit(masked)
    found, expected = (fit(table, invalid_rows="zero").weights_ for table in (masked, masked.filled(np.nan)))
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(fit(np.ma.masked_array(X)).weights_, fit(X).weights_)
    with pytest.raises(InvalidData, match="mask"):
        fit(X, np.ma.masked_array(Y, mask=Y > 0))


@pytest.mark.parametrize(
    "names", [["a", 1, 2, 3, 4, 5], ["a", None, "b", "c", "d", "e"], ["a", "a", "b", "c", "d", "e"]]
)
def test_columns_whose_names_cannot_be_kept_are_refused_before_they_cost(names, tmp_path):
    ledger = limited_ledger(tmp_path)
    table = pd.DataFrame(X, columns=names)
    for model in (
        DPLogisticRegression(classes=[0, 1], ledger=ledger, dataset="table"),
        PrivateSecondMoment(epsilon=1.0, delta=1e-6, ledger=ledger, dataset="table"),
    ):
        with pytest.raises(InvalidData, match="name"):
            model.fit(table, Y)
    assert ledger.spent("table")[0] == 0


def test_a_fit_that_fails_says_that_its_budget_counts_as_spent(tmp_path, monkeypatch):
    ledger = limited_ledger(tmp_path)
    monkeypatch.setattr(FullADMM, "update", lambda *args: 1 / 0)
    with pytest.raises(ZeroDivisionError) as caught:
        fit(X, solver="full-admm", ledger=ledger, dataset="table")
    assert any("counts as spent" in note for note in caught.value.__notes__)
    assert ledger.spent("table")[0] > 0


@pytest.mark.parametrize("ending", [KeyboardInterrupt, ZeroDivisionError])
def test_so_does_a_preparation(ending, tmp_path, monkeypatch):
    def ended(*args):
        raise ending

    monkeypatch.setattr(PrivateSecondMoment, "_learn", ended)
    ledger = limited_ledger(tmp_path)
    with pytest.raises(ending) as caught:
        PrivateSecondMoment(epsilon=1.0, delta=1e-6, ledger=ledger, dataset="table").fit(X)
    assert any("counts as spent" in note for note in caught.value.__notes__)
    assert ledger.spent("table")[0] > 0


def test_a_fit_that_the_ledger_refuses_does_not(tmp_path):
    ledger = limited_ledger(tmp_path)
    with pytest.raises(DpadmmError) as caught:
        fit(X, epsilon=50.0, ledger=ledger, dataset="table")
    assert not getattr(caught.value, "__notes__", [])


@pytest.mark.filterwarnings("ignore:indptr array has non-integer dtype")
@pytest.mark.parametrize("kind", [np.int32, np.uint32])
@pytest.mark.parametrize("starts", [[0, 2, 1], [0, 1, 9], [0, -1, 2], [0, 2, 0]])
@pytest.mark.parametrize("form", [sparse.csr_matrix, sparse.bsr_matrix])
def test_sparse_rows_that_end_before_they_begin_are_refused(form, starts, kind):
    entries = np.ones(2) if form is sparse.csr_matrix else np.ones((2, 1, 1))
    rows = form((entries, np.array([0, 1]), np.array([0, 1, 2])), shape=(2, 3))
    rows.indptr = np.array(starts).astype(kind)
    for look in (finite_rows, partial(PackedRows.of, RowMap())):
        with pytest.raises(InvalidData, match="index arrays"):
            look(rows)


def test_bounds_too_narrow_to_divide_by_are_refused():
    with pytest.raises(InvalidParameter, match="bounds"):
        RowMap.declare(1.0, True, (0.0, 1e-310), 2)


def test_a_row_that_cannot_be_mapped_counts_as_zero():
    with np.errstate(all="ignore"):  # as in `fit`
        packed = PackedRows.of(RowMap(1.0, False, (0.0,), (0.0,)), np.zeros((1, 1)))
    assert (packed.factors, packed.norms) == (0, 0)


def test_the_norm_that_all_rows_are_scaled_to_is_stored_once():
    rows = np.arange(12.0, dtype=np.float32).reshape(4, 3)
    assert PackedRows.of(RowMap(0.5), rows).norms.strides == (0,)
    assert PackedRows.of(RowMap(2.0), rows).norms.strides == (8,)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("kind", [np.uint8, np.uint16, np.uint32, np.uint64])
def test_places_without_a_sign_are_taken(kind):
    rows = sparse.csr_matrix(np.eye(3)[[2, 0, 1]])
    rows.indices, rows.indptr = (places.astype(kind) for places in (rows.indices, rows.indptr))
    assert PackedRows.of(RowMap(2.0, False), rows).X.toarray().tolist() == np.eye(3)[[2, 0, 1]].tolist()
    rows.indices = rows.indices.astype(np.uint64) + np.uint64(2**63)
    with pytest.raises(InvalidData, match="index arrays"):
        PackedRows.of(RowMap(), rows)
