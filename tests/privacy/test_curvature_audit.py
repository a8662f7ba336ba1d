"""Curvatures along features are audited like any query: weighed by the witness, asked where they show most, kept."""

from __future__ import annotations

import numpy as np
import pytest

from dpadmm import DPLogisticRegression
from dpadmm.audit.neighbours import Forgery
from dpadmm.audit.query_attack import Interrogation, loudest
from dpadmm.audit.saved_model import attack_all
from dpadmm.audit.witness import Witness
from dpadmm.oracles.gate import Gate
from dpadmm.oracles.noiseless import NoiselessOracle
from dpadmm.oracles.private import PrivateOracle
from dpadmm.privacy.arithmetic import Arithmetic
from dpadmm.privacy.budget import Budget
from dpadmm.privacy.calibration import calibrate
from dpadmm.privacy.plan import Request
from dpadmm.privacy.questions import CURVATURE, FeatureCurvature
from dpadmm.privacy.sampling import Everything
from dpadmm.problem.losses import Logistic
from dpadmm.randomness import make_streams, public_generator
from dpadmm.rows.local import LocalRows
from dpadmm.rows.packed import PackedRows
from dpadmm.solvers.auto.noise_spread.replay import SimulatedRows
from dpadmm.solvers.auto.noise_spread.transcript import Listener, Tape
from experiments.mutants import half_the_reach, less_noise, no_curvature_clip
from tests.asking import EVERY_ROW

ROWS, DELTA = 60, 1e-3
X = np.random.default_rng(0).normal(size=(ROWS, 3))
Y = (X[:, 0] > 0).astype(int)


def plan_of(relation="replace-one", arithmetic=Arithmetic.GRANULAR, epsilon=1.0):
    request = Request("curvature", 1, FeatureCurvature())
    return calibrate(
        Budget(epsilon, DELTA, relation), [request], Everything(), ROWS, arithmetic=arithmetic, cache=False
    )


@pytest.fixture(scope="module")
def models():
    options = {"classes": (0, 1), "steps": 2, "random_state": 0}
    return {
        "free": DPLogisticRegression(1.0, DELTA, **options).fit(X, Y),
        "bounds": DPLogisticRegression(1.0, DELTA, bounds=(-3.0, 3.0), **options).fit(X, Y),
    }


def attack_on(model, plan) -> Interrogation:
    return loudest(plan, Forgery(model, plan).pairs(), model.row_map_)


class TestQuestions:
    @pytest.mark.parametrize("arithmetic", [Arithmetic.GRANULAR, Arithmetic.EXACT])
    @pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
    @pytest.mark.parametrize("name", ["free", "bounds"])
    def test_some_pair_of_tables_lies_as_far_apart_as_declared(self, models, name, relation, arithmetic):
        (reach,) = attack_on(models[name], plan_of(relation, arithmetic)).reaches
        assert 0.99 <= reach <= 1.0

    @pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
    def test_an_honest_library_stands(self, models, relation):
        plan = plan_of(relation)
        result = attack_all(plan, [attack_on(models["free"], plan)], make_streams(0), 1000)
        assert 0.3 < result.lower_bound <= 1.0

    @pytest.mark.parametrize("broken", ["clip", "noise"])
    def test_a_broken_one_is_refuted(self, models, broken):
        plan = plan_of()
        with no_curvature_clip() if broken == "clip" else less_noise(0.3):
            assert attack_all(plan, [attack_on(models["free"], plan)], make_streams(0), 400).refuted

    def test_half_the_reach_is_refuted(self, models):
        with half_the_reach(FeatureCurvature):
            plan = plan_of()
            result = attack_all(plan, [attack_on(models["free"], plan)], make_streams(0), 1500)
        assert result.refuted


class TestWitness:
    def test_the_evidence_is_the_exact_likelihood_ratio_in_any_coordinates(self):
        tables = [LocalRows(np.vstack([row, np.zeros((ROWS - 1, 2))]), np.ones(ROWS), Logistic()) for row in np.eye(2)]
        plan = plan_of()
        (query,) = plan.queries
        x, weights = np.zeros(2), np.array([1.0, 30.0])
        witness = Witness(PrivateOracle(tables[0], Gate(plan), make_streams(0)), plan, tuple(tables))
        witness.change_coordinates(np.array([[3.0, 1.0], [0.0, 1.0]]))
        seen = witness.ask(CURVATURE, x, weights) * query.denominator
        first, second = (rows.ask(FeatureCurvature(), (x, weights), EVERY_ROW) for rows in tables)
        variance = (query.noise_multiplier * query.clip_norm) ** 2
        expected = (np.sum((seen - first) ** 2) - np.sum((seen - second) ** 2)) / (2 * variance)
        assert witness.log_ratios["curvature"] == pytest.approx(expected)
        witness._oracle.require_promise_kept()


class TestTranscripts:
    weights = np.arange(1.0, 5.0)

    def heard(self, models, points=(0.0, 1.0)):
        """A run of the solver, after which the oracle is asked for curvatures, too."""
        model = models["free"]
        rows = LocalRows(PackedRows.of(model.row_map_, X), 2.0 * Y - 1, Logistic())
        recipe = model.prepare(X, Y)[0].recipe
        listener = Listener(NoiselessOracle(rows))
        state = recipe.solver.init(recipe.problem)
        for _ in range(recipe.solver.steps):
            state = recipe.solver.update(state, recipe.problem, listener)
        answers = [listener.ask(CURVATURE, np.full(4, at), self.weights) for at in points]
        return listener.transcript(recipe.solver, recipe.problem), answers, state

    def test_answers_are_kept_and_given_again(self, models):
        transcript, answers, _ = self.heard(models)
        assert not np.array_equal(*answers)
        assert len(transcript.answers_to(CURVATURE)) == 2
        assert "curvature" in transcript.noise
        tape = Tape(transcript)
        for answer in answers:
            np.testing.assert_array_equal(tape.ask(CURVATURE, np.zeros(4), self.weights), answer)

    def test_transcripts_without_curvatures_say_nothing_of_them(self, models):
        transcript, _, _ = self.heard(models, points=())
        assert transcript.answers_to(CURVATURE) == ()
        assert "curvature" not in transcript.noise

    def test_simulated_rows_answer_the_diagonal_of_their_curvature(self, models):
        transcript, _, state = self.heard(models)
        transcript.noise["curvature"] = 0.0
        curvature = np.diag([4.0, 3.0, 2.0, 1.0]) + 0.1
        rows = SimulatedRows.of(transcript, state, np.eye(4), curvature, public_generator(0))
        found = rows.ask(CURVATURE, np.zeros(4), self.weights)
        np.testing.assert_allclose(found, self.weights * np.diag(rows.curvature))
        transcript.noise["curvature"] = 1.0
        assert not np.allclose(rows.ask(CURVATURE, np.zeros(4), self.weights), found, atol=1e-3)
