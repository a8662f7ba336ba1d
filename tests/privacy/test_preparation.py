"""Private preparation: declared reach attained and never exceeded, plans kept, one budget, mutants caught."""

from __future__ import annotations

import math
from dataclasses import replace
from unittest import mock

import numpy as np
import pytest
from scipy import sparse

from dpadmm import (
    DPLinearSVC,
    DPLogisticRegression,
    Ledger,
    PrivateGraph,
    PrivateQuantileClipper,
    PrivateSecondMoment,
    compose_statements,
)
from dpadmm.audit import gaussian_lower_bound
from dpadmm.errors import BudgetExceeded, InvalidParameter, PromiseBroken, QueryRefused
from dpadmm.oracles.gate import Gate
from dpadmm.oracles.private import PrivateOracle
from dpadmm.privacy.accountants.gaussian import gaussian_epsilon, gaussian_shift
from dpadmm.privacy.budget import Budget, Relation
from dpadmm.privacy.calibration import calibrate, verify_plan
from dpadmm.privacy.plan import Plan, Request
from dpadmm.privacy.questions import FEATURE_MOMENT, QUANTILE_COUNTS, ClippedGradient, CountsBelow, FeatureMoment
from dpadmm.privacy.sampling import Everything, Poisson
from dpadmm.privacy.statement import PrivacyStatement
from dpadmm.problem.losses import Squared
from dpadmm.problem.rowmap import RowMap
from dpadmm.randomness import make_streams
from dpadmm.rows.local import LocalRows
from dpadmm.rows.packed import PackedRows
from tests.asking import EVERY_ROW, below_sums
from tests.version1 import stated

RELATIONS = pytest.mark.parametrize("relation", list(Relation))
FORMS = pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix], ids=["dense", "csr"])
PRECISIONS = pytest.mark.parametrize("dtype", [np.float32, np.float64])
D, LEVELS = 3, 2


def one(row, form=np.asarray, rowmap=None, weight=None):
    """One record."""
    with np.errstate(all="ignore"):
        packed = PackedRows.of(RowMap(1.0, False) if rowmap is None else rowmap, form(np.asarray(row)[None]))
    norm = 1.0 if rowmap is None else rowmap.row_norm
    return LocalRows(packed, np.zeros(1), Squared(), norm, None if weight is None else np.array([weight]))


def search(value, relation, size, starts=3, steps=60):
    """Largest movement that hill-climbing over both records and the public numbers finds."""
    rng, best = np.random.default_rng(0), 0.0
    for start in range(starts):
        v = rng.standard_normal(2 * D + size)
        if start:  # opposite or orthogonal records, public numbers near zero
            v[D : 2 * D] = -v[:D] if start == 1 else np.cross(v[:D], v[D : 2 * D])
            v[2 * D :] *= 0.01

        def moved(v):
            first, second, free = v[:D], v[D : 2 * D], v[2 * D :]
            before = value(first, free)
            return float(np.linalg.norm(before if relation is Relation.ADD_REMOVE else before - value(second, free)))

        reach, step = moved(v), 1.0
        for _ in range(steps):
            trial = v + step * rng.standard_normal(v.size)
            found = moved(trial)
            v, reach, step = (trial, found, 1.3 * step) if found > reach else (v, reach, max(0.93 * step, 1e-4))
        best = max(best, reach)
    return best


