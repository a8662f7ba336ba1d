"""A fit in a pipeline refuses earlier steps that learned from the rows, and lets pass those that did not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor
from sklearn.decomposition import PCA
from sklearn.ensemble import BaggingClassifier, StackingClassifier
from sklearn.feature_selection import SelectFromModel, SelectKBest
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import Binarizer, FunctionTransformer, Normalizer, StandardScaler

from dpadmm import (
    DPLinearRegression,
    DPLogisticRegression,
    DPSearchCV,
    LaplacianBlur,
    Ledger,
    PrivateQuantileClipper,
    compose_statements,
)
from dpadmm.errors import PrivacyError
from dpadmm.estimators.pipelines import NOTHING_ELSE
from dpadmm.privacy.budget import Budget
from dpadmm.problem.smoothers import RingLaplacian

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (300, 4))
Y = (X[:, 0] > 0).astype(int)


def model(**more: Any) -> DPLogisticRegression:
    settings = {"classes": [0, 1], "row_norm": 2.0, "solver": "dp-gd", "steps": 2, "random_state": 0}
    return DPLogisticRegression(1.0, 1e-5, **{**settings, **more})


class Centred(FunctionTransformer):
    """Learns, in spite of its base."""

    def fit(self, X: Any, y: Any = None) -> Centred:
        self.mean_ = X.mean(axis=0)
        return self


@pytest.mark.parametrize(
    "step",
    [
        StandardScaler(),
        PCA(2),
        SelectKBest(k=2),
        SimpleImputer(),
        Centred(),
        FeatureUnion([("scale", StandardScaler())]),
        make_pipeline(FunctionTransformer(), StandardScaler()),
    ],
)
def test_a_step_that_learned_is_refused_by_name(step: Any) -> None:
    with pytest.raises(PrivacyError, match=type(step).__name__):
        make_pipeline(step, model()).fit(X, Y)


@pytest.mark.parametrize(
    "wrap",
    [
        lambda last: make_pipeline(StandardScaler(), FunctionTransformer(), last),
        lambda last: make_pipeline(StandardScaler(), make_pipeline(FunctionTransformer(), last)),
        lambda last: make_pipeline(make_pipeline(StandardScaler()), Pipeline([("model", last)])),
        lambda last: GridSearchCV(
            make_pipeline(StandardScaler(), last), {"standardscaler__with_mean": [True, False]}, error_score="raise"
        ),
        lambda last: make_pipeline(StandardScaler(), DPSearchCV(last, {"row_norm": [1.0, 2.0]}, mean_trials=2.0)),
    ],
)
def test_wherever_the_pipeline_is(wrap: Any) -> None:
    with pytest.raises(PrivacyError, match="learned from the rows"):
        wrap(model()).fit(X, Y)


@pytest.mark.parametrize(
    "wrap",
    [
        lambda last: OneVsRestClassifier(last),
        lambda last: BaggingClassifier(last, n_estimators=2),
        lambda last: CalibratedClassifierCV(last, cv=2),
        lambda last: OneVsRestClassifier(make_pipeline(Normalizer(), last)),
        lambda last: make_pipeline(Normalizer(), OneVsRestClassifier(last)),
    ],
)
def test_a_copy_inside_of_the_last_step_is_found(wrap: Any) -> None:
    with pytest.raises(PrivacyError, match="StandardScaler learned from the rows"):
        make_pipeline(StandardScaler(), wrap(model())).fit(X, Y)
    make_pipeline(Normalizer(), wrap(model())).fit(X, Y)


def test_a_copy_inside_of_a_step_in_the_middle_is_found() -> None:
    """Only the steps before it: what comes after it is fitted on what it released."""
    middle = SelectFromModel(model())
    with pytest.raises(PrivacyError, match="StandardScaler learned from the rows"):
        make_pipeline(StandardScaler(), middle, GaussianNB()).fit(X, Y)
    make_pipeline(Normalizer(), middle, StandardScaler(), GaussianNB()).fit(X, Y)


def test_a_private_step_of_a_pipeline_that_copies_its_steps(tmp_path: Any) -> None:
    clipper = PrivateQuantileClipper((-4, 4), epsilon=1.0, random_state=0)
    with pytest.raises(PrivacyError, match="learned from the rows before PrivateQuantileClipper"):
        make_pipeline(StandardScaler(), clipper, model(), memory=str(tmp_path)).fit(X, Y)


def test_a_target_changed_by_what_was_learned_from_it() -> None:
    last = DPLinearRegression(1.0, 1e-5, row_norm=2.0, target_bounds=(-1, 1), solver="dp-gd", steps=2, random_state=0)
    for wrapped in (lambda each: each, lambda each: make_pipeline(Normalizer(), each)):
        with pytest.raises(PrivacyError, match="StandardScaler learned from the rows"):
            TransformedTargetRegressor(wrapped(last), transformer=StandardScaler()).fit(X, X[:, 0])
        with pytest.raises(PrivacyError, match="StandardScaler learned from the rows"):
            make_pipeline(StandardScaler(), TransformedTargetRegressor(wrapped(last))).fit(X, X[:, 0])
        TransformedTargetRegressor(wrapped(last), func=np.arctanh, inverse_func=np.tanh).fit(X, X[:, 0] / 2)


def test_the_last_model_of_a_stack_is_fitted_on_what_the_others_learned() -> None:
    for last in (model(), make_pipeline(Normalizer(), model())):
        with pytest.raises(PrivacyError, match="GaussianNB learned from the rows before DPLogisticRegression"):
            StackingClassifier([("bayes", GaussianNB())], final_estimator=last, cv=2).fit(X, Y)
        StackingClassifier([("first", model())], final_estimator=last, cv=2).fit(X, Y)
    StackingClassifier([("first", model())], final_estimator=GaussianNB(), cv=2).fit(X, Y)


def test_a_private_step_refuses_too() -> None:
    with pytest.raises(PrivacyError, match="StandardScaler learned from the rows before PrivateQuantileClipper"):
        make_pipeline(StandardScaler(), PrivateQuantileClipper((-4, 4), epsilon=1.0), model()).fit(X, Y)


def test_nothing_is_spent(tmp_path: Any) -> None:
    ledger = Ledger.create(tmp_path / "ledger.db")
    ledger.set_limit("people", Budget(5.0, 1e-5), owner="Ada", test=True)
    before = ledger.head
    with pytest.raises(PrivacyError):
        make_pipeline(StandardScaler(), model(ledger=ledger, dataset="people")).fit(X, Y)
    assert ledger.head == before


def test_steps_that_learn_nothing_or_privately_pass() -> None:
    public = StandardScaler().fit(RNG.uniform(-1, 1, (100, 4)))
    for step in (
        FunctionTransformer(np.abs),
        FunctionTransformer(public.transform),
        Normalizer(),
        Binarizer(),
        "passthrough",
        None,
        LaplacianBlur(RingLaplacian(1.0)),
        PrivateQuantileClipper((-4, 4), epsilon=1.0, random_state=0),
        make_pipeline(Normalizer(), PrivateQuantileClipper((-4, 4), epsilon=1.0, random_state=0)),
    ):
        fitted = make_pipeline(step, model()).fit(X, Y)
        assert fitted[-1].privacy_.facts.assumes(NOTHING_ELSE)


def test_a_pipeline_elsewhere_is_none_of_our_business() -> None:
    """Only the pipelines that are being fitted, and only the steps before."""
    scaler = make_pipeline(StandardScaler()).fit(X)
    assert model().fit(scaler.transform(X), Y).privacy_.epsilon == 1.0


def test_the_statement_says_what_it_does_not_cover() -> None:
    clipper = PrivateQuantileClipper((-4, 4), epsilon=1.0, random_state=0).fit(X)
    alone = model().fit(X, Y)
    assert "nothing else that learned from these rows beforehand is covered" in alone.privacy_.text
    keys = [assumption.key for assumption in compose_statements(clipper, alone).facts.assumptions]
    assert keys.count(NOTHING_ELSE) == 1
