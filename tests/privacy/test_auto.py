"""The queries of `auto`: declared reach attained and never exceeded, the ledger exact, mutants caught."""

from __future__ import annotations

import itertools
import math
import os
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from dpadmm import DPLogisticRegression
from dpadmm.errors import InvalidParameter, PromiseBroken, QueryRefused
from dpadmm.oracles.gate import Gate
from dpadmm.oracles.private import PrivateOracle
from dpadmm.privacy.accountants.gaussian import gaussian_epsilon, gaussian_shift
from dpadmm.privacy.budget import Budget, Relation
from dpadmm.privacy.calibration import calibrate, verify_plan
from dpadmm.privacy.plan import Request
from dpadmm.privacy.questions import MOMENTS, SECOND_MOMENT, ClippedGradient, JointMoments, Kind, SecondMoment
from dpadmm.privacy.sampling import Everything, Poisson
from dpadmm.problem.losses import Logistic, Softmax, Squared
from dpadmm.randomness import make_streams
from dpadmm.rows.local import LocalRows
from dpadmm.solvers.auto.rules import LossModel, choose_rules
from tests.asking import EVERY_ROW, less_noise, moment_sums, private, private_with

CLASSES = (2, 3, 10)


def loss_of(classes: int):
    return Logistic() if classes == 2 else Softmax(classes)


def label(number: int, classes: int) -> float:
    return 2.0 * number - 1.0 if classes == 2 else number


def joint(
    row: np.ndarray, number: int, classes: int, balance: float, dtype=np.float64, make=np.asarray, non_negative=False
) -> np.ndarray:
    target = np.array([label(number, classes)])
    rows = LocalRows(make(row[None].astype(dtype)), target if classes == 2 else target.astype(int), loss_of(classes))
    correlation, second = moment_sums(rows, JointMoments(balance, 1 if classes == 2 else classes, 0.5, non_negative))
    return np.concatenate([correlation.ravel(), second.ravel()])


def rows_to_try(rng: np.random.Generator):
    """Random, parallel, opposite, orthogonal, short and overlong pairs."""
    for _ in range(150):
        d = int(rng.integers(1, 6))
        a, b = rng.standard_normal((2, d))
        a, b = a / np.linalg.norm(a), b / np.linalg.norm(b)
        yield a, b
        yield a, a
        yield a, -a
        yield a * rng.uniform(), b * rng.uniform()
        yield 1e3 * a, a + 10.0 ** rng.uniform(-4, 0) * b


@pytest.mark.parametrize("classes", CLASSES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix])
def test_joint_moments_never_move_further_than_declared(classes, dtype, make):
    balance = 0.5 if classes == 2 else 0.25
    outputs = 1 if classes == 2 else classes
    statistic = JointMoments(balance, outputs)
    declared, alone = 2 * statistic.reach(Relation.REPLACE_ONE), statistic.reach(Relation.ADD_REMOVE)
    largest = longest = 0.0
    for a, b in rows_to_try(np.random.default_rng(0)):
        first = joint(a, 0, classes, balance, dtype, make)
        longest = max(longest, float(np.linalg.norm(first)))
        for other in (0, 1):
            largest = max(largest, float(np.linalg.norm(first - joint(b, other, classes, balance, dtype, make))))
    assert 0.999 * declared <= largest <= declared
    assert 0.999 * alone <= longest <= alone


def pairs_of_the_positive_quadrant():
    for angle in np.linspace(0, np.pi / 2, 181):
        yield np.array([1.0, 0.0]), np.array([np.cos(angle), np.sin(angle)])


@pytest.mark.parametrize("classes", CLASSES)
@pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix])
def test_joint_moments_of_non_negative_rows_never_move_further_than_declared(classes, make):
    """Signed rows are tried too: their negative entries must count as zero."""
    balance, outputs = (0.5, 1) if classes == 2 else (0.25, classes)
    statistic = JointMoments(balance, outputs, non_negative=True)
    declared, largest = 2 * statistic.reach(Relation.REPLACE_ONE), 0.0
    pairs = itertools.chain(pairs_of_the_positive_quadrant(), rows_to_try(np.random.default_rng(3)))
    for (a, b), other in itertools.product(pairs, (0, 1)):
        moved = joint(a, 0, classes, balance, np.float64, make, True) - joint(
            b, other, classes, balance, np.float64, make, True
        )
        largest = max(largest, float(np.linalg.norm(moved)))
    assert 0.9999 * declared <= largest <= declared


