"""Laws every registered loss obeys: slope and curvature are derivatives of the value; bounds hold and are reached."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpadmm.errors import InvalidParameter
from dpadmm.problem import LOSSES, Huber, HuberisedHinge, Logistic, Softmax, Squared

EXAMPLES = {
    "logistic": [Logistic()],
    "huberised-hinge": [HuberisedHinge(), HuberisedHinge(h=0.1)],
    "softmax": [Softmax(2), Softmax(5)],
    "squared": [Squared(), Squared(n_tasks=3)],
    "huber": [Huber(), Huber(threshold=0.3, n_tasks=2)],
}
LOSS = pytest.mark.parametrize("loss", [loss for group in EXAMPLES.values() for loss in group], ids=repr)
REPEATED = settings(derandomize=True, max_examples=20, deadline=None)
SEEDS = st.integers(0, 10_000)


def draw(loss, n=200, scale=3.0, seed=0):
    """Random margins and matching targets."""
    rng = np.random.default_rng(seed)
    shape = (n,) if loss.outputs == 1 else (n, loss.outputs)
    margin = scale * rng.normal(size=shape)
    if loss.name == "softmax":
        return margin, rng.integers(0, loss.outputs, n)
    return margin, np.sign(rng.normal(size=n)) if loss.name in ("logistic", "huberised-hinge") else rng.normal(
        size=shape
    )


def directions(loss):
    return [1.0] if loss.outputs == 1 else list(np.eye(loss.outputs))


def along(array, direction):
    return array * direction if array.ndim == 1 else array @ direction


def test_every_registered_loss_is_examined():
    assert set(EXAMPLES) == set(LOSSES)
    assert all(loss.name == name for name, group in EXAMPLES.items() for loss in group)


@LOSS
@REPEATED
@given(seed=SEEDS)
def test_slope_and_curvature_are_the_derivatives(loss, seed):
    margin, target = draw(loss, seed=seed)
    step = 1e-5
    for direction in directions(loss):
        up, down = margin + step * direction, margin - step * direction
        slope = (loss.value(up, target) - loss.value(down, target)) / (2 * step)
        np.testing.assert_allclose(along(loss.slope(margin, target), direction), slope, atol=1e-4)
        curvature = (loss.slope(up, target) - loss.slope(down, target)) / (2 * step)
        within = one_piece(loss, up, down, target)
        np.testing.assert_allclose(
            along(loss.curvature(margin, target), direction)[within], curvature[within], atol=1e-4
        )


def one_piece(loss, up, down, target):
    """Rows where a piecewise loss does not change its piece between the two margins."""
    change = loss.curvature(up, target) - loss.curvature(down, target)
    return np.abs(change).reshape(len(up), -1).max(axis=1) < 1e-3


@LOSS
def test_value_is_one_number_per_row_and_never_negative(loss):
    margin, target = draw(loss)
    value = loss.value(margin, target)
    assert value.shape == (200,)
    assert (value >= 0).all()
    assert loss.slope(margin, target).shape == margin.shape


@LOSS
@REPEATED
@given(seed=SEEDS, share=st.floats(0, 1))
def test_convex(loss, seed, share):
    (one, target), (other, _) = draw(loss, seed=seed), draw(loss, seed=seed + 1)
    between = loss.value(share * one + (1 - share) * other, target)
    assert (between <= share * loss.value(one, target) + (1 - share) * loss.value(other, target) + 1e-10).all()


@LOSS
@REPEATED
@given(seed=SEEDS, scale=st.sampled_from([0.1, 1.0, 10.0, 1e4]))
def test_bounds_hold(loss, seed, scale):
    margin, target = draw(loss, scale=scale, seed=seed)
    size = np.linalg.norm(loss.slope(margin, target).reshape(200, -1), axis=1)
    assert size.max() <= loss.slope_bound * (1 + 1e-12)
    curvature = loss.curvature(margin, target).reshape(200, loss.outputs, loss.outputs)
    assert np.linalg.norm(curvature, ord=2, axis=(1, 2)).max() <= loss.curvature_bound * (1 + 1e-12)


@LOSS
def test_a_curvature_fades_where_the_target_is_met_for_good_as_declared(loss):
    """Far on the right side of a class; at the target of a number, which no margin goes beyond."""
    _, target = draw(loss)
    margin = 1e3 * np.eye(loss.outputs)[target] if loss.name == "softmax" else target * 1.0
    if loss.curvature_fades and loss.outputs == 1:
        margin = 1e3 * target
    largest = np.abs(loss.curvature(margin, target)).max()
    assert largest == pytest.approx(0.0 if loss.curvature_fades else 1.0, abs=1e-12)


@LOSS
def test_beyond_its_bend_a_slope_stays_as_it_is(loss):
    if loss.bend:
        size, one = np.array([loss.bend + 1e-9, loss.bend + 1.0, 1e6]), np.ones(3)
        assert np.ptp(loss.slope(size, one)) == 0.0
        assert np.any(np.abs(loss.curvature(np.array([loss.bend - 1e-9]), one[:1])) > 0)


def test_bounds_are_reached():
    far, one = np.array([-1e3]), np.ones(1)
    assert abs(Logistic().slope(far, one)[0]) == pytest.approx(1, abs=1e-3)
    assert abs(HuberisedHinge().slope(far, one)[0]) == pytest.approx(1, abs=1e-3)
    assert np.linalg.norm(Huber(0.3, 2).slope(np.full((1, 2), 1e3), np.zeros((1, 2)))) == pytest.approx(0.3 * 2**0.5)
    assert np.linalg.norm(Softmax(3).slope(np.array([[1e3, 0, 0]]), np.array([1]))) == pytest.approx(2**0.5)
    assert Logistic().curvature(np.zeros(1), one)[0] == Logistic().curvature_bound
    assert HuberisedHinge(0.1).curvature(one, one)[0] == HuberisedHinge(0.1).curvature_bound
    two_share = Softmax(3).curvature(np.array([[0.0, 0.0, -1e3]]), np.array([0]))
    assert np.linalg.norm(two_share[0], ord=2) == pytest.approx(0.5)
    assert Squared().slope_bound == np.inf


@LOSS
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_dtype_is_kept_even_beside_float64_targets(loss, dtype):
    margin, target = draw(loss)
    margin = margin.astype(dtype)
    for method in (loss.value, loss.slope, loss.curvature):
        assert method(margin, target).dtype == dtype


@LOSS
@pytest.mark.parametrize("size", [1e4, 1e150, 1e307])
@pytest.mark.filterwarnings("error")
def test_huge_margins_give_no_nan_and_no_warning(loss, size):
    margin, target = draw(loss, scale=1.0)
    margin = np.sign(margin) * size
    assert not np.isnan(loss.value(margin, target)).any()
    slope = loss.slope(margin, target)
    assert np.isfinite(slope).all()
    assert np.isfinite(loss.curvature(margin, target)).all()


def test_huberised_hinge_follows_the_paper():
    h = 0.5
    z = np.linspace(-3, 3, 601)
    printed = np.where(z > 1 + h, 0, np.where(np.abs(1 - z) <= h, (1 + h - z) ** 2 / (4 * h), 1 - z))
    np.testing.assert_allclose(HuberisedHinge(h).value(z, np.ones_like(z)), printed, atol=1e-14)
    np.testing.assert_allclose(HuberisedHinge(h).value(-z, -np.ones_like(z)), printed, atol=1e-14)
    slope = HuberisedHinge(h).slope(z, np.ones_like(z))
    assert slope.min() == -1
    assert slope.max() == 0


def test_softmax_of_two_classes_is_logistic():
    margin = np.linspace(-5, 5, 50)
    both = Softmax(2).value(np.stack([np.zeros(50), margin], axis=1), np.ones(50, dtype=int))
    np.testing.assert_allclose(both, Logistic().value(margin, np.ones(50)), atol=1e-14)


@pytest.mark.parametrize(
    "make",
    [
        lambda: HuberisedHinge(h=0),
        lambda: HuberisedHinge(h=np.nan),
        lambda: Huber(threshold=-1),
        lambda: Huber(threshold="wide"),
        lambda: Softmax(1),
        lambda: Softmax(2.5),
        lambda: Squared(n_tasks=0),
        lambda: LOSSES["hinge"],
    ],
)
def test_unusable_parameters_are_refused(make):
    with pytest.raises(InvalidParameter, match=r"Got .*\. Expected .*\. "):
        make()
