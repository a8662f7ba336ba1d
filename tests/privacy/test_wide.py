"""The queries of `auto` on wide tables: declared reach attained and never exceeded, noise as planned, never d × d."""

from __future__ import annotations

import itertools
import math
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from dpadmm import DPLinearRegression, DPLinearSVC, DPLogisticRegression
from dpadmm.errors import InvalidParameter, QueryRefused
from dpadmm.oracles.gate import Gate
from dpadmm.oracles.private import PrivateOracle
from dpadmm.privacy.accountants.gaussian import gaussian_epsilon, gaussian_shift
from dpadmm.privacy.budget import Relation
from dpadmm.privacy.questions import (
    ROW_MOMENTS,
    ClippedGradient,
    FeatureCurvature,
    GradientDifference,
    JointMoments,
    RowMoments,
    SecondMoment,
)
from dpadmm.problem.losses import Logistic, Softmax, Squared
from dpadmm.problem.spiked_map import SpikedMap
from dpadmm.randomness import make_streams
from dpadmm.rows.local import LocalRows
from dpadmm.solvers.auto.rules import LossModel
from dpadmm.solvers.auto.wide_rules import choose_wide_rules
from tests.asking import EVERY_ROW, less_noise, moment_sums, private, private_with, row_moment_sums

from .taint import differences, observe
from .test_auto import CLASSES, label, loss_of, noise_is_right, rows_to_try

EVERYTHING = type("Everything", (), {"rows": None, "weights": None})
WIDE = 3500


def statistic_of(classes: int, mean: float = 0.5) -> RowMoments:
    outputs = 1 if classes == 2 else classes
    room = 0.5 if classes == 2 else (1 - 1 / classes) / 2
    return RowMoments(mean, room / 2, room / 2, outputs, 0.5 if classes == 2 else 1.0)


def contribution(row, number, classes, statistic, dtype=np.float64, make=np.asarray):
    target = np.array([label(number, classes)])
    rows = LocalRows(make(row[None].astype(dtype)), target if classes == 2 else target.astype(int), loss_of(classes))
    return np.concatenate([part.ravel() for part in row_moment_sums(rows, statistic)])


@pytest.mark.parametrize("classes", CLASSES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix])
def test_row_moments_never_move_further_than_declared(classes, dtype, make):
    statistic = statistic_of(classes)
    declared, alone = 2 * statistic.reach(Relation.REPLACE_ONE), statistic.reach(Relation.ADD_REMOVE)
    largest = longest = 0.0
    for a, b in rows_to_try(np.random.default_rng(0)):
        for row in (a, np.eye(len(a))[0], b):
            first = contribution(row, 0, classes, statistic, dtype, make)
            longest = max(longest, float(np.linalg.norm(first)))
            for other in (0, 1):
                second = contribution(b, other, classes, statistic, dtype, make)
                largest = max(largest, float(np.linalg.norm(first - second)))
    assert 0.999 * declared <= largest <= declared
    assert 0.999 * alone <= longest <= alone


@pytest.mark.parametrize("classes", CLASSES)
@pytest.mark.parametrize("mean", [0.0, 0.1, 1.0])
@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_row_reach_is_the_maximum_of_a_search(classes, mean, share):
    """Random starts climb the squared distance of two contributions in two and three dimensions."""
    size = 1.0 if classes == 2 else 1 - 1 / classes
    statistic = RowMoments(mean, share * size / 2, (1 - share) * size / 2, 1 if classes == 2 else classes)
    rng, largest = np.random.default_rng(1), 0.0
    for d in (1, 2, 3):
        a, b = (unit_ball(rng.standard_normal((4_000, d))) for _ in range(2))
        for _ in range(6):
            for p in (1.0, -1.0) if classes == 2 else (size, -1 / classes):
                squared = size * ((a**2).sum(1) + (b**2).sum(1)) - 2 * p * (a * b).sum(1)
                squared += statistic.mean * ((a - b) ** 2).sum(1)
                squared += statistic.diagonal * ((a**2 - b**2) ** 2).sum(1)
                squared += statistic.length * ((a**2).sum(1) - (b**2).sum(1)) ** 2
                largest = max(largest, float(squared.max()))
                best = np.argsort(-squared)[:100].repeat(40)
                a = unit_ball(a[best] + 0.1 * rng.standard_normal(a.shape))
                b = unit_ball(b[best] + 0.1 * rng.standard_normal(b.shape))
    declared = (2 * statistic.reach(Relation.REPLACE_ONE)) ** 2
    assert 0.99 * declared <= largest <= declared * (1 + 1e-12)


