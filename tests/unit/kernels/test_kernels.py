"""Every compiled kernel against its NumPy twin, the rule that chooses between them, threads and the cache."""

from __future__ import annotations

import inspect
import itertools
import os
import pickle
import shutil
import subprocess
import sys
import threading
import time
from collections import deque
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse

from dpadmm import Budget, DPLogisticRegression, DPSearchCV, Ledger, kernels
from dpadmm.errors import InvalidParameter
from dpadmm.estimators.fit_size import work_of
from dpadmm.kernels import FitSize, compiled, jit, numpy_kernels, source_digest, threads
from dpadmm.kernels.clipping import SAFETY, clip_slopes
from dpadmm.kernels.compiled import slopes
from dpadmm.kernels.loss_codes import HUBER, HUBERISED_HINGE, LOGISTIC, SOFTMAX, SQUARED
from dpadmm.kernels.vectors import processor_caches
from dpadmm.privacy.passage import Passage
from dpadmm.privacy.questions import ClippedGradient, HiddenWalk
from dpadmm.privacy.sampling import Batch
from dpadmm.problem import (
    L1,
    Constraint,
    ElasticNet,
    GroupL2,
    Huber,
    HuberisedHinge,
    Logistic,
    Problem,
    RingLaplacian,
    Softmax,
    Squared,
    SquaredL2,
    Zero,
)
from dpadmm.problem.rowmap import RowMap
from dpadmm.problem.smoothers import Identity
from dpadmm.rows.local import LocalRows
from dpadmm.rows.packed import PackedRows
from dpadmm.solvers.step_after_gradient import Tail

LOSSES = {
    "logistic": (LOGISTIC, 0.0, 1),
    "hinge": (HUBERISED_HINGE, 0.5, 1),
    "squared": (SQUARED, 0.0, 1),
    "huber": (HUBER, 0.7, 1),
    "softmax": (SOFTMAX, 0.0, 5),
    "softmax-of-eight": (SOFTMAX, 0.0, 8),
    "softmax-of-nineteen": (SOFTMAX, 0.0, 19),
    "softmax-of-forty-three": (SOFTMAX, 0.0, 43),
    "two-tasks": (SQUARED, 0.0, 2),
    "huber-tasks": (HUBER, 0.7, 3),
}
N = 77


def table(seed, d, dtype):
    """Rows of many sizes, some of which count as zero and hold NaN or infinity."""
    rng = np.random.default_rng(seed)
    X = (rng.standard_normal((N, d)) * 10.0 ** rng.integers(-3, 3, (N, 1))).astype(dtype)
    factors = rng.uniform(0.1, 1.0, N)
    factors[[3, 40]] = 0.0
    X[3], X[40] = np.nan, np.inf
    norms = np.where(factors > 0, factors * np.linalg.norm(np.where(np.isfinite(X), X, 0), axis=1), 0)
    norms[5], norms[6] = np.nan, np.inf
    return X, factors, norms


def filled(kernel, shape, *given):
    """What a kernel writes into its last argument."""
    out = np.full(shape, np.nan)
    assert kernel(*given, out) is None
    return out


def arguments(name, seed, d, dtype, sparse_rows, bounded, batch, difference):
    code, parameter, outputs = LOSSES[name]
    rng = np.random.default_rng(seed + 1)
    X, factors, norms = table(seed, d, dtype)
    if code == SOFTMAX:
        target = rng.integers(0, outputs, (1, N)).astype(float)
    elif code in (LOGISTIC, HUBERISED_HINGE):
        target = rng.choice([-1.0, 1.0], (1, N))
    else:
        target = rng.standard_normal((outputs, N)) * 10.0 ** rng.integers(-2, 5)
        target[0, 8], target[0, 9] = np.nan, 1e300
    rows = {"all": None, "some": rng.permutation(N)[:41], "none": np.array([], dtype=np.intp)}[batch]
    weights = None if rows is None else rng.integers(0, 2, len(rows)).astype(float)
    span = (0, N) if rows is None else (0, len(rows))
    points, anchors = rng.standard_normal((2, outputs, d + 1)) * 0.5
    lower, upper = np.zeros(d) if sparse_rows else np.full(d, -1.0), np.full(d, 2.0)
    clips = (0.9, 0.4) if difference else (0.4, 0.4)
    if sparse_rows:
        stored = sparse.csr_matrix(np.where(rng.uniform(size=X.shape) < 0.4, X, 0))
        bounds = (upper, 1 / (upper - lower)) if bounded else (None, None)
        head = (stored.data, stored.indices, stored.indptr, *bounds)
        points, anchors = np.ascontiguousarray(points.T), np.ascontiguousarray(anchors.T)
    else:
        head = (X, lower, upper, 1 / (upper - lower)) if bounded else (X, None, None, None)
    if not bounded:
        points, anchors = points.astype(dtype), anchors.astype(dtype)
    there = anchors if difference else None
    return (*head, factors, norms, target, rows, weights, *span, points, there, *clips, code, parameter)


# Each line is compiled for itself, so not all combinations: each value with each other value at least once.
VARIANTS = [
    (np.float32, False, "all", False),
    (np.float32, True, "some", False),
    (np.float32, False, "none", True),
    (np.float64, False, "some", True),
    (np.float64, True, "all", True),
    (np.float64, False, "none", False),
]


@pytest.mark.parametrize(("dtype", "bounded", "batch", "difference"), VARIANTS)
@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("kind", ["dense_sum", "sparse_sum"])
def test_clipped_sums_agree(kind, name, dtype, bounded, batch, difference):
    for d in (1, 7, 54, 80):
        given = arguments(name, d, d, dtype, kind == "sparse_sum", bounded, batch, difference)
        with np.errstate(all="ignore"):
            expected = filled(getattr(numpy_kernels, kind), given[-6].shape, *given)
        found = filled(getattr(compiled, kind), given[-6].shape, *given)
        assert np.isfinite(found).all()
        # Margins of float32 rows without bounds are float32, and a slope moves with them.
        precision = 2e-4 if dtype is np.float32 and not bounded else 1e-9
        np.testing.assert_allclose(found, expected, rtol=precision, atol=precision)


