"""Laws of the constraint Ax + By = c, and of the problem that holds it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from dpadmm.errors import InvalidParameter, UnsupportedProblem
from dpadmm.problem import L1, Constraint, GroupL2, Logistic, Nuclear, Problem, Softmax, Squared

EDGES = [(0, 1), (1, 2, 0.5), (4, 0, 2.0), (2, 4), (2, 3)]
RNG = np.random.default_rng(0)
ORTHOGONAL = 2 * np.linalg.qr(RNG.normal(size=(4, 4)))[0][:, :3]
EXAMPLES = {
    "identity": Constraint.identity(6),
    "identity, free": Constraint.identity(6, free=2),
    "chain": Constraint.chain(6),
    "chain, free": Constraint.chain(6, free=1),
    "graph": Constraint.graph(EDGES, 6),
    "graph, free": Constraint.graph(EDGES, 6, free=1),
    "stacked": Constraint.stacked(Constraint.chain(6).A),
    "stacked, free": Constraint.stacked(RNG.normal(size=(3, 5)), free=1),
    "dense": Constraint.general(RNG.normal(size=(4, 6)), RNG.normal(size=(4, 3)), RNG.normal(size=4)),
    "sparse": Constraint.general(sparse.random_array((9, 6), density=0.4, rng=1), c=np.arange(9.0)),
    "orthogonal B": Constraint.general(RNG.normal(size=(4, 6)), np.eye(4)[:, :3] * 2, np.ones(4)),
}
CONSTRAINT = pytest.mark.parametrize("constraint", EXAMPLES.values(), ids=EXAMPLES.keys())
REPEATED = settings(derandomize=True, max_examples=10, deadline=None)


def matrix_B(constraint):
    return constraint.apply_B(np.eye(constraint.n_auxiliary))


def draw(constraint, seed, K):
    rng = np.random.default_rng(seed)
    sizes = (constraint.n_features, constraint.n_auxiliary, constraint.n_rows)
    return [rng.normal(size=(size,) if K == 0 else (size, K)) for size in sizes]


@CONSTRAINT
@REPEATED
@given(seed=st.integers(0, 10_000), K=st.sampled_from([0, 1, 3]))
def test_dot_test_and_residual(constraint, seed, K):
    x, y, v = draw(constraint, seed, K)
    assert np.sum(constraint.apply(x) * v) == pytest.approx(np.sum(x * constraint.adjoint(v)), abs=1e-12)
    assert np.sum(constraint.apply_B(y) * v) == pytest.approx(np.sum(y * constraint.adjoint_B(v)), abs=1e-12)
    np.testing.assert_allclose(constraint.apply(x), constraint.A @ x, atol=1e-14)
    offset = 0 if constraint.offset is None else constraint.offset.reshape(-1, *[1] * (x.ndim - 1))
    expected = constraint.A @ x + matrix_B(constraint) @ y - offset
    np.testing.assert_allclose(constraint.residual(x, y), expected, atol=1e-13)


def test_rows_by_hand():
    x = np.array([1.0, 4.0, 9.0, 16.0])
    assert Constraint.identity(4, free=1).apply(x).tolist() == [1, 4, 9]
    assert Constraint.chain(4, free=1).apply(x).tolist() == [3, 5]
    assert Constraint.graph([(0, 2), (1, 0, 0.5)], 4, free=1).apply(x).tolist() == [-8, 1.5]
    assert Constraint.stacked([[1, 1, 1]], free=1).apply(x).tolist() == [14, 1, 4, 9]


@CONSTRAINT
def test_norms_are_upper_bounds_and_tight(constraint):
    dense = sparse.csr_array(constraint.A).toarray()
    for bound, matrix in ((constraint.norm_squared, dense), (constraint.norm_B_squared, matrix_B(constraint))):
        true = np.linalg.norm(matrix, ord=2) ** 2
        assert true * (1 - 1e-14) <= bound <= true * (1 + 1e-3)


@pytest.mark.parametrize("d", [2, 50, 450, 3000])
def test_norm_of_a_long_chain(d):
    true = 4 * np.cos(np.pi / (2 * d)) ** 2
    same_as_a_graph = Constraint.graph([(i, i + 1) for i in range(d - 1)], d)
    for constraint in (Constraint.chain(d), same_as_a_graph):
        assert true * (1 - 1e-14) <= constraint.norm_squared <= true * (1 + 1e-3)


def test_norm_of_a_large_random_matrix():
    A = sparse.random_array((700, 600), density=0.02, rng=2)
    true = np.linalg.norm(A.toarray(), ord=2) ** 2
    assert true <= Constraint.general(A).norm_squared <= true * (1 + 1e-5)


@CONSTRAINT
def test_row_rank(constraint):
    dense = sparse.csr_array(constraint.A).toarray()
    assert constraint.full_row_rank == (np.linalg.matrix_rank(dense) == constraint.n_rows)


@CONSTRAINT
@pytest.mark.parametrize("K", [0, 2])
def test_adjoint_pinv(constraint, K):
    v = draw(constraint, 5, K)[0]
    expected = np.linalg.pinv(sparse.csr_array(constraint.A).toarray().T) @ v
    np.testing.assert_allclose(constraint.adjoint_pinv(v), expected, atol=1e-12)


def test_adjoint_pinv_of_a_large_sparse_matrix():
    chain = Constraint.chain(2500)
    v = chain.adjoint(np.sin(np.arange(2499.0)))
    np.testing.assert_allclose(chain.adjoint(chain.adjoint_pinv(v)), v, atol=1e-8)


@CONSTRAINT
@pytest.mark.parametrize("K", [0, 2])
@pytest.mark.parametrize("beta", [0.1, 3.0])
def test_auxiliary_update_never_ascends_and_is_exact_for_orthogonal_columns(constraint, K, beta):
    x, y, dual = draw(constraint, 7, K)
    penalty = L1(0.3)

    def augmented(y):
        return penalty.value(y) + beta / 2 * np.sum((constraint.residual(x, y) + dual) ** 2)

    new = constraint.auxiliary_update(penalty, x, y, dual, beta)
    assert augmented(new) <= augmented(y) + 1e-12
    B = matrix_B(constraint)
    gram = B.T @ B
    if np.allclose(gram, gram[0, 0] * np.eye(len(gram))):
        rng = np.random.default_rng(0)
        assert all(augmented(new + s * rng.normal(size=y.shape)) >= augmented(new) for s in (1e-4, 1e-2, 1.0))
    else:
        for _ in range(3000):
            new = constraint.auxiliary_update(penalty, x, new, dual, beta)
        np.testing.assert_allclose(constraint.auxiliary_update(penalty, x, new, dual, beta), new, atol=1e-9)


def test_orthogonal_columns_are_recognised_up_to_rounding():
    constraint = Constraint.general(np.eye(4), ORTHOGONAL)
    assert constraint.norm_B_squared == pytest.approx(4, rel=1e-12)


def test_a_minus_identity_given_as_a_matrix_takes_the_fast_path():
    assert Constraint.general(np.ones((2, 3)), -np.eye(2), np.zeros(2)).B_matrix is None
    assert not Constraint.general(np.eye(3)).is_identity
    assert Constraint.identity(3, free=1).is_identity


def test_recover_identity_and_stacked_take_the_sparse_copy():
    x = np.array([1.0, 2.0, 3.0, 4.0])
    y = np.array([0.0, 2.5, 0.0])
    assert Constraint.identity(4, free=1).recover(x, y).tolist() == [0, 2.5, 0, 4]
    stacked = Constraint.stacked(np.ones((2, 3)), free=1)
    assert stacked.recover(x, np.concatenate([[9.0, 9.0], y])).tolist() == [0, 2.5, 0, 4]


def test_recover_makes_fused_neighbours_exactly_equal():
    x = np.array([[0.1, 1.0], [0.2, 1.1], [0.7, 5.0], [0.9, 7.0], [9.0, 9.0]])
    y = np.array([[0.0, 0.0], [0.5, 0.0], [0.0, 0.0]])
    released = Constraint.chain(5, free=1).recover(x, y)
    np.testing.assert_allclose(released, [[0.15, 1.05], [0.15, 1.05], [0.8, 6.0], [0.8, 6.0], [9.0, 9.0]])
    assert (released[0] == released[1]).all()
    assert (released[2] == released[3]).all()


def test_recover_follows_the_components_of_a_graph():
    x = np.array([1.0, 2.0, 6.0, 4.0])
    graph = Constraint.graph([(0, 2), (2, 3), (0, 1)], 4)
    np.testing.assert_allclose(graph.recover(x, np.array([0.0, 0.0, 1.0])), [11 / 3, 2.0, 11 / 3, 11 / 3])


def test_recover_general_is_x():
    x = np.ones(6)
    released = EXAMPLES["dense"].recover(x, np.zeros(3))
    assert released.tolist() == x.tolist()
    assert not np.shares_memory(released, x)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Constraint.identity(0),
        lambda: Constraint.identity(2.5),
        lambda: Constraint.identity(3, free=3),
        lambda: Constraint.chain(3, free=-1),
        lambda: Constraint.graph([(0, 5)], 5),
        lambda: Constraint.graph([(0, 4)], 5, free=1),
        lambda: Constraint.graph([(1, 1)], 5),
        lambda: Constraint.graph([(0, 1, 0.0)], 5),
        lambda: Constraint.graph([(0,)], 5),
        lambda: Constraint.stacked(np.ones(3)),
        lambda: Constraint.general(np.ones((2, 2, 2))),
        lambda: Constraint.general([["a"]]),
        lambda: Constraint.general(np.array([[1.0, np.nan]])),
        lambda: Constraint.general(sparse.csr_array([[1.0, np.inf]])),
        lambda: Constraint.general(np.eye(2), np.eye(3)),
        lambda: Constraint.general(np.eye(2), c=np.ones(3)),
        lambda: Constraint.general(np.eye(2), c=np.array([1.0, np.inf])),
        lambda: Constraint.identity(3).apply(np.ones(4)),
        lambda: Constraint.identity(3).apply(np.ones((3, 1, 1))),
        lambda: Constraint.identity(3, free=1).adjoint(np.ones(3)),
        lambda: Constraint.chain(3).apply(np.ones(2)),
        lambda: Constraint.chain(3).residual(np.ones(3), np.ones(3)),
        lambda: Constraint.chain(3).adjoint_pinv(np.ones(2)),
        lambda: Constraint.chain(3).recover(np.ones(3), np.ones(3)),
        lambda: Problem(Logistic(), GroupL2(1.0, ((0, 3),)), Constraint.identity(4, free=1)),
        lambda: Problem(Logistic(), L1(1.0, weights=(1.0, 1.0)), Constraint.identity(3)),
        lambda: Problem(Logistic(), L1(1.0), Constraint.identity(3), ridge=-1.0),
        lambda: Problem(Logistic(), L1(1.0), Constraint.identity(3), row_norm=0.0),
    ],
)
def test_unusable_parameters_are_refused(make):
    with pytest.raises(InvalidParameter, match=r"Got .*\. Expected .*\. "):
        make()


def test_problem_in_numbers():
    problem = Problem(Softmax(3), Nuclear(0.5), Constraint.chain(4, free=1), ridge=0.1, row_norm=2.0)
    assert problem.shape == (4, 3)
    assert [part.shape for part in problem.zeros()] == [(4, 3), (2, 3), (2, 3)]
    assert problem.smoothness == pytest.approx(0.5 * 4 + 0.1)
    assert problem.gradient_bound == pytest.approx(2 * 2**0.5)
    assert problem.convex
    assert Problem(Squared(), L1(1.0), Constraint.identity(2)).gradient_bound == np.inf


def test_penalty_is_taken_at_the_feasible_y():
    c = np.array([1.0, 0.0])
    problem = Problem(Squared(), L1(2.0), Constraint.general(np.array([[1.0, 0.0], [1.0, -1.0]]), c=c), ridge=0.5)
    assert problem.penalty(np.array([3.0, 1.0])) == pytest.approx(2 * (2 + 2) + 0.25 * 10)
    with pytest.raises(UnsupportedProblem):
        Problem(Squared(), L1(2.0), Constraint.general(np.eye(2), 2 * np.eye(2))).penalty(np.ones(2))
