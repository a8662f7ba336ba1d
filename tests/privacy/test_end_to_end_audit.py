"""Whole fits attacked: estimator, plan, oracle and solver as users run them, and mutants that must be caught.

The honest library stays below its claim, and near it on the pair that hurts most, so that the audits mean something.
With N pairs of runs an audit sees a μ that is larger than claimed by about 5.5/√N (`gaussian_lower_bound`).
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from dpadmm import DPLogisticRegression
from dpadmm.audit import audit_fit, audit_solver, gaussian_lower_bound, worst_pair
from dpadmm.errors import InvalidParameter
from dpadmm.oracles import hidden_walk
from dpadmm.oracles.mechanisms import Granular
from dpadmm.privacy.accountants.gaussian import gaussian_epsilon
from dpadmm.privacy.budget import Relation
from dpadmm.privacy.questions import ClippedGradient, JointMoments, SecondMoment
from dpadmm.privacy.sampling import TruncatedPoisson
from dpadmm.rows.local import LocalRows
from dpadmm.rows.packed import PackedRows
from dpadmm.solvers.auto.rules import Rules
from dpadmm.solvers.base import SOLVERS

BUDGETS = (0.2, 1.0)
DELTA = 0.1
ROWS = 8
SHORT = Rules(
    cap=0.5,
    refine_rounds=1,
    final_rounds=1,
    moment_share=0.3,
    refine_share=0.1,
    spectrum_share=0.5,
    final_share=0.1,
    balance=0.5,
    curvature=0.25,
    slope_unit=0.5,
)
"""Every kind of query once, most of the budget on the refining second moment."""


def auto(epsilon, delta=DELTA, **more):
    """Logistic regression by "auto", its plan as small as it gets: the moments and one gradient."""
    more = {"steps": 2, "fit_intercept": False, "classes": (0, 1), "random_state": 0, **more}
    return DPLogisticRegression(epsilon, delta, **more)


def appeared(n_rows):
    """Replace-one neighbours with another second moment: a unit row, or a zero row with the other label."""
    (X, y), _ = worst_pair(n_rows)
    return (X, y), (np.zeros_like(X), np.concatenate([[1], y[1:]]))


class TestGaussianLowerBound:
    """The yardstick."""

    @pytest.mark.parametrize("mu", [0.1, 0.5, 2.0])
    def test_stays_below_the_truth_and_near_it(self, mu):
        for seed in range(5):
            rng = np.random.default_rng(seed)
            bound = gaussian_lower_bound(rng.normal(size=40_000), rng.normal(mu, size=40_000), 0.05)
            assert mu - 0.06 <= bound.mu <= mu
            assert bound.epsilon == (gaussian_epsilon(bound.mu, 0.05) if bound.mu else 0)

    def test_ties_and_scores_the_wrong_way_round_refute_nothing(self):
        rng = np.random.default_rng(0)
        for a, b in ((np.zeros(500), np.zeros(500)), (rng.normal(3, size=500), rng.normal(size=500))):
            assert gaussian_lower_bound(a, b, 0.05).epsilon == 0

    def test_certain_separation_is_worth_what_the_runs_can_tell(self):
        assert 2.5 < gaussian_lower_bound(np.zeros(200), np.ones(200), 0.05).mu < 2.7

    @pytest.mark.parametrize("b", [np.zeros(500), np.full(400, np.nan), np.zeros(10)])
    def test_refuses_unusable_scores(self, b):
        with pytest.raises(InvalidParameter):
            gaussian_lower_bound(np.zeros(400), b, 0.05)


class TestAutoKeepsItsClaim:
    def test_worst_pair(self):
        result = audit_fit(auto(1.0), *worst_pair(ROWS), runs=3000)
        assert 0.6 <= result.lower_bound <= 1.0
        assert result.power is not None
        assert 0.75 * result.power <= result.lower_bound

    @pytest.mark.statistical
    def test_worst_pair_at_a_small_budget(self):
        """10 000 pairs are what it takes to see a μ of 0.43 to a seventh."""
        result = audit_fit(auto(0.2), *worst_pair(ROWS), runs=10_000)
        assert 0.5 * 0.2 <= result.lower_bound <= 0.2

    @pytest.mark.statistical
    @pytest.mark.parametrize("epsilon", BUDGETS)
    def test_every_round_of_the_default_plan(self, epsilon):
        """Refining gradients, second moment and all."""
        model = auto(epsilon, 0.004, steps=None)
        assert model.prepare(*worst_pair(200)[0])[0].recipe.plan.query("second moment") is not None
        assert not audit_fit(model, *worst_pair(200), runs=500).refuted

    @pytest.mark.statistical
    def test_add_remove(self):
        pair = worst_pair(ROWS, Relation.ADD_REMOVE)
        result = audit_fit(auto(1.0, relation="add-remove", n_rows=ROWS), *pair, runs=2500)
        assert 0.5 <= result.lower_bound <= 1.0


class TestMutantsOfAutoAreCaught:
    @pytest.mark.parametrize("epsilon", [pytest.param(0.2, marks=pytest.mark.statistical), 1.0])
    def test_half_the_joint_sensitivity(self, monkeypatch, epsilon):
        honest = JointMoments.reach
        monkeypatch.setattr(JointMoments, "reach", lambda self, relation: honest(self, relation) / 2)
        assert audit_fit(auto(epsilon), *worst_pair(ROWS), runs=1500 if epsilon == 1 else 4000).refuted

    @pytest.mark.parametrize("epsilon", [pytest.param(0.2, marks=pytest.mark.statistical), 1.0])
    def test_cap_ignored(self, monkeypatch, epsilon):
        monkeypatch.setitem(LocalRows.WAYS, ClippedGradient, unclipped)
        if epsilon == 1:
            assert audit_fit(auto(1.0, 0.004), *worst_pair(200), runs=600).refuted
        else:
            assert audit_fit(auto(0.2), *worst_pair(ROWS), runs=5000).refuted

    def test_cap_applied_to_the_rows_before_whitening(self, monkeypatch):
        honest = LocalRows.transformed

        def transformed(rows, matrix):
            seen = honest(rows, matrix)
            seen._norms = rows._norms
            return seen

        monkeypatch.setattr(LocalRows, "transformed", transformed)
        assert audit_fit(auto(1.0, 0.004), *worst_pair(200), runs=600).refuted

    @pytest.mark.parametrize("epsilon", BUDGETS)
    @pytest.mark.parametrize(("bare", "part"), [("second", "moments"), ("both", "correlation")])
    def test_moments_without_noise(self, monkeypatch, epsilon, bare, part):
        honest = Granular.release

        def release(mechanism, total, query, clip, gate):
            noisy = honest(mechanism, total, query, clip, gate)
            if query.kind != "moments":
                return noisy
            exact = total / query.denominator
            return exact if bare == "both" else np.concatenate([noisy[:1], exact[1:]])

        monkeypatch.setattr(Granular, "release", release)
        assert audit_fit(auto(epsilon), *appeared(ROWS), runs=200, parts=[part]).refuted

    @pytest.mark.parametrize("epsilon", [pytest.param(0.2, marks=pytest.mark.statistical), 1.0])
    def test_second_moment_without_clip(self, monkeypatch, epsilon):
        """Among rows of zeros the whitened unit row is long: its square moves the sum far beyond √2."""
        model = auto(epsilon, 5e-4, steps=None, solver_options={"rules": SHORT})
        audit = partial(audit_fit, model, *appeared(1000), runs=200 if epsilon == 1 else 1200, parts=["second moment"])
        assert not audit().refuted
        bare = lambda rows, *asked: sum(a.T @ a for a, _ in rows._blocks())  # noqa: E731
        monkeypatch.setitem(LocalRows.WAYS, SecondMoment, bare)
        assert audit().refuted

    @pytest.mark.parametrize("epsilon", BUDGETS)
    def test_half_the_noise(self, monkeypatch, epsilon):
        _less_noise(monkeypatch, 2)
        assert audit_fit(auto(epsilon), *worst_pair(ROWS), runs=600).refuted


class TestEverySolver:
    @pytest.mark.parametrize("name", list(SOLVERS))
    @pytest.mark.parametrize("epsilon", BUDGETS)
    def test_keeps_its_claim(self, name, epsilon):
        result = audit_solver(name, epsilon, runs=400, random_state=0)
        assert (result.claimed, result.runs, result.confidence) == (epsilon, 400, 0.999)
        assert not result.refuted

    @pytest.mark.parametrize("name", list(SOLVERS))
    def test_is_caught_with_a_third_of_its_noise(self, name, monkeypatch):
        _less_noise(monkeypatch, 3)
        # Of hidden passes the attacker sees one number, and their Rényi bound leaves more room.
        runs = 2000 if name == "noisy-admm" else 1000
        assert audit_solver(name, 1.0, runs=runs, random_state=0).refuted

    @pytest.mark.parametrize("name", [name for name in SOLVERS if name not in ("auto", "dp-vradmm", "noisy-admm")])
    def test_is_caught_without_clip(self, name, monkeypatch):
        """The worst pair's gradients are five times as long as the clip."""
        monkeypatch.setitem(LocalRows.WAYS, ClippedGradient, unclipped)
        assert audit_solver(name, 1.0, runs=500, random_state=0).refuted

    @pytest.mark.statistical
    @pytest.mark.parametrize("name", ["dp-sgd", "dp-sadmm", "ssadmm"])
    def test_is_caught_sampling_at_twice_the_rate(self, name, monkeypatch):
        honest = TruncatedPoisson.draw

        def draw(sampler, n_rows, stream):
            return honest(replace(sampler, rate=2 * sampler.rate, cap=n_rows), n_rows, stream)

        monkeypatch.setattr(TruncatedPoisson, "draw", draw)
        assert audit_solver(name, 1.0, runs=2000, random_state=0).refuted

    @pytest.mark.statistical
    @pytest.mark.parametrize("name", [name for name in SOLVERS if name != "noisy-admm"])
    def test_is_caught_scaling_by_the_longest_row(self, name, monkeypatch):
        """One long row makes all others small, so that it moves every record's contribution.

        Not in hidden passes, where each visit adds noise of its own; `test_bounds_measured_on_the_data` sees it there.
        """
        clip_norm = None if name == "auto" else 0.1
        model = auto(1.0, solver=name, clip_norm=clip_norm)
        short, y = np.full((ROWS, 1), 0.02), np.zeros(ROWS, dtype=int)
        long = np.concatenate([np.ones((1, 1)), short[1:]])
        audit = partial(audit_fit, model, (long, y), (short, y))
        assert not audit(runs=300).refuted
        honest = PackedRows.of
        monkeypatch.setattr(PackedRows, "of", lambda m, X, keep: honest(m, X / np.linalg.norm(X, axis=1).max(), keep))
        assert audit(runs=1000 if SOLVERS[name].samples else 300).refuted


def test_tables_that_are_no_neighbours_are_refused():
    with pytest.raises(InvalidParameter, match="different plans"):
        audit_fit(auto(1.0), worst_pair(ROWS)[0], worst_pair(ROWS - 1)[1], runs=200)
    with pytest.raises(InvalidParameter, match="runs"):
        audit_solver("auto", 1.0, runs=10)


def unclipped(rows, question, at, batch, honest=LocalRows.WAYS[ClippedGradient]):
    """The way of gradients without the clip of the plan."""
    return honest(rows, replace(question, clip=np.inf), at, batch)


def _less_noise(monkeypatch, factor):
    honest, hidden = Granular.release, hidden_walk.normals_on_grid

    def release(mechanism, total, query, clip, gate):
        query = replace(query, noise_multiplier=query.noise_multiplier / factor)
        return honest(mechanism, total, query, clip, gate)

    def normals_on_grid(stream, deviation, grid, shape):
        return hidden(stream, deviation / factor, grid, shape)

    monkeypatch.setattr(Granular, "release", release)
    monkeypatch.setattr(hidden_walk, "normals_on_grid", normals_on_grid)
