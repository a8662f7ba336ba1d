"""Tables held by Dask train the models that tables in memory train."""

from __future__ import annotations

import subprocess
import sys
import tracemalloc

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from dpadmm import DPLinearRegression, DPLogisticRegression, DPSearchCV, Ledger, PrivateGraph, PrivateQuantileClipper
from dpadmm.errors import DpadmmError, InvalidData, InvalidParameter, QueryRefused, UnsupportedProblem
from dpadmm.privacy.budget import Budget
from dpadmm.rows.dask_parts import fingerprint

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")

RNG = np.random.default_rng(0)
N, D = 600, 4
X = RNG.uniform(-1, 1, (N, D))
Y = (X[:, 0] > 0).astype(int)
CHUNKS = {"one": (N,), "three": (200, 200, 200), "uneven": (1, 400, 199), "empty": (0, 300, 0, 300)}
VR = {"solver_options": {"epochs": 2, "inner_steps": 3}}
SECRET = 31.415926


def model(**more):
    more = {"steps": 4, "classes": [0, 1], "delta": 1e-6, "random_state": 0, **more}
    if more.get("solver") == "dp-vradmm":
        more = {**more, **VR, "steps": None}
    return DPLogisticRegression(**more)


def split(array, chunks=CHUNKS["three"]):
    return da.from_array(array, chunks=(chunks, *array.shape[1:]))


@pytest.fixture(autouse=True)
def one_thread():
    """Not in processes, which take seconds to start, unless a test says so."""
    with dask.config.set(scheduler="synchronous"):
        yield