def test_only_declared_bounds_make_rows_non_negative():
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-1, 1, (300, 4)), rng.integers(0, 3, 300)
    reach = {}
    for bounds in (None, (-1, 1)):
        model = DPLogisticRegression(1.0, bounds=bounds, classes=[0, 1, 2], random_state=0).fit(X, y)
        reach[bounds] = model.plan_.query("moments").clip_norm
    assert reach[-1, 1] < 0.9 * reach[None]


@pytest.mark.parametrize("classes", CLASSES)
@pytest.mark.parametrize("balance", [0.02, 0.1, 0.25])
def test_joint_reach_is_the_maximum_over_norms_and_angles(classes, balance):
    size = 1.0 if classes == 2 else 1 - 1 / classes
    t = np.linspace(0, 1, 41)[:, None, None]
    u = np.linspace(0, 1, 41)[None, :, None]
    c = np.linspace(-1, 1, 81)
    products = (1.0, -1.0) if classes == 2 else (size, -1 / classes)
    largest = max(
        float((size * (t**2 + u**2) - 2 * p * t * u * c + balance * (t**4 + u**4 - 2 * t**2 * u**2 * c**2)).max())
        for p in products
    )
    declared = (2 * JointMoments(balance, 1 if classes == 2 else classes).reach(Relation.REPLACE_ONE)) ** 2
    assert 0.99 * declared <= largest <= declared * (1 + 1e-12)


def test_a_balance_without_proof_is_refused():
    for outputs, balance in ((1, 0.51), (3, 0.34), (1, 0.0)):
        with pytest.raises(InvalidParameter, match="balance"):
            JointMoments(balance, outputs)


@pytest.mark.parametrize("relation", list(Relation))
def test_second_moments_never_move_further_than_declared(relation):
    rng, largest = np.random.default_rng(1), 0.0
    for a, b in rows_to_try(rng):
        P = rng.standard_normal((len(a), len(a))) * 10.0 ** rng.uniform(-1, 1)
        first, second = (
            LocalRows(row[None], np.ones(1), Logistic()).transformed(P).ask(SecondMoment(), (), EVERY_ROW)
            for row in (a, b)
        )
        moved = first if relation is Relation.ADD_REMOVE else first - second
        largest = max(largest, float(np.linalg.norm(moved)))
    declared = relation.record_distance * SecondMoment().reach(relation)
    assert 0.98 * declared <= largest <= declared


@pytest.mark.parametrize("classes", CLASSES)
def test_capped_gradients_hold_in_every_coordinates(classes):
    rng = np.random.default_rng(2)
    for a, _ in rows_to_try(rng):
        d = len(a)
        P = rng.standard_normal((d, d)) * 10.0 ** rng.uniform(-2, 2)
        z = rng.standard_normal(d if classes == 2 else (d, classes)) * 10.0 ** rng.uniform(-1, 2)
        target = np.array([label(1, classes)])
        rows = LocalRows(a[None], target if classes == 2 else target.astype(int), loss_of(classes)).transformed(P)
        everything = type("Everything", (), {"rows": None, "weights": None})
        assert np.linalg.norm(rows.ask(ClippedGradient(0.4), (z,), everything)) <= 0.4


@pytest.fixture
def fitted():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (4000, 4))
    return DPLogisticRegression(1.0, 1e-6, classes=[0, 1], random_state=0).fit(X, (X[:, 0] > 0).astype(int))


def test_shares_of_the_budget_add_up_exactly(fitted):
    plan = fitted.plan_
    assert {query.kind for query in plan.queries} >= {"moments", "gradient"}
    squared = sum(query.count * (2 / query.noise_multiplier) ** 2 for query in plan.queries)
    assert gaussian_epsilon(math.sqrt(squared), 1e-6) <= 1.0
    assert math.sqrt(squared) == pytest.approx(gaussian_shift(1.0, 1e-6), rel=2e-3)


def test_refinement_is_asked_for_only_where_it_pays(fitted):
    assert fitted.plan_.query("second moment") is not None
    small = DPLogisticRegression(0.05, 1e-6, random_state=0).fit(
        np.random.default_rng(0).uniform(-1, 1, (300, 8)), np.arange(300) % 2
    )
    assert small.plan_.query("second moment") is None


def asked(plan, X, target, oracle=private, seed=0):
    """Standardised answers to the moment query: noise of standard deviation one around the exact sums."""
    rows = LocalRows(X, target, Logistic())
    correlation, second = oracle(rows, plan, make_streams(seed)).ask(MOMENTS)
    exact_c, exact_s = moment_sums(rows, plan.query("moments").question)
    query = plan.query("moments")
    scale = query.noise_multiplier * query.clip_norm
    return np.concatenate([
        ((correlation * query.denominator - exact_c) / scale).ravel(),
        ((second * math.sqrt(0.5) * query.denominator - exact_s) / scale).ravel(),
    ])  # fmt: skip


