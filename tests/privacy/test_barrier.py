"""The barrier refuses what the plan does not contain, before a row is read, and promised equals performed."""

from __future__ import annotations

import contextlib
import copy
import json
import math
import pickle
import sys
import threading
from dataclasses import replace
from types import SimpleNamespace

import dp_accounting
import numpy as np
import pytest
from dp_accounting.pld import PLDAccountant, pld_pmf
from dp_accounting.pld import privacy_loss_distribution as pld
from scipy.stats import chi2, norm

from dpadmm import DPLogisticRegression
from dpadmm.errors import DpadmmError, PrivacyError, PromiseBroken, QueryRefused
from dpadmm.oracles.gate import Gate
from dpadmm.oracles.private import PrivateOracle
from dpadmm.privacy.budget import Budget
from dpadmm.privacy.calibration import calibrate
from dpadmm.privacy.plan import Plan, Request
from dpadmm.privacy.plan_facts import query_facts
from dpadmm.privacy.questions import (
    CURVATURE,
    DIFFERENCE,
    GRADIENT,
    SNAPSHOT,
    ClippedGradient,
    FeatureCurvature,
    Kind,
    SecondMoment,
    Space,
)
from dpadmm.privacy.questions.base import LARGEST_POINT
from dpadmm.privacy.sampling import Everything, make_sampler
from dpadmm.privacy.wording import sentence
from dpadmm.problem import L1, Constraint, HuberisedHinge, Logistic, Problem, Softmax, Squared
from dpadmm.randomness import make_streams
from dpadmm.rows.local import LocalRows
from dpadmm.solvers import SOLVERS, Setting, run
from dpadmm.solvers.full_admm import FullADMM
from dpadmm.solvers.vradmm import VRADMM
from tests.asking import EVERY_ROW, answering

from . import toys

X0 = np.zeros(2)


class Untouchable:
    """Rows that may not be read."""

    n_rows, space = 8, Space((2,), 2)

    def ask(self, question, at, batch):
        raise AssertionError("a row was read")


@pytest.fixture
def plan():
    return toys.make_vr_plan("poisson", 8, 4)


def oracle(plan, rows=None):
    return PrivateOracle(toys.tilted(8)[0] if rows is None else rows, Gate(plan), make_streams(0))


