"""The public row map: bounds, intercept, norm, sparse twin, and the fold back to raw units."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from dpadmm.errors import InvalidParameter
from dpadmm.problem.rowmap import RowMap
from dpadmm.rows.packed import PackedRows


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("row_norm", [0.3, 1.0, 10.0])
def test_no_row_is_longer_than_declared(dtype, row_norm):
    X = (np.random.default_rng(0).standard_normal((50, 7)) * 5).astype(dtype)
    mapped = RowMap(row_norm).apply(X)
    assert mapped.dtype == dtype
    assert np.linalg.norm(mapped.astype(np.float64), axis=1).max() <= row_norm * (1 + 1e-6)


def test_short_rows_are_left_alone():
    X = np.array([[0.1, 0.2], [0.0, 0.3]])
    np.testing.assert_array_equal(RowMap(1.0, intercept=False).apply(X), X)


@pytest.mark.parametrize("bounds", [None, (0.0, 2.0), ([0, 0, 0, 0, 0], [1, 2, 3, 4, 5])])
def test_sparse_and_dense_agree(bounds):
    X = sparse.random(40, 5, density=0.4, random_state=0, format="csr") * 3
    rowmap = RowMap.declare(1.0, True, bounds, 5)
    np.testing.assert_allclose(rowmap.apply(X).toarray(), rowmap.apply(X.toarray()), rtol=1e-12)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("bounds", [None, (0.0, 2.0)])
def test_blocks_of_stored_entries_are_the_dense_ones(bounds, intercept):
    X = sparse.random(40, 5, density=0.3, random_state=0, dtype=np.float32).toarray() * 3
    X[[0, 7, 8, 39]] = 0
    X[3, 1] = np.nan
    packed = PackedRows.of(RowMap.declare(1.0, intercept, bounds, 5), sparse.csr_matrix(X))
    for rows in (slice(0, 40), slice(5, 9), slice(39, 40), slice(3, 4), slice(2, 2)):
        stored = packed.stored(rows)
        assert stored.has_canonical_format
        np.testing.assert_array_equal(stored.toarray(), packed.block(rows))


def test_fold_gives_scores_in_raw_units():
    rng = np.random.default_rng(0)
    lower, upper = np.array([-1.0, 0.0, 5.0]), np.array([1.0, 10.0, 7.0])
    X = rng.uniform(lower, upper, (20, 3))
    rowmap = RowMap.declare(100.0, True, (lower, upper), 3)
    weights = rng.standard_normal((4, 2))
    coef, offset = rowmap.fold(weights)
    np.testing.assert_allclose(X @ coef + offset, rowmap.apply(X) @ weights)


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_row_that_is_not_finite_becomes_zero(make, bad):
    X = np.ones((3, 2))
    X[1, 0] = bad
    mapped = RowMap().apply(make(X))
    mapped = mapped.toarray() if sparse.issparse(mapped) else mapped
    assert not mapped[1].any()
    assert mapped[0].any()


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix])
def test_a_giant_row_keeps_its_direction(make):
    mapped = RowMap(intercept=False).apply(make(np.array([[3e300, 4e300]])))
    mapped = mapped.toarray() if sparse.issparse(mapped) else mapped
    np.testing.assert_allclose(mapped, [[0.6, 0.8]])


@pytest.mark.parametrize(
    "bounds", [1.0, (1.0, 0.0), ([0, 0], [1, 1]), ([18], [100]), (0, [1]), (np.nan, 1.0), "ab", ([0.0] * 3, None)]
)
def test_bad_bounds_are_refused(bounds):
    with pytest.raises(InvalidParameter, match="Declare the range"):
        RowMap.declare(1.0, True, bounds, 3)


def test_a_sequence_of_one_is_for_one_feature():
    assert RowMap.declare(1.0, True, ([18], [100]), 1) == RowMap.declare(1.0, True, (18, 100), 1)


def test_sparse_rows_need_bounds_from_zero():
    with pytest.raises(InvalidParameter, match="dense rows"):
        RowMap.declare(1.0, True, (-1.0, 1.0), 3).apply(sparse.csr_matrix(np.ones((2, 3))))


def test_the_caller_keeps_its_rows():
    X = np.array([[3.0, 4.0]])
    S = sparse.csr_matrix(X)
    RowMap().apply(X)
    RowMap().apply(S)
    assert X.tolist() == [[3.0, 4.0]]
    assert S.toarray().tolist() == [[3.0, 4.0]]