def unit_ball(rows):
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1.0)


def test_weights_without_proof_are_refused():
    for weights in ((0.5, 0.4, 0.11), (-0.1, 0.1, 0.1), (0.5, -0.1, 0.1), (math.nan, 0.1, 0.1), (2.0, 0.1, 0.1)):
        with pytest.raises(InvalidParameter, match="weights"):
            RowMoments(*weights, outputs=1)
    with pytest.raises(InvalidParameter):
        RowMoments(0.5, 0.3, 0.1, outputs=3)


def spiked_maps(rng, d):
    """Mild, extreme and degenerate coordinates."""
    for stretch in (1e-4, 0.03, 1.0, 50.0, 1e4):
        yield SpikedMap(10.0 ** rng.uniform(-2, 2, d), rng.standard_normal(d), stretch)
    yield SpikedMap(np.full(d, 3.0), np.eye(d)[0], 0.2)
    yield SpikedMap(np.full(d, 3.0), np.zeros(d), 1.0)


def test_a_spiked_map_is_the_matrix_it_stands_for():
    rng = np.random.default_rng(0)
    for d in (1, 2, 7):
        for spiked in spiked_maps(rng, d):
            P = spiked @ np.eye(d)
            h = spiked.normal
            reflection = np.eye(d) - 2 * np.outer(h, h)
            np.testing.assert_allclose(P, np.diag(spiked.scale) @ reflection @ np.diag(spiked.stretches), atol=1e-9)
            np.testing.assert_allclose(spiked.T @ np.eye(d), P.T, atol=1e-9)
            np.testing.assert_allclose(np.abs(reflection[:, spiked.axis]), np.abs(spiked.direction), atol=1e-12)
            x = rng.standard_normal(d)
            np.testing.assert_allclose(spiked @ spiked.solve(x), x, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("change", [{"stretch": 1e5}, {"stretch": math.nan}, {"scale": np.array([1.0, 0.0])}])
def test_unusable_spiked_maps_are_refused(change):
    fields = {"scale": np.ones(2), "direction": np.ones(2), "stretch": 0.5} | change
    with pytest.raises(InvalidParameter, match="coordinates"):
        SpikedMap(**fields)


@pytest.mark.parametrize("shape", [(), (2,), (4,), (4, 3), (2, 3, 2)])
def test_vectors_of_another_length_are_refused(shape):
    spiked = SpikedMap(np.ones(3), np.ones(3), 0.5)
    for product in (spiked, spiked.T):
        with pytest.raises(InvalidParameter, match="first axis"):
            product @ np.ones(shape)


@pytest.mark.parametrize("classes", CLASSES)
@pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_capped_gradients_hold_in_every_spiked_coordinates(classes, make, dtype):
    rng, largest = np.random.default_rng(2), 0.0
    for a, _ in itertools.islice(rows_to_try(rng), 60):
        d = len(a)
        target = np.array([label(1, classes)])
        for spiked in spiked_maps(rng, d):
            for row in (a, spiked.direction / spiked.scale, 1e-3 * spiked.direction / spiked.scale):
                rows = LocalRows(
                    make(row[None].astype(dtype)), target if classes == 2 else target.astype(int), loss_of(classes)
                )
                z = rng.standard_normal(d if classes == 2 else (d, classes)) * 10.0 ** rng.uniform(-1, 1)
                size = float(np.linalg.norm(rows.transformed(spiked).ask(ClippedGradient(0.4), (z,), EVERYTHING)))
                largest = max(largest, size)
                assert size <= 0.4
    assert largest > 0.4 * (1 - 1e-5)


@pytest.mark.parametrize("size", [1e-320, 1e-200, 1e-130, 1e150, 1e300])
def test_rows_of_any_size_are_capped(size):
    """Squares that overflow or vanish must not hide the length of a row."""
    spiked = SpikedMap(np.array([1.0, 2.0]), np.array([1.0, 1.0]), 0.1)
    rows = LocalRows(np.array([[size, -size]]), np.array([-1.0 / size if size < 1 else 1.0]), Squared())
    with np.errstate(all="ignore"):
        answer = rows.transformed(spiked).ask(ClippedGradient(0.4), (np.zeros(2),), EVERYTHING)
    assert np.linalg.norm(answer) <= 0.4


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix])
def test_spiked_gradients_are_those_of_the_transformed_rows(make):
    rng = np.random.default_rng(3)
    X, target, z = rng.standard_normal((300, 9)), rng.choice([-1.0, 1.0], 300), rng.standard_normal(9)
    for spiked in spiked_maps(rng, 9):
        dense = LocalRows(X @ (spiked @ np.eye(9)), target, Logistic())
        seen = LocalRows(make(X), target, Logistic()).transformed(spiked)
        expected = dense.ask(ClippedGradient(0.4), (z,), EVERYTHING)
        np.testing.assert_allclose(seen.ask(ClippedGradient(0.4), (z,), EVERYTHING), expected, rtol=1e-5, atol=1e-5)
        moved = seen.ask(GradientDifference(0.8), (z, 0 * z, 0.1), EVERYTHING)
        np.testing.assert_allclose(
            moved, dense.ask(GradientDifference(0.8), (z, 0 * z, 0.1), EVERYTHING), rtol=1e-5, atol=1e-5
        )