@pytest.mark.parametrize("margin", [-1e5, -709.5, -700.0, -1.0, 0.0, 1e-300, 1.0, 36.0, 700.0, 1e5, np.inf, -np.inf])
def test_the_exponential_of_the_logistic_slope(margin):
    """One row of one feature 1 with no clip: the sum is the slope itself."""
    one = np.ones(1)
    for label in (-1.0, 1.0):
        given = (one[:, None], None, None, None, one, one, np.array([[label]]), None, None, 0, 1)
        rest = (np.array([[margin, 0.0]]), None, np.inf, np.inf, LOGISTIC, 0.0)
        found, expected = (filled(space.dense_sum, (1, 2), *given, *rest) for space in (compiled, numpy_kernels))
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-300)


def test_the_logistic_slope_of_float32_rows_is_right_to_float32_in_the_tails_too():
    """One row of one feature 1 with no clip: the sum is the slope at a margin that float32 holds without an error."""
    margins = np.concatenate([np.linspace(-87, 88, 1501), [0.0, 1e-30, -1e30, 1e30]]).astype(np.float32)
    one, X = np.ones(1), np.ones((1, 1), np.float32)
    for label in (-1.0, 1.0):
        given = (X, None, None, None, one, one, np.array([[label]]), None, None, 0, 1)
        for margin in margins:
            rest = (np.array([[margin, 0.0]], np.float32), None, np.inf, np.inf, LOGISTIC, 0.0)
            found, expected = (filled(space.dense_sum, (1, 2), *given, *rest) for space in (compiled, numpy_kernels))
            np.testing.assert_allclose(found, expected, rtol=3e-7, atol=1e-38)


def test_the_compiled_clip_is_the_clip():
    """Slopes given as fractions, and numbers at the ends of what a double holds."""
    numerators = [0.0, 1e-300, -1e-9, 1.0, -3.0, 1e150, -1e300, np.inf, -np.inf, np.nan]
    norms = [0.0, 1e-280, 1e-9, 1.0, 2.5, 1e140, np.inf, np.nan]
    for limit in (1e-100, 0.5, 1e100, np.inf):
        for top, bottom, norm in itertools.product(numerators, (1.0, 1.7, 1e30), norms):
            with np.errstate(all="ignore"):
                found = slopes.clipped(top, bottom, norm, limit * SAFETY)
                expected = clip_slopes(np.array([top / bottom]), np.array([norm]), limit)[0]
            np.testing.assert_allclose(found, expected, rtol=1e-14, atol=1e-300)
            assert found == 0.0 or abs(found) * norm <= limit * (1 - 9e-7)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("d", [5, 16, 54, 64, 130])
def test_a_clipped_row_is_as_long_as_allowed_and_no_longer(d, dtype):
    rng = np.random.default_rng(d)
    X = (rng.standard_normal((40, d)) * 10.0 ** rng.integers(0, 4, (40, 1))).astype(dtype)
    rows = LocalRows(PackedRows.of(RowMap(1e9, False), X), np.ones(40), Logistic())
    with kernels.use("compiled"):
        for clip in (1e-3, 0.1):
            sums = [rows.ask(ClippedGradient(clip), (np.zeros(d),), Batch(np.array([i]))) for i in range(40)]
            lengths = np.linalg.norm(sums, axis=1)
            assert lengths.max() <= clip
            assert lengths.min() >= clip * (1 - 2e-6)