class TestFitsAgree:
    @pytest.mark.parametrize("solver", ["auto", "full-admm", "dp-sadmm", "dp-vradmm", "ssadmm", "mpadmm", "dp-gd"])
    def test_with_every_solver(self, solver):
        expected = model(solver=solver).fit(X, Y)
        found = model(solver=solver).fit(split(X), split(Y))
        np.testing.assert_allclose(found.weights_, expected.weights_, rtol=1e-9, atol=1e-12)
        added = [said for said in found.privacy_.assumptions if said not in expected.privacy_.assumptions]
        assert [said for said in found.privacy_.assumptions if said not in added] == [*expected.privacy_.assumptions]
        assert ["Dask" in said for said in added] == [True]
        assert found.plan_ == expected.plan_
        assert found.n_features_in_ == D

    @pytest.mark.parametrize("scheduler", ["synchronous", "threads"])
    @pytest.mark.parametrize("chunks", CHUNKS)
    def test_however_it_is_partitioned(self, chunks, scheduler):
        with dask.config.set(scheduler=scheduler):
            found = model().fit(split(X, CHUNKS[chunks]), split(Y, CHUNKS[chunks]))
        np.testing.assert_allclose(found.weights_, model().fit(X, Y).weights_, rtol=1e-9)

    def test_columns_in_blocks_and_labels_in_others(self):
        found = model().fit(da.from_array(X, chunks=(200, 3)), da.from_array(Y, chunks=123))
        np.testing.assert_allclose(found.weights_, model().fit(X, Y).weights_, rtol=1e-9)

    def test_labels_in_memory(self):
        np.testing.assert_allclose(model().fit(split(X), Y).weights_, model().fit(X, Y).weights_, rtol=1e-9)

    @pytest.mark.parametrize("form", ["float32", "csr"])
    def test_in_other_forms(self, form):
        if form == "float32":
            table, held = X.astype(np.float32), split(X.astype(np.float32))
        else:
            table = sparse.csr_matrix(X)
            held = split(X).map_blocks(sparse.csr_matrix, dtype=float, meta=sparse.csr_matrix((0, 0)))
        np.testing.assert_allclose(
            model().fit(held, split(Y)).weights_, model().fit(table, Y).weights_, rtol=1e-5, atol=1e-7
        )

    def test_three_classes_weights_and_bounds(self):
        labels = np.digitize(X[:, 1], [-0.3, 0.3])
        more = {"classes": [0, 1, 2], "class_weight": {0: 2.0}, "bounds": (-2.0, 2.0)}
        weight = RNG.uniform(1, 2, N)
        found = model(**more).fit(split(X), split(labels), weight)
        np.testing.assert_allclose(found.weights_, model(**more).fit(X, labels, weight).weights_, rtol=1e-9, atol=1e-12)

    def test_regression(self):
        both = [
            DPLinearRegression(delta=1e-6, random_state=0).fit(*table)
            for table in ((X, X[:, 0]), (split(X), split(X[:, 0])))
        ]
        np.testing.assert_allclose(both[0].coef_, both[1].coef_, rtol=1e-9)

    def test_wide_rows(self):
        wide, labels = sparse.random(300, 3100, 0.01, format="csr", random_state=0), Y[:300]
        held = da.from_array(wide.toarray(), chunks=(100, 3100))
        found = model(steps=2).fit(held, split(labels, (100,) * 3))
        np.testing.assert_allclose(found.weights_, model(steps=2).fit(wide, labels).weights_, rtol=1e-6, atol=1e-9)

    def test_with_private_bounds_and_graph(self):
        more = {
            "bounds": PrivateQuantileClipper((-2, 2), share=0.2),
            "penalty": "graph",
            "graph": PrivateGraph(share=0.2),
        }
        found, expected = model(**more).fit(split(X), split(Y)), model(**more).fit(X, Y)
        assert found.row_map_ == expected.row_map_
        assert found.graph_ == expected.graph_
        np.testing.assert_allclose(found.weights_, expected.weights_, rtol=1e-9, atol=1e-12)

    def test_a_dataframe_of_unknown_sizes(self):
        frame = pd.DataFrame(X, columns=list("abcd")).assign(label=np.where(Y == 1, "yes", "no"))
        held = dd.from_pandas(frame, npartitions=3)
        found = model(classes=None).fit(held[list("abcd")], held["label"])
        assert found.feature_names_in_.tolist() == list("abcd")
        assert found.classes_.tolist() == ["no", "yes"]
        np.testing.assert_allclose(found.weights_, model().fit(X, Y).weights_, rtol=1e-9)
        assert (found.predict(held[list("abcd")]) == found.predict(frame[list("abcd")])).all()

    def test_an_array_of_unknown_sizes(self):
        kept = split(X)[split(X)[:, 0] > -2]
        labels = split(Y)[split(X)[:, 0] > -2]
        np.testing.assert_allclose(model().fit(kept, labels).weights_, model().fit(X, Y).weights_, rtol=1e-9)

    def test_compiled_kernels_run_in_the_tasks(self, monkeypatch):
        monkeypatch.setenv("DPADMM_KERNELS", "compiled")
        with dask.config.set(scheduler="threads"):
            found = model().fit(split(X), split(Y))
        np.testing.assert_allclose(found.weights_, model().fit(X, Y).weights_, rtol=1e-9)


@pytest.mark.slow
class TestOtherProcesses:
    def test_the_scheduler_of_processes(self):
        with dask.config.set(scheduler="processes", num_workers=2):
            found = model().fit(split(X), split(Y))
        np.testing.assert_allclose(found.weights_, model().fit(X, Y).weights_, rtol=1e-9)

    def test_a_cluster_of_processes(self):
        distributed = pytest.importorskip("distributed")
        with (
            distributed.LocalCluster(
                n_workers=2, threads_per_worker=1, processes=True, host="127.0.0.1", dashboard_address=None
            ) as cluster,
            distributed.Client(cluster),
            dask.config.set(scheduler=None),
        ):
            found = model(solver="dp-sadmm").fit(split(X), split(Y))
            with pytest.raises(InvalidData) as refusal:
                model().fit(split(with_secret()).map_blocks(fail_loudly), split(Y))
        assert str(SECRET) not in str(refusal.value)
        np.testing.assert_allclose(found.weights_, model(solver="dp-sadmm").fit(X, Y).weights_, rtol=1e-9)


