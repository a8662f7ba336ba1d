"""Laws every registered regulariser obeys; above all, that its proximal map is the exact global minimiser."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpadmm.errors import InvalidParameter
from dpadmm.problem import (
    L1,
    MCP,
    REGULARIZERS,
    SCAD,
    Ball,
    Box,
    ElasticNet,
    GroupL2,
    Nuclear,
    Simplex,
    SquaredL2,
    Zero,
)

GROUPS = ((0, 3), (1,), (2, 4, 5))
EXAMPLES = {
    "none": [Zero()],
    "l1": [L1(0.7), L1(0.7, weights=(1.0, 0.0, 2.0, 1.0, 0.5, 1.0, 3.0)), L1(0.0)],
    "l2": [SquaredL2(0.7)],
    "elasticnet": [ElasticNet(0.7, 0.3), ElasticNet(0.7, 0.0), ElasticNet(0.7, 1.0)],
    "group": [GroupL2(0.4, GROUPS)],
    "nuclear": [Nuclear(0.7)],
    "box": [Box(-0.5, 1.0), Box(0.0, np.inf)],
    "ball": [Ball(0.8)],
    "simplex": [Simplex(), Simplex(3.0)],
    "scad": [SCAD(0.7), SCAD(0.4, a=2.1)],
    "mcp": [MCP(0.7), MCP(0.4, gamma=0.5)],
}
ALL = [regularizer for group in EXAMPLES.values() for regularizer in group]
EVERY = pytest.mark.parametrize("regularizer", ALL, ids=repr)
CONVEX = pytest.mark.parametrize("regularizer", [r for r in ALL if r.convex], ids=repr)
SHAPE = pytest.mark.parametrize("shape", [(7,), (7, 1), (7, 3)], ids=str)
REPEATED = settings(derandomize=True, max_examples=15, deadline=None)
SEEDS = st.integers(0, 10_000)
STEPS = st.sampled_from([1e-3, 0.3, 1.0, 2.5, 40.0])


def cost(regularizer, w, v, step):
    return regularizer.value(w) + float(np.sum((w - v) ** 2)) / (2 * step)


def test_every_registered_regularizer_is_examined():
    assert set(EXAMPLES) == set(REGULARIZERS)
    assert all(regularizer.name == name for name, group in EXAMPLES.items() for regularizer in group)
    assert {r.name for r in ALL if not r.convex} == {"scad", "mcp"}


@EVERY
@SHAPE
@REPEATED
@given(seed=SEEDS, step=STEPS)
def test_nothing_beats_the_prox(regularizer, shape, seed, step):
    rng = np.random.default_rng(seed)
    v = rng.normal(size=shape) * rng.choice([0.3, 1.0, 5.0])
    best = regularizer.prox(v, step)
    assert best.shape == shape
    reached = cost(regularizer, best, v, step)
    assert np.isfinite(reached)
    for size in (1e-6, 1e-3, 0.1, 1.0):
        for rival in (best + size * rng.normal(size=shape), best * (1 - size), best + size * (v - best), v, 0 * v):
            assert cost(regularizer, rival, v, step) >= reached - 1e-9 * (1 + reached)
        feasible_rival = regularizer.prox(best + size * rng.normal(size=shape), step)
        assert cost(regularizer, feasible_rival, v, step) >= reached - 1e-9 * (1 + reached)


@CONVEX
@SHAPE
@REPEATED
@given(seed=SEEDS, step=STEPS)
def test_prox_of_a_convex_penalty_is_firmly_non_expansive(regularizer, shape, seed, step):
    rng = np.random.default_rng(seed)
    one, other = rng.normal(size=(2, *shape)) * 3
    moved = regularizer.prox(one, step) - regularizer.prox(other, step)
    assert np.sum(moved**2) <= np.sum(moved * (one - other)) + 1e-12


@CONVEX
@SHAPE
@REPEATED
@given(seed=SEEDS, step=STEPS)
def test_moreau_the_remainder_is_a_subgradient(regularizer, shape, seed, step):
    """(v − prox)/step ∈ ∂r(prox), which is Moreau's identity without the conjugate."""
    rng = np.random.default_rng(seed)
    v = 2 * rng.normal(size=shape)
    best = regularizer.prox(v, step)
    slope = (v - best) / step
    for _ in range(5):
        rival = regularizer.prox(2 * rng.normal(size=shape), step)
        below = regularizer.value(best) + float(np.sum(slope * (rival - best)))
        assert regularizer.value(rival) >= below - 1e-9 * (1 + np.abs(slope).max())


