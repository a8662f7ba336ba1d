"""What a row contributes depends on that row alone: not on where it stands, nor on which others stand beside it."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from dpadmm import kernels
from dpadmm.kernels.numpy_kernels import products
from dpadmm.kernels.vectors.short_sparse_rows import SHORT
from dpadmm.privacy.questions import CentredScore, ClippedGradient, FeatureCurvature
from dpadmm.privacy.sampling import Batch
from dpadmm.problem.losses import Logistic, Softmax, Squared
from dpadmm.problem.rowmap import RowMap
from dpadmm.problem.scores import Accuracy
from dpadmm.rows.local import LocalRows
from dpadmm.rows.packed import PackedRows
from dpadmm.rows.scored import ScoredRows
from tests.asking import EVERY_ROW

rng = np.random.default_rng(0)
SHAPES = [(52, 40), (37, 5), (9, 130), (70, 1)]


def cancelling(n, d, dtype=np.float64):
    """Rows whose product with equal coefficients is nothing but rounding."""
    rows = rng.standard_normal((n, d))
    rows[:, -1] -= rows.sum(axis=1)
    return rows.astype(dtype)


@pytest.mark.parametrize(("n", "d"), SHAPES)
def test_products_do_not_depend_on_neighbours(n, d):
    rows, points = cancelling(n, d), np.full((3, d), 1 / 3)
    whole = products(rows, points)
    for gone in range(n):
        assert np.array_equal(products(np.delete(rows, gone, axis=0), points), np.delete(whole, gone, axis=0))


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix], ids=["dense", "csr"])
@pytest.mark.parametrize("outputs", [1, 3])
def test_a_score_moves_by_one_contribution(form, outputs):
    """A last bit of a margin decides whether a prediction is right, so it may not depend on other rows."""
    loss = Logistic() if outputs == 1 else Softmax(outputs)
    for n, d in SHAPES:
        X = cancelling(n, d)
        target = rng.choice([-1.0, 1.0], n) if outputs == 1 else rng.integers(0, outputs, n)
        x = np.full(d if outputs == 1 else (d, outputs), 1 / 3)

        def score(kept, X=X, target=target, x=x):
            table = PackedRows.of(RowMap(1.0, False), form(X[kept]))
            return ScoredRows(table, target[kept], loss, Accuracy()).ask(CentredScore(0.5), (x,), EVERY_ROW)[0]

        everything = np.arange(n)
        whole = score(everything)
        assert all(abs(whole - score(np.delete(everything, gone))) <= 0.5 for gone in range(n))


@pytest.mark.parametrize("engine", ["numpy", "compiled"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("long", [10.0, 1e3])
def test_a_gradient_moves_by_one_contribution(engine, dtype, long):
    """A batch with and without a row: the sums differ by that row's contribution and the rounding of a sum."""
    n, d = 60, 40
    rows = LocalRows(PackedRows.of(RowMap(1.0, False), cancelling(n, d, dtype)), rng.choice([-1.0, 1.0], n), Logistic())
    x, batch = np.full(d, long), rng.permutation(n)
    with kernels.use(engine):
        whole = rows.ask(ClippedGradient(0.5), (x,), Batch(batch))
        for place in range(0, n, 7):
            rest = rows.ask(ClippedGradient(0.5), (x,), Batch(np.delete(batch, place)))
            alone = rows.ask(ClippedGradient(0.5), (x,), Batch(batch[place : place + 1]))
            assert np.linalg.norm(whole - rest - alone) < 1e-14 * n