def noise_is_right(residual: np.ndarray) -> bool:
    """A chi-square test at false alarm 1e-9."""
    from scipy.stats import chi2

    total = float(residual @ residual)
    return bool(chi2.ppf(1e-9, residual.size) <= total <= chi2.isf(1e-9, residual.size))


def test_joint_moments_carry_the_planned_noise(fitted):
    X = np.random.default_rng(3).uniform(-0.1, 0.1, (4000, 100))
    target = np.ones(4000)
    assert noise_is_right(asked(fitted.plan_, X, target))


def test_mutant_noise_is_caught(fitted):
    X = np.random.default_rng(3).uniform(-0.1, 0.1, (4000, 100))
    for factor in (1e-9, 0.5, 0.9):
        quieter = private_with(less_noise(1 / factor))
        assert not noise_is_right(asked(fitted.plan_, X, np.ones(4000), quieter))


def test_moments_are_answered_once(fitted):
    oracle = PrivateOracle(
        LocalRows(np.ones((4000, 5)), np.ones(4000), Logistic()), Gate(fitted.plan_), make_streams(0)
    )
    oracle.ask(MOMENTS)
    with pytest.raises(QueryRefused):
        oracle.ask(MOMENTS)


@pytest.mark.parametrize(
    "matrix",
    [np.full((5, 5), np.nan), np.eye(4), np.ones((5, 5)), np.zeros((5, 5)), np.diag([1.0, 1, 1, 1, 1e-7])],
    ids=["not finite", "another size", "rank one", "zero", "oblique"],
)
def test_unusable_coordinates_are_refused(fitted, matrix):
    oracle = PrivateOracle(
        LocalRows(np.ones((4000, 5)), np.ones(4000), Logistic()), Gate(fitted.plan_), make_streams(0)
    )
    with pytest.raises(QueryRefused):
        oracle.change_coordinates(matrix)


@pytest.mark.parametrize("relation", list(Relation))
def test_no_option_makes_a_statistic_cheaper(relation):
    X = np.random.default_rng(0).uniform(-1, 1, (4000, 4))
    y = (X[:, 0] > 0).astype(int)
    for options in ({"record_distance": 9.0}, {"rules": None}, {"balance": 0.1}):
        with pytest.raises(InvalidParameter):
            DPLogisticRegression(1.0, 1e-6, relation=str(relation), solver_options=options, classes=[0, 1]).fit(X, y)
    plan = DPLogisticRegression(1.0, 1e-6, relation=str(relation), classes=[0, 1]).fit(X, y).plan_
    for query in plan.queries:
        assert query.clip_norm == query.question.reach(relation)


def test_a_plan_that_understates_a_statistic_is_refused(fitted):
    plan = fitted.plan_
    cheaper = replace(plan, queries=tuple(replace(query, clip_norm=0.9 * query.clip_norm) for query in plan.queries))
    oracle = PrivateOracle(LocalRows(np.ones((4000, 5)), np.ones(4000), Logistic()), Gate(cheaper), make_streams(0))
    with pytest.raises(QueryRefused, match="move less"):
        oracle.ask(MOMENTS)
    with pytest.raises(QueryRefused, match="another sort"):
        PrivateOracle(LocalRows(np.ones((4000, 5)), np.ones(4000), Logistic()), Gate(plan), make_streams(0)).ask(
            Kind("moments"), np.zeros(5)
        )


def test_a_statistic_is_never_priced_as_a_sample():
    """It reads every row, so amplification by sampling would be a false claim."""
    budget = Budget(1.0, 1e-5, Relation.ADD_REMOVE)
    asks = [Request("moments", 1, JointMoments(0.5, 1, 0.5))]
    plan = calibrate(budget, asks, Poisson(0.01), 1000)
    assert plan.event.full_batch
    sampled = replace(plan, queries=tuple(replace(query, sampler=Poisson(0.01)) for query in plan.queries))
    oracle = PrivateOracle(LocalRows(np.ones((1000, 3)), np.ones(1000), Logistic()), Gate(sampled), make_streams(0))
    with pytest.raises(QueryRefused, match="every row"):
        oracle.ask(MOMENTS)
    with pytest.raises(PromiseBroken, match="numbers that agree"):
        verify_plan(sampled)
    divided = replace(sampled, queries=tuple(replace(query, denominator=10.0) for query in sampled.queries))
    with pytest.raises(PromiseBroken, match="every row"):
        verify_plan(divided)


