"""Weights of rows and classes, as public constants."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from dpadmm import DPLinearRegression, DPLinearSVC, DPLogisticRegression, kernels, load_model
from dpadmm.errors import InvalidParameter
from dpadmm.privacy.budget import Relation
from dpadmm.privacy.questions import ClippedGradient, FeatureCurvature, JointMoments, SecondMoment
from dpadmm.privacy.sampling import Batch
from dpadmm.problem.losses import Logistic, Softmax
from dpadmm.problem.rowmap import RowMap
from dpadmm.rows.local import LocalRows
from dpadmm.rows.packed import PackedRows
from tests.asking import EVERY_ROW, moment_sums


def table(n: int = 4000, seed: int = 0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 3))
    return X, np.where(X[:, 0] + 0.5 * rng.standard_normal(n) > 0.4, "yes", "no")


@pytest.mark.parametrize("engine", ["numpy", "compiled"])
@pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("loss", [Logistic(), Softmax(3)])
def test_a_weight_is_a_share_of_a_row(engine, make, loss):
    """Whole weights are copies of rows, once divided by the largest."""
    rng = np.random.default_rng(0)
    X, counts = rng.uniform(-1, 1, (40, 4)), rng.integers(0, 4, 40)
    target = rng.integers(0, 3, 40) if loss.outputs == 3 else rng.choice([-1.0, 1.0], 40)
    weighted = LocalRows(make(X), target, loss, weights=counts / 3)
    copied = LocalRows(make(np.repeat(X, counts, axis=0)), np.repeat(target, counts), loss)
    x = rng.standard_normal(weighted.space.point_shape)
    with kernels.use(engine):
        np.testing.assert_allclose(
            3 * weighted.ask(ClippedGradient(0.3), (x,), EVERY_ROW),
            copied.ask(ClippedGradient(0.3), (x,), EVERY_ROW),
            atol=1e-9,
        )
        batch = Batch(np.array([5, 1, 7]), np.array([1.0, 0.0, 1.0]))
        alone = LocalRows(make(X[[5, 7]]), target[[5, 7]], loss, weights=counts[[5, 7]] / 3)
        np.testing.assert_allclose(
            weighted.ask(ClippedGradient(0.3), (x,), batch),
            alone.ask(ClippedGradient(0.3), (x,), EVERY_ROW),
            atol=1e-12,
        )
    statistic = JointMoments(0.25, loss.outputs, 0.5)
    for ours, theirs in zip(moment_sums(weighted, statistic), moment_sums(copied, statistic), strict=True):
        np.testing.assert_allclose(3 * ours, theirs, atol=1e-9)
    P = rng.standard_normal((4, 4))
    np.testing.assert_allclose(
        3 * weighted.transformed(P).ask(SecondMoment(), (), EVERY_ROW),
        copied.transformed(P).ask(SecondMoment(), (), EVERY_ROW),
        atol=1e-9,
    )
    if type(loss) is Logistic:
        asked = x, np.full(4, 50.0)
        np.testing.assert_allclose(
            3 * weighted.ask(FeatureCurvature(), tuple(asked), EVERY_ROW),
            copied.ask(FeatureCurvature(), tuple(asked), EVERY_ROW),
            atol=1e-9,
        )


@pytest.mark.parametrize("engine", ["numpy", "compiled"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_mini_batch_of_dense_rows_with_an_intercept_is_weighted(engine, dtype):
    """Without weights such a batch takes a shorter way, which knows of none."""
    rng = np.random.default_rng(2)
    X, y, weights = rng.uniform(-1, 1, (30, 4)).astype(dtype), rng.choice([-1.0, 1.0], 30), rng.uniform(0.1, 1, 30)
    x, batch = rng.standard_normal(5), np.array([4, 0, 17, 29])
    weighted = LocalRows(PackedRows.of(RowMap(), X), y, Logistic(), weights=weights)
    with kernels.use(engine):
        by_row = [
            weights[i]
            * LocalRows(PackedRows.of(RowMap(), X[[i]]), y[[i]], Logistic()).ask(ClippedGradient(0.1), (x,), EVERY_ROW)
            for i in batch
        ]
        np.testing.assert_allclose(
            weighted.ask(ClippedGradient(0.1), (x,), Batch(batch)), np.sum(by_row, axis=0), rtol=1e-6
        )


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize("classes", [2, 3])
def test_no_weight_moves_a_sum_further_than_declared(relation, classes):
    rng = np.random.default_rng(1)
    loss, statistic = (Logistic(), JointMoments(0.5, 1, 0.5)) if classes == 2 else (Softmax(3), JointMoments(0.25, 3))
    labels = [-1.0, 1.0] if classes == 2 else [0, 1, 2]
    largest = {"moments": 0.0, "gradient": 0.0, "second moment": 0.0, "curvature": 0.0}
    for _ in range(400):
        a = rng.standard_normal(2)
        a = a / np.linalg.norm(a)
        b = a * rng.choice([-1, 1]) if rng.random() < 0.5 else rng.standard_normal(2)
        pair = [
            LocalRows(row[None], np.array([rng.choice(labels)]), loss, weights=np.array([10.0 ** rng.uniform(-2, 1)]))
            for row in (a, b)
        ]
        x = 100 * rng.standard_normal(pair[0].space.point_shape)
        answers = {
            "moments": [np.concatenate([part.ravel() for part in moment_sums(rows, statistic)]) for rows in pair],
            "gradient": [rows.ask(ClippedGradient(0.3), (x,), EVERY_ROW).ravel() for rows in pair],
            "second moment": [rows.ask(SecondMoment(), (), EVERY_ROW).ravel() for rows in pair],
        }
        if classes == 2:
            weights = 10.0 ** rng.uniform(-2, 3, 2)
            answers["curvature"] = [rows.ask(FeatureCurvature(), (x / 100, weights), EVERY_ROW) for rows in pair]
        for name, (one, other) in answers.items():
            moved = one if relation is Relation.ADD_REMOVE else one - other
            largest[name] = max(largest[name], float(np.linalg.norm(moved)))
    distance = relation.record_distance
    assert largest["moments"] <= distance * statistic.reach(relation)
    assert largest["gradient"] <= distance * 0.3
    assert largest["second moment"] <= distance * SecondMoment().reach(relation)
    assert largest["curvature"] <= distance * FeatureCurvature().reach(relation)
    assert classes == 3 or largest["curvature"] > 0.8 * distance * FeatureCurvature().reach(relation)
    assert largest["gradient"] > 0.8 * distance * 0.3


@pytest.mark.parametrize("model", [DPLogisticRegression, DPLinearSVC])
def test_a_heavier_class_is_predicted_more_often(model):
    X, y = table()

    def share(class_weight):
        fitted = model(1.0, 1e-5, classes=["no", "yes"], class_weight=class_weight, random_state=0).fit(X, y)
        return np.mean(fitted.predict(X) == "yes"), fitted

    plain, _ = share(None)
    heavy, fitted = share({"yes": 5.0})
    light, _ = share({"yes": 0.2, "no": 1.0})
    assert light < plain < heavy
    assert "weights are public constants" in str(fitted.privacy_)


def test_rows_of_weight_zero_do_not_count():
    X, y = table()
    spoiled = np.where(np.arange(len(y)) % 2, y, "no")
    weight = np.arange(len(y)) % 2
    fit = DPLogisticRegression(2.0, 1e-5, classes=["no", "yes"], random_state=0).fit
    assert fit(X, spoiled, public_weight=weight).score(X, y) > fit(X, spoiled).score(X, y) + 0.02


def test_regression_takes_weights_of_rows():
    rng = np.random.default_rng(0)
    X = rng.uniform(-0.5, 0.5, (6000, 1))
    y = np.where(np.arange(6000) % 2, X[:, 0], -X[:, 0])
    model = DPLinearRegression(2.0, 1e-5, fit_intercept=False, random_state=0)
    assert model.fit(X, y, public_weight=np.arange(6000) % 2).coef_[0] > 0.6


def test_weights_do_not_cost_privacy():
    X, y = table(500)
    model = DPLogisticRegression(1.0, 1e-5, classes=["no", "yes"], random_state=0)
    assert model.fit(X, y).plan_ == model.fit(X, y, public_weight=np.linspace(0, 1, 500)).plan_


def test_a_weighted_model_is_saved_without_its_labels(tmp_path):
    X, y = table(500)
    model = DPLogisticRegression(1.0, classes=["no", "yes"], class_weight={"yes": 2.0}, random_state=0).fit(X, y)
    again = load_model(model.save(tmp_path / "model"))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


@pytest.mark.parametrize(
    "class_weight", ["balanced", {"maybe": 1.0}, {"yes": -1.0}, {"yes": 0, "no": 0}, {"yes": None}]
)
def test_class_weights_that_are_none_are_refused(class_weight):
    X, y = table(100)
    with pytest.raises(InvalidParameter, match="class_weight"):
        DPLogisticRegression(1.0, classes=["no", "yes"], class_weight=class_weight).fit(X, y)


@pytest.mark.parametrize("weight", [np.ones(99), np.full(100, np.nan), -np.ones(100), np.zeros(100), ["a"] * 100])
def test_row_weights_that_are_none_are_refused(weight):
    X, y = table(100)
    with pytest.raises(InvalidParameter, match="public_weight"):
        DPLogisticRegression(1.0, classes=["no", "yes"]).fit(X, y, public_weight=weight)


def test_weights_of_rows_and_a_protected_row_count_exclude_each_other():
    """The largest weight divides all others, so it would tell whether its row is there."""
    X, y = table(100)
    model = DPLogisticRegression(1.0, classes=["no", "yes"], relation="add-remove", n_rows=100)
    with pytest.raises(InvalidParameter, match="n_rows"):
        model.fit(X, y, public_weight=np.ones(100))


def test_a_weight_that_is_no_number_counts_as_zero():
    rows = LocalRows(np.ones((1, 1)), np.ones(1), Logistic(), weights=np.array([np.nan]))
    assert rows.ask(ClippedGradient(1.0), (np.zeros(1),), EVERY_ROW) == 0
