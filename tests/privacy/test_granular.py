"""Granular releases: rounding bounded, charged and put on a grid that only public numbers choose."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse, stats

from dpadmm import kernels
from dpadmm.errors import QueryRefused
from dpadmm.kernels.numpy_kernels import on_grid
from dpadmm.kernels.threads import LONGEST_RUN, sum_in_chunks
from dpadmm.oracles.gate import Gate
from dpadmm.oracles.hidden_walk import Walk
from dpadmm.oracles.private import PrivateOracle
from dpadmm.privacy import arithmetic
from dpadmm.privacy.budget import Budget, Relation
from dpadmm.privacy.passage import Passage
from dpadmm.privacy.plan import Plan, Query
from dpadmm.privacy.questions import GRADIENT, ClippedGradient, HiddenWalk
from dpadmm.privacy.sampling import Batch, Everything, Permutation
from dpadmm.privacy.state_grid import Footing
from dpadmm.problem import Logistic
from dpadmm.problem.constraints import Constraint
from dpadmm.problem.hidden_pass_program import Program
from dpadmm.problem.problem import Problem
from dpadmm.problem.regularizers import Zero
from dpadmm.problem.rowmap import RowMap
from dpadmm.randomness import make_streams
from dpadmm.rows.local import LocalRows
from dpadmm.rows.packed import PackedRows
from dpadmm.rows.wide import scaled_blocks
from tests.asking import answering

from .alarms import require, two_sided

ALL = Batch(None)


def plan_of(n, multiplier=2.0, clip=1.0, count=1, relation=Relation.REPLACE_ONE):
    query = Query("gradient", count, clip, Everything(), float(n), multiplier, ClippedGradient(clip))
    return Plan(Budget(1.0, 1e-5, relation), n, (query,), "gaussian", 1.0, "none")


def rows_of(total, n):
    return answering(total, n)


def contributions(X, y, clip, point):
    """Each row's contribution as computed when it is alone."""
    return np.array(
        [
            LocalRows(X[i : i + 1], y[i : i + 1], Logistic()).ask(ClippedGradient(clip), (point,), ALL)
            for i in range(len(X))
        ]
    )


class TestOneContribution:
    @settings(max_examples=60, deadline=None)
    @given(
        seed=st.integers(0, 2**32 - 1),
        dtype=st.sampled_from([np.float32, np.float64]),
        engine=st.sampled_from(["numpy", "compiled"]),
        clip=st.sampled_from([1e-90, 0.3, 1.0, 7.0]),
    )
    def test_a_computed_contribution_stays_within_the_clip(self, seed, dtype, engine, clip):
        """Also just at the clip, with entries chosen so that as many roundings as possible go up."""
        rng = np.random.default_rng(seed)
        d = int(rng.integers(1, 400))
        X = (rng.choice([1.0, 1 + 2.0**-20, 1 / 3], (1, d)) * 10.0 ** rng.integers(-3, 3)).astype(dtype)
        with kernels.use(engine):
            total = LocalRows(X, np.array([-1.0]), Logistic()).ask(ClippedGradient(clip), (50 * np.ones(d),), ALL)
        exact = math.sqrt(math.fsum((total / clip) ** 2))
        assert exact <= 1.0