def test_a_cheaper_relative_of_a_statistic_is_clipped_to_what_it_says(fitted):
    class Cheap(JointMoments):
        def reach(self, relation):
            return 1e-3

    plan = fitted.plan_
    query = plan.query("moments")
    cheap = replace(query, clip_norm=1e-3, question=Cheap(0.5, 1, 0.5))
    broken = replace(plan, queries=tuple(cheap if other is query else other for other in plan.queries))
    rows = LocalRows(np.ones((4000, 5)), np.ones(4000), Logistic())
    assert np.linalg.norm(rows.ask(cheap.question, (), EVERY_ROW)) <= 4000 * 1e-3
    assert np.linalg.norm(rows.ask(query.question, (), EVERY_ROW)) > 4000 * 0.5
    assert np.isfinite(PrivateOracle(rows, Gate(broken), make_streams(0)).ask(MOMENTS)[0]).all()


@pytest.mark.parametrize("clip", [math.nan, 1e-200])
def test_requests_outside_the_arithmetic_are_refused(clip):
    for request in (Request("gradient", 1, ClippedGradient(clip)), Request("gradient", 1.5, ClippedGradient(1.0))):
        with pytest.raises(InvalidParameter):
            calibrate(Budget(1.0, 1e-5), [request], Everything(), 1000)


def test_second_moments_carry_the_planned_noise_in_any_coordinates(fitted):
    rng = np.random.default_rng(4)
    rows = LocalRows(rng.uniform(-0.1, 0.1, (4000, 80)), np.ones(4000), Logistic(), row_norm=10.0)
    matrix = rng.standard_normal((80, 80))
    query = fitted.plan_.query("second moment")
    oracle = PrivateOracle(rows, Gate(fitted.plan_), make_streams(0))
    oracle.change_coordinates(matrix)
    exact = rows.transformed(matrix).ask(SecondMoment(), (), EVERY_ROW)
    residual = (oracle.ask(SECOND_MOMENT) * query.denominator - exact) / (query.noise_multiplier * query.clip_norm)
    assert noise_is_right(residual.ravel())


def test_second_moments_are_of_the_rows_as_they_are_seen():
    row = np.array([[0.3, 0.4]])
    rows = LocalRows(row, np.ones(1), Logistic(), row_norm=10.0)
    np.testing.assert_allclose(rows.ask(SecondMoment(), (), EVERY_ROW), row.T @ row, rtol=1e-5)


@pytest.mark.parametrize("target", [5.0, 1e300, -1e300, np.nan, np.inf])
@pytest.mark.parametrize("unit", [1.0, 1e-300])
def test_scores_are_cut_whatever_the_target(target, unit):
    statistic = JointMoments(0.5, 1, unit)
    rows = LocalRows(np.array([[0.6, 0.8]]), np.array([target]), Squared())
    with np.errstate(all="ignore"):
        parts = np.concatenate([part.ravel() for part in moment_sums(rows, statistic)])
    assert np.linalg.norm(parts) <= statistic.reach(Relation.ADD_REMOVE)


def test_rows_that_overflow_in_new_coordinates_count_as_zero():
    rows = LocalRows(np.full((2, 2), 1e20, dtype=np.float32), np.ones(2), Logistic(), row_norm=1e21)
    with np.errstate(all="ignore"):
        seen = rows.transformed(1e25 * np.eye(2))
        assert np.all(np.isfinite(seen.ask(SecondMoment(), (), EVERY_ROW)))
        everything = type("Everything", (), {"rows": None, "weights": None})
        assert np.all(np.isfinite(seen.ask(ClippedGradient(1.0), (np.zeros(2),), everything)))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform has no fork")
def test_a_forked_child_is_refused(fitted):
    oracle = PrivateOracle(
        LocalRows(np.ones((4000, 5)), np.ones(4000), Logistic()), Gate(fitted.plan_), make_streams(0)
    )
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            oracle.ask(MOMENTS)
            os.write(write, b"answered")
        except QueryRefused:
            os.write(write, b"refused")
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    assert os.read(read, 20) == b"refused"


@pytest.mark.parametrize(
    "change", [{"moment_share": 0.0}, {"cap": 1e300}, {"balance": "a"}, {"final_rounds": 1.5}, {"curvature": math.nan}]
)
def test_unusable_rules_are_refused_before_anything_is_asked(change):
    rules = choose_rules(1000.0, 5, 2, LossModel(0.5, 0.25))
    with pytest.raises(InvalidParameter):
        replace(rules, **change)


def test_a_nominal_row_count_does_not_mislead_the_model():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (5000, 5))
    y = (X @ [3.0, -3.0, 0, 0, 0] > 0).astype(int)
    model = DPLogisticRegression(1.0, 1e-8, relation="add-remove", n_rows=50_000, classes=[0, 1], random_state=0).fit(
        X, y
    )
    assert model.score(X, y) > 0.98
