"""Every sort of plan is attacked: the honest one stands, and one with a part of its noise taken away does not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dpadmm import DPLinearRegression, DPLogisticRegression, DPSearchCV, load_model
from dpadmm.audit import NoAttack, audit_model
from dpadmm.audit.attacks_on_plan import attacks_on
from dpadmm.audit.hidden_pass_attack import HiddenRun, smallest_program
from dpadmm.audit.neighbours import Forgery
from dpadmm.audit.query_attack import Interrogation
from dpadmm.errors import QueryRefused
from dpadmm.preparation import PrivateGraph, PrivateQuantileClipper
from dpadmm.privacy.accountants.gaussian import gaussian_shift
from dpadmm.privacy.arithmetic import Arithmetic
from dpadmm.privacy.passage import Passage
from dpadmm.privacy.plan import Query
from dpadmm.privacy.plan_facts import restated
from dpadmm.privacy.questions import CentredScore
from dpadmm.privacy.sampling import Everything
from dpadmm.privacy.state_grid import Footing
from dpadmm.privacy.statement import PrivacyStatement
from dpadmm.randomness import make_selection_stream, make_streams
from experiments.mutants import half_the_exact_deviation, less_noise, less_noise_on

ROWS = 400


def table(rows=ROWS, features=3):
    X = np.random.default_rng(0).normal(size=(rows, features))
    return X, (X[:, 0] > 0).astype(int)


def fitted(epsilon=1.0, delta=1e-3, rows=ROWS, **more):
    return DPLogisticRegression(epsilon, delta, **{"classes": (0, 1), "steps": 3, **more}).fit(*table(rows))


def searched(epsilon=1.0, delta=1e-3, rows=ROWS, trials="geometric", mean=3.0, **more):
    model = DPLogisticRegression(
        epsilon, delta, classes=(0, 1), **{"penalty": "l1", "solver": "dp-gd", "steps": 2, **more}
    )
    search = DPSearchCV(model, {"alpha": [1e-4, 1e-2]}, trials=trials, mean_trials=mean, validation=0.5)
    return search.fit(*table(rows)).best_estimator_


def refuted(model, runs=300):
    return audit_model(model, runs=runs, random_state=0).refuted


class TestReach:
    """The questions move every sum as far as the plan allows one record to."""

    @pytest.mark.parametrize(
        "more",
        [
            {},
            {"steps": None},
            {"row_norm": 0.1},
            {"row_norm": 7.0, "fit_intercept": False},
            {"bounds": (-3.0, 3.0)},
            {"solver": "full-admm", "clip_norm": 20.0},
            {"solver": "dp-vradmm", "steps": None},
            {"solver": "dp-sgd"},
            {"arithmetic": "exact"},
            {"relation": "add-remove"},
            {"classes": (0, 1, 2)},
            {"bounds": PrivateQuantileClipper((-50.0, 50.0))},
            {"penalty": "graph", "graph": PrivateGraph()},
        ],
    )
    def test_of_every_query_is_whole(self, more):
        model = fitted(6.0, **more)
        whole, *alone = attacks_on(model, model.plan_, make_selection_stream(0))
        assert len(alone) == (len(model.plan_.queries) if len(model.plan_.queries) > 1 else 0)
        for attack in alone or [whole]:
            assert 0.98 < attack.reaches[0] < 1 + 1e-9

    def test_of_a_regression_too(self):
        X, _ = table()
        model = DPLinearRegression(1.0, 1e-3, target_bounds=(-1, 1)).fit(X, 0.1 * X[:, 0])
        _, *alone = attacks_on(model, model.plan_, make_selection_stream(0))
        assert min(attack.reaches[0] for attack in alone) > 0.98

    def test_the_whole_plan_is_moved_by_nearly_all_that_its_budget_allows(self):
        for more in ({}, {"bounds": PrivateQuantileClipper((-50.0, 50.0))}, {"relation": "add-remove"}):
            model = fitted(**more)
            whole, *_ = attacks_on(model, model.plan_, make_selection_stream(0))
            assert 0.85 < whole.spread / gaussian_shift(1.0, 1e-3) <= 1 + 1e-6

    def test_evidence_is_the_likelihood_ratio_of_a_gaussian(self):
        """Its mean is ±μ²/2 and its deviation μ, the μ of the budget: nothing is lost."""
        model = fitted(3.0, solver="dp-gd", clip_norm=0.1)
        attack = Interrogation(model.plan_, Forgery(model, model.plan_).pairs()[0], model.row_map_)
        streams, mu = make_streams(0), attack.spread
        for truth in (0, 1):
            scores = np.array([attack(truth, streams) for _ in range(2000)])
            assert abs(scores.mean() - (truth - 0.5) * mu**2) < 5 * mu / np.sqrt(2000)
            assert abs(scores.std() / mu - 1) < 0.1


class TestExactArithmetic:
    @pytest.mark.parametrize("solver", ["auto", "full-admm", "dp-sgd"])
    def test_stands(self, solver, tmp_path):
        fitted(solver=solver, steps=2, arithmetic="exact").save(tmp_path / "model")
        result = audit_model(load_model(tmp_path / "model"), runs=200, random_state=0)
        assert (result.runs, result.refuted) == (200, False)

    def test_with_a_tenth_of_its_noise_is_refuted(self):
        model = fitted(solver="full-admm", steps=2, arithmetic="exact")
        with less_noise(0.1):
            assert refuted(model, 200)

    @pytest.mark.slow
    def test_without_half_of_its_noise_is_refuted(self):
        model = fitted(1.0, 0.1, rows=8, arithmetic="exact", solver="full-admm", clip_norm=0.1)
        assert not refuted(model, 500)
        with half_the_exact_deviation():
            assert refuted(model, 500)


class TestPreparation:
    @pytest.mark.parametrize(
        ("more", "kind"),
        [
            ({"bounds": PrivateQuantileClipper((-50.0, 50.0))}, "quantile counts"),
            ({"penalty": "graph", "graph": PrivateGraph()}, "feature moment"),
        ],
    )
    def test_stands_and_is_refuted_if_the_step_alone_is_not_noised(self, more, kind, tmp_path):
        fitted(**more).save(tmp_path / "model")
        model = load_model(tmp_path / "model")
        assert not refuted(model)
        with less_noise_on(kind, 0.02):
            assert refuted(model)

    @pytest.mark.slow
    def test_both_steps_and_mini_batches(self):
        steps = {"bounds": PrivateQuantileClipper((-50.0, 50.0)), "penalty": "graph", "graph": PrivateGraph()}
        model = fitted(solver="dp-sadmm", **steps)
        assert not refuted(model)
        with less_noise(0.02):
            assert refuted(model)


class TestHiddenPasses:
    def test_stand(self, tmp_path):
        fitted(solver="noisy-admm").save(tmp_path / "model")
        result = audit_model(load_model(tmp_path / "model"), runs=200, random_state=0)
        assert (result.method, result.runs, result.refuted) == ("threshold", 200, False)
        assert result.detectable_noise < 0.1

    @pytest.mark.slow
    @pytest.mark.parametrize("more", [{}, {"penalty": "fused"}, {"penalty": "l2", "fit_intercept": False}])
    def test_of_few_rows_with_a_tenth_of_their_noise_are_refuted(self, more):
        strong = {"solver_options": {"convexity": "strong"}, "alpha": 0.1} if "fit_intercept" in more else {}
        model = fitted(1.0, 0.05, rows=3, solver="noisy-admm", **{"steps": 1, **more, **strong})
        assert not refuted(model, 1500)
        with less_noise(0.1):
            assert refuted(model, 1500)

    def test_without_noise_on_the_visits_are_refuted_on_any_number_of_rows(self):
        model = fitted(solver="noisy-admm")
        with less_noise(1e-3):
            assert refuted(model)

    @pytest.mark.slow
    def test_the_power_is_that_of_the_attack(self):
        """As much noise as the audit says it can see the lack of is seen, and the score moves as it says."""
        model = fitted(1.0, 0.05, rows=3, solver="noisy-admm", steps=1)
        found = audit_model(model, runs=1500, random_state=0)
        assert 0 < found.detectable_noise < 0.5
        with less_noise(0.8 * found.detectable_noise):
            assert refuted(model, 1500)

    @pytest.mark.parametrize(
        "passage",
        [
            Passage(5, 0.2, 1.0, 1.0),
            Passage(5, 0.2, 1.0, 1.0, 0.9),
            Passage(5, 3.0, 0.0123, 3.9),
            Passage(5, 0.7, 0.3, 3.9, 1e-3),
        ],
    )
    def test_the_smallest_program_costs_no_more_than_the_recorded_one(self, passage):
        made = Passage.of(Footing.of(smallest_program(passage), 5, 1, 1.0))
        assert (made.coupling, made.convexity) == (passage.coupling, passage.convexity)
        assert made.blow_up <= passage.blow_up
        assert made.contraction <= passage.contraction
        assert made.weakest == pytest.approx(passage.weakest, rel=1e-6)


class TestSearches:
    def test_stand(self, tmp_path):
        searched().save(tmp_path / "model")
        result = audit_model(load_model(tmp_path / "model"), runs=200, random_state=0)
        assert (result.claimed, result.runs, result.method, result.refuted) == (1.0, 200, "threshold", False)
        assert len(result.attacks) == 2

    @pytest.mark.parametrize("kind", ["score", "gradient"])
    def test_are_refuted_if_fit_or_score_alone_is_not_noised(self, kind):
        model = searched()
        with less_noise_on(kind, 0.01):
            assert refuted(model)

    @pytest.mark.slow
    @pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
    @pytest.mark.parametrize("trials", ["logarithmic", "poisson"])
    def test_of_every_solver_stand(self, relation, trials):
        model = searched(trials=trials, relation=relation, solver="auto", steps=None)
        assert not refuted(model)
        with less_noise(0.02):
            assert refuted(model)


class TestWhatIsNotAttacked:
    def test_plans_of_earlier_versions_are_checked_and_named(self):
        model = fitted(steps=2)
        model.plan_ = replace(model.plan_, arithmetic=Arithmetic.FLOATING)
        model.privacy_ = PrivacyStatement(restated(model.privacy_.facts, model.plan_))
        with pytest.raises(NoAttack, match="earlier version") as refusal:
            audit_model(model, runs=200)
        assert refusal.value.checked.claimed == 1.0

    def test_unknown_queries_are_named(self):
        model = fitted(steps=2)
        strange = Query("score", 1, 0.5, Everything(), float(ROWS), 1.0, CentredScore(0.5))
        with pytest.raises(QueryRefused, match="scored"):
            attacks_on(model, replace(model.plan_, queries=(strange,)), make_selection_stream(0))


def test_hidden_passes_that_cost_more_than_stated_are_refused():
    model = fitted(solver="noisy-admm")
    (query,) = model.plan_.queries
    cheap = replace(model.plan_, queries=(replace(query, noise_multiplier=query.noise_multiplier / 2),))
    with pytest.raises(Exception, match="queries cost"):
        HiddenRun(cheap)