class TestSensitivity:
    """docs/proofs/preparation.md, sections 1 and 2."""

    @RELATIONS
    @FORMS
    @PRECISIONS
    @pytest.mark.parametrize("row_norm", [1.0, 0.01])
    def test_feature_moment(self, relation, form, dtype, row_norm):
        """Rows up to ten times the declared norm are tried."""
        bound = relation.record_distance * FeatureMoment().reach(relation)
        rowmap = RowMap(row_norm, False)

        def value(row, free):
            return one((10 * row_norm * row).astype(dtype), form, rowmap).ask(FeatureMoment(), (), EVERY_ROW).ravel()

        assert 0.999 * bound <= search(value, relation, 0) <= bound * (1 + 1e-9)

    @RELATIONS
    @FORMS
    @PRECISIONS
    def test_counts_below(self, relation, form, dtype):
        """Rows are tried at all thresholds; the sum is exact, so the bound holds to the last bit."""
        bound = relation.record_distance * CountsBelow(D, LEVELS).reach(relation)

        def value(row, free):
            return below_sums(one(row.astype(dtype), form), free.reshape(LEVELS, D)).ravel()

        assert search(value, relation, LEVELS * D) == bound

    @RELATIONS
    def test_public_weights_and_invalid_rows_change_no_bound(self, relation):
        rng = np.random.default_rng(1)
        moment = relation.record_distance * FeatureMoment().reach(relation)
        counts = relation.record_distance * CountsBelow(D, LEVELS).reach(relation)
        thresholds = np.zeros((LEVELS, D))
        for _ in range(200):
            rows = rng.standard_normal((2, D)) * 10.0 ** rng.integers(-2, 3)
            rows[rng.random((2, D)) < 0.1] = np.nan
            tables = [one(row, weight=rng.uniform()) for row in rows]
            sums = [(t.ask(FeatureMoment(), (), EVERY_ROW), below_sums(t, thresholds)) for t in tables]
            for (a, b), bound in zip(zip(*sums, strict=True), (moment, counts), strict=True):
                assert np.linalg.norm(a if relation is Relation.ADD_REMOVE else a - b) <= bound

    def test_the_search_finds_rows_that_are_not_clipped(self):
        """Mutant: rows as long as they came."""
        loose = search(lambda row, free: np.outer(row, row).ravel(), Relation.REPLACE_ONE, 0)
        assert loose > 1.5 * math.sqrt(2)

    def test_counts_that_are_not_halved_would_be_caught(self):
        """Mutant: 0 and 1 in place of ±½ move by √m when a row is added, twice what is declared."""
        bound = CountsBelow(D, 1).reach(Relation.ADD_REMOVE)
        found = search(lambda row, free: (row <= free).astype(float), Relation.ADD_REMOVE, D)
        assert found == 2 * bound

    @FORMS
    def test_counts_are_those_of_numpy(self, form):
        rng = np.random.default_rng(2)
        X = rng.integers(-2, 3, (500, 4)).astype(float)
        X[3, 1], X[7] = np.nan, np.inf
        with np.errstate(all="ignore"):
            rows = LocalRows(PackedRows.of(RowMap(1.0, False), form(X)), np.zeros(500), Squared())
        clean = X[np.isfinite(X).all(axis=1)]
        thresholds = np.array([[-1.0, 0.0, 0.5, 2.0], [-3.0, 1e-300, -1e-300, 3.0]])
        expected = [(clean <= t).sum(axis=0) - len(clean) / 2 for t in thresholds]
        np.testing.assert_array_equal(below_sums(rows, thresholds), expected)


def step_plan(request, budget=Budget(1.0, 1e-2), n_rows=20):  # noqa: B008
    return calibrate(budget, [request], Everything(), n_rows)