class TestSummation:
    @pytest.mark.parametrize("engine", ["numpy", "compiled"])
    @pytest.mark.parametrize("kind", ["dense", "float32", "csr"])
    def test_the_error_of_a_sum_is_within_the_bound(self, engine, kind):
        """Contributions of full size that cancel, with digits that cannot all be kept, against the exact sum."""
        rng = np.random.default_rng(0)
        n, d, clip = 4000, 3, 1.0
        X = rng.choice([1 / 3, 1 / 7, 1 / 11], (n, d)) * np.repeat([1.0, 1e-6], n // 2)[:, None]
        X = X.astype(np.float32) if kind == "float32" else X
        y = np.where(np.arange(n) % 2, 1.0, -1.0)
        with kernels.use(engine):
            single = contributions(X, y, clip, np.zeros(d))
            made = sparse.csr_matrix(X) if kind == "csr" else X
            total = LocalRows(made, y, Logistic()).ask(ClippedGradient(clip), (np.zeros(d),), ALL)
        error = [abs(math.fsum([*single[:, j], -total[j]])) for j in range(d)]
        bound = arithmetic.summation_error(n, d) * clip
        assert np.linalg.norm(error) <= bound
        assert bound <= 1e-6

    def test_a_long_run_in_the_worst_order_stays_within_the_bound(self):
        """Equal terms added one by one: their roundings all go the same way for long stretches."""
        n = 3 * LONGEST_RUN
        values = np.full(n, 1.0 + 3 * 2.0**-52)
        total = sum_in_chunks(lambda a, b: _one_by_one(values[a:b]), n, 1, False)
        exact = math.fsum(values)
        assert abs(total[0] - exact) <= arithmetic.summation_error(n, 1) * values[0]
        assert abs(total[0] - exact) > 0

    def test_runs_are_as_short_as_the_bound_assumes(self):
        for n, width in ((10**6, 1), (10**6, 54), (3 * 10**5, 785), (LONGEST_RUN + 1, 1), (7, 10**7), (60, 10**7)):
            seen = []
            sum_in_chunks(lambda a, b, seen=seen: seen.append(b - a) or np.zeros(1), n, width, False)
            shortest = max(1, min(LONGEST_RUN, arithmetic.BLOCK_ENTRIES // (width + 1)))
            assert sum(seen) == n
            assert min(seen) > 0
            assert max(seen) <= LONGEST_RUN
            assert len(seen) <= math.ceil(n / shortest)

    @pytest.mark.parametrize(
        ("n", "width", "features"),
        [(49_749, 11, 301), (200_000, 63, 50_001), (3 * LONGEST_RUN, 1, 4), (10**5, 784, 785), (10**6, 3, 10**6)],
    )
    def test_runs_of_sparse_rows_are_as_few_as_the_bound_assumes(self, n, width, features):
        seen = []
        sum_in_chunks(lambda a, b: seen.append(b - a) or np.zeros(1), n, width, False, 8, features)
        assert sum(seen) == n
        assert min(seen) > 0
        assert max(seen) <= LONGEST_RUN
        assert len(seen) <= math.ceil(n / arithmetic.shortest_run(features))

    @pytest.mark.parametrize(
        ("n", "d", "density"), [(70_000, 3, 0.4), (3000, 500, 0.05), (700, 2000, 1.0), (9, 200_000, 1e-4)]
    )
    @pytest.mark.parametrize("kind", ["dense", "csr"])
    def test_blocks_of_a_wide_table_are_as_few_as_the_bound_assumes(self, n, d, density, kind):
        X = sparse.random(n, d, density, "csr", random_state=0)
        table = PackedRows.of(RowMap(), X if kind == "csr" else X.toarray())
        lengths = [block.stop - block.start for _, block in scaled_blocks(table)]
        assert sum(lengths) == n
        assert max(lengths) <= LONGEST_RUN
        assert len(lengths) <= math.ceil(n / max(1, min(LONGEST_RUN, arithmetic.BLOCK_ENTRIES // (d + 2))))

    @pytest.mark.parametrize("rows", ["batch", "everything"])
    def test_rows_are_summed_in_short_runs(self, rows, monkeypatch):
        """Batches too: a Poisson batch may be almost the whole table."""
        import dpadmm.rows.local as module

        lengths = []
        kept = module.numpy_kernels.dense_sum

        def watched(*args):
            lengths.append(args[10] - args[9])
            return kept(*args)

        monkeypatch.setattr(module.numpy_kernels, "dense_sum", watched)
        n = 2 * LONGEST_RUN + 5
        table = LocalRows(np.ones((n, 1)), np.ones(n), Logistic())
        with kernels.use("numpy"):
            table.ask(ClippedGradient(1.0), (np.zeros(1),), Batch(np.arange(n)) if rows == "batch" else ALL)
        assert sum(lengths) == n
        assert max(lengths) <= LONGEST_RUN

    def test_the_bound_grows_with_rows_width_and_condition(self):
        base = arithmetic.summation_error(10**6, 100)
        assert arithmetic.summation_error(10**7, 100) > 10 * base
        assert arithmetic.summation_error(10**6, 10_000) > base
        assert arithmetic.summation_error(10**6, 100, 50.0) == pytest.approx(50 * base)
        assert base < 1e-5


def _one_by_one(values):
    return np.array([np.add.accumulate(values)[-1]])


class TestCharge:
    @pytest.mark.parametrize("what", ["rows", "condition", "grid"])
    def test_the_noise_is_enlarged_by_the_slack(self, what):
        """Public numbers so extreme that the slack can be seen, and is there."""
        d = 20_000 if what != "condition" else 60
        n = 10**10 if what == "rows" else 2 * 10**8 if what == "condition" else 64
        plan = plan_of(n, 1e5 if what == "grid" else 1.0, count=400)
        total = np.zeros(d)
        quiet = rows_of(total, 64)
        quiet.transformed = lambda matrix: quiet
        oracle = PrivateOracle(quiet, Gate(plan), make_streams(0))
        rounding = arithmetic.summation_error(n, d)
        if what == "condition":
            oracle.change_coordinates(np.diag(np.geomspace(1.0, 1e3, d)))
            rounding = arithmetic.summation_error(n, d, 1e3)
        query = plan.queries[0]
        grid = 2.0 ** arithmetic.grid_exponent(1.0, query.noise_multiplier, n)
        slack = arithmetic.slack(rounding, grid, d, 1.0)
        assert slack > 0.1
        answers = np.array([oracle.ask(GRADIENT, np.zeros(d)) for _ in range(400 if what == "condition" else 1)]) * n
        residual = answers / (query.noise_multiplier * (1 + slack))
        require(two_sided((residual**2).sum(), stats.chi2(residual.size)), "variance")

    def test_usual_tables_pay_next_to_nothing(self):
        tables = (
            (48842, 105, 17.0, 1e-4),
            (581012, 55, 150.0, 3e-4),
            (60_000, 785, 100.0, 3e-4),
            (10**7, 100, 30.0, 5e-3),
        )
        for n, d, multiplier, most in tables:
            grid = 2.0 ** arithmetic.grid_exponent(1.0, multiplier, n)
            assert arithmetic.slack(arithmetic.summation_error(n, d, 30.0), grid, d, 1.0) < most

    def test_neighbouring_sums_move_no_further_than_charged(self):
        """The rounded sums, not the real ones, are what the noise must hide."""
        rng = np.random.default_rng(3)
        n, d, multiplier = 64, 500, 4.0
        grid = 2.0 ** arithmetic.grid_exponent(1.0, multiplier, n)
        worst = 0.0
        for _ in range(200):
            base, step = rng.normal(size=d), rng.normal(size=d)
            # Entries that round apart although they hardly differ.
            base = (np.rint(base / grid) + 0.5) * grid - 1e-3 * grid * np.sign(step)
            moved = base + 2e-3 * grid * np.sign(step)
            distance = np.linalg.norm(on_grid(base, grid) - on_grid(moved, grid)) * grid
            allowed = np.linalg.norm(moved - base) + grid * math.sqrt(d)
            assert distance <= allowed * (1 + 1e-12)
            worst = max(worst, distance / allowed)
        assert worst > 0.9


class TestGrid:
    @pytest.mark.parametrize("multiplier", [1e-3, 0.4, 1.0, 37.0, 1e6])
    @pytest.mark.parametrize("clip", [1e-60, 0.37, 5.0])
    def test_answers_are_whole_numbers_of_the_grid(self, multiplier, clip):
        n, d = 64, 300
        total = clip * np.random.default_rng(0).normal(size=d)
        answers = (
            PrivateOracle(rows_of(total, n), Gate(plan_of(n, multiplier, clip)), make_streams()).ask(
                GRADIENT, np.zeros(d)
            )
            * n
        )
        grid = 2.0 ** arithmetic.grid_exponent(clip, multiplier, n)
        np.testing.assert_array_equal(answers / grid, np.rint(answers / grid))
        assert grid <= multiplier * clip * 2.0**-24
        assert len(np.unique(answers)) > 0.9 * d

    def test_the_grid_is_chosen_by_public_numbers(self):
        """Two tables, one plan: the same grid, whatever the sums."""
        n, d = 64, 200
        for size in (0.0, 1e-9, 1.0, 64.0):
            total = np.full(d, size / 3)
            answers = PrivateOracle(rows_of(total, n), Gate(plan_of(n)), make_streams()).ask(GRADIENT, np.zeros(d)) * n
            counts = np.ldexp(answers, 23)
            np.testing.assert_array_equal(counts, np.rint(counts))

    @pytest.mark.parametrize("n", [10**3, 10**8, 10**12])
    def test_sums_and_noise_are_added_without_rounding(self, n):
        grid = 2.0 ** arithmetic.grid_exponent(1.0, 3.0, n)
        assert 2 * n / grid + 40 * 3.0 / grid < 2**53

    def test_noise_on_the_grid_is_the_rounded_noise(self):
        """rint(v + noise) = v + rint(noise) for v on the grid: post-processing of the Gaussian release."""
        rng = np.random.default_rng(0)
        v = np.rint(rng.normal(size=10_000) * 1e6)
        noise = rng.normal(size=10_000) * 1e5
        np.testing.assert_array_equal(np.rint(v + noise), v + np.rint(noise))


class TestSecretRowCount:
    def test_far_more_rows_than_declared_are_refused(self):
        plan = plan_of(10, relation=Relation.ADD_REMOVE)
        PrivateOracle(rows_of(np.zeros(2), 40), Gate(plan), make_streams())
        with pytest.raises(QueryRefused, match="declared") as refusal:
            PrivateOracle(rows_of(np.zeros(2), 41), Gate(plan), make_streams())
        assert "41" not in str(refusal.value)

    def test_the_noise_does_not_depend_on_the_actual_number(self):
        plan = plan_of(10**9, relation=Relation.ADD_REMOVE)
        drawn = [
            PrivateOracle(rows_of(np.zeros(50), n), Gate(plan), make_streams(1)).ask(GRADIENT, np.zeros(50))
            for n in (5, 9999)
        ]
        np.testing.assert_array_equal(*drawn)


def test_oblong_coordinates_are_refused():
    """A row may be long where a short P cannot see it, and its rounding then is not bounded by the clip."""
    rows = LocalRows(RowMap(1.0, False).apply(np.eye(3)), np.ones(3), Logistic())
    oracle = PrivateOracle(rows, Gate(plan_of(3)), make_streams())
    with pytest.raises(QueryRefused, match="square"):
        oracle.change_coordinates(np.eye(3)[:, :2])


def test_a_plan_in_another_arithmetic_is_refused():
    plan = replace(plan_of(4), arithmetic=arithmetic.Arithmetic.EXACT)
    with pytest.raises(QueryRefused, match="arithmetic"):
        PrivateOracle(rows_of(np.zeros(2), 4), Gate(plan), make_streams()).ask(GRADIENT, np.zeros(2))


@pytest.mark.parametrize("engine", ["numpy", "compiled"])
@pytest.mark.parametrize("drawn", [0.0, -0.0, -1e-12])
def test_a_zero_is_released_without_the_sign_of_what_was_rounded_to_it(engine, drawn):
    """The sign of a sum below half the grid is a digit finer than the grid."""
    silent = SimpleNamespace(noise=SimpleNamespace(standard_normal=lambda shape: np.full(shape, drawn)), sampling=None)
    total = np.array([0.0, -0.0, 1e-300, -1e-300, -1e-12])
    oracle = PrivateOracle(rows_of(total, 9), Gate(plan_of(9)), silent)
    with kernels.use(engine):
        answer = oracle.ask(GRADIENT, np.zeros(5))
    assert not answer.any()
    assert not np.signbit(answer).any()


def test_hidden_passes_release_zeros_without_a_sign():
    program = Program(Problem(Logistic(), Zero(), Constraint.identity(3)), 0.5, 1.0)
    query = Query(
        "noisy pass", 1, 0.5, Permutation(2), 2.0, 1.0, HiddenWalk(0.5, Passage.of(Footing.of(program, 2, 1, 0.5)))
    )
    walk = Walk(LocalRows(np.zeros((2, 3)), np.ones(2), Logistic()), query, program)
    with mock.patch.object(Walk, "_passed", return_value=(np.array([-0.0, 1.0]), np.array([[-0.0]]))):
        x, dual = walk.last_state(make_streams(), None)
    assert not np.signbit(x).any()
    assert not np.signbit(dual).any()
