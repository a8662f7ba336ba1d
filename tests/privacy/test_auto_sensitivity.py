"""Adversarial search for a record that moves a query of `auto` further than declared: none does, and one gets there.

Random starts are improved by hill-climbing over rows, labels, coordinates and points at once. The bound must never be
exceeded (to one part in 10⁹) and be attained (to one in 10³) where `docs/proofs/auto.md` says that it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations, product

import numpy as np
import pytest
from scipy import sparse

from dpadmm import kernels
from dpadmm.privacy.budget import Relation
from dpadmm.privacy.questions import ClippedGradient, FeatureCurvature, JointMoments, SecondMoment
from dpadmm.privacy.sampling import Batch
from dpadmm.problem.losses import Logistic, Softmax
from dpadmm.problem.rowmap import RowMap
from dpadmm.rows.curvature_sums import LARGEST_WEIGHED
from dpadmm.rows.lattice_rows import LatticeRows
from dpadmm.rows.lattice_sum import as_numbers
from dpadmm.rows.local import LocalRows
from dpadmm.rows.packed import PackedRows
from tests.asking import EVERY_ROW, moment_sums

ALL = Batch(None)
CAP = 0.37
D = 3
EXCEEDED = 1 + 1e-9
"""A statistic is summed for rows of norm at most 1 − 10⁻⁶ and a gradient clipped likewise, so this is never used up."""

RELATIONS = pytest.mark.parametrize("relation", list(Relation))
CLASSES = pytest.mark.parametrize("classes", [2, 3, 10])
PRECISIONS = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def table(row, number, classes, dtype):
    """One record."""
    loss = Logistic() if classes == 2 else Softmax(classes)
    target = np.array([2.0 * number - 1.0]) if classes == 2 else np.array([number])
    return LocalRows(row[None].astype(dtype), target, loss)


@dataclass(frozen=True)
class Joint:
    """Correlation and weighted second moment."""

    classes: int
    balance: float

    @property
    def statistic(self):
        return JointMoments(self.balance, 1 if self.classes == 2 else self.classes, 0.5)

    def bound(self, relation):
        return relation.record_distance * self.statistic.reach(relation)

    def value(self, row, number, free, dtype):
        return np.concatenate(
            [part.ravel() for part in moment_sums(table(row, number, self.classes, dtype), self.statistic)]
        )

    free = 0


@dataclass(frozen=True)
class Gradient:
    """Capped gradient at any point in any coordinates."""

    classes: int

    @property
    def free(self):
        return D * D + D * (1 if self.classes == 2 else self.classes)

    def bound(self, relation):
        return relation.record_distance * CAP

    def value(self, row, number, free, dtype):
        matrix, point = 3 * free[: D * D].reshape(D, D), 3 * free[D * D :]
        point = point if self.classes == 2 else point.reshape(D, self.classes)
        return (
            table(row, number, self.classes, dtype).transformed(matrix).ask(ClippedGradient(CAP), (point,), ALL).ravel()
        )


@dataclass(frozen=True)
class Whitened:
    """Clipped second moment in any coordinates."""

    classes: int = 2
    free = D * D

    def bound(self, relation):
        return relation.record_distance * SecondMoment().reach(relation)

    def value(self, row, number, free, dtype):
        return (
            table(row, number, 2, dtype).transformed(3 * free.reshape(D, D)).ask(SecondMoment(), (), EVERY_ROW).ravel()
        )


@dataclass(frozen=True)
class Curvature:
    """Curvature along each feature, at any point and with any weights."""

    classes: int = 2
    free = 2 * D

    def bound(self, relation):
        return relation.record_distance * FeatureCurvature().reach(relation)

    @staticmethod
    def asked(free):
        return 3 * free[:D], 100 * np.exp(np.clip(free[D:], -20, 20))

    def value(self, row, number, free, dtype):
        return table(row, number, 2, dtype).ask(FeatureCurvature(), tuple(self.asked(free)), EVERY_ROW)


def moved(query, relation, numbers, v, dtype):
    """How far the query moves between neighbours; `v` holds both rows, and what the solver may choose."""
    first, second, free = v[:D], v[D : 2 * D], v[2 * D :]
    before = query.value(first, numbers[0], free, dtype)
    if relation is Relation.ADD_REMOVE:
        return float(np.linalg.norm(before))
    return float(np.linalg.norm(before - query.value(second, numbers[1], free, dtype)))


def farthest(query, relation, dtype, starts=4, steps=250):
    """Largest movement found: random and opposite starts, each improved by steps that shrink when they fail."""
    rng, best = np.random.default_rng(0), 0.0
    for start in range(starts):
        numbers = (0, start % 2)  # records of the same label and of different ones
        v = rng.standard_normal(2 * D + query.free)
        if start >= starts // 2:  # opposite rows, the point at the origin
            v[D : 2 * D] = -v[:D]
            v[2 * D + D * D :] = 0
        reach, size = moved(query, relation, numbers, v, dtype), 1.0
        for _ in range(steps):
            trial = v + size * rng.standard_normal(v.size)
            found = moved(query, relation, numbers, trial, dtype)
            v, reach, size = (trial, found, 1.3 * size) if found > reach else (v, reach, max(0.93 * size, 1e-4))
        best = max(best, reach)
    return best


@RELATIONS
@CLASSES
@PRECISIONS
@pytest.mark.parametrize("share", [1.0, 0.5])
def test_joint_moments(relation, classes, dtype, share):
    """At the largest provable balance and at the one in use or below."""
    size = 1.0 if classes == 2 else 1 - 1 / classes
    query = Joint(classes, share * size / 2)
    found = farthest(query, relation, dtype)
    assert 0.999 * query.bound(relation) <= found <= EXCEEDED * query.bound(relation)


@RELATIONS
@CLASSES
@PRECISIONS
def test_capped_gradient(relation, classes, dtype):
    """Opposite rows of one class at the origin have opposite gradients, whatever the number of classes."""
    query = Gradient(classes)
    found = farthest(query, relation, dtype)
    assert 0.999 * query.bound(relation) <= found <= EXCEEDED * query.bound(relation)


@RELATIONS
@PRECISIONS
def test_clipped_second_moment(relation, dtype):
    query = Whitened()
    found = farthest(query, relation, dtype)
    assert 0.999 * query.bound(relation) <= found <= EXCEEDED * query.bound(relation)


@RELATIONS
@PRECISIONS
def test_feature_curvature(relation, dtype):
    query = Curvature()
    found = farthest(query, relation, dtype)
    assert 0.999 * query.bound(relation) <= found <= EXCEEDED * query.bound(relation)


@RELATIONS
def test_feature_curvature_attains_its_bound(relation):
    """Rows with disjoint supports at the origin; one of them, gone."""
    tables = [LocalRows(row[None], np.ones(1), Logistic()) for row in np.eye(D)[:2]]
    first, second = (rows.ask(FeatureCurvature(), (np.zeros(D), np.full(D, 4.0)), EVERY_ROW) for rows in tables)
    gone = second if relation is Relation.REPLACE_ONE else np.zeros(D)
    assert np.linalg.norm(first - gone) == pytest.approx(Curvature().bound(relation), rel=2e-6)


EXTREME = [
    np.array([1e300, -1e300, 1e-300]),
    np.array([3e38, 1.0, -1e-40]),
    np.array([5e-324, 1e-310, -2e-308]),
    np.array([1e-160, 1e-162, 0.0]),
    np.array([1e160, 0.0, 1e150]),
    np.array([np.inf, 1.0, 1.0]),
    np.array([np.nan, 1.0, -np.inf]),
    np.array([1.0, 1.0, 1.0]),
    *np.eye(3),
    np.zeros(3),
]


def _on_tensor(row, rowmap):
    torch = pytest.importorskip("torch")
    from dpadmm.rows.torch_rows import TorchRows
    from dpadmm.rows.torch_table import pack_tensor

    return TorchRows(pack_tensor(rowmap, torch.tensor(row)), np.ones(1), Logistic(), rowmap.row_norm)


def _unmapped_tensor(row, rowmap):
    torch = pytest.importorskip("torch")
    from dpadmm.rows.torch_rows import TorchRows
    from dpadmm.rows.torch_table import PackedTensor, lengths

    X = torch.tensor(row)
    alive = torch.isfinite(X).all(dim=1).to(torch.float64)
    return TorchRows(PackedTensor(X, alive, lengths(X)), np.ones(1), Logistic(), rowmap.row_norm)


def _in_memory(row, rowmap):
    return LocalRows(PackedRows.of(rowmap, row), np.ones(1), Logistic(), rowmap.row_norm)


HELD = {
    "dense": _in_memory,
    "csr": lambda row, rowmap: _in_memory(sparse.csr_matrix(row), rowmap),
    "float32": lambda row, rowmap: _in_memory(row.astype(np.float32), rowmap),
    "unmapped": lambda row, rowmap: LocalRows(row, np.ones(1), Logistic(), rowmap.row_norm),
    "tensor": _on_tensor,
    "unmapped tensor": _unmapped_tensor,
    "lattice": lambda row, rowmap: LatticeRows(PackedRows.of(rowmap, row), np.ones(1), Logistic(), rowmap.row_norm, 10),
}


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("row_norm", [1e-30, 1.0, 1e30])
@pytest.mark.parametrize("held", HELD)
def test_feature_curvature_of_extreme_rows_and_weights(held, row_norm, intercept):
    """Every pair of rows, in extended precision and without a tolerance; no entry is negative or not finite."""
    rowmap = RowMap(row_norm, intercept and not held.startswith("unmapped"))
    width = 3 + rowmap.intercept
    large = np.array([LARGEST_WEIGHED, 1.0, 1e-300, 5e-324])[:width] / row_norm**2 * (1 - 1e-15)
    weights = [np.full(width, large[0]), large, large[::-1].copy(), np.ones(width), np.zeros(width)]
    points = [np.zeros(width), np.full(width, 1.0 / row_norm), np.array([1e29, -1e29, 1e29, 1e29])[:width]]
    with np.errstate(all="ignore"):
        rows = [HELD[held](row[None], rowmap) for row in EXTREME]
        for x, weight in product(points, weights):
            sums = [
                as_numbers(row.ask(FeatureCurvature(), (x, weight), EVERY_ROW)).astype(np.longdouble) for row in rows
            ]
            assert all(np.isfinite(found).all() and (found >= 0).all() for found in sums)
            assert max(np.sqrt((found**2).sum()) for found in sums) <= 1
            assert max(((one - other) ** 2).sum() for one, other in combinations(sums, 2)) <= 2


@pytest.mark.parametrize("engine", ["numpy", "compiled"])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("row_norm", [1e-30, 1.0, 1e30])
def test_moments_of_extreme_rows_that_stay_sparse(row_norm, intercept, engine):
    """Every pair of rows with few entries, in extended precision; in other coordinates too, where norms are bounds."""
    rowmap, query = RowMap(row_norm, intercept), Joint(2, 0.5)
    matrix = np.random.default_rng(0).standard_normal((100 + intercept, 100 + intercept)) / row_norm
    with np.errstate(all="ignore"), kernels.use(engine):
        packed = [PackedRows.of(rowmap, sparse.csr_matrix(np.concatenate([row, np.zeros(97)]))) for row in EXTREME]
        rows = [LocalRows(each, np.ones(1), Logistic(), row_norm) for each in packed]
        assert all(each._pairs_are_few() for each in rows)
        sums = [np.concatenate([part.ravel() for part in moment_sums(each, query.statistic)]) for each in rows]
        turned = [each.transformed(matrix) for each in rows]
        moments = [each.ask(SecondMoment(), (), EVERY_ROW).ravel() for each in turned]
    for found, relation, bound in (
        *((sums, relation, query.bound(relation)) for relation in Relation),
        *((moments, relation, Whitened().bound(relation)) for relation in Relation),
    ):
        assert all(np.isfinite(each).all() for each in found)
        gone = [np.zeros_like(found[0])] if relation is Relation.ADD_REMOVE else found
        far = max(np.linalg.norm((a - b).astype(np.longdouble)) for a in found for b in gone)
        assert far <= bound * EXCEEDED
    for each, seen in zip(packed, turned, strict=True):
        exact = each.block(slice(0, 1)).astype(np.longdouble) @ matrix.astype(np.longdouble)
        assert np.sqrt((exact**2).sum()) <= seen._norms[0] * (1 + np.finfo(float).eps)


@RELATIONS
@pytest.mark.parametrize("query", [Joint(2, 0.5), Joint(3, 0.25), Gradient(2), Whitened(), Curvature()], ids=repr)
def test_the_search_finds_a_bound_that_is_too_small(relation, query):
    """Without the clip of the rows or of the gradient the same search leaves every bound behind."""

    def unclipped(row, number, free, dtype):
        rows = table(row, number, query.classes, dtype)
        if isinstance(query, Joint):
            return np.sqrt(query.balance) * np.outer(row, row)
        if isinstance(query, Curvature):
            return query.asked(free)[1] * row * row / 4
        rows = rows.transformed(3 * free[: D * D].reshape(D, D))
        if isinstance(query, Whitened):
            return (rows._X.T @ rows._X).ravel()
        return rows.ask(ClippedGradient(np.inf), (3 * free[D * D :],), ALL)

    loose = type("Loose", (), {"free": query.free, "value": staticmethod(unclipped)})
    assert farthest(loose, relation, np.float64, starts=2) > 1.5 * query.bound(relation)