@pytest.mark.parametrize("form", [np.ascontiguousarray, sparse.csr_matrix], ids=["dense", "csr"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_table_without_a_row_lacks_its_contribution_alone(form, dtype):
    """Compiled, rows are read in groups: taking one out moves all that follow to other places in theirs."""
    for n, d in SHAPES:
        X, target, x = cancelling(n, d, dtype), rng.choice([-1.0, 1.0], n), np.full(d, 1e3)

        def summed(kept, X=X, target=target, x=x):
            rows = LocalRows(PackedRows.of(RowMap(1.0, False), form(X[kept])), target[kept], Logistic())
            return rows.ask(ClippedGradient(0.5), (x,), Batch(None))

        with kernels.use("compiled"):
            whole = summed(np.arange(n))
            for gone in range(0, n, 5):
                rest, alone = summed(np.delete(np.arange(n), gone)), summed(np.array([gone]))
                assert np.linalg.norm(whole - rest - alone) < 1e-14 * n


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_long_row_among_short_ones_changes_no_contribution_but_its_own(dtype):
    """Short sparse rows are summed in another way, and one row may decide whether those of a block are short."""
    n, d = 150, 400
    X = np.zeros((n, d), dtype)
    for row in X:
        row[rng.choice(d, SHORT - 1, replace=False)] = cancelling(1, SHORT - 1, dtype)[0]
    X[70] = cancelling(1, d, dtype)[0]
    target, x = rng.choice([-1.0, 1.0], n), np.full(d, {np.float32: 1e3, np.float64: 1e12}[dtype])

    def summed(kept):
        rows = LocalRows(PackedRows.of(RowMap(1.0, False), sparse.csr_matrix(X[kept])), target[kept], Logistic())
        return rows.ask(ClippedGradient(0.5), (x,), Batch(None))

    with kernels.use("compiled"):
        whole, rest, alone = summed(np.arange(n)), summed(np.delete(np.arange(n), 70)), summed(np.array([70]))
    assert np.linalg.norm(whole - rest - alone) < 1e-14 * n


@pytest.mark.parametrize("engine", ["numpy", "compiled"])
def test_a_margin_that_is_wrong_or_no_number_does_not_lengthen_a_contribution(engine):
    """Float32 margins may be all rounding or overflow; the clip comes after them and does without them."""
    n, d, clip = 40, 30, 0.01
    X = cancelling(n, d, np.float32)
    rows = LocalRows(PackedRows.of(RowMap(1.0, False), X), rng.choice([-1.0, 1.0], n), Squared())
    for long in (1.0, 1e20, 3e38):
        x = np.where(np.arange(d) % 2, long, -long)
        with kernels.use(engine):
            lengths = [np.linalg.norm(rows.ask(ClippedGradient(clip), (x,), Batch(np.array([i])))) for i in range(n)]
        assert max(lengths) <= clip
        assert long > 1e30 or min(lengths) > 0


def _tensor(rowmap, X, y):
    torch = pytest.importorskip("torch")
    from dpadmm.rows.torch_rows import TorchRows
    from dpadmm.rows.torch_table import pack_tensor

    return TorchRows(pack_tensor(rowmap, torch.tensor(X)), y, Logistic())


TABLES = {
    "dense": lambda rowmap, X, y: LocalRows(PackedRows.of(rowmap, np.ascontiguousarray(X)), y, Logistic()),
    "csr": lambda rowmap, X, y: LocalRows(PackedRows.of(rowmap, sparse.csr_matrix(X)), y, Logistic()),
    "tensor": _tensor,
}


@pytest.mark.parametrize("held", TABLES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("weight", [1e-6, 1e9])
def test_a_curvature_moves_by_one_contribution(held, dtype, weight):
    """Margins are all rounding here: a last bit of one decides whether its row is curved."""
    for n, d in SHAPES:
        X, target, x = cancelling(n, d, dtype), np.ones(n), np.full(d, 1e16)

        def summed(kept, X=X, target=target, x=x):
            rows = TABLES[held](RowMap(1.0, False), X[kept], target[kept])
            return rows.ask(FeatureCurvature(), (x, np.full(len(x), weight)), EVERY_ROW)

        whole = summed(np.arange(n))
        for gone in range(0, n, 5):
            rest, alone = summed(np.delete(np.arange(n), gone)), summed(np.array([gone]))
            assert np.linalg.norm(whole - rest - alone) < 1e-14 * n * min(1.0, weight)


@pytest.mark.parametrize("held", TABLES)
def test_curvatures_of_cancelling_rows_are_neither_all_nor_none(held):
    """What the test above needs, for a margin that is off to show."""
    asked = np.full(40, 1e16), np.full(40, 4.0)
    tables = [TABLES[held](RowMap(1.0, False), row[None], np.ones(1)) for row in cancelling(60, 40)]
    sizes = [np.linalg.norm(rows.ask(FeatureCurvature(), tuple(asked), EVERY_ROW)) for rows in tables]
    assert 0 <= min(sizes) < 0.1 * max(sizes)
