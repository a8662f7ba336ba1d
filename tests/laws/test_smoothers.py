"""Laws every registered smoother obeys: linear, symmetric, never expanding, and its traces are what they say."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpadmm.errors import InvalidParameter
from dpadmm.problem.smoothers import (
    SMOOTHERS,
    GraphLaplacian,
    GridLaplacian,
    Identity,
    RingLaplacian,
    optimal_nu,
    ring_response,
)

SIZES = (1, 2, 3, 4, 5, 64, 1001)
STRENGTHS = (0.0, 1e-9, 1e-3, 1.0, 3.0, 50.0, 1e4)
EDGES = ((0, 1), (1, 2, 0.5), (4, 0, 2.0), (5, 6))
EXAMPLES = {
    "identity": [Identity(), Identity(free=1)],
    "ring": [RingLaplacian(3.0, method, free) for method in ("auto", "recursion", "fft") for free in (0, 2)],
    "grid": [GridLaplacian(3.0, 3, 4), GridLaplacian(2.0, 2, 5, free=2), GridLaplacian(0.0, 1, 12)],
    "graph": [GraphLaplacian(3.0, EDGES, 12), GraphLaplacian(2.0, EDGES, 11, free=1), GraphLaplacian(1.0, (), 12)],
}
SMOOTHER = pytest.mark.parametrize("smoother", [s for group in EXAMPLES.values() for s in group], ids=repr)
D = 12
REPEATED = settings(derandomize=True, max_examples=15, deadline=None)


def ring_matrix(nu, d):
    Q = (1 + 2 * nu) * np.eye(d)
    for i in range(d):
        Q[i, (i + 1) % d] -= nu
        Q[i, (i - 1) % d] -= nu
    return Q


def as_matrix(smoother, d=D):
    return smoother(np.eye(d))


def test_every_registered_smoother_is_examined():
    assert set(EXAMPLES) == set(SMOOTHERS)
    assert all(smoother.name == name for name, group in EXAMPLES.items() for smoother in group)


@SMOOTHER
def test_symmetric_positive_and_below_the_identity(smoother):
    S = as_matrix(smoother)
    np.testing.assert_allclose(S, S.T, atol=1e-13)
    eigenvalues = np.linalg.eigvalsh(S)
    assert eigenvalues.min() > 0
    assert eigenvalues.max() <= 1 + 1e-12
    assert smoother.norm_inverse(D) == pytest.approx(1 / eigenvalues.min(), rel=1e-6)
    assert smoother.norm_inverse(D) >= 1 / eigenvalues.min() * (1 - 1e-12)


@SMOOTHER
def test_traces(smoother):
    S = as_matrix(smoother)
    assert smoother.tau(D) == pytest.approx(np.trace(S) / D, rel=1e-12)
    assert smoother.tau2(D) == pytest.approx(np.trace(S @ S) / D, rel=1e-12)


@SMOOTHER
@REPEATED
@given(seed=st.integers(0, 10_000))
def test_linear_non_expanding_and_columns_on_their_own(smoother, seed):
    one, other = np.random.default_rng(seed).normal(size=(2, D, 3))
    np.testing.assert_allclose(smoother(2 * one - other), 2 * smoother(one) - smoother(other), atol=1e-12)
    assert np.linalg.norm(smoother(one)) <= np.linalg.norm(one) * (1 + 1e-12)
    np.testing.assert_allclose(smoother(one)[:, 1], smoother(one[:, 1]), atol=1e-13)


@SMOOTHER
def test_free_coordinates_are_left_alone_dtype_and_input_too(smoother):
    g = np.random.default_rng(0).normal(size=D).astype(np.float32)
    before = g.copy()
    smoothed = smoother(g)
    assert smoothed.dtype == np.float32
    assert not np.shares_memory(smoothed, g)
    np.testing.assert_array_equal(g, before)
    kept = D - smoother.free
    np.testing.assert_array_equal(smoothed[kept:], g[kept:])
    S = as_matrix(smoother)
    assert not S[:kept, kept:].any()
    np.testing.assert_allclose(smoothed, smoother(g.astype(float)), atol=1e-6)


@SMOOTHER
def test_copies_and_pickles_smooth_alike(smoother):
    g = np.arange(float(D))
    expected = smoother(g)
    for again in (copy.deepcopy(smoother), pickle.loads(pickle.dumps(smoother))):
        assert again == smoother
        np.testing.assert_array_equal(again(g), expected)


@pytest.mark.parametrize("d", SIZES)
@pytest.mark.parametrize("nu", STRENGTHS)
def test_ring_recursion_fft_and_dense_solve_agree(d, nu):
    g = np.random.default_rng(d).normal(size=(d, 2))
    expected = np.linalg.solve(ring_matrix(nu, d), g)
    for method in ("recursion", "fft", "auto"):
        np.testing.assert_allclose(RingLaplacian(nu, method)(g), expected, atol=1e-10)
        np.testing.assert_allclose(RingLaplacian(nu, method)(g[:, 0]), expected[:, 0], atol=1e-10)


@pytest.mark.parametrize("d", SIZES)
@pytest.mark.parametrize("nu", STRENGTHS)
def test_ring_closed_forms_are_the_sums(d, nu):
    eigenvalues = 1 + 4 * nu * np.sin(np.pi * np.arange(d) / d) ** 2
    ring = RingLaplacian(nu)
    assert ring.tau(d) == pytest.approx(np.mean(1 / eigenvalues), rel=1e-11)
    assert ring.tau2(d) == pytest.approx(np.mean(1 / eigenvalues**2), rel=1e-11)
    assert ring.norm_inverse(d) == pytest.approx(eigenvalues.max(), rel=1e-13)
    impulse = np.eye(1, d)[0]
    np.testing.assert_allclose(ring_response(nu, d), np.linalg.solve(ring_matrix(nu, d), impulse), atol=1e-12)


def test_ring_of_two_has_a_double_edge():
    np.testing.assert_allclose(RingLaplacian(1.0)(np.array([1.0, 0.0])), [0.6, 0.4], atol=1e-15)


def test_table_of_noise_factors():
    """Tables 3 and 4 of the Laplacian smoothing paper, d = 1000."""
    printed = {1: (0.447, 0.268), 2: (0.333, 0.185), 3: (0.277, 0.149), 4: (0.243, 0.128), 5: (0.218, 0.114)}
    for nu, (tau, tau2) in printed.items():
        assert RingLaplacian(nu).tau(1000) == pytest.approx(tau, abs=6e-4)
        assert RingLaplacian(nu).tau2(1000) == pytest.approx(tau2, abs=6e-4)


def test_grid_is_the_sum_of_two_rings():
    nu, height, width = 1.5, 3, 4
    by_rows = np.kron(ring_matrix(nu, height) - np.eye(height), np.eye(width))
    by_columns = np.kron(np.eye(height), ring_matrix(nu, width) - np.eye(width))
    Q = np.eye(12) + by_rows + by_columns
    np.testing.assert_allclose(as_matrix(GridLaplacian(nu, height, width)), np.linalg.inv(Q), atol=1e-13)


def test_graph_of_a_ring_is_the_ring():
    ring_edges = tuple((i, (i + 1) % D) for i in range(D))
    np.testing.assert_allclose(as_matrix(GraphLaplacian(3.0, ring_edges, D)), as_matrix(RingLaplacian(3.0)), atol=1e-13)


def test_weights_of_a_graph_enter_the_laplacian_once():
    S = as_matrix(GraphLaplacian(3.0, ((0, 1, 0.5), (1, 2, 2.0)), 3), 3)
    laplacian = np.array([[0.5, -0.5, 0.0], [-0.5, 2.5, -2.0], [0.0, -2.0, 2.0]])
    np.testing.assert_allclose(np.linalg.inv(S), np.eye(3) + 3 * laplacian, atol=1e-12)


def test_traces_of_a_graph_in_blocks():
    n = 600
    graph = GraphLaplacian(2.0, tuple((i, (i + 1) % n) for i in range(n)), n)
    assert graph.tau(n) == pytest.approx(RingLaplacian(2.0).tau(n), rel=1e-12)
    assert graph.tau2(n) == pytest.approx(RingLaplacian(2.0).tau2(n), rel=1e-12)


@pytest.mark.parametrize(("rho1", "d", "nu"), [(0.9, 1000, 4.5), (0.0, 100, 0.0), (-0.5, 100, 0.0), (0.9, 3, 1.43)])
def test_optimal_nu(rho1, d, nu):
    assert optimal_nu(rho1, d) == pytest.approx(nu, abs=5e-3)


@pytest.mark.parametrize("d", [2, 3, 5, 12])
@pytest.mark.parametrize("rho1", [0.1, 0.5, 0.9, 0.99])
def test_optimal_nu_minimises_the_bound(rho1, d):
    def bound(nu):
        return RingLaplacian(nu).tau(d) * (1 + nu * 2 * (1 - rho1))

    best = bound(optimal_nu(rho1, d))
    assert all(best <= bound(nu) * (1 + 1e-3) for nu in [0.0, *np.geomspace(1e-4, 1e3, 60)])


@pytest.mark.parametrize(
    "make",
    [
        lambda: RingLaplacian(-1),
        lambda: RingLaplacian(np.inf),
        lambda: RingLaplacian(1.0, method="fast"),
        lambda: RingLaplacian(1.0, free=-1),
        lambda: RingLaplacian(1.0, free=3)(np.ones(3)),
        lambda: GridLaplacian(1.0, 0, 3),
        lambda: GridLaplacian(1.0, 2, 3)(np.ones(7)),
        lambda: GridLaplacian(1.0, 2, 3).tau(5),
        lambda: GraphLaplacian(1.0, ((0, 0),), 3),
        lambda: GraphLaplacian(1.0, ((0, 3),), 3),
        lambda: GraphLaplacian(1.0, ((0, 1, -1.0),), 3),
        lambda: GraphLaplacian(1.0, ((0, 1, 2, 3),), 3),
        lambda: GraphLaplacian(1.0, ((0, 1),), 3)(np.ones(4)),
        lambda: optimal_nu(1.0, 10),
        lambda: SMOOTHERS["laplace"],
    ],
)
def test_unusable_parameters_are_refused(make):
    with pytest.raises(InvalidParameter, match=r"Got .*\. Expected .*\. "):
        make()