@pytest.mark.parametrize(
    ("regularizer", "dual_projection"),
    [
        (L1(0.7), lambda v: np.clip(v, -0.7, 0.7)),
        (Nuclear(0.7), lambda v: v * min(1.0, 0.7 / np.linalg.norm(v))),
        (GroupL2(0.7, ((0, 1, 2, 3),)), lambda v: v * min(1.0, 1.4 / np.linalg.norm(v))),
    ],
    ids=["l1", "nuclear", "group"],
)
@pytest.mark.parametrize("step", [0.1, 1.0, 10.0])
def test_moreau_identity_for_norms(regularizer, dual_projection, step):
    v = np.array([3.0, -0.2, 0.4, -2.0])
    np.testing.assert_allclose(regularizer.prox(v, step) + step * dual_projection(v / step), v, atol=1e-12)


@EVERY
@SHAPE
def test_prox_keeps_the_dtype_leaves_its_input_and_agrees_in_float32(regularizer, shape):
    v = np.random.default_rng(3).normal(size=shape).astype(np.float32)
    before = v.copy()
    single = regularizer.prox(v, np.float64(0.6))
    assert single.dtype == np.float32
    assert regularizer.prox(v.astype(float), np.float64(0.6)).dtype == np.float64
    np.testing.assert_array_equal(v, before)
    assert not np.shares_memory(single, v)
    np.testing.assert_allclose(single, regularizer.prox(v.astype(float), 0.6), atol=2e-6)
    assert np.isfinite(regularizer.value(single))
    assert isinstance(regularizer.value(single), float)


@pytest.mark.parametrize("regularizer", [r for r in ALL if r.separable and not hasattr(r, "weights")], ids=repr)
def test_separable_means_a_sum_over_entries(regularizer):
    v = np.random.default_rng(4).normal(size=(7, 2))
    inside = regularizer.prox(v, 1.0)
    entries = [inside[i, j : j + 1] for i, j in itertools.product(range(7), range(2))]
    assert regularizer.value(inside) == pytest.approx(sum(map(regularizer.value, entries)))
    one_by_one = [[regularizer.prox(v[i, j : j + 1], 1.0)[0] for j in range(2)] for i in range(7)]
    np.testing.assert_array_equal(inside, one_by_one)


NONCONVEX = [SCAD(0.7), SCAD(1.0, a=2.05), MCP(0.7), MCP(1.0, gamma=0.5), MCP(0.3, gamma=1.0)]


@pytest.mark.parametrize("regularizer", NONCONVEX, ids=repr)
@pytest.mark.parametrize("step", [1e-3, 0.1, 0.5, 1.0, 1.05, 2.0, 2.7, 3.0, 10.0, 1000.0])
def test_nonconvex_prox_against_a_fine_grid(regularizer, step):
    grid = np.linspace(-8.5, 8.5, 34_001)
    each = elementwise_value(regularizer, grid)
    for v in np.linspace(-8, 8, 97):
        found = regularizer.prox(np.array([v]), step)
        best_on_grid = float((each + (grid - v) ** 2 / (2 * step)).min())
        assert cost(regularizer, found, np.array([v]), step) <= best_on_grid + 1e-12


