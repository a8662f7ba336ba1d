"""Rows held by Dask or on a device: sensitivities, taint, and the rounding that is charged for them."""

from __future__ import annotations

import itertools
import math
import warnings
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpadmm import DPLogisticRegression
from dpadmm.errors import InvalidData
from dpadmm.kernels.threads import LONGEST_RUN
from dpadmm.privacy import arithmetic
from dpadmm.privacy.budget import Relation
from dpadmm.privacy.questions import ClippedGradient, GradientDifference, SecondMoment
from dpadmm.privacy.sampling import Batch
from dpadmm.problem import Softmax
from dpadmm.problem.rowmap import RowMap
from dpadmm.rows import dask_parts
from dpadmm.rows.local import LocalRows
from dpadmm.rows.packed import PackedRows
from dpadmm.rows.partitioned import FAN_IN, LocalParts, PartitionedRows

from . import test_auto_sensitivity as auto
from .taint import Stub, differences, observe
from .test_sensitivity import CLIP, LOSSES, SLACK, moved, point, targets, wild_rows
from .test_taint import MODELS, TAME, WILD, make

ALL = Batch(None)


def in_parts(X, y, loss, row_map):
    """A part a row."""
    parts = [LocalRows(PackedRows.of(row_map, X[[i]]), y[[i]], loss, row_map.row_norm) for i in range(len(X))]
    return PartitionedRows(LocalParts(parts), [1] * len(X), parts[0].space.n_features, loss.outputs)


def on_device(X, y, loss, row_map):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    from dpadmm.rows.torch_rows import TorchRows
    from dpadmm.rows.torch_table import pack_tensor

    return TorchRows(pack_tensor(row_map, torch.tensor(X)), y, loss, row_map.row_norm)


ENGINES = {"parts": in_parts, "device": on_device}
EVERY_ENGINE = pytest.mark.parametrize("engine", ENGINES)


# -- sensitivities ---------------------------------------------------------------------------------------------------


@EVERY_ENGINE
@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    loss=st.sampled_from(LOSSES),
    single=st.booleans(),
    intercept=st.booleans(),
    scale=st.sampled_from([0.0, 1.0, 1e6, 1e30]),
)
def test_no_neighbour_moves_a_sum_further_than_declared(engine, seed, loss, single, intercept, scale):
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(2, 6)), int(rng.integers(1, 6))
    row_map = RowMap(float(rng.choice([0.1, 1.0, 30.0])), intercept)
    X, other, y = wild_rows(rng, n, d), wild_rows(rng, n, d), targets(loss, rng, n + 1)
    i = int(rng.integers(n))
    X2, y2 = X.copy(), y[:n].copy()
    X2[i], y2[i] = other[i], y[n]
    x, anchor = point(loss, rng, d + intercept, scale), point(loss, rng, d + intercept, scale)
    cap = float(rng.choice([1e-3, 0.1, 2 * CLIP]))
    drawn, rest = np.arange(n), np.delete(np.arange(n), i)
    with np.errstate(all="ignore"):
        a, b = (rows_of(engine, *table, loss, row_map, single) for table in ((X, y[:n]), (X2, y2)))
        batches = ((a, ALL), (b, ALL), (a, Batch(rest)), (a, Batch(drawn, (drawn != i).astype(float))))
        sums = [rows.ask(ClippedGradient(CLIP), (x,), batch) for rows, batch in batches]
        gaps = [rows.ask(GradientDifference(2 * CLIP), (x, anchor, cap), batch) for rows, batch in batches]
    for (one, two, *without), clip in ((sums, CLIP), (gaps, cap)):
        assert np.isfinite(one).all()
        assert moved(one, two) <= 2 * clip * SLACK
        assert all(moved(one, less) <= clip * SLACK for less in without)


def rows_of(engine, X, y, loss, row_map, single):
    return ENGINES[engine](np.clip(X, -3e38, 3e38).astype(np.float32) if single else X, y, loss, row_map)