class TestRefusals:
    def test_the_query_after_the_last(self, plan):
        asked = oracle(plan)
        asked.ask(SNAPSHOT, X0)
        with pytest.raises(QueryRefused, match="all 1 planned"):
            asked.ask(SNAPSHOT, X0)
        asked.ask(DIFFERENCE, X0 + 1, X0, 0.5)
        with pytest.raises(QueryRefused):
            asked.ask(DIFFERENCE, X0 + 1, X0, 0.5)

    def test_a_difference_that_reads_nothing_still_counts(self, plan):
        asked = oracle(plan, Untouchable())
        assert not asked.ask(DIFFERENCE, X0, X0, 0.0).any()
        with pytest.raises(QueryRefused):
            asked.ask(DIFFERENCE, X0, X0, 0.0)

    def test_unknown_kinds(self, plan):
        for kind in ("gradient", "hessian", ""):
            with pytest.raises(QueryRefused, match="contains no"):
                oracle(plan, Untouchable()).ask(Kind(kind), X0)

    @pytest.mark.parametrize("multiplier", [0.0, -1.0, math.nan, math.inf, 5e-324 * 0])
    def test_queries_without_noise(self, plan, multiplier):
        silent = replace(plan, queries=tuple(replace(query, noise_multiplier=multiplier) for query in plan.queries))
        with pytest.raises(QueryRefused, match="without noise"):
            oracle(silent, Untouchable()).ask(SNAPSHOT, X0)
        with pytest.raises(QueryRefused, match="without noise"):
            oracle(silent, Untouchable()).ask(DIFFERENCE, X0, X0, 0.0)

    @pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 10 * LARGEST_POINT, -10 * LARGEST_POINT])
    def test_points_that_are_not_finite_or_huge(self, plan, bad):
        point = np.array([0.0, bad])
        for ask in (
            lambda asked: asked.ask(SNAPSHOT, point),
            lambda asked: asked.ask(DIFFERENCE, point, X0, 0.5),
            lambda asked: asked.ask(DIFFERENCE, X0, point, 0.5),
        ):
            with pytest.raises(DpadmmError):
                ask(oracle(plan, Untouchable()))

    @pytest.mark.parametrize("clip", [-1e-9, 2.0000001, math.nan, math.inf, -math.inf])
    def test_clips_outside_the_plan(self, plan, clip):
        with pytest.raises(QueryRefused, match="clip"):
            oracle(plan, Untouchable()).ask(DIFFERENCE, X0, X0, clip)

    def test_a_smaller_clip_only_where_the_plan_says_so(self, plan):
        with pytest.raises(QueryRefused, match="asked at one point"):
            oracle(plan, Untouchable()).ask(SNAPSHOT, X0, X0, 0.5)

    def test_an_empty_table(self, plan):
        with pytest.raises(QueryRefused):
            oracle(plan, SimpleNamespace(n_rows=0))

    @pytest.mark.parametrize("shape", [(2, 1), (1, 2), (2, 3), (1,), (3,), (), (2, 1, 1)])
    @pytest.mark.parametrize("where", [0, 1])
    def test_points_of_another_shape(self, plan, shape, where):
        """A column vector would be broadcast against the targets: every row would then carry every label."""
        points = [X0 + 1, X0]
        points[where] = np.ones(shape)
        with pytest.raises(DpadmmError):
            oracle(plan).ask(DIFFERENCE, *points, 0.5)
        with pytest.raises(DpadmmError):
            oracle(plan).ask(SNAPSHOT, np.ones(shape))

    def test_vectors_where_the_loss_has_several_outputs(self, plan):
        rows = LocalRows(np.ones((8, 2)), np.zeros(8, dtype=int), Softmax(3))
        for shape in ((2,), (2, 1), (2, 2), (2, 4)):
            with pytest.raises(DpadmmError):
                oracle(plan, rows).ask(SNAPSHOT, np.ones(shape))

    def test_two_threads_never_share_noise_or_the_last_query(self):
        """Two answers with the same noise differ by exact data; two answers to one planned query cost twice."""
        count, d, threads = 2000, 50, 8
        plan = toys.make_plan("full", 8, 8, count=count)
        rows = answering(np.zeros(d), 8)
        asked, answers = PrivateOracle(rows, Gate(plan), make_streams(0)), []

        def ask():
            with contextlib.suppress(QueryRefused):
                while True:
                    answers.append(asked.ask(GRADIENT, np.zeros(d)))

        pool = [threading.Thread(target=ask) for _ in range(threads)]
        usual = sys.getswitchinterval()
        sys.setswitchinterval(1e-6)
        try:
            for thread in pool:
                thread.start()
            for thread in pool:
                thread.join()
        finally:
            sys.setswitchinterval(usual)
        # Answers lie on a grid of some 10⁷ likely values: single ones agree by chance, three in a row do not.
        runs = np.lib.stride_tricks.sliding_window_view(np.array(answers), 3, axis=1).reshape(-1, 3)
        assert len(np.unique(runs, axis=0)) == len(runs)
        assert len(answers) == count


def curvature_plan(count=1, relation="replace-one"):
    request = Request("curvature", count, FeatureCurvature())
    return calibrate(Budget(1.0, 0.05, relation), [request], Everything(), 8, cache=False)


