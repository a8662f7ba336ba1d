"""The public rules behind the defaults: clip, longest step and averaged share; and what they are worth for dp-sgd."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpadmm import DPLinearRegression, DPLogisticRegression
from dpadmm.declare.recipe import default_clip
from dpadmm.errors import InvalidParameter
from dpadmm.privacy.accountants.gaussian import gaussian_shift
from dpadmm.problem import Constraint, Huber, Logistic, Problem, Squared, Zero
from dpadmm.solvers import SOLVERS, Setting
from dpadmm.solvers.admm import averaging_weight
from dpadmm.solvers.base import signal_to_noise

PROBLEM = Problem(Logistic(), Zero(), Constraint.identity(9))
NOISY, CLEAR = Setting(1000, 0.05, 2.0, 0.5), Setting(1_000_000, 1.0, 2.0, 1.0)
SAMPLED = {"relation": "add-remove", "sampler": "poisson", "batch_size": 128}
OF_OPACUS = {"clip_norm": 1.0, "solver_options": {"step_size": 2.0, "averaging": "last"}}


def made_up(seed: int, n_rows: int = 6000, n_features: int = 12) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n_rows, n_features))
    margins = X @ np.linspace(-4, 4, n_features)
    return X, (rng.uniform(size=n_rows) < 1 / (1 + np.exp(-margins))).astype(int)


def fitted(X, y, epsilon, seed=0, **parameters) -> DPLogisticRegression:
    model = DPLogisticRegression(epsilon, 1e-6, solver="dp-sgd", classes=[0, 1], random_state=seed, **parameters)
    return model.fit(X, y)


def loss(model, X, y) -> float:
    return float(np.mean(np.logaddexp(0, -(2 * y - 1) * model.decision_function(X))))


class TestClip:
    def test_opens_with_signal_to_noise_from_half_to_the_whole_slope(self):
        clips = [default_clip(Logistic(), reach) for reach in np.geomspace(1, 1e5, 60)]
        assert clips == sorted(clips)
        assert (clips[0], clips[-1]) == (0.5, 1.0)

    @pytest.mark.parametrize(("loss", "clip"), [(Squared(), 2.0), (Huber(), 0.5)])
    def test_of_regressions_is_fixed(self, loss, clip):
        assert {default_clip(loss, reach) for reach in (1.0, 300.0, 1e6)} == {clip}

    @pytest.mark.parametrize("solver", [name for name in SOLVERS.names() if name != "auto"])
    @pytest.mark.parametrize(("epsilon", "row_norm"), [(0.1, 1.0), (3.0, 1.0), (3.0, 4.0)])
    def test_is_in_the_plan_and_the_statement(self, solver, epsilon, row_norm):
        X, y = made_up(0)
        chosen = {"steps": 1, "row_norm": row_norm, "classes": [0, 1], "random_state": 0}
        model = DPLogisticRegression(epsilon, 1e-6, solver=solver, **chosen).fit(X, y)
        reach = len(y) * gaussian_shift(epsilon, 1e-6) / (2 * math.sqrt(X.shape[1] + 1))
        clip = row_norm * default_clip(Logistic(), 0.0 if solver == "noisy-admm" else reach)
        assert model.plan_.queries[0].clip_norm == pytest.approx(clip)
        assert f"{clip:.4g}" in str(model.privacy_)

    def test_depends_on_no_row(self):
        (X, y), (other, labels) = made_up(0), made_up(1)
        one, two = fitted(X, y, 1.0), fitted(100 * other, 1 - labels, 1.0)
        assert one.plan_ == two.plan_
        assert 0.5 < one.plan_.queries[0].clip_norm < 1.0

    def test_of_regressors_is_untouched_by_the_rule(self):
        X, y = made_up(0)
        model = DPLinearRegression(3.0, 1e-6, solver="full-admm", steps=1, random_state=0).fit(X, y - 0.5)
        assert model.plan_.queries[0].clip_norm == 2.0


class TestStep:
    @pytest.mark.parametrize("name", ["dp-sgd", "dp-gd"])
    def test_a_capped_step_averages_less(self, name):
        """Half of the iterates where the travel sets the step; fewer, the more of the travel the cap forbids."""
        make = SOLVERS[name].default
        assert make(PROBLEM, NOISY, 30, steps=500).averaging == 0.5
        allowed = CLEAR.travel(PROBLEM) / 500
        assert make(PROBLEM, CLEAR, 1000, steps=500).averaging == pytest.approx(0.5 * 6.0 / allowed)

    @pytest.mark.parametrize("name", ["dp-sadmm", "ssadmm"])
    @pytest.mark.parametrize(("loss", "share"), [(Logistic(), 0.1), (Squared(), 0.5)])
    def test_shrinking_steps_average_little_but_in_regression(self, name, loss, share):
        problem = Problem(loss, Zero(), Constraint.identity(9))
        assert SOLVERS[name].default(problem, NOISY, 30).averaging == share

    def test_signal_to_noise_sets_the_travel(self):
        reach = signal_to_noise(1000, 0.05, 2.0, PROBLEM)
        assert reach == pytest.approx(1000 * 0.05 / (2 * 3))
        assert NOISY.travel(PROBLEM) == pytest.approx(16 * reach / 0.5)

    @pytest.mark.parametrize("name", sorted(set(SOLVERS.names()) - {"auto", "noisy-admm"}))
    def test_given_options_win(self, name):
        solver = SOLVERS[name].default(PROBLEM, CLEAR, 1000, steps=50, averaging="linear", step_size=0.25)
        assert (solver.averaging, solver.step_size) == ("linear", 0.25)


class TestAveraging:
    @pytest.mark.parametrize(("share", "averaged"), [(0, 1), (0.1, 2), (0.5, 10), (1.0, 20), ("tail", 10), ("all", 20)])
    def test_a_share_counts_from_the_end(self, share, averaged):
        weights = [averaging_weight(share, step, 20) for step in range(1, 21)]
        assert weights == [0.0] * (20 - averaged) + [1.0] * averaged

    @pytest.mark.parametrize("share", [-0.1, 1.5, math.nan, True, None, "half"])
    def test_other_shares_are_refused(self, share):
        with pytest.raises(InvalidParameter, match="averaging"):
            SOLVERS["dp-sgd"].default(PROBLEM, CLEAR, 1000, averaging=share)


@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_own_step_and_clip_are_no_worse_than_those_of_opacus(epsilon):
    """Ten epochs of Poisson batches, as in the benchmark: Opacus has clip 1, step 2 and the last iterate."""
    X, y = made_up(2)
    steps = 10 * math.ceil(len(y) / SAMPLED["batch_size"])
    own, theirs = (
        np.mean([loss(fitted(X, y, epsilon, seed, steps=steps, **SAMPLED, **chosen), X, y) for seed in range(3)])
        for chosen in ({}, OF_OPACUS)
    )
    assert own <= theirs
