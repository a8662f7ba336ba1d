"""T4: no pair of neighbouring tables moves a sum further than declared, and the antipodal pair moves it that far."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from dpadmm import kernels
from dpadmm.errors import QueryRefused
from dpadmm.kernels.clipping import SMALLEST_CLIP, clip_slopes
from dpadmm.oracles.noiseless import NoiselessOracle
from dpadmm.privacy.questions import ClippedGradient, GradientDifference
from dpadmm.privacy.sampling import Batch
from dpadmm.problem import L1, Constraint, Huber, HuberisedHinge, Logistic, Problem, Softmax, Squared
from dpadmm.problem.rowmap import RowMap
from dpadmm.rows.lattice_rows import LatticeRows
from dpadmm.rows.lattice_sum import as_numbers
from dpadmm.rows.local import LocalRows
from dpadmm.rows.packed import PackedRows
from dpadmm.solvers.mpadmm import MPADMM

from . import toys


@pytest.fixture(autouse=True, scope="module", params=["numpy", "compiled"])
def engine(request):
    """Everything here holds for the kernels of both engines."""
    with kernels.use(request.param):
        yield


ALL = Batch(None)
LOSSES = [Logistic(), HuberisedHinge(), Squared(), Huber(0.5), Softmax(3), Squared(n_tasks=2), Huber(0.5, n_tasks=2)]
CLIP = 0.37
# A sum of n terms rounds; one part in 10⁹ of the clip is far below what SAFETY keeps in reserve.
SLACK = 1 + 1e-9


def targets(loss, rng, n):
    if isinstance(loss, Softmax):
        return rng.integers(0, loss.n_classes, n)
    if isinstance(loss, (Logistic, HuberisedHinge)):
        return rng.choice([-1.0, 1.0], n)
    return rng.normal(size=(n, loss.outputs) if loss.outputs > 1 else n) * 10.0 ** rng.integers(-3, 12)


def point(loss, rng, d, scale):
    return rng.normal(size=(d, loss.outputs) if loss.outputs > 1 else d) * scale


def wild_rows(rng, n, d):
    """Rows of wildly different sizes, with unit vectors, zeros, NaN, infinities and 1e300 among them."""
    X = rng.normal(size=(n, d)) * 10.0 ** rng.integers(-8, 8, (n, 1))
    X[0] = np.eye(d)[0]
    X[1 % n] = rng.choice([0.0, np.nan, np.inf, -np.inf, 1e300, -1e300], d)
    return X


def moved(a, b):
    return float(np.linalg.norm(a - b))


@settings(max_examples=150, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    loss=st.sampled_from(LOSSES),
    dtype=st.sampled_from([np.float32, np.float64]),
    csr=st.booleans(),
    intercept=st.booleans(),
    scale=st.sampled_from([0.0, 1.0, 1e6, 1e30, 1e100]),
)
def test_no_neighbour_moves_a_sum_further_than_declared(seed, loss, dtype, csr, intercept, scale):
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(2, 8)), int(rng.integers(1, 6))
    row_map = RowMap(float(rng.choice([0.1, 1.0, 30.0])), intercept)
    X, other = wild_rows(rng, n, d), wild_rows(rng, n, d)
    X[rng.integers(n)] = other[rng.integers(n)]
    y = targets(loss, rng, n + 1)
    D, D2 = (X, y[:n]), (X.copy(), y[:n].copy())
    i = int(rng.integers(n))
    D2[0][i], D2[1][i] = other[i], y[n]
    x, anchor = point(loss, rng, d + intercept, scale), point(loss, rng, d + intercept, scale)
    cap = float(rng.choice([1e-3, 0.1, 2 * CLIP]))
    with np.errstate(all="ignore"):
        a, b = (_rows(X, y, loss, row_map, dtype, csr) for X, y in (D, D2))
        without = _rows(np.delete(X, i, 0), np.delete(D[1], i, 0), loss, row_map, dtype, csr)
        sums = [rows.ask(ClippedGradient(CLIP), (x,), ALL) for rows in (a, b, without)]
        gaps = [rows.ask(GradientDifference(2 * CLIP), (x, anchor, cap), ALL) for rows in (a, b, without)]
    for (one, two, less), clip in ((sums, CLIP), (gaps, cap)):
        assert all(np.isfinite(total).all() for total in (one, two, less))
        assert moved(one, two) <= 2 * clip * SLACK
        assert moved(one, less) <= clip * SLACK


def _rows(X, y, loss, row_map, dtype, csr):
    X = np.clip(X, -3e38, 3e38).astype(dtype) if dtype is np.float32 else X
    return LocalRows(row_map.apply(sparse.csr_matrix(X) if csr else X), y, loss)


class TestTheBoundIsAttained:
    """Declared sensitivities are no larger than needed: the antipodal pair reaches them to one part in 10⁵."""

    n = 5

    def test_replace_one_gradient(self):
        a, b = (rows.ask(ClippedGradient(CLIP), (toys.ORIGIN,), ALL) for rows in toys.antipodal(self.n))
        assert 0.99999 * 2 * CLIP <= moved(a, b) <= 2 * CLIP

    def test_add_remove_gradient(self):
        a, b = (rows.ask(ClippedGradient(CLIP), (toys.ORIGIN,), ALL) for rows in toys.removed(self.n))
        assert 0.99999 * CLIP <= moved(a, b) <= CLIP

    @pytest.mark.parametrize("cap", [2 * CLIP, 0.1, 1e-9])
    def test_replace_one_difference(self, cap):
        a, b = (
            rows.ask(GradientDifference(2 * CLIP), (toys.POINT, toys.ANCHOR, cap), ALL) for rows in toys.tilted(self.n)
        )
        assert 0.9999 * 2 * cap <= moved(a, b) <= 2 * cap

    def test_gradients_clipped_one_by_one_would_need_4l(self):
        """Without the second clip the difference of two clipped gradients reaches 2l a record."""
        a, b = (
            rows.ask(GradientDifference(2 * CLIP), (toys.POINT, toys.ANCHOR, np.inf), ALL)
            for rows in toys.tilted(self.n)
        )
        assert moved(a, b) >= 0.9999 * 4 * CLIP

    @pytest.mark.parametrize("eta", [0.1, 1.0, 5.0])
    def test_mpadmm_moves_its_model_by_2_l_eta_over_n(self, eta):
        beta, n = 0.5, self.n
        problem = Problem(Huber(CLIP), L1(1e-3), Constraint.identity(1), row_norm=0.1)
        solver = MPADMM(1, eta, beta)
        clip = CLIP * 0.1
        xs = []
        for sign in (1.0, -1.0):
            X = np.full((n, 1), 0.1)
            rows = LocalRows(X, np.array([-toys.FAR * sign] + [0.0] * (n - 1)), Huber(CLIP))
            xs.append(solver.update(solver.init(problem), problem, NoiselessOracle(rows)).point.x)
        declared = 2 * clip * eta / (n * (1 + eta * beta))
        assert solver.model_gain(problem) == pytest.approx(eta / (1 + eta * beta))
        assert 0.999 * declared <= moved(*xs) <= declared * SLACK


class TestFloatingPointTraps:
    def test_one_row_of_a_million_features_in_float32(self):
        """Sequential float32 accumulation would put the norm of this row at 1.0 instead of 1.0198."""
        d = 1_000_000
        X = np.full((1, d), np.float32(1.0198 / math.sqrt(d)))
        for table in (X, sparse.csr_matrix(X)):
            rows = LocalRows(table, np.array([-toys.FAR]), Squared())
            size = np.linalg.norm(rows.ask(ClippedGradient(CLIP), (np.zeros(d),), ALL))
            assert 0.99999 * CLIP <= size <= CLIP

    @pytest.mark.parametrize("csr", [False, True])
    @pytest.mark.parametrize("group", [1, 4, 8])
    def test_rounding_of_a_long_float32_sum_does_not_depend_on_one_record(self, csr, group):
        """At 2ᵏ the spacing of float32 doubles: below it tiny terms are rounded up, above it they are lost.

        One record decides on which side 2¹⁶ half-clip contributions end, and with it the fate of all later ones.
        """
        k, later, d = 15, 50_000, 4
        spacing = 2.0 ** (k - 23)
        sums = []
        for first in (0.0, spacing):
            size = np.concatenate([np.full(2 ** (k + 1), 0.5), [first], np.zeros(31), np.full(later, -0.3 * spacing)])
            size[-later:] /= group
            X = np.full((len(size), d), 1 / math.sqrt(d), dtype=np.float32)
            rows = LocalRows(sparse.csr_matrix(X) if csr else X, -size, Squared())
            sums.append(rows.ask(ClippedGradient(1.0), (np.zeros(d),), ALL))
        assert moved(*sums) <= 2.0

    def test_float32_batches_of_random_rows(self):
        rng = np.random.default_rng(0)
        n = 10_000
        target = -rng.uniform(0, 1, n)
        X = sparse.csr_matrix(np.ones((n, 1), dtype=np.float32))
        sums = []
        for first in (-1.0, 1.0):
            target[0] = first
            sums.append(LocalRows(X, target, Squared()).ask(ClippedGradient(1.0), (np.zeros(1),), ALL))
        assert moved(*sums) <= 2.0

    def test_duplicate_entries_of_a_csr_matrix_count_once_in_the_norm(self):
        """0.6 + 0.6 in one cell is a row of norm 1.2, not of norm 0.85."""
        X = sparse.csr_matrix((np.array([0.6, 0.6]), np.array([0, 0]), np.array([0, 2])), shape=(1, 1))
        for table in (X.copy(), RowMap(10.0, intercept=False).apply(X)):
            rows = LocalRows(table, np.array([-toys.FAR]), Squared())
            assert abs(rows.ask(ClippedGradient(CLIP), (np.zeros(1),), ALL)[0]) <= CLIP

    @pytest.mark.parametrize("clip", [0.0, 5e-324, 1e-320, 1e-300, 1e-44, 1e-38])
    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_tiny_clips_are_still_clips(self, clip, dtype):
        rows = LocalRows(np.array([[0.6, 0.8]], dtype=dtype), np.array([-1.0]), Squared())
        total = rows.ask(ClippedGradient(clip), (np.zeros(2),), ALL)
        assert np.hypot(*total) <= clip

    @pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
    @pytest.mark.parametrize("csr", [False, True])
    def test_a_row_with_a_non_finite_entry_contributes_nothing(self, bad, csr):
        X = np.array([[bad, 1.0], [1.0, 1.0]])
        mapped = RowMap(1.0, intercept=True).apply(sparse.csr_matrix(X) if csr else X)
        clean = RowMap(1.0, intercept=True).apply(X[1:])
        both, alone = (LocalRows(table, np.full(table.shape[0], 9.0), Squared()) for table in (mapped, clean))
        np.testing.assert_array_equal(
            both.ask(ClippedGradient(1.0), (np.zeros(3),), ALL), alone.ask(ClippedGradient(1.0), (np.zeros(3),), ALL)
        )

    def test_the_intercept_counts_in_the_norm(self):
        mapped = RowMap(1.0, intercept=True).apply(np.array([[1e-12], [1.0], [1e300]]))
        assert np.linalg.norm(mapped, axis=1) == pytest.approx([1.0, 1.0, 1.0])
        for i in range(3):
            rows = LocalRows(mapped[i : i + 1], np.array([-toys.FAR]), Squared())
            assert np.linalg.norm(rows.ask(ClippedGradient(CLIP), (np.zeros(2),), ALL)) <= CLIP

    def test_an_intercept_left_out_of_the_norm_would_be_caught(self):
        """Mutant: norms of the features alone."""
        rows = LocalRows(np.array([[0.6, 0.8]]), np.array([-toys.FAR]), Squared())
        rows._norms = np.array([0.6])
        assert np.linalg.norm(rows.ask(ClippedGradient(CLIP), (np.zeros(2),), ALL)) > CLIP

    def test_giant_residuals_keep_their_direction_and_lose_their_size(self):
        X = np.array([[3.0, 4.0]]) / 5
        total = LocalRows(X, np.array([1e300]), Squared()).ask(ClippedGradient(CLIP), (np.zeros(2),), ALL)
        np.testing.assert_allclose(total, -CLIP * X[0], rtol=1e-5)

    @pytest.mark.parametrize("clip", [1e-40, 1e-15, 0.37])
    @pytest.mark.parametrize("target", [1e270, 1.2e308, 1.7e308])
    def test_residuals_beyond_any_scale_do_not_pass_the_clip(self, clip, target):
        """The scale that would shorten them is a subnormal number, whose rounding is not relative."""
        rows = LocalRows(np.ones((1, 1)), np.array([target]), Squared())
        asked = (
            rows.ask(ClippedGradient(clip), (np.zeros(1),), ALL),
            rows.ask(GradientDifference(2.0), (np.zeros(1), np.ones(1), clip), ALL),
        )
        assert max(abs(total[0]) for total in asked) <= clip

    def test_coordinates_that_stretch_rows_too_far_are_refused(self):
        """A long row that was scaled down, and a slope clipped by a norm of 1e90: their product is subnormal."""
        rows = LocalRows(PackedRows.of(RowMap(1e30, False), np.array([[4.1e173]])), np.array([1.0]), Logistic(), 1e30)
        with pytest.raises(QueryRefused, match="stretch rows"):
            rows.transformed(np.eye(1) * 1e60)
        seen = rows.transformed(np.eye(1) * 1e20)
        assert abs(seen.ask(ClippedGradient(SMALLEST_CLIP), (np.zeros(1),), ALL)[0]) <= SMALLEST_CLIP

    def test_vector_slopes_are_clipped_by_their_joint_norm(self):
        slopes = np.array([[3e200, 4e200], [np.nan, 1.0], [0.0, 0.0], [1e-3, 0.0]])
        clipped = clip_slopes(slopes, np.array([2.0, 1.0, 1.0, 1.0]), 1.0)
        np.testing.assert_allclose(clipped, [[0.3, 0.4], [0.0, 1.0], [0.0, 0.0], [1e-3, 0.0]], rtol=2e-6)

    def test_an_empty_batch_sums_to_zero(self):
        nobody = Batch(np.array([], dtype=np.intp))
        for loss in LOSSES:
            rng = np.random.default_rng(0)
            for X in (np.ones((4, 2)), sparse.csr_matrix(np.ones((4, 2)))):
                rows = LocalRows(X, targets(loss, rng, 4), loss)
                x = point(loss, rng, 2, 1.0)
                assert not rows.ask(ClippedGradient(1.0), (x,), nobody).any()
                assert not rows.ask(GradientDifference(2.0), (x, x + 1, 1.0), nobody).any()


class TestAdversarialSearch:
    """Hill climbing on one record for the largest move: it approaches the bound and never passes it."""

    @pytest.mark.parametrize("loss", [Logistic(), Squared(), Softmax(3)])
    def test_search(self, loss):
        rng = np.random.default_rng(3)
        d = 3
        x = point(loss, rng, d, 3.0)
        best = 0.0
        for _ in range(300):
            X = RowMap(1.0, intercept=False).apply(rng.normal(size=(2, d)) * 10.0 ** rng.integers(-2, 3))
            y = targets(loss, rng, 2)
            one, two = (
                LocalRows(X[i : i + 1], y[i : i + 1], loss).ask(ClippedGradient(CLIP), (x,), ALL) for i in (0, 1)
            )
            best = max(best, moved(one, two))
        assert 0.8 * 2 * CLIP <= best <= 2 * CLIP


class TestReleasedCoordinates:
    """Rows seen through P: the bound holds for the exact Pᵀ row, however badly P is conditioned."""

    @pytest.mark.parametrize("decades", [0, 3, 8, 14])
    @pytest.mark.parametrize("csr", [False, True])
    def test_no_contribution_exceeds_the_clip(self, decades, csr):
        rng = np.random.default_rng(decades)
        d = 12
        left, right = (np.linalg.qr(rng.standard_normal((d, d)))[0] for _ in range(2))
        P = (left * np.logspace(-decades, 0, d)) @ right
        worst = 0.0
        for direction in range(d):
            row = (left[:, direction] + 1e-9 * rng.standard_normal(d))[None]
            rows = LocalRows(sparse.csr_matrix(row) if csr else row, np.array([-toys.FAR * 1e12]), Squared())
            seen = rows.transformed(P)
            raw = rows.transformed(P)
            raw._matrix, raw._norms = None, seen._norms
            # The contribution before Pᵀ is applied, then Pᵀ in extended precision.
            before = raw.ask(ClippedGradient(CLIP), (np.zeros(d),), ALL).astype(np.longdouble)
            worst = max(worst, float(np.sqrt(((P.T.astype(np.longdouble) @ before) ** 2).sum())))
        assert worst <= CLIP
        assert worst >= 0.99 * CLIP

    def test_rows_are_not_copied(self):
        X = np.ones((50, 3))
        rows = LocalRows(X, np.ones(50), Logistic())
        assert np.shares_memory(rows.transformed(np.eye(3))._X, X)


TINY = [1e-120, 1e-140, 1e-170, 1e-300, 1e-323, 5e-324]
FARTHEST = [1e200, 1e308]
"""Targets against which a row so short still contributes, if its norm is not what it should be."""


def _on_cpu_tensor(X, target, row_map):
    torch = pytest.importorskip("torch")
    from dpadmm.rows.torch_rows import TorchRows
    from dpadmm.rows.torch_table import pack_tensor

    return TorchRows(pack_tensor(row_map, torch.tensor(X)), target, Squared(), row_map.row_norm)


PLACES = {
    "dense": lambda X, target, row_map: LocalRows(PackedRows.of(row_map, X), target, Squared(), row_map.row_norm),
    "csr": lambda X, target, row_map: LocalRows(
        PackedRows.of(row_map, sparse.csr_matrix(X)), target, Squared(), row_map.row_norm
    ),
    "mapped": lambda X, target, row_map: LocalRows(row_map.apply(X), target, Squared()),
    "tensor": _on_cpu_tensor,
    "lattice": lambda X, target, row_map: LatticeRows(
        PackedRows.of(row_map, X), target, Squared(), row_map.row_norm, 10
    ),
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("clip", [1.0, 1e-20])
class TestUnderflow:
    """A norm whose squares are below all numbers is no norm of zero: its row would not be clipped."""

    d = 5

    def _largest(self, place, row_map, clip, change=None):
        sizes = []
        for target, tiny in product(FARTHEST, TINY):
            # Entries of one size and of many.
            for shape in (np.ones(self.d), 10.0 ** -np.arange(self.d)):
                rows = PLACES[place]((tiny * shape)[None], np.array([target]), row_map)
                rows = rows if change is None else rows.transformed(change)
                x = np.zeros(self.d)
                asked = (
                    rows.ask(ClippedGradient(clip), (x,), ALL),
                    rows.ask(GradientDifference(2 * clip), (x, x + 1.0, clip), ALL),
                )
                sizes += [np.sqrt((as_numbers(total).astype(np.longdouble) ** 2).sum()) for total in asked]
        return max(sizes)

    def test_short_rows(self, place, clip):
        assert self._largest(place, RowMap(1.0, False), clip) <= clip

    @pytest.mark.parametrize("scale", [1e-30, 1.0, 1e3])
    def test_short_rows_in_other_coordinates(self, place, clip, scale):
        turned = scale * np.linalg.qr(np.random.default_rng(0).standard_normal((self.d, self.d)))[0]
        for change in (scale * np.eye(self.d), turned, turned * np.logspace(-140, 0, self.d)):
            assert self._largest(place, RowMap(1.0, False), clip, change) <= clip

    @pytest.mark.parametrize("upper", [1.0, 1e30])
    def test_short_rows_within_bounds(self, place, clip, upper):
        row_map = RowMap.declare(1.0, False, (0.0, upper), self.d)
        assert self._largest(place, row_map, clip) <= clip