class TestOracle:
    def test_counts_of_one_feature_are_not_answered_for_all(self):
        plan = step_plan(Request("quantile counts", 1, CountsBelow(1, 1)))
        rows = LocalRows(np.ones((20, D)), np.zeros(20), Squared())
        with pytest.raises(QueryRefused, match="other features"):
            PrivateOracle(rows, Gate(plan), make_streams(0)).ask(QUANTILE_COUNTS, np.array([[0.5]]))

    """Only the planned questions are answered."""

    def oracle(self, plan, n_rows=20, features=D):
        X = np.random.default_rng(0).uniform(-1, 1, (n_rows, features))
        return PrivateOracle(LocalRows(X, np.zeros(n_rows), Squared()), Gate(plan), make_streams(0))

    def test_counts_of_other_shapes_are_refused(self):
        plan = step_plan(Request("quantile counts", 2, CountsBelow(D, 1)))
        oracle = self.oracle(plan)
        for thresholds in (np.zeros((2, D)), np.zeros((1, D - 1)), np.full((1, D), np.nan)):
            with pytest.raises(QueryRefused):
                oracle.ask(QUANTILE_COUNTS, thresholds)
        with pytest.raises(PromiseBroken):
            oracle.require_promise_kept()

    def test_no_more_rounds_than_planned(self):
        oracle = self.oracle(step_plan(Request("quantile counts", 1, CountsBelow(D, 1))))
        oracle.ask(QUANTILE_COUNTS, np.zeros((1, D)))
        oracle.require_promise_kept()
        with pytest.raises(QueryRefused):
            oracle.ask(QUANTILE_COUNTS, np.zeros((1, D)))

    def test_a_moment_under_another_name_is_refused(self):
        oracle = self.oracle(step_plan(Request("feature moment", 1, CountsBelow(D, 1))))
        with pytest.raises(QueryRefused):
            oracle.ask(FEATURE_MOMENT)
        with pytest.raises(QueryRefused):
            oracle.ask(QUANTILE_COUNTS, np.zeros((1, D)))

    @pytest.mark.parametrize("statistic", [FeatureMoment(), CountsBelow(D, 1)])
    def test_a_plan_that_declares_too_little_is_refused(self, statistic):
        plan = step_plan(Request("feature moment", 1, statistic))
        low = replace(plan, queries=(replace(plan.queries[0], clip_norm=0.5 * plan.queries[0].clip_norm),))
        with pytest.raises(PromiseBroken):
            verify_plan(low)
        with pytest.raises(QueryRefused):
            self.oracle(low).ask(FEATURE_MOMENT)

    def test_a_map_to_another_norm_or_intercept_is_refused(self):
        oracle = self.oracle(step_plan(Request("feature moment", 1, FeatureMoment())))
        for rowmap in (RowMap(2.0, False), RowMap(1.0, True)):
            with pytest.raises(QueryRefused):
                oracle.change_map(rowmap)
        oracle.change_map(RowMap(1.0, False))
        oracle.change_coordinates(np.eye(D))
        with pytest.raises(QueryRefused, match="before coordinates"):
            oracle.change_map(RowMap(1.0, False))

    def test_rows_that_counted_as_zero_stay_zero_under_a_new_map(self):
        X = np.array([[0.5], [0.5], [np.nan]])
        with np.errstate(all="ignore"):
            packed = PackedRows.of(RowMap.declare(1.0, False, (0, 1), 1), X, np.array([True, False, True]))
            rows = LocalRows(packed, np.zeros(3), Squared())
            seen = rows.remapped(RowMap.declare(1.0, False, (0, 0.5), 1))
        assert seen.ask(FeatureMoment(), (), EVERY_ROW) == pytest.approx(1.0, abs=1e-5)

    def test_noise_has_the_planned_size(self):
        """Answers minus the exact means are the noise of the plan: a chi-square test at false alarm 1e-9."""
        from scipy.stats import chi2

        for kind, statistic in (("feature moment", FeatureMoment()), ("quantile counts", CountsBelow(40, 2))):
            plan = step_plan(Request(kind, 1, statistic))
            oracle = self.oracle(plan, features=40)
            if kind == "feature moment":
                residual = oracle.ask(FEATURE_MOMENT) - oracle._rows.ask(FeatureMoment(), (), EVERY_ROW) / 20
            else:
                zero = np.zeros((2, 40))
                residual = oracle.ask(QUANTILE_COUNTS, zero) - 0.5 - below_sums(oracle._rows, zero) / 20
            total = float(((residual / plan.queries[0].noise_std) ** 2).sum())
            assert chi2.ppf(1e-9, residual.size) <= total <= chi2.isf(1e-9, residual.size)