@EVERY_ENGINE
@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize(
    "query", [auto.Joint(2, 0.5), auto.Joint(3, 1 / 3), auto.Gradient(3), auto.Whitened()], ids=repr
)
def test_the_bounds_of_auto_are_attained_and_never_exceeded(engine, relation, query):
    with mock.patch.object(auto, "table", record_of(engine)):
        found = auto.farthest(query, relation, np.float64)
    assert 0.99 * query.bound(relation) <= found <= auto.EXCEEDED * query.bound(relation)


def record_of(engine):
    def record(row, number, classes, dtype):
        loss = auto.Logistic() if classes == 2 else Softmax(classes)
        target = np.array([2.0 * number - 1.0]) if classes == 2 else np.array([number])
        # A norm so large that the map leaves rows as they are: the query itself must clip them.
        rows = ENGINES[engine](row[None].astype(dtype), target, loss, RowMap(1e6, False))
        for part in rows._parts._parts if engine == "parts" else (rows,):
            part._row_norm = 1.0
        return rows

    return record


class TestMutantsOfSensitivity:
    def test_no_clip_on_a_device(self):
        pytest.importorskip("torch", reason="PyTorch is not installed")
        x, loss = np.array([0.0]), LOSSES[2]
        with mock.patch("dpadmm.rows.torch_rows.clip_slopes", lambda slopes, norms, clip: slopes):
            rows = on_device(np.ones((2, 1)), np.array([1e3, -1e3]), loss, RowMap(1.0, False))
            assert (
                moved(
                    rows.ask(ClippedGradient(CLIP), (x,), ALL),
                    rows.ask(ClippedGradient(CLIP), (x,), Batch(np.array([0]))),
                )
                > CLIP
            )

    def test_a_batch_whose_rows_are_in_two_parts(self):
        def twice(rows, batch):
            return [Batch(np.zeros(len(batch.rows), dtype=np.intp)) for _ in rows._sizes]

        rows = in_parts(np.ones((2, 1)), np.array([1e3, 1e3]), LOSSES[2], RowMap(1.0, False))
        with mock.patch.object(PartitionedRows, "_split", twice):
            assert np.linalg.norm(rows.ask(ClippedGradient(CLIP), (np.zeros(1),), Batch(np.array([0])))) > 1.9 * CLIP


# -- rounding --------------------------------------------------------------------------------------------------------


def test_adding_parts_stays_within_the_depth_that_is_charged():
    """Lemma 1a: what the last term of h leaves, after the products it was made for, is more than a tree needs."""
    deepest = (FAN_IN - 1) * math.ceil(math.log(2**32, FAN_IN))
    for d in range(1, 5000):
        dense, spiked = 1.01 * d**1.5 + d, 5.0 * (d + 8)
        assert 8.0 * (d + 8.0) ** 1.5 - max(dense, spiked) >= deepest


class Counted:
    """A sum that knows through how many additions it went, at most."""

    def __init__(self, depth=0):
        self.depth = depth

    def copy(self):
        return Counted(self.depth)

    def __iadd__(self, other):
        return Counted(max(self.depth, other.depth) + 1)


@pytest.mark.parametrize("parts", [1, 2, 4, 5, 16, 17, 300])
def test_no_tree_is_deeper_than_it_says(parts):
    deepest = (FAN_IN - 1) * max(0, math.ceil(round(math.log(parts, FAN_IN), 9)))
    part = mock.Mock(ask=lambda question, at, batch: Counted())
    assert LocalParts([part] * parts).total(SecondMoment(), (), [ALL] * parts).depth <= deepest
    with mock.patch.object(dask_parts, "_task", lambda join, *answers: join(*answers)):
        assert dask_parts._tree(dask_parts.add, [Counted() for _ in range(parts)]).depth <= deepest