@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("d", [1, 2, 3, 5, 54, 784, 10_001])
@pytest.mark.parametrize("nu", [0.01, 1.0, 50.0])
def test_rings_agree_with_each_other_and_with_the_fourier_transform(nu, d, outputs):
    g = np.random.default_rng(d).standard_normal((d,) if outputs == 1 else (d, outputs))
    ring = RingLaplacian(nu)
    by_fft = RingLaplacian(nu, "fft")(g)
    for namespace in (compiled, numpy_kernels):
        found = filled(namespace.ring, g.shape, g, ring.decay, ring.gain)
        np.testing.assert_allclose(found, by_fft, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("shape", [(0,), (1,), (55,), (7, 3)])
@pytest.mark.parametrize("grid", [2.0**-30, 1.0, 2.0**-300])
def test_a_granular_release_has_the_same_bits(shape, grid):
    """Halves between two grid points, zeros of both signs, and counts close to 2⁵¹ among the sums."""
    rng = np.random.default_rng(0)
    sums = grid * np.where(rng.random(shape) < 0.5, rng.integers(-9, 9, shape) / 2, rng.normal(0, 2.0**45, shape))
    noise = rng.standard_normal(shape)
    for total in (sums, -0.0 * sums, np.asfortranarray(sums)):
        kept = total.copy(), noise.copy()
        found, expected = (
            filled(space.granular, shape, total, noise, grid, 1e7 * grid, 1234.5) for space in (compiled, numpy_kernels)
        )
        np.testing.assert_array_equal(found.view(np.int64), expected.view(np.int64))
        for before, after in zip(kept, (total, noise), strict=True):
            np.testing.assert_array_equal(before, after)


def test_a_granular_release_counts_whole_cells():
    """What is released is (whole + whole) · grid / denominator, whatever the sum was below the grid."""
    rng = np.random.default_rng(1)
    total, noise, grid = rng.standard_normal(1000), rng.standard_normal(1000), 2.0**-10
    for namespace in (compiled, numpy_kernels):
        cells = filled(namespace.granular, 1000, total, noise, grid, 3.0, 1.0) / grid
        np.testing.assert_array_equal(cells, np.rint(cells))
        np.testing.assert_allclose(cells * grid, total + 3.0 * noise, atol=grid)


CONSTRAINTS = {
    "identity": Constraint.identity(6),
    "free": Constraint.identity(6, free=1),
    "chain": Constraint.chain(6, free=1),
    "graph": Constraint.graph([(0, 1, 2.0), (1, 4), (2, 3)], 6),
    "offset": Constraint.general(sparse.random(4, 6, 0.6, random_state=0), c=np.arange(4.0)),
}
PENALTIES = {"none": Zero(), "l1": L1(0.2), "l2": SquaredL2(0.7), "net": ElasticNet(0.4, 0.3)}


@pytest.mark.parametrize("y_first", [False, True])
@pytest.mark.parametrize("loss", [Logistic(), Softmax(3)], ids=["one", "three"])
@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("constraint", CONSTRAINTS)
@pytest.mark.parametrize("smoother", [Identity(), RingLaplacian(2.0, "recursion"), RingLaplacian(2.0, "recursion", 1)])
def test_a_step_is_the_same_fused_in_numpy_compiled_or_composed(smoother, constraint, penalty, loss, y_first):
    problem = Problem(loss, PENALTIES[penalty], CONSTRAINTS[constraint], ridge=0.3)
    tail = Tail(problem, smoother)
    rng = np.random.default_rng(0)
    state = rng.standard_normal(tail.start().size)
    gradient = rng.standard_normal(problem.shape)
    numbers = (0.1, 0.7, 2.0, y_first, 0.5, 0.9)
    assert tail._fused is not None
    expected = tail._composed(state, gradient, *numbers)
    before = state.copy()
    for name in ("numpy", "compiled"):
        with kernels.use(name):
            np.testing.assert_allclose(tail.step(state, gradient, *numbers), expected, rtol=1e-12, atol=1e-13)
    np.testing.assert_array_equal(state, before)


@pytest.mark.parametrize("name", [name for name in compiled.__all__ if not name.isupper()])
def test_twins_take_the_same_parameters(name):
    twin, kernel = (inspect.signature(getattr(home, name)) for home in (numpy_kernels, compiled))
    assert list(twin.parameters) == list(kernel.parameters)


def test_problems_beyond_the_kernel_are_composed():
    for problem, smoother in (
        (Problem(Logistic(), GroupL2(0.1, ((0, 1), (2, 3))), Constraint.identity(4)), Identity()),
        (Problem(Logistic(), L1(0.1), Constraint.identity(4)), RingLaplacian(1.0, "fft")),
        (Problem(Logistic(), L1(0.1), Constraint.general(np.eye(4))), Identity()),
    ):
        tail = Tail(problem, smoother)
        assert tail._fused is None
        assert np.isfinite(tail.step(tail.start(), np.ones(4), 0.1, 1.0, 1.0, True)).all()


@pytest.mark.parametrize("csr", [False, True])
@pytest.mark.parametrize("loss", [Logistic(), Softmax(3), Huber(0.5), Squared(), HuberisedHinge()])
def test_the_sum_does_not_depend_on_the_number_of_threads(csr, loss, monkeypatch):
    monkeypatch.setattr(threads, "CHUNK_ENTRIES", 1000)
    monkeypatch.setattr(threads, "WORTH_THREADS", 1000)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))
    rng = np.random.default_rng(0)
    X = rng.standard_normal((5000, 6))
    target = rng.integers(0, 3, 5000) if isinstance(loss, Softmax) else rng.choice([-1.0, 1.0], 5000)
    rows = LocalRows(sparse.csr_matrix(X) if csr else X, target, loss)
    x = rng.standard_normal(rows.space.point_shape)
    sums = []
    with kernels.use("compiled"):
        for count in (1, 2, 5):
            with threads.at_most_threads(count):
                sums.append(rows.ask(ClippedGradient(0.5), (x,), Batch(None)))
    np.testing.assert_array_equal(sums[0], sums[1])
    np.testing.assert_array_equal(sums[0], sums[2])


def wait_until(condition, seconds=5.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.002)


