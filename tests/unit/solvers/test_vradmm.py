"""DP-VRADMM: the public clip of differences, the convex losses it then descends, and what its defaults gain."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy.special import expit

from dpadmm import DPLogisticRegression
from dpadmm.errors import InvalidParameter
from dpadmm.privacy.questions import DIFFERENCE, SNAPSHOT, ClippedGradient, GradientDifference
from dpadmm.privacy.sampling import Batch
from dpadmm.problem import L1, Constraint, Logistic, Problem
from dpadmm.rows.lattice_sum import as_numbers
from dpadmm.rows.local import LocalRows
from dpadmm.solvers.base import Setting, run
from dpadmm.solvers.exact_minimiser import objective, solve_exactly
from dpadmm.solvers.vradmm import LEAST_FRACTION, MOST_FRACTION, VRADMM, usual_fraction

RNG = np.random.default_rng(5)
N, D = 300, 4
X = RNG.normal(size=(N, D))
X /= np.maximum(1.0, np.linalg.norm(X, axis=1, keepdims=True))
Y = np.where(RNG.random(N) < expit(4 * X[:, 0]), 1.0, -1.0)
WHOLE = Batch(None)
PROBLEM = Problem(Logistic(), L1(1e-3), Constraint.identity(D))


def solver(**more):
    return VRADMM(**{"epochs": 3, "inner_steps": 4, "step_size": 0.5, "rate": 0.1, "gradient_clip": 0.5, **more})


class TestPublicClip:
    def test_is_a_share_of_the_largest_difference(self):
        near, far, start = np.full(D, 0.01), np.full(D, 100.0), np.zeros(D)
        whole, part = solver(), solver(clip_fraction=0.05)
        assert whole.difference_clip(near, start, PROBLEM) == pytest.approx(0.25 * 0.02)
        assert whole.difference_clip(far, start, PROBLEM) == 1.0
        for point in (near, far):
            assert part.difference_clip(point, start, PROBLEM) == pytest.approx(
                0.05 * whole.difference_clip(point, start, PROBLEM)
            )

    @pytest.mark.parametrize("share", [0.0, -0.1, 1.1, float("nan"), "a twentieth"])
    def test_other_shares_are_refused(self, share):
        with pytest.raises(InvalidParameter, match="clip_fraction"):
            solver(clip_fraction=share)

    def test_by_default_it_follows_the_features_and_the_way_of_an_epoch(self):
        few, many = (Problem(Logistic(), L1(1e-3), Constraint.identity(d)) for d in (25, 10_000))
        assert usual_fraction(few, 0.0) == pytest.approx(0.1)
        assert usual_fraction(many, 0.0) == LEAST_FRACTION
        ways = [usual_fraction(few, way) for way in (0.0, 40.0, 80.0, 160.0, 1e9)]
        assert ways == sorted(ways)
        assert len(set(ways[1:4])) == 3
        assert ways[-1] == MOST_FRACTION

    def test_given_options_win(self):
        chosen = {"clip_fraction": 0.5, "epochs": 7, "expected_clip": 0.2, "averaging": "last"}
        model = DPLogisticRegression(solver="dp-vradmm", solver_options=chosen, classes=[-1, 1], random_state=0)
        snapshot, difference = model.fit(X, Y).plan_.queries
        assert snapshot.count == 7
        assert difference.count % 7 == 0


class TestConvexLoss:
    """docs/algorithms.md: clipped differences add up to the gradient of a sum of convex functions of the margins."""

    anchor, clip = np.array([0.5, -1.0, 0.2, 0.0]), 0.01

    def differences(self, x):
        rows = LocalRows(X, Y, Logistic())
        return as_numbers(rows.ask(GradientDifference(1.0), (x, self.anchor, self.clip), WHOLE))

    def by_hand(self, x):
        lengths = np.linalg.norm(X, axis=1)
        slopes = [np.clip(-Y * expit(-Y * (X @ w)), -0.5 / lengths, 0.5 / lengths) for w in (x, self.anchor)]
        return np.clip(slopes[0] - slopes[1], -self.clip / lengths, self.clip / lengths) @ X

    def test_the_sum_is_that_of_the_formula(self):
        for _ in range(20):
            x = 3 * RNG.normal(size=D)
            np.testing.assert_allclose(self.differences(x), self.by_hand(x), atol=1e-4 * N * self.clip)

    def test_it_is_monotone_as_gradients_of_convex_functions_are(self):
        for _ in range(50):
            x, z = 3 * RNG.normal(size=(2, D))
            assert (self.differences(x) - self.differences(z)) @ (x - z) >= -1e-9


class TestSnapshots:
    """Where they are taken: an epoch's gradients are those of its own snapshot."""

    def asked(self, **chosen):
        seen = []

        class Noted(ClippedWithoutNoise):
            def ask(self, kind, *at):
                seen.append((kind, *at))
                return super().ask(kind, *at)

        run(solver(gradient_clip=1.0, **chosen), PROBLEM, Noted())
        return seen

    def test_at_the_last_iterate_differences_start_at_zero(self):
        seen = self.asked(snapshots="last")
        for before, after in pairwise(seen):
            if before[0] == SNAPSHOT:
                np.testing.assert_array_equal(after[1], before[1])
                assert after[3] == 0

    def test_at_the_mean_they_do_not(self):
        seen = self.asked(snapshots="mean")
        starts = [after[3] for before, after in pairwise(seen) if before[0] == SNAPSHOT]
        assert starts[0] == 0
        assert all(clip > 0 for clip in starts[1:])

    def test_elsewhere_is_refused(self):
        with pytest.raises(InvalidParameter, match="snapshots"):
            solver(snapshots="best")


