"""Sums over rows: precision, formats, weights."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from dpadmm import kernels
from dpadmm.kernels.clipping import clip_slopes
from dpadmm.privacy.questions import ClippedGradient, GradientDifference
from dpadmm.privacy.sampling import Batch
from dpadmm.problem.losses import HuberisedHinge, Logistic, Softmax
from dpadmm.rows.local import LocalRows


@pytest.fixture(autouse=True, scope="module", params=["numpy", "compiled"])
def engine(request):
    """Everything here holds for the kernels of both engines."""
    with kernels.use(request.param):
        yield


def test_a_long_float32_sum_stays_within_the_sensitivity():
    """Summed in float32 one replaced row would move this sum by 1.03 times the allowed distance."""
    n = 1_000_000
    X = np.full((n, 1), 1.0, dtype=np.float32)
    target = np.ones(n)
    neighbour = target.copy()
    neighbour[0] = -1.0
    x, everything = np.zeros(1), Batch(None)
    first = LocalRows(X, target, Logistic()).ask(ClippedGradient(0.3), (x,), everything)
    second = LocalRows(X, neighbour, Logistic()).ask(ClippedGradient(0.3), (x,), everything)
    assert abs(first - second)[0] <= 2 * 0.3


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("outputs", [1, 3])
def test_formats_agree_with_a_plain_loop(dtype, make, outputs):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((3000, 4)).astype(dtype)
    loss = Logistic() if outputs == 1 else Softmax(3)
    target = rng.choice([-1.0, 1.0], 3000) if outputs == 1 else rng.integers(0, 3, 3000)
    x = rng.standard_normal(4 if outputs == 1 else (4, 3))
    rows, weights = rng.permutation(3000)[:1500], rng.integers(0, 2, 1500).astype(float)
    total = LocalRows(make(X), target, loss).ask(ClippedGradient(0.5), (x,), Batch(rows, weights))
    expected = np.zeros_like(x)
    for i, weight in zip(rows, weights, strict=True):
        row = X[i].astype(np.float64)
        slope = loss.slope((row @ x)[None], target[[i]])[0]
        gradient = row * slope if outputs == 1 else np.outer(row, slope)
        expected += weight * gradient * min(1.0, 0.5 / np.linalg.norm(gradient))
    np.testing.assert_allclose(total, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("loss", [Logistic(), HuberisedHinge(), Softmax(3), Softmax(127)], ids=repr)
def test_labels_of_one_byte_count_as_numbers_of_eight(make, loss):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1001, 5))
    X[500] = np.nan  # counts as zero, so that rows of its block do not follow each other
    wide = np.int64(rng.choice([-1, 1], 1001) if loss.outputs == 1 else rng.integers(0, loss.outputs, 1001))
    one, eight = (LocalRows(make(X), labels, loss) for labels in (wide.astype(np.int8), wide))
    assert (one._columns.dtype, eight._columns.dtype) == (np.int8, np.float64)
    x, anchor = rng.standard_normal((2, *one.space.point_shape))
    some = Batch(rng.permutation(1001)[:300])
    for batch in (Batch(None), some, Batch(some.rows, np.ones(300))):
        np.testing.assert_array_equal(*(rows.ask(ClippedGradient(0.5), (x,), batch) for rows in (one, eight)))
        np.testing.assert_array_equal(
            *(rows.ask(GradientDifference(1.0), (x, anchor, 0.3), batch) for rows in (one, eight))
        )


@pytest.mark.parametrize("norm", [np.nan, np.inf])
@pytest.mark.parametrize("shape", [(2,), (2, 3)])
def test_a_row_of_no_finite_norm_contributes_nothing(norm, shape):
    clipped = clip_slopes(np.ones(shape), np.array([norm, 1.0]), 0.5)
    assert not clipped[0].any()
    assert clipped[1].any()


def test_a_loss_derived_from_one_of_the_library_keeps_its_own_slope():
    class Halved(Logistic):
        def slope(self, margin, target):
            return super().slope(margin, target) / 2

    rows = np.random.default_rng(3).standard_normal((50, 4)) / 4
    labels, asked = np.sign(rows[:, 0]), (ClippedGradient(1.0), (np.zeros(4),), Batch(None))
    halved = LocalRows(rows, labels, Halved()).ask(*asked)
    np.testing.assert_allclose(2 * halved, LocalRows(rows, labels, Logistic()).ask(*asked))