def text(n=1500, d=WIDE, seed=0):
    """Sparse rows with frequent and rare features, and labels from the frequent ones."""
    rng = np.random.default_rng(seed)
    chance = 1 / np.arange(1, d + 1)
    columns = rng.choice(d, (n, 30), p=chance / chance.sum())
    X = sparse.csr_matrix((np.ones(columns.size), (np.repeat(np.arange(n), 30), columns.ravel())), shape=(n, d))
    X.data[:] = 1.0
    X.sum_duplicates()
    score = X[:, :40] @ rng.choice([-1.0, 1.0], 40)
    return X, (score > np.median(score)).astype(int)


@pytest.fixture(scope="module", params=list(Relation))
def fitted(request):
    X, y = text()
    return DPLogisticRegression(1.0, 1e-6, classes=[0, 1], relation=str(request.param), random_state=0).fit(X, y)


def test_the_ledger_is_exact_and_the_promise_kept(fitted):
    plan = fitted.plan_
    distance = plan.budget.relation.record_distance
    squared = sum(query.count * (distance / query.noise_multiplier) ** 2 for query in plan.queries)
    assert [type(query.question) for query in plan.queries] == [RowMoments, ClippedGradient]
    assert gaussian_epsilon(math.sqrt(squared), 1e-6) <= 1.0
    assert math.sqrt(squared) == pytest.approx(gaussian_shift(1.0, 1e-6), rel=2e-3)
    for query in plan.queries:
        assert query.clip_norm == query.question.reach(plan.budget.relation)


def standardised(plan, oracle=private):
    """Answers to the moment query: noise of standard deviation one around the exact sums."""
    X, y = text()
    rows, query = LocalRows(X[:, :400], 2.0 * y - 1, Logistic(), row_norm=8.0), plan.query("moments")
    weights = (1.0, query.question.mean, query.question.diagonal, query.question.length)
    answers = oracle(rows, plan, make_streams(0)).ask(ROW_MOMENTS)
    exact = row_moment_sums(rows, query.question)
    scale = query.noise_multiplier * query.clip_norm
    return np.concatenate([
        (answer * math.sqrt(weight or 1.0) * query.denominator - total) / scale
        for answer, weight, total in zip(answers, weights, exact, strict=True)
    ])  # fmt: skip


def test_row_moments_carry_the_planned_noise(fitted):
    residual = standardised(fitted.plan_)
    assert residual.size > 800
    assert noise_is_right(residual)


def test_mutant_noise_is_caught(fitted):
    for factor in (1e-9, 0.5, 0.85):
        quieter = private_with(less_noise(1 / factor))
        assert not noise_is_right(standardised(fitted.plan_, quieter))


def test_row_moments_are_answered_once_and_only_as_planned(fitted):
    X, y = text()
    plan = fitted.plan_
    oracle = PrivateOracle(LocalRows(X, 2.0 * y - 1, Logistic()), Gate(plan), make_streams(0))
    oracle.ask(ROW_MOMENTS)
    with pytest.raises(QueryRefused):
        oracle.ask(ROW_MOMENTS)
    other = PrivateOracle(LocalRows(X, y, Softmax(3)), Gate(plan), make_streams(0))
    with pytest.raises(QueryRefused, match="moments"):
        other.ask(ROW_MOMENTS)
    query = plan.query("moments")
    queries = tuple(replace(q, clip_norm=0.9 * q.clip_norm) if q is query else q for q in plan.queries)
    broken = PrivateOracle(LocalRows(X, 2.0 * y - 1, Logistic()), Gate(replace(plan, queries=queries)), make_streams(0))
    with pytest.raises(QueryRefused):
        broken.ask(ROW_MOMENTS)