def with_secret():
    table = X.copy()
    table[10, 1] = SECRET
    return table


def fail_loudly(block):
    if (block == SECRET).any():
        raise ValueError(f"cannot take {block[block == SECRET]}")
    return block


class TestRefusals:
    """Each before anything is charged, and without a word about a row."""

    @pytest.fixture
    def ledger(self, tmp_path):
        ledger = Ledger.create(tmp_path / "ledger.db")
        ledger.set_limit("rows", Budget(100.0, 1e-3), owner="Ada", test=True)
        before = len(ledger.entries)
        yield ledger
        assert len(ledger.entries) == before

    @pytest.mark.parametrize(
        ("more", "words"),
        [({"arithmetic": "exact"}, "arithmetic='exact'"), ({"solver": "noisy-admm", "steps": None}, "noisy-admm")],
    )
    def test_what_needs_rows_in_memory(self, ledger, more, words):
        with pytest.raises(UnsupportedProblem, match=words):
            model(ledger=ledger, dataset="rows", **more).fit(split(X), split(Y))

    @pytest.mark.parametrize("place", ["row", "label"])
    def test_invalid_rows(self, ledger, place):
        table, labels = X.copy(), Y.astype(float)
        if place == "row":
            table[3, 1] = np.nan
        else:
            labels[500] = SECRET
        with pytest.raises(InvalidData, match=r"NaN or infinity|outside `classes`") as refusal:
            model(ledger=ledger, dataset="rows").fit(split(table), split(labels))
        assert str(SECRET) not in str(refusal.value)

    def test_a_failing_task_is_not_quoted(self, ledger):
        held = split(with_secret()).map_blocks(fail_loudly, dtype=float)
        with pytest.raises(InvalidData) as refusal:
            model(ledger=ledger, dataset="rows").fit(held, split(Y))
        assert str(SECRET) not in str(refusal.value)
        assert refusal.value.__suppress_context__

    def test_text_is_not_quoted(self, ledger):
        table = X.astype(object)
        table[5, 0] = "secret"
        with pytest.raises(DpadmmError) as refusal:
            model(ledger=ledger, dataset="rows").fit(split(table), split(Y))
        assert "secret" not in str(refusal.value)

    def test_shapes(self):
        unknown = split(X)[split(X)[:, 0] > -2]
        for table, labels in [
            (split(X)[0], split(Y)),
            (split(X), split(Y[:500], (250, 250))),
            (split(X), Y[:500]),
            (unknown, Y),
            (unknown, split(Y, (300, 300))),
            (unknown, split(Y, (100, 300, 200))),
            (split(X), split(X)),
            (split(X)[:0], split(Y)[:0]),
            (split(X), None),
        ]:
            with pytest.raises(InvalidData):
                model().fit(table, labels)

    def test_a_search_and_a_transformer(self):
        for fit in (
            DPSearchCV(model(), {"penalty": ["none", "l2"]}),
            PrivateQuantileClipper((-2, 2), epsilon=1.0, delta=1e-6),
        ):
            with pytest.raises(InvalidData, match="Dask"):
                fit.fit(split(X), split(Y))

    def test_sparse_partitions_declared_dense(self, ledger):
        """Private bounds would be asked for, charged, and only then found to be none that sparse rows can have."""
        held = split(X).map_blocks(sparse.csr_matrix, dtype=float, meta=np.empty((0, 0)))
        with pytest.raises(InvalidData, match="meta"):
            model(ledger=ledger, dataset="rows").fit(held, split(Y))

    def test_sparse_rows_with_a_lower_bound(self, ledger):
        held = split(X).map_blocks(sparse.csr_matrix, dtype=float)
        with pytest.raises(InvalidParameter, match="sparse"):
            model(bounds=(-2, 2), ledger=ledger, dataset="rows").fit(held, split(Y))