class TestOneBudget:
    """Steps and training share one plan."""

    def table(self, n=3000):
        rng = np.random.default_rng(0)
        X = rng.uniform(-1, 1, (n, 5))
        X[:, 1] = X[:, 0] + 0.1 * X[:, 1]
        return X, (X[:, 0] > 0).astype(int)

    def model(self, **more):
        steps = {"bounds": PrivateQuantileClipper((-4, 4), share=0.1), "graph": PrivateGraph(share=0.2)}
        return DPLogisticRegression(1.0, 1e-6, penalty="graph", classes=[0, 1], random_state=0, **steps | more)

    @RELATIONS
    def test_squared_shares_add_up_exactly(self, relation):
        plan = self.model(relation=str(relation)).fit(*self.table()).plan_
        total = sum(q.count * (relation.record_distance / q.noise_multiplier) ** 2 for q in plan.queries)
        budget = gaussian_shift(1.0, 1e-6)
        assert gaussian_epsilon(math.sqrt(total), 1e-6) <= 1.0
        assert math.sqrt(total) == pytest.approx(budget, rel=2e-3)
        for kind, share in (("quantile counts", 0.1), ("feature moment", 0.2)):
            query = plan.query(kind)
            spent = query.count * (relation.record_distance / query.noise_multiplier) ** 2
            assert spent == pytest.approx(share * budget**2, rel=1e-5)

    @pytest.mark.parametrize("solver", ["dp-sadmm", "dp-vradmm", "ssadmm"])
    @pytest.mark.parametrize("accountant", [None, "pld"])
    def test_mini_batches_are_certified_beside_the_steps(self, solver, accountant):
        model = self.model(solver=solver, accountant=accountant, steps=40).fit(*self.table())
        assert model.plan_.accountant == "pld"
        assert 0.99 <= verify_plan(model.plan_) <= 1.0
        without = self.model(solver=solver, steps=40, bounds=(-4, 4), graph=[(0, 1)]).fit(*self.table())
        training = {q.kind: q.noise_multiplier for q in model.plan_.queries}
        for query in without.plan_.queries:
            assert training[query.kind] > 1.05 * query.noise_multiplier

    def test_renyi_accounting_takes_the_steps_too(self):
        model = self.model(solver="ssadmm", sampler="fixed", accountant="rdp", steps=40).fit(*self.table())
        assert verify_plan(model.plan_) <= 1.0

    def test_the_statement_lists_every_step_with_noise_and_cost(self):
        model = self.model(solver="dp-vradmm", steps=40).fit(*self.table())
        said = model.privacy_
        assert said.budget_split == ("10% for quantile counts", "20% for feature moment", "70% for training")
        for words in ("10 noisy quantile counts releases", "1 noisy feature moment release", "snapshot", "20% for"):
            assert words in said.text
        assert "docs/proofs/preparation.md" in said.proof_status
        assert PrivacyStatement.from_dict(said.to_dict()) == said
        assert Plan.from_dict(model.plan_.to_dict()) == model.plan_

    def test_statements_of_older_versions_are_read(self):
        fields = stated(DPLogisticRegression(random_state=0).fit(*self.table(300))).to_dict()
        del fields["budget_split"]
        assert PrivacyStatement.from_dict(fields).budget_split == ()

    def test_a_step_that_is_not_asked_breaks_the_promise(self):
        with mock.patch.object(PrivateGraph, "ask_graph", return_value=[]), pytest.raises(PromiseBroken):
            self.model().fit(*self.table(300))

    def test_a_step_that_asks_twice_is_refused(self):
        honest = PrivateGraph.ask_graph

        def greedy(step, oracle, intercept):
            honest(step, oracle, intercept)
            return honest(step, oracle, intercept)

        with mock.patch.object(PrivateGraph, "ask_graph", greedy), pytest.raises(QueryRefused):
            self.model().fit(*self.table(300))

    def test_the_answers_are_used(self):
        """The rows are mapped anew and the penalty has the graph."""
        X, y = self.table()
        model = self.model().fit(X, y)
        assert (0, 1) in [edge[:2] for edge in model.graph_]
        assert np.all(np.abs(np.asarray(model.row_map_.lower) + 0.9) < 0.3)
        assert np.all(np.abs(np.asarray(model.row_map_.upper) - 0.9) < 0.3)
        assert model.score(X, y) > 0.9

    def test_the_ledger_is_charged_once_for_everything(self, tmp_path):
        ledger = Ledger.create(tmp_path / "ledger.db")
        ledger.set_limit("table", Budget(1.0, 1e-6), owner="me", test=True)
        model = self.model(ledger=ledger, dataset="table").fit(*self.table())
        assert [fit.plan_digest for fit in ledger.account("table").fits] == [model.plan_.digest]
        assert ledger.spent("table")[0] == pytest.approx(model.plan_.epsilon_achieved, rel=0.02)
        with pytest.raises(BudgetExceeded):
            self.model(ledger=ledger, dataset="table").fit(*self.table())

    def test_a_step_by_itself_is_charged_too(self, tmp_path):
        ledger = Ledger.create(tmp_path / "ledger.db")
        ledger.set_limit("table", Budget(1.0, 1e-6), owner="me", test=True)
        own = {"epsilon": 0.8, "delta": 1e-6, "ledger": ledger, "dataset": "table", "random_state": 0}
        PrivateGraph(**own).fit(self.table()[0])
        assert ledger.spent("table")[0] == pytest.approx(0.8, rel=0.02)
        with pytest.raises(BudgetExceeded):
            PrivateGraph(**own).fit(np.zeros((3000, 2)))

    @pytest.mark.parametrize("shares", [(0.5, 0.5), (0.0, 0.1), (-1.0, 0.1), (1.5, 0.1), ("a", 0.1), (True, 0.1)])
    def test_impossible_shares_are_refused(self, shares):
        steps = {"bounds": PrivateQuantileClipper((-4, 4), share=shares[0]), "graph": PrivateGraph(share=shares[1])}
        with pytest.raises(InvalidParameter, match=r"share|budget"):
            self.model(**steps).fit(*self.table(300))

    @pytest.mark.parametrize(
        "more",
        [{"epsilon": 1.0}, {"random_state": 0}, {"dataset": "x"}, {"ledger": "x"}, {"n_rows": 300}, {"row_norm": 2.0}],
    )
    def test_a_step_of_a_model_has_no_budget_of_its_own(self, more):
        with pytest.raises(InvalidParameter, match="PrivateGraph"):
            self.model(graph=PrivateGraph(**more)).fit(*self.table(300))

    def test_a_graph_that_no_penalty_uses_is_refused(self):
        with pytest.raises(InvalidParameter, match="penalty"):
            DPLinearSVC(penalty="l1", graph=PrivateGraph()).fit(*self.table(300))

    @pytest.mark.parametrize("solver", ["dp-sgd", "dp-gd"])
    def test_a_solver_that_takes_no_graph_refuses_before_anything_is_charged(self, solver, tmp_path):
        ledger = Ledger.create(tmp_path / "ledger.db")
        ledger.set_limit("table", Budget(1.0, 1e-6), owner="me", test=True)
        with pytest.raises(InvalidParameter.__mro__[1]):
            self.model(solver=solver, ledger=ledger, dataset="table").fit(*self.table(300))
        assert ledger.spent("table") == (0.0, 0.0)