def lonely(form, dtype, d, place, n=48):
    """One row among rows of zeros, which add nothing."""
    row = np.random.default_rng(place).standard_normal(d)
    X = np.zeros((n, d), dtype)
    X[place] = row
    return LocalRows(PackedRows.of(RowMap(1.0, False), form(X)), np.ones(n), Logistic())


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix], ids=["dense", "csr"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_contribution_has_the_same_bits_in_every_place(form, dtype):
    """In a block of rows in order, alone in a batch, and as the last row of the table, which is read with more care."""
    for d in (1, 5, 54):
        for place in (0, 13, 47):
            rows = lonely(form, dtype, d, place)
            x = np.random.default_rng(d).standard_normal(d)
            with kernels.use("compiled"):
                among = rows.ask(ClippedGradient(0.1), (x,), Batch(None))
                alone = rows.ask(ClippedGradient(0.1), (x,), Batch(np.array([place])))
            assert np.linalg.norm(among) > 0
            np.testing.assert_array_equal(among, alone)


def stored_rows(dtype):
    """Rows of 0 to 9 entries and two of more, unsorted and with duplicates; values from the subnormal to the huge."""
    rng = np.random.default_rng(0)
    lengths = np.append(rng.integers(0, 10, 150), [0, 31, 0, 9, 24, 3])
    indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    size = {np.float32: 30, np.float64: 200}[dtype]
    data = (rng.standard_normal(indptr[-1]) * 10.0 ** rng.integers(-size - 10, size, indptr[-1])).astype(dtype)
    return data, rng.integers(0, 7, indptr[-1]).astype(np.int32), indptr


@pytest.mark.parametrize("d", [1, 7, 8, 9, 15, 16, 17, 24, 25, 54, 64, 70])
@pytest.mark.parametrize("empty", [[], [40], [0, 17, 32, 33, 47, 96]])
def test_rows_multiplied_and_added_at_once_have_the_bits_of_rows_taken_one_by_one(d, empty):
    """Float32 rows that follow each other go the way of `dot_and_add`; those of a list of numbers do not."""
    rng = np.random.default_rng(d)
    X = rng.normal(size=(100, d)).astype(np.float32)
    X[empty] = 0.0
    x = rng.normal(size=d + 1)
    rows = LocalRows(PackedRows.of(RowMap(1.0, True), X), np.where(rng.random(100) < 0.5, 1.0, -1.0), Logistic())
    with kernels.use("compiled"):
        at_once, by_number = (rows._clipped_sum(x, None, 0.5, 0.5, Batch(which)) for which in (None, np.arange(100)))
    assert np.array_equal(at_once, by_number)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("mean", [1, 6, 15, 23, 25, 60])
@pytest.mark.parametrize("bound", [None, 0.5], ids=["no bounds", "bounds"])
@pytest.mark.parametrize("empty", [[], [40], [0, 17, 64, 65, 127, 199]])
def test_a_run_of_sparse_rows_has_the_bits_of_rows_taken_one_by_one(dtype, mean, bound, empty):
    """Short rows that follow each other go the way of `runs`; long ones, and those of a list of numbers, do not."""
    rng, n, d = np.random.default_rng(mean), 200, 120
    X = sparse.random_array((n, d), density=mean / d, format="lil", dtype=dtype, rng=rng)
    X[rng.integers(n, size=4)] = rng.random(d)  # few rows are much longer than the others
    X[empty] = 0.0
    rowmap = RowMap.declare(1.0, True, None if bound is None else (0.0, bound), d)
    rows = LocalRows(PackedRows.of(rowmap, X.tocsr()), rng.choice([-1.0, 1.0], n), Logistic())
    x = rng.normal(size=d + 1)
    with kernels.use("compiled"):
        in_order, by_number = (rows.ask(ClippedGradient(0.5), (x,), Batch(which)) for which in (None, np.arange(n)))
    assert np.array_equal(in_order, by_number)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sparse_rows_of_every_length(dtype):
    data, indices, indptr = stored_rows(dtype)
    n = len(indptr) - 1
    with np.errstate(over="ignore"):
        norms = np.sqrt([np.square(data[a:b].astype(float)).sum() for a, b in pairwise(indptr)])
    factors = np.ones(n)
    factors[::11] = 0.0
    for row in range(0, n, 11):
        data[indptr[row] : indptr[row + 1]] = np.nan
    rng = np.random.default_rng(1)
    target, points = rng.choice([-1.0, 1.0], (1, n)), rng.standard_normal((8, 1)).astype(dtype)
    given = (data, indices, indptr, None, None, factors, norms, target, None, None)
    for span in ((0, n), (0, 64), (n - 1, n), (n - 3, n), (5, 5)):
        found, expected = (
            filled(space.sparse_sum, points.shape, *given, *span, points, None, 0.4, 0.4, LOGISTIC, 0.0)
            for space in (compiled, numpy_kernels)
        )
        precision = {np.float32: 1e-6, np.float64: 1e-9}[dtype]
        np.testing.assert_allclose(found, expected, rtol=precision, atol=precision)


@pytest.mark.parametrize("kind", [np.int32, np.int64])
def test_second_moments_of_sparse_rows(kind):
    rows = sparse.random_array((50, 9), density=0.2, format="csr", rng=np.random.default_rng(0))
    given = (rows.data, rows.indices.astype(kind), rows.indptr.astype(kind))
    found, expected = (filled(space.sparse_gram, (9, 9), *given) for space in (compiled, numpy_kernels))
    np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(expected, np.tril(rows.toarray().T @ rows.toarray()), rtol=1e-13, atol=1e-15)


class TestThreads:
    def test_the_users_limits_count(self, monkeypatch):
        monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(16)))
        limits = (threads.OWN_LIMIT, *threads.OTHER_LIMITS)
        for name in limits:
            monkeypatch.delenv(name, raising=False)
        assert threads.allowed() == 16
        for name in reversed(limits):
            count = 3 + limits.index(name)
            monkeypatch.setenv(name, str(count))
            assert threads.allowed() == count
        with threads.at_most_threads(2):
            assert threads.allowed() == 2
            with threads.at_most_threads(None):
                assert threads.allowed() == 2

    def test_words_and_lists_in_the_environment(self, monkeypatch):
        monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(16)))
        monkeypatch.delenv("DPADMM_NUM_THREADS", raising=False)
        monkeypatch.setenv("NUMBA_NUM_THREADS", "4,2")
        assert threads.allowed() == 4
        monkeypatch.setenv("NUMBA_NUM_THREADS", "many")
        monkeypatch.setenv("OMP_NUM_THREADS", "3")
        assert threads.allowed() == 3

    @pytest.mark.parametrize("count", [0, -1, 2.5, True, "2"])
    def test_a_limit_that_is_none_is_refused(self, count):
        with pytest.raises(InvalidParameter, match="threads"), threads.at_most_threads(count):
            pass

    @pytest.mark.parametrize(("name", "text"), [("DPADMM_NUM_THREADS", "many"), ("DPADMM_KERNELS", "fast")])
    def test_a_mistake_in_the_environment_costs_no_budget(self, name, text, monkeypatch, tmp_path):
        ledger = Ledger.create(tmp_path / "ledger.db")
        ledger.set_limit("table", Budget(2.0, 1e-3), owner="Ada")
        monkeypatch.setenv(name, text)
        model = DPLogisticRegression(classes=[0, 1], delta=1e-3, ledger=ledger, dataset="table")
        for fit in (model, DPSearchCV(model, {"alpha": [1e-3]})):
            with pytest.raises(InvalidParameter, match=name):
                fit.fit(np.random.default_rng(0).standard_normal((50, 3)), np.arange(50) % 2)
        assert [entry.content["kind"] for entry in ledger.entries] == ["create", "limit"]

    def test_a_failure_in_a_thread_is_raised_and_no_thread_is_left(self, monkeypatch):
        monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(4)))
        here, seen, inside = threading.get_ident(), threading.active_count(), []

        def part(start, stop):
            inside.append(start)
            try:
                if threading.get_ident() != here:
                    raise ZeroDivisionError
                time.sleep(0.05)
                return np.zeros(1)
            finally:
                inside.remove(start)

        with threads.at_most_threads(4), pytest.raises(ZeroDivisionError):
            threads.sum_in_chunks(part, 10 * threads.LONGEST_RUN, 100, True)
        assert threading.active_count() == seen
        assert not inside

    @pytest.mark.parametrize(
        ("n", "width", "features"), [(49_749, 11, 300), (16_384, 11, 300), (8_124, 21, 112), (200_000, 63, 50_000)]
    )
    def test_sparse_rows_are_shared_evenly_by_two_and_by_four(self, n, width, features):
        count = threads._blocks(n, width, 8, features)
        assert count >= 4
        assert count % 4 == 0

    def test_blocks_of_a_short_sum_shrink_so_that_who_begins_first_has_most_to_do(self):
        lengths = [stop - start for start, stop in threads._bounds(49_749, 11, 8, 300)]
        mean = 49_749 / len(lengths)
        assert lengths == sorted(lengths, reverse=True)
        assert 1.05 * mean <= lengths[0] <= 1.15 * mean
        assert 0.85 * mean <= lengths[-1] <= 0.95 * mean

    @pytest.mark.parametrize(("n", "width", "effort", "features"), [(30_000, 75, 8, 50_000), (300_000, 54, 1, 0)])
    def test_blocks_of_longer_sums_are_equal(self, n, width, effort, features):
        lengths = [stop - start for start, stop in threads._bounds(n, width, effort, features)]
        assert max(lengths) - min(lengths) <= 1

    def test_no_more_sums_wait_than_threads_make(self, monkeypatch):
        """Blocks taken from both ends would wait for each other, half of all sums at a time."""
        monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(2)))
        waiting, add = [], threads._InOrder.add

        def noted(total):
            waiting.append(len(total._early))
            add(total)

        def part(start, stop):
            time.sleep(0.002)
            return np.zeros(1)

        monkeypatch.setattr(threads._InOrder, "add", noted)
        with threads.at_most_threads(2):
            threads.sum_in_chunks(part, 40 * threads.LONGEST_RUN, 100, True)
        assert len(waiting) > 40
        assert max(waiting) <= 4  # one of each thread, and what they bring while another is added

    @pytest.mark.parametrize("failure", [RuntimeError("can't start new thread"), MemoryError()])
    def test_a_system_without_a_thread_to_give_leaves_the_sum_to_the_caller(self, monkeypatch, failure):
        def refuse(*_):
            raise failure

        monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(4)))
        monkeypatch.setattr(threads, "_idle", deque())
        monkeypatch.setattr(threads, "start_new_thread", refuse)
        rows = 3 * threads.LONGEST_RUN
        with threads.at_most_threads(4):
            total = threads.sum_in_chunks(lambda start, stop: np.array([float(stop - start)]), rows, 100, True)
        assert total == [rows]

    @pytest.mark.parametrize("n", [4 * threads.LONGEST_RUN, 5 * threads.LONGEST_RUN - 1])
    def test_blocks_that_may_be_no_longer_are_equal(self, n):
        lengths = [stop - start for start, stop in threads._bounds(n, 4, 8, 4)]
        assert max(lengths) - min(lengths) <= 1
        assert max(lengths) <= threads.LONGEST_RUN

    def test_the_caller_takes_the_first_blocks_and_helpers_the_last(self, monkeypatch):
        monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(2)))
        here, taken = threading.get_ident(), {True: [], False: []}

        def part(start, stop):
            taken[threading.get_ident() == here].append(start)
            time.sleep(0.05)
            return np.zeros(1)

        with threads.at_most_threads(2):
            threads.sum_in_chunks(part, 49_749, 11, True, 8, 300)
        assert taken[True] == sorted(taken[True])
        assert taken[False] == sorted(taken[False], reverse=True)
        assert max(taken[True]) < min(taken[False])

    @pytest.mark.parametrize("order", [[0, 1, 2, 3], [3, 2, 1, 0], [2, 0, 3, 1]])
    def test_parts_are_added_in_the_order_of_the_rows_whenever_they_come(self, order):
        parts = [np.array([each]) for each in (1.0, 2.0**-53, 2.0**-53, -1.0)]
        total = threads._InOrder()
        for number in order:
            total.bring(number, parts[number].copy())
        assert total.sum == ((1.0 + 2.0**-53) + 2.0**-53) - 1.0

    def test_a_part_brought_while_another_is_added_is_not_lost(self):
        total = threads._InOrder()
        total._adding.acquire()
        total.bring(0, np.ones(1))
        total._adding.release()
        total.add()
        assert total.sum == [1.0]

    def test_a_thread_that_comes_too_late_is_not_waited_for(self, monkeypatch):
        monkeypatch.setattr(threads.os, "sched_getaffinity", lambda pid: set(range(4)), raising=False)
        late = []
        monkeypatch.setattr(threads, "_idle", deque())
        monkeypatch.setattr(threads, "start_new_thread", lambda work, arguments: late.append(work))
        count = 3 * threads.LONGEST_RUN
        with threads.at_most_threads(4):
            total = threads.sum_in_chunks(lambda start, stop: np.array([float(stop - start)]), count, 100, True)
        for work in late:
            work()
        assert late
        assert total == [count]

    def test_helpers_are_kept_for_a_while_and_let_go_of_the_rows(self, monkeypatch):
        monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(2)))
        monkeypatch.setattr(threads, "_idle", deque())
        monkeypatch.setattr(threads, "PATIENCE", 0.5)
        seen = set()

        def part(start, stop):
            seen.add(threading.get_ident())
            time.sleep(0.02)
            return np.zeros(1)

        for _ in range(3):
            with threads.at_most_threads(2):
                threads.sum_in_chunks(part, 4 * threads.LONGEST_RUN, 100, True)
            wait_until(lambda: threads._idle)
        assert len(seen) == 2
        (helper,) = threads._idle
        assert helper._job is None
        wait_until(lambda: not threads._idle)

    @pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
    @pytest.mark.filterwarnings("ignore::DeprecationWarning")
    def test_a_fork_has_helpers_of_its_own(self, monkeypatch):
        monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(2)))

        def idents():
            found = set()

            def part(start, stop):
                found.add(threading.get_ident())
                time.sleep(0.05)
                return np.zeros(1)

            with threads.at_most_threads(2):
                threads.sum_in_chunks(part, 4 * threads.LONGEST_RUN, 100, True)
            return found

        assert len(idents()) == 2
        wait_until(lambda: threads._idle)
        child = os.fork()
        if not child:
            os._exit(0 if len(idents()) == 2 else 1)
        assert os.waitpid(child, 0)[1] == 0

    def test_short_sums_stay_on_one_thread(self, monkeypatch):
        monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(4)))
        rows, width = 2 * threads.LONGEST_RUN, 16
        seen = {1: set(), 8: set()}
        for effort, idents in seen.items():

            def part(start, stop, idents=idents):
                idents.add(threading.get_ident())
                time.sleep(0.05)
                return np.zeros(1)

            with threads.at_most_threads(2):
                threads.sum_in_chunks(part, rows, width, True, effort)
        assert len(seen[1]) == 1
        assert len(seen[8]) == 2