def elementwise_value(regularizer, w):
    """The printed definitions, independent of the library's own form of them."""
    size, s = np.abs(w), regularizer.strength
    if isinstance(regularizer, MCP):
        g = regularizer.gamma
        return np.where(size <= g * s, s * size - size**2 / (2 * g), g * s**2 / 2)
    a = regularizer.a
    middle = (2 * a * s * size - size**2 - s**2) / (2 * (a - 1))
    return np.where(size <= s, s * size, np.where(size <= a * s, middle, s**2 * (a + 1) / 2))


@pytest.mark.parametrize("regularizer", NONCONVEX, ids=repr)
def test_nonconvex_values_are_the_printed_ones(regularizer):
    w = np.linspace(-5, 5, 1001)
    assert regularizer.value(w) == pytest.approx(elementwise_value(regularizer, w).sum(), rel=1e-12)


def test_values_by_hand():
    y = np.array([[3.0, 0.0], [0.0, -4.0]])
    assert L1(2.0).value(y) == 14
    assert L1(2.0, weights=(1.0, 0.5)).value(y) == 10
    assert SquaredL2(2.0).value(y) == 25
    assert ElasticNet(2.0, 0.25).value(y) == pytest.approx(2 * (0.25 * 7 + 0.375 * 25))
    assert GroupL2(2.0, ((0, 1),)).value(y) == pytest.approx(2 * 2**0.5 * 5)
    assert GroupL2(2.0, ((1,),)).value(y) == pytest.approx(8)
    assert Nuclear(2.0).value(y) == pytest.approx(14)
    assert Nuclear(2.0).value(np.array([3.0, 4.0])) == pytest.approx(10)
    assert Box(-4.0, 3.0).value(y) == 0
    assert Box(-4.0, 2.0).value(y) == np.inf
    assert Ball(5.0).value(y) == 0
    assert Ball(4.9).value(y) == np.inf
    assert Simplex().value(np.array([0.5, 0.5])) == 0
    assert Simplex().value(np.array([1.5, -0.5])) == np.inf
    assert Simplex().value(np.array([0.5, 0.4])) == np.inf


def test_sparse_answers_are_exactly_zero():
    v = np.array([0.1, -0.1, 5.0, 0.0])
    for regularizer in (L1(1.0), ElasticNet(1.0, 0.9), SCAD(1.0), MCP(1.0), GroupL2(1.0, ((0, 1), (2, 3)))):
        small = regularizer.prox(v, 1.0)[:2]
        assert (small == 0).all()


def test_rows_outside_every_group_are_not_penalised():
    v = np.array([0.1, 0.1, 0.1])
    assert GroupL2(1.0, ((0, 1),)).prox(v, 1.0).tolist() == [0, 0, 0.1]


def test_a_diverged_matrix_stays_visible():
    assert np.isnan(Nuclear(1.0).prox(np.array([[np.inf, 1.0]]), 1.0)).all()


@pytest.mark.parametrize(
    "make",
    [
        lambda: L1(-1),
        lambda: L1(np.nan),
        lambda: L1(np.inf),
        lambda: L1(1.0, weights=(1.0, -1.0)),
        lambda: SquaredL2("strong"),
        lambda: ElasticNet(1.0, 1.5),
        lambda: GroupL2(1.0, ((0, 1), (1, 2))),
        lambda: GroupL2(1.0, ((0,), ())),
        lambda: GroupL2(1.0, ((-1,),)),
        lambda: Nuclear(None),
        lambda: Box(1.0, 0.0),
        lambda: Box(np.nan, 0.0),
        lambda: Ball(0.0),
        lambda: Simplex(-1.0),
        lambda: SCAD(1.0, a=2.0),
        lambda: MCP(1.0, gamma=0.0),
        lambda: REGULARIZERS["lasso"],
    ],
)
def test_unusable_parameters_are_refused(make):
    with pytest.raises(InvalidParameter, match=r"Got .*\. Expected .*\. "):
        make()