class TestFixedNoise:
    """Calibration around a request whose noise is given."""

    def test_the_rest_is_as_quiet_as_the_budget_allows(self):
        budget, mu = Budget(1.0, 1e-5), gaussian_shift(1.0, 1e-5)
        fixed = Request("feature moment", 1, FeatureMoment(), noise_multiplier=4 / mu)
        plan = calibrate(budget, [fixed, Request("gradient", 10, ClippedGradient(1.0))], Everything(), 1000)
        assert plan.queries[0].noise_multiplier == 4 / mu
        rest = math.sqrt(10) * 2 / plan.queries[1].noise_multiplier
        assert rest**2 == pytest.approx(0.75 * mu**2, rel=5e-3)

    def test_the_cache_tells_fixed_noise_apart(self, tmp_path, monkeypatch):
        monkeypatch.setenv("DPADMM_CACHE", str(tmp_path))
        scales = []
        for noise in (40.0, 20.0, 40.0):
            asks = [
                Request("snapshot", 1, ClippedGradient(1.0), full_data=True, noise_multiplier=noise),
                Request("gradient", 50, ClippedGradient(1.0)),
            ]
            scales.append(calibrate(Budget(1.0, 1e-5), asks, Poisson(0.05), 1000).queries[1].noise_multiplier)
        assert scales[0] == scales[2] < scales[1]

    @pytest.mark.parametrize("noise", [0.0, -1.0, math.nan, math.inf])
    def test_impossible_noise_is_refused(self, noise):
        asks = [
            Request("gradient", 1, ClippedGradient(1.0), noise_multiplier=noise),
            Request("snapshot", 1, ClippedGradient(1.0)),
        ]
        with pytest.raises(InvalidParameter):
            calibrate(Budget(1.0, 1e-5), asks, Everything(), 100)

    def test_nothing_left_to_calibrate_is_refused(self):
        with pytest.raises(InvalidParameter, match="fixed"):
            calibrate(
                Budget(1.0, 1e-5),
                [Request("gradient", 1, ClippedGradient(1.0), noise_multiplier=9.0)],
                Everything(),
                100,
            )

    def test_fixed_noise_beyond_the_budget_is_refused(self):
        from dpadmm.errors import CannotCertify

        asks = [
            Request("gradient", 1, ClippedGradient(1.0), noise_multiplier=0.5),
            Request("snapshot", 1, ClippedGradient(1.0)),
        ]
        with pytest.raises(CannotCertify):
            calibrate(Budget(1.0, 1e-5), asks, Everything(), 100)