def test_bad_rows_count_as_zero():
    table, labels = X.copy(), Y.astype(float)
    table[3, 1], labels[4] = np.nan, 77.0
    found = model(invalid_rows="zero").fit(split(table), split(labels))
    np.testing.assert_allclose(found.weights_, model(invalid_rows="zero").fit(table, labels).weights_, rtol=1e-9)


def test_a_partition_that_changes_between_two_readings_is_refused():
    """Else its rows would be clipped by the norms of others."""
    calls = []

    def other_every_time(block):
        calls.append(None)
        return block * (1 + 1e-12 * len(calls))

    held = da.from_array(X, chunks=(600, D)).map_blocks(other_every_time, dtype=float, meta=np.empty((0, 0)))
    with pytest.raises(QueryRefused, match="differed"):
        model().fit(held, split(Y, (600,)))


@pytest.mark.parametrize("form", [np.asarray, np.float32, sparse.csr_matrix])
def test_a_fingerprint_sees_entries_and_their_order(form):
    before, other = fingerprint(form(X)), X.copy()
    other[5, 2] += 1e-6
    assert fingerprint(form(X.copy())) == before
    assert fingerprint(form(other)) != before
    assert fingerprint(form(X[::-1])) != before


@pytest.mark.parametrize("form", [np.asarray, np.float32, np.asfortranarray, sparse.csr_matrix])
def test_a_fingerprint_sees_the_places_of_zeros_and_ones(form):
    """Of 0/1 entries few bits differ, and rows of one length differ in nothing but places."""
    table = (np.random.default_rng(0).random((500, D)) < 0.5).astype(float)
    table[:2] = np.eye(D)[:2]
    swapped, permuted = table.copy(), table[:, np.r_[1, 0, 2:D]]
    swapped[[0, 1]] = table[[1, 0]]
    found = {fingerprint(form(each)) for each in (table, swapped, permuted, table[:, ::-1], table[:-1], 2 * table)}
    assert len(found) == 6
    assert fingerprint(form(table)) == fingerprint(form(table.copy()))


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int8, np.bool_])
def test_a_fingerprint_sees_every_bit(dtype):
    """Also of a table that does not end with a whole run of words, and longer than what is summed together."""
    table = np.zeros((300, 503), dtype=dtype)
    before = fingerprint(table)
    stored = table.reshape(-1).view(np.uint8)
    for place in (0, 1, 7, 255, 256, 4096 * 64 - 1, 4096 * 64, len(stored) - 1):
        for bit in range(8) if dtype is not np.bool_ else [0]:
            if place < len(stored):
                stored[place] ^= 1 << bit
                assert fingerprint(table) != before
                stored[place] ^= 1 << bit
    assert fingerprint(table) == before


def test_a_fingerprint_sees_the_precision_and_the_shape():
    zeros = [np.zeros(shape) for shape in ((4, 6), (6, 4), (0, 6), (0, 4))]
    zeros.append(np.zeros((4, 12), dtype=np.float32))
    assert len({fingerprint(form(each)) for form in (np.asarray, sparse.csr_matrix) for each in zeros}) == 10


def test_no_more_than_a_few_partitions_are_in_memory():
    rows, width, parts = 4000, 50, 40

    def block(block_info=None):
        place = block_info[None]["chunk-location"][0]
        return np.random.default_rng(place).uniform(-1, 1, (rows, width))

    held = da.map_blocks(block, chunks=((rows,) * parts, (width,)), dtype=float, meta=np.empty((0, 0)))
    labels = da.from_array(RNG.integers(0, 2, rows * parts), chunks=rows)
    model(steps=2, classes=[0, 1]).fit(held[:rows], labels[:rows])  # what is imported on first use is no part of it
    tracemalloc.start()
    model(steps=2).fit(held, labels)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.4 * rows * width * parts * 8


def test_dask_and_torch_are_imported_by_those_who_use_them():
    code = (
        "import sys, numpy as np; from dpadmm import DPLogisticRegression;"
        "DPLogisticRegression(random_state=0).fit(np.eye(4), [0, 1, 0, 1]);"
        "assert not {'dask', 'torch', 'distributed'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