class TestTheRule:
    @pytest.mark.parametrize(
        ("work", "stored", "name"),
        [
            (FitSize(30, 30_000, 101), True, "numpy"),
            (FitSize(30, 290_000, 55), True, "compiled"),
            (FitSize(30, 290_000, 55), False, "numpy"),
            (FitSize(300, 290_000, 55), False, "compiled"),
            (FitSize(2_000, 50, 55), True, "numpy"),
            (FitSize(50_000, 50, 55), True, "compiled"),
        ],
        ids=str,
    )
    def test_a_short_fit_stays_on_numpy(self, monkeypatch, work, stored, name):
        monkeypatch.delenv("DPADMM_KERNELS", raising=False)
        monkeypatch.setattr(kernels.kernel_choice, "_machine_code_is_stored", lambda loop: stored)
        assert kernels.choose(work) == name

    @pytest.mark.parametrize(("stored", "fits"), [(True, 3), (False, 44)])
    def test_short_fits_add_up_to_what_loading_or_compiling_costs(self, monkeypatch, stored, fits):
        monkeypatch.delenv("DPADMM_KERNELS", raising=False)
        monkeypatch.setattr(kernels.kernel_choice, "_machine_code_is_stored", lambda loop: stored)
        chosen = [kernels.choose(FitSize(30, 30_000, 101)) for _ in range(fits)]
        assert chosen == ["numpy"] * (fits - 1) + ["compiled"]

    @pytest.mark.parametrize(
        ("loop", "name"), [("dense", "dense_sum"), ("sparse", "sparse_sum"), ("row_visits", "visits")]
    )
    def test_machine_code_counts_where_numba_keeps_it_and_only_of_these_sources(
        self, monkeypatch, tmp_path, loop, name
    ):
        monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
        assert not kernels.kernel_choice._machine_code_is_stored(loop)
        file = getattr(compiled, name).__module__.split(".")[-1]
        index = tmp_path / "kernels_0" / f"{file}.{name}-1.py311.nbi"
        index.parent.mkdir()
        for digest, stored in (("another", False), (source_digest.DIGEST, True)):
            index.write_bytes(pickle.dumps(((1.0, 2), digest)))
            assert kernels.kernel_choice._machine_code_is_stored(loop) == stored
        others = {"dense", "sparse", "row_visits"} - {loop}
        assert not any(kernels.kernel_choice._machine_code_is_stored(other) for other in others)

    def test_an_index_that_cannot_be_read_hides_no_other(self, monkeypatch, tmp_path):
        monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
        (tmp_path / "dense.a.nbi").mkdir()
        (tmp_path / "dense.b.nbi").write_bytes(pickle.dumps(source_digest.DIGEST))
        assert kernels.kernel_choice._machine_code_is_stored("dense")

    def test_where_numba_is_given_no_folder_it_looks_in_its_own(self, monkeypatch, tmp_path):
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
        own = tmp_path / "numba"
        (tmp_path / "file").touch()
        monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "file"))
        assert own in kernels.kernel_choice._folders()
        monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "folder"))
        assert kernels.kernel_choice._folders() == [tmp_path / "folder"]

    def test_loops_that_were_never_stored_are_not_waited_for(self, monkeypatch):
        monkeypatch.delenv("DPADMM_KERNELS", raising=False)
        monkeypatch.setattr(kernels.kernel_choice, "_read_so_far", 0.0)
        monkeypatch.setattr(kernels.kernel_choice, "_machine_code_is_stored", lambda loop: loop == "dense")
        assert kernels.choose(FitSize(30, 290_000, 55, "sparse")) == "numpy"
        assert kernels.choose(FitSize(30, 290_000, 55, "dense")) == "compiled"

    def test_the_loop_is_the_one_that_reads_the_rows(self):
        gradient, hidden = (
            SimpleNamespace(readings=3, denominator=10.0, question=each)
            for each in (ClippedGradient(1.0), HiddenWalk(1.0, Passage(3, 1.0, 1.0, 1.0)))
        )
        X = np.eye(4)
        assert work_of(gradient, 4, X).loop == "dense"
        assert work_of(gradient, 4, sparse.csr_matrix(X)).loop == "sparse"
        assert work_of(hidden, 4, X).loop == "row_visits"
        assert work_of(gradient, 4, X, 1.5).queries == 5

    def test_the_environment_overrides_it(self, monkeypatch):
        for name in ("numpy", "compiled"):
            monkeypatch.setenv("DPADMM_KERNELS", name)
            assert kernels.choose() == kernels.choose(FitSize(10**6, 10**6, 10)) == name
        monkeypatch.setenv("DPADMM_KERNELS", "fast")
        with pytest.raises(InvalidParameter, match="DPADMM_KERNELS"):
            kernels.choose()

    def test_the_innermost_choice_counts(self):
        with kernels.use("compiled") as outer, kernels.use("numpy") as inner:
            assert kernels.active() is inner is numpy_kernels
            assert outer is compiled
        assert kernels.active() is numpy_kernels

    def test_nothing_but_the_size_is_asked(self, monkeypatch):
        seen = []
        monkeypatch.setattr(kernels.kernel_choice, "WORTH_LOADING", 1)
        monkeypatch.setattr(kernels, "choose", lambda *work: seen.append(work) or "numpy")
        for scale in (1e-9, 1e9):
            X = np.random.default_rng(0).standard_normal((50, 3)) * scale
            DPLogisticRegression(classes=[0, 1], delta=1e-3).fit(X, np.arange(50) % 2)
        assert seen[0] == seen[1]


