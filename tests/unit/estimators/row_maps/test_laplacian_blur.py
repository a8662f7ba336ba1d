"""The public feature map for rows with a geometry."""

from __future__ import annotations

import contextlib
import warnings
from unittest import SkipTest

import numpy as np
import pytest
from scipy import sparse
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import estimator_checks_generator

from dpadmm import DPLogisticRegression, LaplacianBlur
from dpadmm.errors import InvalidData, InvalidParameter
from dpadmm.problem.smoothers import GraphLaplacian, GridLaplacian, Identity, RingLaplacian


@pytest.mark.parametrize(
    "smoother", [RingLaplacian(2.0), GridLaplacian(0.5, 3, 4), GraphLaplacian(1.0, ((0, 1), (1, 5)), n_nodes=12)]
)
def test_blurring_twice_is_smoothing(smoother):
    X = np.random.default_rng(0).standard_normal((5, 12))
    blur = LaplacianBlur(smoother).fit(X)
    np.testing.assert_allclose(blur.transform(blur.transform(X)), smoother(X.T).T, atol=1e-12)


def test_each_row_is_mapped_by_itself():
    X = np.random.default_rng(0).random((20, 6)).astype(np.float32)
    blur = LaplacianBlur(RingLaplacian(1.0)).fit(X)
    together = blur.transform(X)
    assert together.dtype == np.float32
    np.testing.assert_allclose(together[3:4], blur.transform(X[3:4]), rtol=1e-6)
    X[4, 2] = np.nan
    assert np.isfinite(np.delete(blur.transform(X), 4, axis=0)).all()


def test_rows_without_negative_entries_keep_none():
    blur = LaplacianBlur(GridLaplacian(1.0, 5, 5)).fit(np.eye(25))
    assert blur.transform(np.eye(25)).min() > -1e-12


def test_it_works_in_a_pipeline():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (3000, 8))
    y = (X[:, :4].sum(axis=1) > 0).astype(int)
    model = make_pipeline(LaplacianBlur(RingLaplacian(1.0)), DPLogisticRegression(1.0, classes=[0, 1], random_state=0))
    assert model.fit(X, y).score(X, y) > 0.85


def test_what_it_cannot_do_is_refused():
    with pytest.raises(InvalidParameter, match="smoother"):
        LaplacianBlur(3.0).fit(np.eye(3))
    with pytest.raises(InvalidParameter, match="at most 5000"):
        LaplacianBlur(Identity()).fit(np.zeros((1, 5001)))
    with pytest.raises(InvalidParameter, match="coordinates"):
        LaplacianBlur(GridLaplacian(1.0, 2, 2)).fit(np.zeros((1, 5)))
    with pytest.raises(InvalidData, match="sparse"):
        LaplacianBlur(Identity()).fit(np.eye(3)).transform(sparse.csr_matrix(np.eye(3)))


def test_no_message_quotes_a_cell():
    blur = LaplacianBlur(Identity())
    with pytest.raises(InvalidData) as caught:
        blur.fit(np.array([["secret", "1"]], dtype=object))
    assert "secret" not in str(caught.value)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        blur.fit(np.eye(2)).transform(np.array([[np.inf, -np.inf]]))


def test_it_keeps_the_rules_of_scikit_learn():
    skipped = {"check_estimators_nan_inf"}  # a row that is not finite is the estimator's to refuse
    for estimator, check in estimator_checks_generator(LaplacianBlur(RingLaplacian(1.0))):
        if check.func.__name__ not in skipped:
            with contextlib.suppress(SkipTest):
                check(estimator)