def test_spiked_rows_answer_gradients_only():
    X, y = text(50)
    seen = LocalRows(X, 2.0 * y - 1, Logistic()).transformed(SpikedMap(np.ones(WIDE), np.ones(WIDE), 0.5))
    for ask in (
        lambda: seen.ask(SecondMoment(), (), EVERY_ROW),
        lambda: seen.ask(FeatureCurvature(), (np.zeros(WIDE), np.ones(WIDE)), EVERY_ROW),
        lambda: moment_sums(seen, JointMoments(0.5, 1)),
        lambda: row_moment_sums(seen, statistic_of(2)),
        lambda: seen.transformed(np.eye(WIDE)[:, :1]),
    ):
        with pytest.raises(QueryRefused):
            ask()


@pytest.mark.parametrize(
    "model",
    [
        DPLogisticRegression(classes=[0, 1], delta=1e-3, steps=4),
        DPLogisticRegression(classes=[0, 1, 2], delta=1e-3, steps=4, penalty="l1"),
        DPLogisticRegression(classes=[0, 1], delta=1e-3, steps=4, relation="add-remove", n_rows=70, row_norm=3.0),
        DPLinearSVC(classes=[0, 1], delta=1e-3, steps=4, penalty="fused"),
        DPLinearRegression(target_bounds=(0, 1), delta=1e-3, steps=4, fit_intercept=False),
    ],
    ids=["logistic", "softmax-l1", "add-remove", "svm-fused", "squared"],
)
def test_nothing_depends_on_the_data(model, tmp_path):
    rng = np.random.default_rng(0)
    tame = sparse.random(60, WIDE, 0.01, format="csr", random_state=0), (np.arange(60) % 2).astype(int)
    wild = tame[0].copy()
    wild.data *= 10.0 ** rng.integers(-300, 300, wild.nnz)
    wild = wild, np.zeros(60, dtype=int)
    one, two = (observe(model, *rows, tmp_path / str(i)) for i, rows in enumerate((tame, wild)))
    assert one["failure"] is None
    assert differences(one, two) == []


def test_public_numbers_decide_whether_a_diagonal_is_asked_for():
    logistic = LossModel(0.5, 0.25)
    assert choose_wide_rules(5_000.0, 5_000, 2, logistic).diagonal == 0
    assert choose_wide_rules(50_000.0, 5_000, 2, logistic).diagonal > 0
    for classes in (2, 3, 10, 1000):
        rules = choose_wide_rules(1e7, 5_000, classes, logistic)
        RowMoments(rules.balance, rules.diagonal, rules.length, 1 if classes == 2 else classes)


def test_two_hundred_thousand_features_fit_in_little_memory():
    rng = np.random.default_rng(0)
    n, d = 400, 200_000
    X = sparse.random(n, d, 5e-5, format="csr", random_state=0)
    model = DPLogisticRegression(1.0, 1e-6, classes=[0, 1], steps=3, random_state=0)
    tracemalloc.start()
    model.fit(X, rng.integers(0, 2, n))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert model.coef_.shape == (1, d)
    assert peak < 60 * 8 * d  # a d × d matrix would take 8d²


@pytest.mark.parametrize("d", [5000, 200_000])
def test_norms_in_stretched_coordinates_are_never_understated(d):
    """A row along the squeezed direction: its norm is a small difference of large numbers."""
    rng = np.random.default_rng(0)
    direction = rng.random(d)
    spiked = SpikedMap(rng.uniform(0.5, 2.0, d), direction, 1e-4)
    row = (direction / spiked.scale).astype(np.float64)
    rows = LocalRows(sparse.csr_matrix(row[None] / np.linalg.norm(row)), np.ones(1), Logistic())
    true = np.linalg.norm(spiked.T @ (row / np.linalg.norm(row)))
    assert rows.transformed(spiked)._rows._norms[0] >= true


def test_oblique_or_repeated_changes_of_coordinates_are_refused(fitted):
    rows = LocalRows(np.eye(3), np.ones(3), Logistic())
    with pytest.raises(QueryRefused):
        rows.transformed(np.eye(3)).transformed(SpikedMap(np.ones(3), np.ones(3), 1.0))
    oracle = PrivateOracle(rows, Gate(fitted.plan_), make_streams(0))
    with pytest.raises(QueryRefused, match="oblique"):
        oracle.change_coordinates(SpikedMap(np.array([1.0, 1.0, 1e-7]), np.ones(3), 1.0))