class TestCurvatures:
    ones = np.ones(2)

    @pytest.mark.parametrize("shape", [(), (1,), (3,), (2, 1), (1, 2), (2, 2)])
    def test_points_and_weights_of_another_shape(self, shape):
        for x, weights in ((np.ones(shape), self.ones), (self.ones, np.ones(shape)), (np.ones(shape), np.ones(shape))):
            with pytest.raises(QueryRefused, match="one weight a feature"):
                oracle(curvature_plan(), Untouchable()).ask(CURVATURE, x, weights)

    @pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 10 * LARGEST_POINT, -10 * LARGEST_POINT])
    def test_points_that_are_not_finite_or_huge(self, bad):
        with pytest.raises(QueryRefused, match="finite point"):
            oracle(curvature_plan(), Untouchable()).ask(CURVATURE, np.array([0.0, bad]), self.ones)

    @pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, -1.0, -5e-324])
    def test_weights_that_are_negative_or_not_finite(self, bad):
        with pytest.raises(QueryRefused, match="finite weights"):
            oracle(curvature_plan(), Untouchable()).ask(CURVATURE, self.ones, np.array([1.0, bad]))

    @pytest.mark.parametrize("row_norm", [1.0, 1e20])
    def test_weights_that_stretch_rows_too_far(self, row_norm):
        rows = LocalRows(np.ones((8, 2)), np.ones(8), Logistic(), row_norm)
        oracle(curvature_plan(), rows).ask(CURVATURE, X0, np.full(2, 1e99 / row_norm**2))
        with pytest.raises(QueryRefused, match="too far"):
            oracle(curvature_plan(), rows).ask(CURVATURE, X0, np.full(2, 1e101 / row_norm**2))

    @pytest.mark.parametrize("loss", [Squared(), HuberisedHinge(), Softmax(3)], ids=lambda loss: loss.name)
    def test_other_losses(self, loss):
        rows = LocalRows(np.ones((8, 2)), np.zeros(8, dtype=int), loss)
        with pytest.raises(QueryRefused):
            oracle(curvature_plan(), rows).ask(CURVATURE, X0, self.ones)

    def test_a_plan_of_another_statistic_or_of_less_than_its_reach(self):
        plan = curvature_plan()
        (query,) = plan.queries
        for change in (
            {"question": SecondMoment()},
            {"question": ClippedGradient(1.0)},
            {"clip_norm": 0.7},
            {"sampler": make_sampler("poisson", 8, 4)},
            {"noise_multiplier": 0.0},
        ):
            broken = replace(plan, queries=(replace(query, **change),))
            with pytest.raises(QueryRefused):
                oracle(broken, Untouchable()).ask(CURVATURE, X0, self.ones)

    def test_add_remove_takes_more_noise_for_the_same_multiplier(self):
        assert curvature_plan(relation="add-remove").queries[0].clip_norm == 1.0
        assert curvature_plan().queries[0].clip_norm == pytest.approx(math.sqrt(0.5))

    def test_as_often_as_planned_and_no_more(self):
        plan = curvature_plan(count=2)
        asked = oracle(plan, LocalRows(np.ones((8, 2)), np.ones(8), Logistic()))
        asked.ask(CURVATURE, X0, self.ones)
        with pytest.raises(PromiseBroken):
            asked.require_promise_kept()
        asked.ask(CURVATURE, X0 + 1, self.ones)
        asked.require_promise_kept()
        assert asked.spent == plan.event
        with pytest.raises(QueryRefused, match="all 2 planned"):
            asked.ask(CURVATURE, X0, self.ones)

    def test_a_question_that_says_it_moves_less_is_clipped_to_what_it_says(self):
        class Cheap(FeatureCurvature):
            def reach(self, relation):
                return 1e-3

        rows = LocalRows(np.ones((8, 2)), np.ones(8), Logistic())
        assert np.linalg.norm(rows.ask(Cheap(), (X0, self.ones), EVERY_ROW)) <= 8e-3
        assert np.linalg.norm(rows.ask(FeatureCurvature(), (X0, self.ones), EVERY_ROW)) > 1

    def test_a_question_that_the_place_refuses_is_not_charged_and_one_that_rows_refuse_is(self):
        asked = oracle(curvature_plan(), LocalRows(np.ones((8, 2)), np.ones(8), Logistic()))
        with pytest.raises(QueryRefused, match="at least zero"):
            asked.ask(CURVATURE, X0, -self.ones)
        with pytest.raises(QueryRefused, match="too far"):
            asked.ask(CURVATURE, X0, np.full(2, 1e101))
        with pytest.raises(QueryRefused, match="all 1 planned"):
            asked.ask(CURVATURE, X0, self.ones)

    def test_rows_are_those_of_the_table_whatever_the_coordinates(self):
        rows = LocalRows(np.random.default_rng(0).normal(size=(8, 2)), np.ones(8), Logistic())
        asked, seen = oracle(curvature_plan(), rows), []
        asked._mechanism.release = lambda total, query, clip, gate: seen.append(total) or total
        asked.change_coordinates(np.array([[3.0, 1.0], [0.0, 1.0]]))
        asked.ask(CURVATURE, X0 + 1, 5 * self.ones)
        np.testing.assert_array_equal(seen[0], rows.ask(FeatureCurvature(), (X0 + 1, 5 * self.ones), EVERY_ROW))

    def test_answers_carry_the_planned_noise(self):
        d, plan, rng = 4000, curvature_plan(), np.random.default_rng(0)
        rows, weights = LocalRows(rng.normal(size=(8, d)), np.ones(8), Logistic()), np.full(d, 3.0)
        query = plan.queries[0]
        answer = oracle(plan, rows).ask(CURVATURE, np.zeros(d), weights) * query.denominator
        residual = (answer - rows.ask(FeatureCurvature(), (np.zeros(d), weights), EVERY_ROW)) / (
            query.noise_multiplier * query.clip_norm
        )
        assert chi2.ppf(1e-9, d) <= residual @ residual <= chi2.isf(1e-9, d)

    def test_the_plan_is_stored_and_read_again_and_the_statement_names_the_query(self):
        plan = curvature_plan()
        again = Plan.from_dict(json.loads(json.dumps(plan.to_dict())))
        assert again == plan
        words = sentence.query(query_facts(plan.queries[0], plan))
        assert "1 noisy curvature release (sum of row squared entrywise times the curvature of its loss" in words
        assert "one row can move by at most 1.415" in words


