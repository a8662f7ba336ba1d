"""arithmetic="exact": integers in any order, no norm above its bound, and noise charged for what it is."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse, stats

from dpadmm import DPLinearRegression, DPLinearSVC, DPLogisticRegression, load_model
from dpadmm.audit.end_to_end import SMALL_CLIP, audit_fit, worst_pair
from dpadmm.errors import InvalidParameter, QueryRefused
from dpadmm.oracles.gate import Gate
from dpadmm.oracles.private import PrivateOracle
from dpadmm.privacy.arithmetic import RESERVED_SHARE, Arithmetic, exact_deviations
from dpadmm.privacy.budget import Budget, Relation
from dpadmm.privacy.calibration import calibrate, verify_plan
from dpadmm.privacy.plan import Plan, Request
from dpadmm.privacy.questions import (
    GRADIENT,
    ClippedGradient,
    FeatureCurvature,
    GradientDifference,
    JointMoments,
    SecondMoment,
)
from dpadmm.privacy.sampling import Batch, Everything, Poisson
from dpadmm.privacy.statement import PrivacyStatement
from dpadmm.problem import Huber, HuberisedHinge, Logistic, Softmax, Squared
from dpadmm.problem.rowmap import RowMap
from dpadmm.randomness import NoiseStream, make_streams
from dpadmm.rows.lattice_rows import LatticeRows
from dpadmm.rows.lattice_sum import LatticeSum, as_numbers, joined
from dpadmm.rows.local import LocalRows
from dpadmm.rows.packed import PackedRows
from tests.asking import EVERY_ROW, answering, moment_sums
from tests.version1 import stated

from .alarms import require, two_sided

ALL = Batch(None)
LOSSES = [Logistic(), HuberisedHinge(), Squared(), Huber(0.5), Softmax(3), Squared(n_tasks=2)]


def targets(loss, rng, n):
    if isinstance(loss, Softmax):
        return rng.integers(0, loss.n_classes, n)
    if isinstance(loss, (Logistic, HuberisedHinge)):
        return rng.choice([-1.0, 1.0], n)
    return rng.normal(size=(n, loss.outputs) if loss.outputs > 1 else n) * 10.0 ** rng.integers(-3, 12)


def wild(rng, n, d):
    X = rng.normal(size=(n, d)) * 10.0 ** rng.integers(-8, 8, (n, 1))
    X[rng.integers(n)] = rng.choice([0.0, np.nan, np.inf, 1e300, 1e-300], d)
    return X


def lattice(X, y, loss, row_norm=1.0, intercept=True, n=None):
    with np.errstate(all="ignore"):
        return LatticeRows(PackedRows.of(RowMap(row_norm, intercept), X), y, loss, row_norm, n or len(X))


def norm(total):
    """‖counts·unit‖, the squares added up as integers."""
    units = total.units.ravel()
    return math.sqrt(
        math.fsum(int(count) ** 2 * unit**2 for count, unit in zip(total.counts.ravel(), units, strict=True))
    )


class TestRowsOnALattice:
    @settings(max_examples=100, deadline=None)
    @given(
        seed=st.integers(0, 2**32 - 1),
        loss=st.sampled_from(LOSSES),
        intercept=st.booleans(),
        row_norm=st.sampled_from([1e-3, 1.0, 30.0]),
        scale=st.sampled_from([0.0, 1.0, 1e6, 1e30]),
        turned=st.booleans(),
    )
    def test_no_contribution_exceeds_the_clip(self, seed, loss, intercept, row_norm, scale, turned):
        """Every row alone, in integers: no tolerance."""
        rng = np.random.default_rng(seed)
        d, clip = int(rng.integers(1, 6)), float(rng.choice([1e-60, 0.37, 1.0]))
        features = d + intercept
        P = np.linalg.qr(rng.normal(size=(features, features)))[0] * 10.0 ** rng.integers(-3, 4, features)
        for i, row in enumerate(wild(rng, 4, d)):
            rows = lattice(row[None], targets(loss, rng, 1), loss, row_norm, intercept, n=10 ** (3 * i))
            rows = rows.transformed(P) if turned else rows
            shape = rows.space.point_shape
            x, anchor = rng.normal(size=shape) * scale, rng.normal(size=shape) * scale
            with np.errstate(all="ignore"):
                assert norm(rows.ask(ClippedGradient(clip), (x,), ALL)) <= clip
                assert norm(rows.ask(GradientDifference(2 * clip), (x, anchor, clip / 3), ALL)) <= clip / 3
            assert norm(rows.ask(SecondMoment(), (), EVERY_ROW)) <= 1.0
            if not turned and type(loss) is Logistic:
                weights = 10.0 ** rng.uniform(-20, 20, features)
                assert norm(rows.ask(FeatureCurvature(), (x, weights), EVERY_ROW)) <= 1.0
                assert (rows.ask(FeatureCurvature(), (x, weights), EVERY_ROW).counts >= 0).all()

    @pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: f"{loss.name}-{loss.outputs}")
    def test_the_order_of_the_rows_changes_nothing(self, loss):
        """Bit for bit, across blocks: what rounding could never promise."""
        rng = np.random.default_rng(0)
        n, d = 9001, 7
        X, y = rng.normal(size=(n, d)), targets(loss, rng, n)
        shuffled = rng.permutation(n)
        one, two = lattice(X, y, loss), lattice(X[shuffled], y[shuffled], loss)
        P = rng.normal(size=(d + 1, d + 1))
        statistic = JointMoments(0.2, loss.outputs)
        for first, second in ((one, two), (one.transformed(P), two.transformed(P))):
            x, anchor = rng.normal(size=first.space.point_shape), rng.normal(size=first.space.point_shape)
            sums = [
                (
                    rows.ask(ClippedGradient(0.4), (x,), ALL),
                    rows.ask(GradientDifference(0.8), (x, anchor, 0.2), ALL),
                    rows.ask(SecondMoment(), (), EVERY_ROW),
                    *(moment_sums(rows, statistic) if loss.outputs == 1 or isinstance(loss, Softmax) else ()),
                )
                for rows in (first, second)
            ]
            for a, b in zip(*sums, strict=True):
                np.testing.assert_array_equal(a.counts, b.counts)

    def test_the_order_of_the_rows_changes_no_curvature(self):
        rng = np.random.default_rng(0)
        X, y, shuffled = rng.normal(size=(9001, 7)), rng.choice([-1.0, 1.0], 9001), rng.permutation(9001)
        x, weights = 5 * rng.normal(size=8), 20 * rng.uniform(size=8)
        one, two = lattice(X, y, Logistic()), lattice(X[shuffled], y[shuffled], Logistic())
        parts = [
            lattice(X[i::3], y[i::3], Logistic(), n=9001).ask(FeatureCurvature(), (x, weights), EVERY_ROW).counts
            for i in range(3)
        ]
        whole = one.ask(FeatureCurvature(), (x, weights), EVERY_ROW).counts
        np.testing.assert_array_equal(whole, two.ask(FeatureCurvature(), (x, weights), EVERY_ROW).counts)
        np.testing.assert_array_equal(whole, sum(parts))
        assert whole.min() > 0

    def test_parts_add_up_to_the_whole(self):
        rng = np.random.default_rng(1)
        X, y = rng.normal(size=(5000, 4)), rng.choice([-1.0, 1.0], 5000)
        x = rng.normal(size=5)
        whole = lattice(X, y, Logistic()).ask(ClippedGradient(0.4), (x,), ALL).counts
        parts = [
            lattice(X[i::3], y[i::3], Logistic(), n=5000).ask(ClippedGradient(0.4), (x,), ALL).counts for i in range(3)
        ]
        np.testing.assert_array_equal(whole, sum(parts))

    @pytest.mark.parametrize("turned", [False, True])
    def test_a_row_contributes_the_same_wherever_it_stands(self, turned):
        """At a point where margins are small differences of large numbers, so that any rounding by place would show."""
        rng = np.random.default_rng(5)
        n, half = 300, 19
        v, w = rng.normal(size=(n, half)), rng.normal(size=(n, half))
        X = np.hstack([v, v + w * 2.0**-16]) / 12
        x = 2.0**17 * np.concatenate([np.ones(half), -np.ones(half)])
        y = rng.choice([-1.0, 1.0], n)
        P = rng.normal(size=(2 * half, 2 * half))
        z = np.linalg.solve(P, x) if turned else x

        def counts(part):
            rows = lattice(X[part], y[part], Logistic(), intercept=False, n=n)
            return (rows.transformed(P) if turned else rows).ask(ClippedGradient(2.0), (z,), ALL).counts

        alone = sum(counts(slice(i, i + 1)) for i in range(n))
        np.testing.assert_array_equal(counts(slice(0, n)), alone)
        np.testing.assert_array_equal(counts(slice(0, n - 5)) + counts(slice(n - 5, n)), alone)

    def test_a_row_is_as_curved_wherever_it_stands(self):
        """At such a point, too."""
        rng = np.random.default_rng(5)
        n, half = 300, 19
        X, large = np.tile(rng.normal(size=(n, half)), 2), 1e10 * rng.normal(size=half)
        x = np.concatenate([large, 1.0 - large])

        def counts(part):
            rows = lattice(X[part], np.ones(len(X[part])), Logistic(), intercept=False, n=n)
            return rows.ask(FeatureCurvature(), (x, np.ones(2 * half)), EVERY_ROW).counts

        alone = [counts(slice(i, i + 1)) for i in range(n)]
        np.testing.assert_array_equal(counts(slice(0, n)), sum(alone))
        np.testing.assert_array_equal(counts(slice(3, n)), sum(alone[3:]))

    def test_entries_of_a_curvature_are_cut_off_towards_zero(self):
        from fractions import Fraction

        rng = np.random.default_rng(6)
        rows = lattice(rng.normal(size=(1, 30)), np.ones(1), Logistic(), intercept=False)
        weights = rng.uniform(size=30)
        total = rows.ask(FeatureCurvature(), (np.zeros(30), weights), EVERY_ROW)
        for count, entry in zip(total.counts, rows._rows[0] * rows._rows[0] * weights, strict=True):
            product = Fraction(0.25 * float(entry)) / Fraction(float(total.unit))
            assert 0 <= int(count) <= product < int(count) + 1

    def test_entries_are_cut_off_towards_zero(self):
        """The entries of one contribution in exact arithmetic: no count lies further from zero than the product."""
        from fractions import Fraction

        rng = np.random.default_rng(6)
        rows = lattice(rng.normal(size=(1, 30)), np.ones(1), Logistic(), intercept=False)
        total = rows.ask(ClippedGradient(0.2), (rng.normal(size=30),), ALL)
        slope = float(rows._slopes(np.zeros(30), slice(0, 1), 0.2)[0])
        at_zero = rows.ask(ClippedGradient(0.2), (np.zeros(30),), ALL)
        for count, entry in zip(at_zero.counts, rows._rows[0], strict=True):
            product = Fraction(slope * float(entry)) / Fraction(float(total.unit))
            assert abs(int(count)) <= abs(product) < abs(int(count)) + 1

    @pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: f"{loss.name}-{loss.outputs}")
    @pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix, lambda X: X.astype(np.float32)])
    def test_sums_are_those_of_the_fast_rows(self, loss, make):
        rng = np.random.default_rng(2)
        n, d = 500, 6
        X, y = rng.normal(size=(n, d)), targets(loss, rng, n)
        table = PackedRows.of(RowMap(1.0, True), make(X))
        exact, fast = LatticeRows(table, y, loss, 1.0, n), LocalRows(table, y, loss)
        P = rng.normal(size=(d + 1, d + 1))
        some = Batch(np.array([3, 77, 140, 9]), np.array([1.0, 1.0, 0.0, 1.0]))
        for one, two in ((exact, fast), (exact.transformed(P), fast.transformed(P))):
            x, anchor = rng.normal(size=one.space.point_shape), rng.normal(size=one.space.point_shape)
            for batch in (ALL, some):
                a, b = one.ask(ClippedGradient(0.4), (x,), batch), two.ask(ClippedGradient(0.4), (x,), batch)
                np.testing.assert_allclose(as_numbers(a), b, atol=2e-3)
                a, b = (
                    one.ask(GradientDifference(0.8), (x, anchor, 0.3), batch),
                    two.ask(GradientDifference(0.8), (x, anchor, 0.3), batch),
                )
                np.testing.assert_allclose(as_numbers(a), b, atol=4e-3)
            np.testing.assert_allclose(
                as_numbers(one.ask(SecondMoment(), (), EVERY_ROW)), two.ask(SecondMoment(), (), EVERY_ROW), atol=4e-3
            )
        if loss.outputs == 1 or isinstance(loss, Softmax):
            for non_negative in (False, True):
                statistic = JointMoments(0.3, loss.outputs, non_negative=non_negative)
                for a, b in zip(moment_sums(exact, statistic), moment_sums(fast, statistic), strict=True):
                    np.testing.assert_allclose(as_numbers(a), b, atol=4e-3)

    @settings(max_examples=80, deadline=None)
    @given(seed=st.integers(0, 2**32 - 1), classes=st.sampled_from([2, 3, 5]), relation=st.sampled_from(list(Relation)))
    def test_joint_moments_move_no_further_than_their_reach(self, seed, classes, relation):
        rng = np.random.default_rng(seed)
        loss = Logistic() if classes == 2 else Softmax(classes)
        d, outputs = int(rng.integers(1, 5)), loss.outputs
        size = 1.0 if outputs == 1 else 1 - 1 / outputs
        statistic = JointMoments(float(rng.uniform(0.05, 1)) * size / 2, outputs, 0.5)
        rows = [rng.normal(size=d) for _ in range(2)]
        if rng.random() < 0.5:
            rows[1] = rng.choice([-1.0, 1.0]) * rows[0]
        y = rng.choice([-1.0, 1.0], 2) if outputs == 1 else rng.integers(0, classes, 2)
        sums = [joined(moment_sums(lattice(a[None], y[i : i + 1], loss), statistic)) for i, a in enumerate(rows)]
        distance = statistic.reach(relation) * relation.record_distance
        if relation is Relation.ADD_REMOVE:
            assert norm(sums[0]) <= distance
        else:
            assert norm(LatticeSum(sums[0].counts - sums[1].counts, sums[0].unit)) <= distance

    def test_integers_never_overflow(self):
        """The lattice is chosen so that all rows at full size stay below 2⁶²: noise has room in 64 bits."""
        for most in (10, 10**6, 10**9):
            rows = lattice(np.ones((4, 1)), np.ones(4), Squared(), intercept=False, n=most)
            full = abs(int(rows.ask(ClippedGradient(0.999), (np.full(1, 1e9),), ALL).counts[0])) / 4
            assert full * most < 2**62
            assert abs(int(rows.ask(SecondMoment(), (), EVERY_ROW).counts[0, 0])) / 4 * most < 2**62
            curved = lattice(np.ones((4, 1)), np.ones(4), Logistic(), intercept=False, n=most)
            counts = int(curved.ask(FeatureCurvature(), (np.zeros(1), np.full(1, 1e9)), EVERY_ROW).counts[0])
            assert counts > 0
            assert counts / 4 * most < 2**62

    def test_rows_longer_than_declared_are_shortened(self):
        rows = LatticeRows(PackedRows.of_mapped(np.array([[1e12, 3.0]])), np.ones(1), Logistic(), 1.0, 1)
        assert norm(rows.transformed(np.eye(2)).ask(SecondMoment(), (), EVERY_ROW)) <= 1.0
        assert np.abs(rows._rows).max() <= 1.0


def exact_plan(n=64, d=4, multiplier_budget=(1.0, 1e-5), count=3):
    requests = [Request("gradient", count, ClippedGradient(1.0), full_data=True)]
    return calibrate(Budget(*multiplier_budget), requests, Everything(), n, arithmetic=Arithmetic.EXACT)


class TestRelease:
    def test_answers_are_whole_numbers_of_the_unit_with_the_planned_deviation(self):
        n, d = 64, 3000
        plan = exact_plan(n)
        total = LatticeSum(np.arange(d, dtype=np.int64) << 35, 2.0**-40)
        rows = answering(total, n)
        answers = PrivateOracle(rows, Gate(plan), make_streams()).ask(GRADIENT, np.zeros(d)) * n
        counts = np.ldexp(answers, 40)
        np.testing.assert_array_equal(counts, np.rint(counts))
        residual = (answers - as_numbers(total)) / plan.queries[0].noise_multiplier
        require(two_sided((residual**2).sum(), stats.chi2(d)), "variance")
        require(stats.kstest(residual, "norm").pvalue, "shape")

    @settings(max_examples=200, deadline=None)
    @given(noise=st.floats(1e-3, 1e3), unit=st.floats(2.0**-45, 2.0**-30))
    def test_deviations_are_never_below_what_was_planned(self, noise, unit):
        from fractions import Fraction

        deviation = int(exact_deviations(noise, unit)[()])
        assert Fraction(deviation) * Fraction(unit) >= Fraction(noise)
        assert deviation * unit <= noise * (1 + 1e-6)

    def test_the_accountant_gets_what_is_left_of_delta(self):
        plan = exact_plan()
        granular = calibrate(
            Budget(1.0, 1e-5), [Request("gradient", 3, ClippedGradient(1.0), full_data=True)], Everything(), 64
        )
        assert plan.arithmetic is Arithmetic.EXACT
        assert verify_plan(plan) <= 1.0
        with mock.patch("dpadmm.privacy.calibration.make_accountant") as maker:
            maker.return_value.certify.return_value = plan.epsilon_achieved
            verify_plan(plan)
            assert maker.return_value.certify.call_args.args[1] == 1e-5 * (1 - RESERVED_SHARE)
            maker.return_value.certify.return_value = granular.epsilon_achieved
            verify_plan(granular)
            assert maker.return_value.certify.call_args.args[1] == 1e-5

    def test_too_many_releases_for_the_reserve_are_refused(self):
        """On a lattice so coarse that discrete noise is visibly not Gaussian."""
        plan = exact_plan()
        total = LatticeSum(np.zeros(4, dtype=np.int64), 0.1)
        rows = answering(total, 64)
        with pytest.raises(QueryRefused, match="reserved"):
            PrivateOracle(rows, Gate(plan), make_streams()).ask(GRADIENT, np.zeros(4))

    def test_float_sums_are_refused(self):
        rows = answering(np.zeros(2), 64)
        with pytest.raises(QueryRefused, match="arithmetic"):
            PrivateOracle(rows, Gate(exact_plan()), make_streams()).ask(GRADIENT, np.zeros(2))

    def test_the_noise_bits_come_from_the_operating_system(self):
        with mock.patch("dpadmm.randomness.os.urandom", wraps=__import__("os").urandom) as system:
            make_streams().noise.discrete_gaussian(np.full(10, 5))
            assert system.called
            system.reset_mock()
            make_streams(3).noise.discrete_gaussian(np.full(10, 5))
            assert not system.called


RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (400, 3))
Y = (X[:, 0] + 0.3 * RNG.normal(size=400) > 0).astype(int)
SOLVERS = ["auto", "full-admm", "dp-gd", "dp-sadmm", "dp-vradmm", "ssadmm", "mpadmm", "dp-sgd"]


def model(**options):
    defaults = {"epsilon": 2.0, "delta": 1e-4, "classes": [0, 1], "arithmetic": "exact"}
    return DPLogisticRegression(**defaults | options)


class TestEstimators:
    @pytest.mark.parametrize("solver", SOLVERS)
    def test_every_solver(self, solver):
        steps = {} if solver in ("auto", "dp-vradmm") else {"steps": 12}
        options = {"epochs": 2, "inner_steps": 3} if solver == "dp-vradmm" else None
        fitted = model(solver=solver, solver_options=options, **steps).fit(X, Y)
        assert fitted.plan_.arithmetic is Arithmetic.EXACT
        assert np.isfinite(fitted.coef_).all()
        assert verify_plan(fitted.plan_) <= 2.0

    def test_other_models(self):
        for made in (
            DPLinearSVC(2.0, 1e-4, classes=[0, 1], arithmetic="exact"),
            DPLogisticRegression(2.0, 1e-4, classes=[0, 1, 2], arithmetic="exact"),
            DPLinearRegression(2.0, 1e-4, target_bounds=(0, 2), arithmetic="exact"),
        ):
            assert made.fit(X, Y).privacy_.arithmetic_name == "exact"

    def test_it_learns_what_the_default_learns(self):
        exact, granular = (model(arithmetic=name, epsilon=8.0).fit(X, Y).score(X, Y) for name in ("exact", "granular"))
        assert exact > 0.8
        assert abs(exact - granular) < 0.1

    def test_seeded_fits_repeat_and_say_so(self):
        one, two = model(random_state=1).fit(X, Y), model(random_state=1).fit(X, Y)
        np.testing.assert_array_equal(one.coef_, two.coef_)
        assert "NOT private" in one.privacy_.text

    @pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
    def test_both_relations_and_a_secret_row_count(self, relation):
        options = {"n_rows": 350} if relation == "add-remove" else {}
        text = model(relation=relation, **options).fit(X, Y).privacy_.text
        assert ("4 times that many rows" in text) == (relation == "add-remove")

    @pytest.mark.parametrize(
        ("options", "fit", "word"),
        [
            ({"class_weight": {0: 2.0}}, {}, "weights"),
            ({}, {"public_weight": np.ones(400)}, "weights"),
            ({"arithmetic": "float"}, {}, "granular"),
            ({"arithmetic": None}, {}, "granular"),
            ({"arithmetic": "floating"}, {}, "granular"),
        ],
    )
    def test_refusals(self, options, fit, word):
        with pytest.raises(InvalidParameter, match=word):
            model(**options).fit(X, Y, **fit)

    def test_too_many_features_are_refused_before_a_row_is_read(self):
        wide = np.zeros((400, 2048))
        with (
            mock.patch.object(PackedRows, "of", side_effect=AssertionError("a row was read")),
            pytest.raises(InvalidParameter, match="2049"),
        ):
            model(solver="full-admm", steps=2).fit(wide, Y)

    def test_noise_beyond_the_sampler_is_refused(self):
        with pytest.raises(InvalidParameter, match="4096"):
            model(solver="dp-gd", steps=50_000, epsilon=1e-3).fit(X, Y)

    def test_exact_fits_draw_no_floating_point_noise(self):
        with mock.patch.object(NoiseStream, "standard_normal", side_effect=AssertionError("a double was drawn")):
            model().fit(X, Y)


class TestStatement:
    def test_says_which_arithmetic(self):
        exact, granular = model().fit(X, Y).privacy_, model(arithmetic="granular").fit(X, Y).privacy_
        assert "Arithmetic: exact" in exact.text
        assert "discrete Gaussian noise" in exact.text
        assert json.loads(exact.to_json())["arithmetic"] == "exact"
        assert "Arithmetic: granular" in granular.text
        assert "discrete" not in granular.text
        assert json.loads(granular.to_json())["arithmetic"] == "granular"

    def test_models_of_earlier_versions_load_as_what_they_are(self):
        fitted = model(arithmetic="granular").fit(X, Y)
        old_plan = {key: value for key, value in fitted.plan_.to_dict().items() if key != "arithmetic"}
        loaded = Plan.from_dict(old_plan)
        assert loaded.arithmetic is Arithmetic.FLOATING
        assert loaded.to_dict() == old_plan
        assert loaded.digest != fitted.plan_.digest
        said = stated(fitted).to_dict()
        old = {k: v for k, v in said.items() if k not in ("arithmetic_name", "arithmetic")}
        statement = PrivacyStatement.from_dict(old)
        assert statement.arithmetic_name == "floating"
        assert "double precision" in statement.text

    def test_stored_models_keep_it(self, tmp_path):
        fitted = model().fit(X, Y)
        loaded = load_model(fitted.save(tmp_path / "model"))
        assert loaded.plan_ == fitted.plan_
        assert loaded.privacy_.text == fitted.privacy_.text
        assert loaded.get_params()["arithmetic"] == "exact"

    def test_plans_of_earlier_versions_are_never_carried_out(self):
        plan = replace(exact_plan(), arithmetic=Arithmetic.FLOATING)
        rows = answering(np.zeros(2), 64)
        with pytest.raises(QueryRefused):
            PrivateOracle(rows, Gate(plan), make_streams()).ask(GRADIENT, np.zeros(2))


def test_subsampled_exact_fits_are_calibrated_by_the_same_accountant():
    requests = [Request("gradient", 20, ClippedGradient(1.0))]
    plans = [
        calibrate(Budget(1.0, 1e-5), requests, Poisson(0.1), 1000, arithmetic=name) for name in list(Arithmetic)[:2]
    ]
    granular, exact = (plan.queries[0].noise_multiplier for plan in plans)
    assert granular * (1 - 1e-3) <= exact <= granular * (1 + 3e-3)


def audited(runs):
    made = DPLogisticRegression(
        1.0, 1e-3, classes=[0, 1], arithmetic="exact", solver="full-admm", steps=2, random_state=0, fit_intercept=False
    ).set_params(clip_norm=SMALL_CLIP)
    return audit_fit(made, *worst_pair(20), runs=runs)


@pytest.mark.statistical
def test_an_audit_of_exact_fits_stays_below_the_claim():
    assert 0.4 < audited(1500).lower_bound <= 1.0


@pytest.mark.statistical
def test_mutant_a_quarter_of_the_noise_is_audited():
    def quieter(noise, unit):
        return exact_deviations(noise / 4, unit)

    with mock.patch("dpadmm.privacy.arithmetic.exact_deviations", quieter):
        assert audited(400).lower_bound > 1.0