def test_runs_on_a_device_are_those_that_are_charged():
    """Lemma 1b: no longer than LONGEST_RUN (`summed`), and no more of them than the charge counts."""
    torch_table = pytest.importorskip("dpadmm.rows.torch_table")
    for n, width in itertools.product((1, 5, 16384, 100_000, 3_000_000), (1, 17, 785, 5000, 10**6, 10**8)):
        if n * width > 10**12:
            continue
        blocks = list(torch_table.row_blocks(n, width)) if n / max(1, torch_table.BLOCK_ENTRIES // width) < 1e5 else []
        charged = max(1, min(LONGEST_RUN, arithmetic.BLOCK_ENTRIES // (width + 1)))
        runs = sum(math.ceil((block.stop - block.start) / LONGEST_RUN) for block in blocks)
        assert runs <= math.ceil(n / charged)


@pytest.mark.parametrize("n", [1, 9, 10, 11, 35, 40])
def test_a_block_is_summed_in_runs_no_longer_than_charged(n, monkeypatch):
    torch = pytest.importorskip("torch")
    from dpadmm.rows import torch_table

    monkeypatch.setattr(torch_table, "LONGEST_RUN", 10)
    lengths = []
    plain, batched = torch.Tensor.__matmul__, torch.bmm
    monkeypatch.setattr(torch.Tensor, "__matmul__", lambda a, b: lengths.append(a.shape[1]) or plain(a, b))
    monkeypatch.setattr(torch, "bmm", lambda a, b: lengths.extend([a.shape[2]] * len(a)) or batched(a, b))
    left, right = torch.arange(n * 3.0).reshape(n, 3), torch.ones(n, 2)
    assert torch.equal(torch_table.summed(left, right), plain(left.T, right))
    assert max(lengths) <= 10
    assert sum(lengths) == n


@EVERY_ENGINE
@pytest.mark.parametrize("single", [False, True])
def test_a_sum_errs_no_more_than_is_charged(engine, single):
    """Beside the exact sum of the contributions as they are computed."""
    n, d = 300, 3
    rng = np.random.default_rng(0)
    rows = rows_of(engine, rng.standard_normal((n, d)), 10 * rng.standard_normal(n), LOSSES[2], RowMap(), single)
    x = rng.standard_normal(d + 1)
    parts = np.array([rows.ask(ClippedGradient(CLIP), (x,), Batch(np.array([i]))) for i in range(n)])
    exact = np.array([math.fsum(column) for column in parts.T])
    charged = CLIP * arithmetic.summation_error(n, d + 1)
    assert np.linalg.norm(rows.ask(ClippedGradient(CLIP), (x,), ALL) - exact) <= charged
    assert np.linalg.norm(rows.ask(ClippedGradient(CLIP), (x,), Batch(rng.permutation(n))) - exact) <= charged


# -- taint -----------------------------------------------------------------------------------------------------------


def dask_table(X, y):
    da = pytest.importorskip("dask.array")
    cuts = (20, 1, 39)
    return da.from_array(X, chunks=(cuts, X.shape[1])), da.from_array(y, chunks=(cuts,))


def device_table(X, y):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    return torch.tensor(X), torch.tensor(y)


def elsewhere(X, y, tolerant):
    from dpadmm.estimators.device_table import DeviceTable

    return DeviceTable(X, y)


TABLES = {"dask": dask_table, "device": device_table}


def seen(held, model, table, folder, stub=Stub):
    with mock.patch("dpadmm.estimators.base.held_elsewhere", elsewhere) if held == "device" else mock.MagicMock():
        return observe(model, *TABLES[held](*table), folder, stub())


@pytest.mark.parametrize("held", TABLES)
@pytest.mark.parametrize("solver", ["auto", "full-admm", "dp-sadmm", "dp-vradmm"])
@pytest.mark.parametrize("name", MODELS)
def test_nothing_depends_on_the_data(name, solver, held, tmp_path, monkeypatch):
    dask = pytest.importorskip("dask")
    with dask.config.set(scheduler="threads" if solver == "auto" else "synchronous"):
        one, two = (
            seen(held, make(name, solver=solver), table, tmp_path / part) for part, table in (("1", TAME), ("2", WILD))
        )
    assert differences(one, two) == []
    assert one["failure"] is None
    assert one["warnings"] == []
    assert len([query for query in one["queries"] if query[0] == "released"]) >= 3


@pytest.mark.parametrize("held", TABLES)
def test_bad_rows_that_count_as_zero_leave_no_trace(held, tmp_path):
    X, y = TAME[0].copy(), TAME[1].astype(float)
    X[3, 1], X[4], y[6], y[7] = np.nan, np.inf, np.nan, 77.0
    model = {"invalid_rows": "zero", "solver": "full-admm"}
    one, two = (
        seen(held, make("logistic", **model), table, tmp_path / part)
        for part, table in (("1", (TAME[0], TAME[1].astype(float))), ("2", (X, y)))
    )
    assert differences(one, two) == []
    assert one["failure"] is None


@pytest.mark.parametrize("where", ["stdout", "failure"])
def test_a_task_that_talks_is_caught(where, tmp_path):
    """The harness sees what happens inside a task, and what is said of it."""
    honest = dask_parts.measure

    def leaky(chunk, *rest):
        if np.asarray(chunk)[:1].any():
            return honest(chunk, *rest)
        if where == "failure":
            return dask_parts.Failure(InvalidData("a row of zeros", "none", "drop it"))
        print("a row of zeros")
        return honest(chunk, *rest)

    dask = pytest.importorskip("dask")
    with mock.patch.object(dask_parts, "measure", leaky), dask.config.set(scheduler="synchronous"):
        one, two = (
            seen("dask", make("logistic"), table, tmp_path / part) for part, table in (("1", TAME), ("2", WILD))
        )
    assert where in differences(one, two)


def test_a_task_warns_of_nothing():
    """In a process or thread of its own it has the arithmetic's own habits, and those of the fit do not hold."""
    X = WILD[0].copy()
    X[:2] = [[np.inf], [np.nan]]
    reading = dask_parts.Reading(np.asarray, lambda y: (2.0 * y - 1, y >= 0), None, RowMap(), LOSSES[0], 4)
    with warnings.catch_warnings(), np.errstate(all="warn"):
        warnings.simplefilter("error")
        kept = dask_parts.measure(X, WILD[1], None, 60, reading)
        asked = dask_parts.Asked(ClippedGradient(CLIP), (np.full(5, 1e29),), "numpy")
        assert not isinstance(dask_parts.answer(kept, X, asked, ALL), dask_parts.Failure)


def test_a_sum_that_is_released_without_noise_is_caught(tmp_path):
    class Leaky(Stub):
        def release(self, mechanism, total, query, clip, gate):
            return super().release(mechanism, total, query, clip, gate) + 1e-15 * np.sign(total)

    one, two = (
        seen("dask", make("logistic"), table, tmp_path / part, Leaky) for part, table in (("1", TAME), ("2", WILD))
    )
    assert "attributes" in differences(one, two)


def test_a_batch_is_drawn_before_it_is_split():
    """The sampler sees one table: the same seed draws the same rows however they are partitioned."""
    da = pytest.importorskip("dask.array")
    X, y = TAME
    drawn = []
    honest = PartitionedRows.ask

    def watched(rows, question, at, batch):
        drawn[-1].append(batch.rows.tolist())
        return honest(rows, question, at, batch)

    for cuts in ((60,), (20, 1, 39)):
        drawn.append([])
        with mock.patch.object(PartitionedRows, "ask", watched):
            model = DPLogisticRegression(
                classes=[0, 1], delta=1e-3, solver="dp-sadmm", steps=5, batch_size=10, random_state=0
            )
            model.fit(da.from_array(X, chunks=(cuts, 4)), da.from_array(y, chunks=(cuts,)))
    assert drawn[0] == drawn[1] != [[]]