class TestTotals:
    """Parts of a pipeline together."""

    def parts(self, **more):
        X, y = TestOneBudget().table()
        clipper = PrivateQuantileClipper((-4, 4), epsilon=0.5, random_state=0, **more).fit(X)
        return clipper, DPLogisticRegression(0.5, classes=[0, 1], random_state=0).fit(clipper.transform(X), y)

    def test_the_total_is_that_of_one_gaussian(self):
        total = compose_statements(*self.parts())
        mu = math.sqrt(2) * gaussian_shift(0.5, 1e-5)
        assert total.epsilon == pytest.approx(gaussian_epsilon(mu, 1e-5), rel=0.01)
        assert 0.5 < total.epsilon < 1.0
        assert total.seeded
        assert "PrivateQuantileClipper and then auto" in total.text
        assert len(total.mechanisms) > 2

    def test_a_pipeline_counts_all_its_private_steps(self):
        from sklearn.pipeline import make_pipeline

        clipper, model = self.parts()
        assert compose_statements(make_pipeline(clipper, "passthrough", model)) == compose_statements(clipper, model)

    def test_mini_batches_are_composed_by_the_privacy_loss_accountant(self):
        X, y = TestOneBudget().table()
        clipper, _ = self.parts()
        batches = DPLogisticRegression(0.5, solver="dp-sadmm", steps=30, classes=[0, 1], random_state=0).fit(X, y)
        total = compose_statements(clipper, batches)
        assert total.accountant == "pld"
        assert 0.5 < total.epsilon < 1.0

    def test_parts_without_a_common_promise_are_refused(self):
        clipper, _ = self.parts()
        other, _ = self.parts(relation="add-remove")
        for parts in ((), ("scaler",), (clipper, other)):
            with pytest.raises(InvalidParameter):
                compose_statements(*parts)