class TestPromise:
    problem = Problem(Logistic(), L1(0.01), Constraint.identity(2))

    def plan(self, solver):
        return calibrate(Budget(1.0, 0.05), solver.requests(self.problem, 0.5), make_sampler("full", 8, 8), 8)

    @pytest.mark.parametrize(("asks", "error"), [(2, PromiseBroken), (4, QueryRefused), (0, PromiseBroken)])
    def test_a_solver_that_asks_too_little_or_too_much_releases_nothing(self, asks, error):
        model = DPLogisticRegression(classes=[0, 1], delta=0.05, steps=3, solver="full-admm")
        X, y = np.random.default_rng(0).normal(size=(8, 2)), np.array([0, 1] * 4)
        honest = FullADMM.update

        def update(solver, state, problem, asked):
            times = {2: int(state.t < 2), 4: 1 + int(state.t == 2), 0: 0}[asks]
            for _ in range(times - 1):
                asked.ask(GRADIENT, state.point.x)
            silent = SimpleNamespace(ask=lambda kind, x: np.zeros_like(x))
            return honest(solver, state, problem, asked if times else silent)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(FullADMM, "update", update)
            with pytest.raises(error):
                model.fit(X, y)
        assert not [name for name in vars(model) if name in ("coef_", "weights_", "intercept_", "plan_", "privacy_")]

    @pytest.mark.parametrize("name", tuple(SOLVERS))
    def test_every_solver_performs_exactly_its_plan(self, name):
        solver = SOLVERS[name].default(self.problem, Setting(8, 0.7, 2.0, 0.5), 4, steps=7)
        sampler = make_sampler("poisson", 8, 4)
        plan = calibrate(Budget(1.0, 0.05), solver.requests(self.problem, 0.5), sampler, 8)
        asked = PrivateOracle(LocalRows(np.ones((8, 2)), np.ones(8), Logistic()), Gate(plan), make_streams(0))
        with pytest.raises(PromiseBroken):
            asked.require_promise_kept()
        run(solver, self.problem, asked)
        asked.require_promise_kept()
        assert asked.spent == plan.event

    def test_refusals_are_privacy_errors(self):
        assert issubclass(QueryRefused, PrivacyError)
        assert issubclass(PromiseBroken, PrivacyError)