@pytest.mark.parametrize("solver", ["auto", "full-admm", "dp-sadmm", "dp-vradmm", "ssadmm", "mpadmm"])
def test_a_seeded_fit_is_the_same_to_rounding(solver, monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 5))
    weights = []
    for name in ("numpy", "compiled"):
        monkeypatch.setenv("DPADMM_KERNELS", name)
        model = DPLogisticRegression(
            classes=[0, 1], delta=1e-3, solver=solver, steps=25, batch_size=20, smoothing=None, random_state=0
        )
        weights.append(model.fit(X, X[:, 0] > 0).weights_)
    np.testing.assert_allclose(weights[0], weights[1], rtol=1e-9, atol=1e-10)


def run_python(code, **environment):
    source = str(Path(__file__).parents[3] / "src")
    found = {**os.environ, "PYTHONPATH": source, **environment}
    return subprocess.run([sys.executable, "-c", code], env=found, capture_output=True, text=True, check=False)


def test_a_cache_that_cannot_be_written_does_no_harm(tmp_path):
    """Numba finds no folder for its cache: kernels are compiled for this process alone."""
    code = (
        "from numba.core import caching\n"
        "for locator in caching.CacheImpl._locator_classes: locator.from_function = classmethod(lambda *a: None)\n"
        "import numpy as np\n"
        "from dpadmm.kernels import compiled\n"
        "smoothed = np.empty(4)\n"
        "compiled.ring(np.ones(4), 1.0, 1.0, smoothed)\n"
        "print(smoothed.shape)\n"
    )
    done = run_python(code)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "(4,)"