class ClippedWithoutNoise:
    """What the private oracle would answer if its noise were zero."""

    def __init__(self, rows=X, labels=Y):
        self.rows = LocalRows(rows, labels, Logistic())

    def ask(self, kind, *at):
        question = GradientDifference(2.0) if kind == DIFFERENCE else ClippedGradient(1.0)
        return as_numbers(self.rows.ask(question, at, WHOLE)) / N


def test_a_small_clip_leaves_the_optimum_where_it_was():
    patient = VRADMM(400, 5, 1.0, rate=1.0, gradient_clip=1.0, clip_fraction=0.05, averaging="last")
    found = run(patient, PROBLEM, ClippedWithoutNoise()).coefficients
    assert objective(PROBLEM, X, Y, found) - objective(PROBLEM, X, Y, solve_exactly(PROBLEM, X, Y)) < 1e-5


class TestLongEpochs:
    """Where noise is small an epoch goes far, and tightly clipped differences no longer hold it."""

    rows = np.abs(np.random.default_rng(5).normal(size=(N, D))) + 0.5
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    labels = np.where(np.random.default_rng(6).random(N) < expit(6 * (rows[:, 0] - rows[:, 1])), 1.0, -1.0)

    def gap(self, n_rows, mu, **chosen):
        setting = Setting(n_rows, mu, 2.0, 1.0, n_rows**-0.5)
        solver = VRADMM.default(PROBLEM, setting, round(n_rows**0.5), **chosen)
        found = run(solver, PROBLEM, ClippedWithoutNoise(self.rows, self.labels)).coefficients
        best = solve_exactly(PROBLEM, self.rows, self.labels)
        return objective(PROBLEM, self.rows, self.labels, found) - objective(PROBLEM, self.rows, self.labels, best)

    @pytest.mark.parametrize(("n_rows", "mu"), [(30_000, 0.03), (30_000, 0.1), (300_000, 0.03)])
    def test_the_default_arrives(self, n_rows, mu):
        assert self.gap(n_rows, mu) < 1e-5

    def test_a_clip_of_a_twentieth_swings_away(self):
        assert self.gap(30_000, 0.1, clip_fraction=0.05) > 0.1


@pytest.mark.statistical
@pytest.mark.parametrize("epsilon", [0.2, 1.0])
@pytest.mark.parametrize("options", [{}, {"convexity": "strong"}])
def test_defaults_are_level_with_those_of_dp_sadmm(epsilon, options):
    rng = np.random.default_rng(1)
    rows = np.clip(rng.normal(size=(6000, 12)) / 4, -1, 1)
    labels = np.where(rng.random(6000) < expit(rows @ np.linspace(-8, 8, 12)), 1, -1)

    def loss(name, seed):
        penalty = {"penalty": "l2", "alpha": 1e-4, "solver_options": options} if options else {}
        model = DPLogisticRegression(epsilon, 1e-6, solver=name, classes=[-1, 1], random_state=seed, **penalty)
        model.fit(rows, labels)
        return np.mean(np.logaddexp(0.0, -labels * model.decision_function(rows)))

    gaps = [loss("dp-vradmm", seed) - loss("dp-sadmm", seed) for seed in range(20)]
    assert np.mean(gaps) < 0.01
