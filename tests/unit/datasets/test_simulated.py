"""The demo table follows the design of paper 002, §5.3."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit

from dpadmm.datasets import Dataset, make_demo
from dpadmm.errors import InvalidParameter


@pytest.fixture(scope="module")
def demo() -> Dataset:
    return make_demo()


def test_shape_and_extras(demo: Dataset) -> None:
    assert demo.X.shape == (40_000, 100)
    assert demo.y.shape == (40_000,)
    assert set(np.unique(demo.y)) == {-1, 1}
    np.testing.assert_array_equal(demo.extras["relevant"], np.arange(20))
    lower, upper = demo.extras["bounds"]
    assert lower <= demo.X.min()
    assert demo.X.max() <= upper
    assert demo.feature_names is not None
    assert len(demo.feature_names) == 100


def test_true_model_is_the_paper_s(demo: Dataset) -> None:
    rising = [0.5, 1, 1.5, 2, 2.5, 3, 3.5, 4, 4.5, 5]
    np.testing.assert_array_equal(demo.extras["coef"], rising + [-v for v in rising] + [0] * 80)


def test_covariance_and_mean(demo: Dataset) -> None:
    lags = np.abs(np.subtract.outer(np.arange(100), np.arange(100)))
    covariance = np.cov(demo.X, rowvar=False)
    # Standard error of an entry is at most sqrt(2 / n) = 0.007; seven of them, plus 0.001 for the clipping.
    np.testing.assert_allclose(covariance, 0.5**lags, atol=0.051)
    np.testing.assert_allclose(demo.X.mean(axis=0), 0, atol=0.035)


def test_labels(demo: Dataset) -> None:
    assert abs(np.mean(demo.y == 1) - 0.5) < 0.018
    margin = demo.X @ demo.extras["coef"]
    noise = np.random.default_rng(1).standard_normal((1000, 1))
    for middle in (-2.0, 0.0, 1.0, 3.0):
        near = np.abs(margin - middle) < 0.25
        expected = expit(middle - noise).mean()
        tolerance = 0.02 + 6 * np.sqrt(0.25 / near.sum())
        assert abs(np.mean(demo.y[near] == 1) - expected) < tolerance


def test_clipping_is_rare(demo: Dataset) -> None:
    assert np.mean(np.abs(demo.X) == 4.0) < 2e-4


def test_seed_decides() -> None:
    first, same, other = (make_demo(200, random_state=seed) for seed in (3, 3, 4))
    np.testing.assert_array_equal(first.X, same.X)
    np.testing.assert_array_equal(first.y, same.y)
    assert not np.array_equal(first.X, other.X)
    np.testing.assert_array_equal(first.extras["coef"], other.extras["coef"])


def test_other_sizes() -> None:
    small = make_demo(n_rows=10, n_features=5, n_relevant=3)
    np.testing.assert_array_equal(small.extras["coef"], [0.5, 1.0, -0.5, 0, 0])
    assert make_demo(n_rows=1, n_features=1, n_relevant=1).X.shape == (1, 1)


@pytest.mark.parametrize(
    "wrong",
    [{"n_rows": 0}, {"n_features": 2.5}, {"n_relevant": 101}, {"random_state": -1}, {"random_state": None}],
)
def test_refusals(wrong: dict[str, object]) -> None:
    with pytest.raises(InvalidParameter):
        make_demo(**wrong)  # type: ignore[arg-type]