OUTER = "from dpadmm.kernels.jit import kernel\nfrom dpadmm.kernels.inner import BOUND\n"
OUTER += "@kernel()\ndef clip(x):\n    return min(x, BOUND)\n"
CLIP = "from dpadmm.kernels.outer import clip\nprint(clip(3.0))\n"


def small_package(folder):
    """A folder with kernels of which one takes a bound from another file."""
    package = folder / "dpadmm" / "kernels"
    package.mkdir(parents=True)
    for name in ("source_digest.py", "jit.py"):
        shutil.copy(Path(jit.__file__).parent / name, package / name)
    (package.parent / "__init__.py").touch()
    (package / "__init__.py").write_text("from dpadmm.kernels import source_digest\n")
    (package / "outer.py").write_text(OUTER)
    return package


@pytest.fixture
def kernels_with_a_bound(tmp_path, monkeypatch):
    """A folder with kernels, and a way to set the bound of one."""
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    package = small_package(tmp_path)

    def set_bound(value):
        (package / "inner.py").write_text(f"BOUND = {value}\n")

    yield tmp_path, set_bound
    assert list(package.glob("__pycache__/outer.clip-*.nbi"))


def printed(folder, code):
    done = run_python(code, PYTHONPATH=str(folder))
    assert done.returncode == 0, done.stderr
    return float(done.stdout)