class TestAudit:
    """The worst pair of each step, told apart no better than claimed, and nearly as well."""

    RUNS = 4000

    def scores(self, plan, tables, ask, streams):
        """Projections of the answers onto the difference of the exact ones, in standard deviations."""
        exact = [ask(rows) for rows in tables]
        direction = (exact[1] - exact[0]) / np.linalg.norm(exact[1] - exact[0])
        found = []
        for rows in tables:
            oracle = [PrivateOracle(rows, Gate(plan), streams) for _ in range(self.RUNS)]
            found.append(np.array([float((ask(o) * direction).sum()) for o in oracle]))
        return found

    def audited(self, plan, tables, ask):
        first, second = self.scores(plan, tables, ask, make_streams(0))
        return gaussian_lower_bound(first, second, plan.budget.delta, 0.999).epsilon

    def pair(self, request, claim=1.0):
        n = 8
        plan = step_plan(request, Budget(claim, 0.05), n)
        opposite = {"feature moment": ((1.0, 0.0), (0.0, 1.0)), "quantile counts": ((1.0, 1.0), (-1.0, -1.0))}
        tables = [np.concatenate([[row], np.zeros((n - 1, 2))]) for row in opposite[request.kind]]
        return plan, [LocalRows(table, np.zeros(n), Squared()) for table in tables]

    @staticmethod
    def moment(asked):
        return (
            asked.ask(FEATURE_MOMENT)
            if isinstance(asked, PrivateOracle)
            else asked.ask(FeatureMoment(), (), EVERY_ROW) / 8
        )

    @staticmethod
    def counts(asked):
        zero = np.zeros((1, 2))
        return (
            asked.ask(QUANTILE_COUNTS, zero) if isinstance(asked, PrivateOracle) else below_sums(asked, zero) / 8 + 0.5
        )

    @pytest.mark.statistical
    @pytest.mark.parametrize("claim", [0.2, 1.0])
    def test_honest_steps_stay_below_their_claim(self, claim):
        for request, ask in (
            (Request("feature moment", 1, FeatureMoment()), self.moment),
            (Request("quantile counts", 1, CountsBelow(2, 1)), self.counts),
        ):
            found = self.audited(*self.pair(request, claim), ask)
            assert found <= claim
            assert claim < 0.5 or found > 0.75 * claim

    @pytest.mark.statistical
    @pytest.mark.parametrize("kind", ["feature moment", "quantile counts"])
    def test_a_reach_that_is_too_small_is_caught(self, kind):
        """Mutant: half the sensitivity, hence half the noise."""
        statistic, ask = (
            (FeatureMoment(), self.moment) if kind == "feature moment" else (CountsBelow(2, 1), self.counts)
        )
        honest = type(statistic).reach
        with mock.patch.object(type(statistic), "reach", lambda own, relation: honest(own, relation) / 2):
            assert self.audited(*self.pair(Request(kind, 1, statistic)), ask) > 1.3


def test_a_model_with_steps_is_audited_in_parts():
    from dpadmm.audit import audit_fit, worst_pair

    model = DPLogisticRegression(1.0, 0.1, penalty="graph", graph=PrivateGraph(), classes=(0, 1), random_state=0)
    with pytest.raises(InvalidParameter, match="steps"):
        audit_fit(model, *worst_pair(8, n_features=2), 500)


def test_a_seeded_step_says_so():
    step = PrivateSecondMoment(epsilon=1.0, delta=1e-3, random_state=0).fit(np.eye(4))
    assert step.privacy_.text.startswith("seeded: NOT private")
    assert "rest of a pipeline" in step.privacy_.text
    assert not PrivateSecondMoment(epsilon=1.0, delta=1e-3).fit(np.eye(4)).privacy_.seeded