class TestNothingToSee:
    def test_representation_and_copies(self, plan):
        asked = oracle(plan, LocalRows(np.full((8, 2), 77.125), np.full(8, 55.5), Squared()))
        asked.ask(SNAPSHOT, X0)
        for text in (repr(asked), str(asked)):
            assert "77" not in text
            assert "55" not in text
        for leave in (pickle.dumps, copy.copy, copy.deepcopy):
            with pytest.raises(TypeError, match="never copied"):
                leave(asked)

    def test_public_names_hold_no_data(self, plan):
        asked = oracle(plan)
        asked.ask(SNAPSHOT, X0)
        public = {name for name in dir(asked) if not name.startswith("_")}
        answers = {"ask", "begin", "end", "walk"}
        assert public == answers | {"change_coordinates", "change_map", "noise_std", "public_rows", "spent"} | {
            "require_promise_kept"
        }
        assert asked.public_rows == plan.n_rows

    def test_exceptions_from_inside_carry_no_sum(self, plan):
        class Broken(Untouchable):
            def ask(self, question, at, batch):
                raise MemoryError

        asked = oracle(plan, Broken())
        with pytest.raises(MemoryError):
            asked.ask(SNAPSHOT, X0)
        with pytest.raises(QueryRefused):
            asked.ask(SNAPSHOT, X0)  # a failed query is spent: a retry would be a second one


class TestIndependentTotal:
    """T13: the total of DP-VRADMM, recomputed from what the oracle performed, by other code than the library's."""

    @staticmethod
    def spent(sampler):
        problem = Problem(Logistic(), L1(0.01), Constraint.identity(2))
        solver = VRADMM(3, 4, 0.5, rate=0.1, gradient_clip=0.5)
        plan = calibrate(
            Budget(1.0, 1e-4), solver.requests(problem, 0.5), make_sampler(sampler, 200, 20), 200, cache=False
        )
        rng = np.random.default_rng(0)
        asked = PrivateOracle(
            LocalRows(rng.normal(size=(200, 2)), np.ones(200), Logistic()), Gate(plan), make_streams(0)
        )
        run(solver, problem, asked)
        snapshot, difference = asked.spent.parts
        assert (snapshot.count, difference.count) == (3, 12)
        return snapshot, difference

    def test_poisson_by_dp_accounting(self):
        snapshot, difference = self.spent("poisson")
        accountant = PLDAccountant(dp_accounting.NeighboringRelation.REPLACE_ONE)
        accountant.compose(dp_accounting.GaussianDpEvent(snapshot.noise_multiplier), snapshot.count)
        inner = dp_accounting.GaussianDpEvent(difference.noise_multiplier)
        accountant.compose(dp_accounting.PoissonSampledDpEvent(0.1, inner), difference.count)
        assert 0.98 <= accountant.get_epsilon(1e-4) <= 1.0005

    def test_fixed_size_by_the_lemma_of_subsampling(self):
        snapshot, difference = self.spent("fixed")
        interval, reach, q, mu = 1e-3, 12.0, 0.1, 2 / difference.noise_multiplier
        eps = interval * np.arange(-int(reach / interval), int(reach / interval) + 1)
        base = np.log1p(np.expm1(np.abs(eps)) / q)
        h = q * (norm.cdf(mu / 2 - base / mu) - np.exp(base + norm.logcdf(-mu / 2 - base / mu)))
        h = np.where(eps >= 0, h, -np.expm1(eps) + np.exp(eps) * h)
        half = int(reach / interval)
        pmf = pld_pmf.create_pmf_pessimistic_connect_dots_fixed_gap(interval, -half, half, np.clip(h, 0, 1))
        total = pld.PrivacyLossDistribution(pmf).self_compose(difference.count)
        shift = 2 * math.sqrt(snapshot.count) / snapshot.noise_multiplier
        total = total.compose(pld.from_gaussian_mechanism(1 / shift, value_discretization_interval=interval))
        assert 0.98 <= total.get_epsilon_for_delta(1e-4) <= 1.002

    def test_a_forgotten_snapshot_would_be_found(self):
        _, difference = self.spent("poisson")
        accountant = PLDAccountant(dp_accounting.NeighboringRelation.REPLACE_ONE)
        inner = dp_accounting.GaussianDpEvent(difference.noise_multiplier)
        accountant.compose(dp_accounting.PoissonSampledDpEvent(0.1, inner), difference.count)
        assert accountant.get_epsilon(1e-4) < 0.9