@pytest.mark.skipif(os.name == "nt", reason="limits of files")
@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(
            "signal.signal(signal.SIGXFSZ, signal.SIG_IGN); resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))",
            id="a full disk",
        ),
        pytest.param("shutil.rmtree(cache); cache.touch()", id="a folder that is gone"),
        pytest.param("[file.write_bytes(b'?') for file in cache.rglob('*.nbi')]", id="an unreadable index"),
        pytest.param(
            "[file.write_bytes(file.read_bytes().replace(b'numba', b'nvmba')) for file in cache.rglob('*.nb?')]",
            id="broken files",
        ),
        pytest.param("[file.write_bytes(b'') for file in cache.rglob('*.nbc')]", id="empty machine code"),
    ],
)
def test_a_cache_that_breaks_while_the_program_runs_does_no_harm(fault, tmp_path):
    """Kernels are compiled in the middle of a fit, whose budget is then charged."""
    (small_package(tmp_path) / "inner.py").write_text("BOUND = 1.0\n")
    cache = tmp_path / "cache"
    breaking = "import resource, shutil, signal\nfrom pathlib import Path\nfrom dpadmm.kernels.outer import clip\n"
    breaking += f"cache = Path({str(cache)!r})\n{fault}\nprint(clip(3.0))\n"
    stored = "file in" in fault
    for code in (CLIP, breaking) if stored else (breaking,):
        done = run_python(code, PYTHONPATH=str(tmp_path), NUMBA_CACHE_DIR=str(cache))
        assert done.returncode == 0, done.stderr
        assert float(done.stdout) == 1.0
        assert not stored or list(cache.rglob("*.nbi"))


@pytest.mark.slow
def test_a_model_is_fitted_where_no_cache_can_be_written(tmp_path):
    """Every kernel is then compiled in memory."""
    (tmp_path / "file").touch()
    code = "import numpy as np\nfrom dpadmm import DPLogisticRegression\nX = np.random.default_rng(0).random((90, 3))\n"
    code += "print(DPLogisticRegression(classes=[0, 1], delta=1e-3).fit(X, np.arange(90) % 2).coef_.size)\n"
    done = run_python(code, DPADMM_KERNELS="compiled", NUMBA_CACHE_DIR=str(tmp_path / "file" / "none"))
    assert (done.returncode, done.stdout.strip()) == (0, "3"), done.stderr


def test_stored_machine_code_is_dropped_with_any_source_it_was_made_of(kernels_with_a_bound):
    """Numba compares the file of the outer kernel alone; an inlined clip of an older version must not go on running."""
    folder, set_bound = kernels_with_a_bound
    set_bound(1.0)
    assert printed(folder, CLIP) == 1.0
    set_bound(2.0)
    assert printed(folder, CLIP) == 2.0


STOPPED = {
    "a full disk": "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
    "resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))",
    "a process that ends": "clip._cache._cache_file._save_data = lambda name, data: os._exit(0)",
}


@pytest.mark.skipif(os.name == "nt", reason="limits of files")
@pytest.mark.parametrize("fault", STOPPED.values(), ids=STOPPED)
def test_an_index_whose_machine_code_was_not_written_does_not_name_that_of_an_older_version(
    fault, kernels_with_a_bound
):
    folder, set_bound = kernels_with_a_bound
    set_bound(2.0)
    assert printed(folder, CLIP) == 2.0
    set_bound(1.0)
    stopped = f"import os, resource, signal\nfrom dpadmm.kernels.outer import clip\n{fault}\nclip(3.0)\n"
    assert run_python(stopped, PYTHONPATH=str(folder)).returncode == 0
    assert printed(folder, CLIP) == 1.0


def test_an_upgrade_under_a_running_process_is_not_taken_for_what_it_runs(kernels_with_a_bound):
    folder, set_bound = kernels_with_a_bound
    set_bound(1.0)
    inner = folder / "dpadmm" / "kernels" / "inner.py"
    upgrade = f"import dpadmm.kernels.inner\nopen({str(inner)!r}, 'w').write('BOUND = 2.0')\n"
    assert printed(folder, upgrade + CLIP) == 1.0
    assert printed(folder, CLIP) == 2.0


def test_every_kernel_is_tied_to_all_sources():
    dispatchers = [value for value in vars(compiled).values() if hasattr(value, "py_func")]
    assert dispatchers
    stored = [kernel._cache._cache_file for kernel in dispatchers]
    assert all(source_digest.DIGEST in each._source_stamp for each in stored)
    assert all(each._data_name(1) != each._data_name(1) for each in stored), "two forks could write the same file"


@pytest.mark.parametrize("what", ["dpadmm", "dpadmm.cli.app"])
def test_heavy_imports_wait(what):
    heavy = "numba", "llvmlite", "dp_accounting", "matplotlib", "randomgen"
    if what == "dpadmm":
        heavy += "numpy", "scipy", "sklearn", "pandas", "pyarrow"
    done = run_python(f"import sys, {what}; print([name for name in {heavy} if name in sys.modules])")
    assert done.stdout.strip() == "[]", done.stderr


def test_an_estimator_imports_no_compiler():
    code = "import sys; from dpadmm import DPLogisticRegression; print('numba' in sys.modules)"
    assert run_python(code).stdout.strip() == "False"


def test_packed_rows_are_the_mapped_rows():
    rng = np.random.default_rng(0)
    for bounds in (None, (0.0, 1.5)):
        row_map = RowMap.declare(0.8, True, bounds, 4)
        for X in (rng.standard_normal((30, 4)), sparse.random(30, 4, 0.5, random_state=0, format="csr")):
            packed = PackedRows.of(row_map, X)
            mapped = row_map.apply(X)
            dense = mapped.toarray() if sparse.issparse(mapped) else mapped
            np.testing.assert_allclose(packed.block(slice(0, 30)), dense, rtol=1e-12)
            np.testing.assert_allclose(packed.norms, np.linalg.norm(dense, axis=1), rtol=1e-12)
            assert not sparse.issparse(X) or packed.X.data.base is not None
            assert sparse.issparse(X) or np.shares_memory(packed.X, X)


class TestCaches:
    @pytest.mark.parametrize(("text", "size"), [("48K\n", 48), ("32K", 32), ("1M", 0), ("", 0), (None, 0)])
    def test_what_the_system_does_not_say_is_zero(self, monkeypatch, tmp_path, text, size):
        place = tmp_path / "size"
        if text is not None:
            place.write_text(text)
        monkeypatch.setattr(processor_caches, "FIRST_CACHE", place)
        assert processor_caches.first_cache() == size
