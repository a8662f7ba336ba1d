"""Audit of a fitted or loaded model: statement, accountant and the recorded plan, attacked without a row."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from dpadmm import DPLinearRegression, DPLinearSVC, DPLogisticRegression, load_model
from dpadmm.audit import audit_model
from dpadmm.audit.attacks_on_plan import attacks_on
from dpadmm.audit.end_to_end import attack
from dpadmm.audit.neighbours import FAR, Forgery, OneAmongZeros, long_row
from dpadmm.audit.saved_model import FEWEST_RUNS, MOST_RUNS, bearable_runs, check_statement, remade
from dpadmm.errors import FileProblem, PrivacyError, PromiseBroken
from dpadmm.privacy.facts import Unit
from dpadmm.privacy.plan import Plan
from dpadmm.privacy.plan_facts import restated
from dpadmm.privacy.questions import ClippedGradient, FeatureCurvature, GradientDifference, SecondMoment
from dpadmm.privacy.sampling import Batch
from dpadmm.privacy.statement import PrivacyStatement
from dpadmm.privacy.wording.version1_words import EARLIER, SAFE
from dpadmm.problem.losses import Logistic
from dpadmm.problem.rowmap import RowMap
from dpadmm.randomness import make_selection_stream, make_streams
from dpadmm.rows.local import LocalRows
from dpadmm.solvers.base import SOLVERS
from experiments.mutants import less_noise
from tests.asking import EVERY_ROW
from tests.version1 import stated

ROWS = 400


def table(seed=0, features=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(ROWS, features))
    return X, (X[:, 0] > 0).astype(int)


def fitted(epsilon=1.0, delta=1e-3, kind=DPLogisticRegression, **more):
    X, y = table()
    declared = {} if kind is DPLinearRegression else {"classes": (0, 1)}
    return kind(epsilon, delta, **{**declared, **more}).fit(X, y)


def stating(model, **changed):
    """The statement of a model with some facts changed."""
    return PrivacyStatement(replace(model.privacy_.facts, **changed))


class TestHonestModels:
    def test_keys(self):
        model = fitted(steps=3)
        result = audit_model(model, runs=300, random_state=0)
        assert (result.claimed, result.delta, result.runs, result.confidence) == (1.0, 1e-3, 300, 0.999)
        assert (result.solver, result.relation, result.method) == ("auto", "replace-one", "gaussian")
        assert result.proven == pytest.approx(model.privacy_.epsilon_achieved)
        assert result.lower_bound <= result.proven <= 1.0
        assert result.proof == model.plan_.proof_status
        assert not result.refuted

    def test_comes_near_a_large_claim(self):
        result = audit_model(fitted(6.0, steps=3, solver="dp-gd", clip_norm=0.1), runs=1000, random_state=0)
        assert 0.8 * result.power < result.lower_bound <= 6.0

    @pytest.mark.parametrize(
        ("name", "more"),
        [(name, {"steps": 3, "clip_norm": None if name == "auto" else 0.1}) for name in SOLVERS]
        + [("auto", {}), ("auto", {"class_weight": {0: 2.0, 1: 1.0}}), ("auto", {"penalty": "l1", "bounds": (-3, 3)})],
    )
    def test_every_solver_can_be_made_again_from_a_folder(self, tmp_path, name, more):
        fitted(solver=name, **more).save(tmp_path / "model")
        model = load_model(tmp_path / "model")
        recipe = remade(model, model.plan_)
        assert recipe is not None
        assert recipe.plan == model.plan_
        assert recipe.solver.name == name

    @pytest.mark.slow
    @pytest.mark.parametrize("epsilon", [0.2, 1.0])
    @pytest.mark.parametrize("name", list(SOLVERS))
    def test_every_solver(self, name, epsilon):
        model = fitted(epsilon, solver=name, steps=3, clip_norm=None if name == "auto" else 0.1)
        assert not audit_model(model, runs=300, random_state=0).refuted

    def test_the_solver_is_run_once_where_it_can_be_made_again(self):
        assert audit_model(fitted(steps=2), runs=200, random_state=0).rehearsed
        assert not audit_model(fitted(steps=2, solver="noisy-admm"), runs=200, random_state=0).rehearsed

    @pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
    @pytest.mark.parametrize("kind", [DPLogisticRegression, DPLinearSVC, DPLinearRegression])
    def test_every_estimator_and_relation(self, kind, relation):
        result = audit_model(fitted(kind=kind, relation=relation, steps=2), runs=200, random_state=0)
        assert (result.relation, result.refuted) == (relation, False)

    def test_more_classes_and_text_labels(self, tmp_path):
        X, y = table()
        DPLogisticRegression(1.0, 1e-3, steps=2).fit(X, np.array(["no", "maybe", "yes"])[y + (X[:, 1] > 1)]).save(
            tmp_path / "model"
        )
        assert not audit_model(load_model(tmp_path / "model"), runs=200, random_state=0).refuted


class TestBrokenModels:
    @pytest.mark.parametrize("name", ["auto", "full-admm", "dp-sgd"])
    def test_a_library_without_noise_is_refuted(self, name):
        batch = {"clip_norm": 0.1, "batch_size": ROWS // 2}
        model = fitted(solver=name, steps=3, **({} if name == "auto" else batch))
        with less_noise(0.02):
            assert audit_model(model, runs=300, random_state=0).refuted

    def test_a_recorded_plan_with_less_noise_is_refused_by_the_accountant(self):
        model = fitted(steps=3)
        fields = model.plan_.to_dict()
        for query in fields["queries"]:
            query["noise_multiplier"] /= 2
            query["noise_std"] /= 2
        model.plan_ = Plan.from_dict(fields)
        model.privacy_ = stating(model, plan_digest=model.plan_.digest)
        with pytest.raises((PrivacyError, FileProblem)):
            audit_model(model, runs=200)

    @pytest.mark.parametrize("more", [{}, {"arithmetic": "exact"}, {"solver": "noisy-admm"}])
    def test_even_if_its_statement_agrees_and_it_cannot_be_attacked(self, more):
        model = fitted(steps=3, **more)
        fields = model.plan_.to_dict()
        for query in fields["queries"]:
            query["noise_multiplier"] /= 2
            query["noise_std"] /= 2
        model.plan_ = Plan.from_dict(fields)
        model.privacy_ = PrivacyStatement(restated(model.privacy_.facts, model.plan_))
        with pytest.raises(PromiseBroken, match="cost 2"):
            audit_model(model, runs=200)

    def test_and_by_the_attack(self):
        """Were the accountant wrong too, the runs would still tell."""
        model = fitted(steps=3)
        recipe = remade(model, model.plan_)
        quiet = replace(
            recipe.plan,
            queries=tuple(replace(q, noise_multiplier=q.noise_multiplier / 8) for q in recipe.plan.queries),
        )
        suspects = Forgery(model, model.plan_).pairs()[0].tables
        assert attack(replace(recipe, plan=quiet), suspects, make_streams(0), 400).refuted


class TestStatements:
    def test_seeded_models_are_refused(self):
        with pytest.raises(PrivacyError, match="seeded"):
            audit_model(fitted(random_state=3), runs=200)

    def test_a_statement_about_another_plan_is_refused(self):
        one, other = fitted(1.0), fitted(0.5)
        with pytest.raises(FileProblem, match="another plan"):
            check_statement(one.privacy_, other.plan_)

    def test_statements_of_earlier_versions_were_rounded_to_the_nearest_and_agree(self):
        model = fitted(0.7312344)
        earlier, safe = stated(model, EARLIER), stated(model, SAFE)
        assert earlier.mechanisms != safe.mechanisms
        for statement in (earlier, safe):
            check_statement(statement, model.plan_)

    @pytest.mark.parametrize(
        "change",
        [
            {"epsilon": 0.1},
            {"mechanisms": ("nothing",)},
            {"assumptions": ()},
            {"proof_status": "trust me"},
            {"outlook": "Expect the best."},
        ],
    )
    def test_and_are_refused_where_a_sentence_lies(self, change):
        model = fitted()
        with pytest.raises(FileProblem, match=next(iter(change))):
            check_statement(stated(model, **change), model.plan_)

    @pytest.mark.parametrize(
        "change",
        [
            {"epsilon": 0.1},
            {"delta": 1e-9},
            {"relation": "add-remove"},
            {"epsilon_achieved": 0.5},
            {"queries": ()},
            {"proofs": ()},
            {"assumptions": ()},
            {"unit": Unit("row", 7)},
        ],
    )
    def test_a_statement_that_contradicts_its_plan_is_refused(self, change):
        model = fitted()
        with pytest.raises(FileProblem, match=next(iter(change))):
            check_statement(stating(model, **change), model.plan_)

    def test_a_plan_is_attacked_even_if_the_folder_does_not_keep_the_graph(self, tmp_path):
        """As folders of earlier versions do not, if the graph was a sparse matrix."""
        X, y = table()
        model = DPLogisticRegression(1.0, 1e-3, classes=(0, 1), penalty="graph", graph=np.eye(3)).fit(X, y)
        model.save(tmp_path / "model")
        loaded = load_model(tmp_path / "model")
        result = audit_model(loaded, runs=300, random_state=0)
        assert (result.refuted, result.rehearsed) == (False, True)
        loaded.graph = None
        result = audit_model(loaded, runs=300, random_state=0)
        assert (result.refuted, result.rehearsed) == (False, False)
        with less_noise(0.1):
            assert audit_model(loaded, runs=300, random_state=0).refuted

    def test_unfitted_models_are_refused(self):
        from sklearn.exceptions import NotFittedError

        with pytest.raises(NotFittedError):
            audit_model(DPLogisticRegression())


class TestWorstRows:
    def test_one_among_zeros_answers_like_the_whole_table(self):
        row, x = np.array([[0.6, 0.8]]), np.array([0.3, -0.2])
        whole = LocalRows(np.vstack([row, np.zeros((9, 2))]), np.ones(10), Logistic())
        short = OneAmongZeros(LocalRows(row, np.ones(1), Logistic()), 10)
        batches = [
            Batch(None),
            Batch(np.array([0, 3])),
            Batch(np.array([4, 5])),
            Batch(np.array([2, 0]), np.array([1.0, 0.0])),
        ]
        for batch in batches:
            assert np.allclose(
                short.ask(ClippedGradient(0.1), (x,), batch), whole.ask(ClippedGradient(0.1), (x,), batch)
            )
            assert np.allclose(
                short.ask(GradientDifference(1.0), (x, -x, 0.2), batch),
                whole.ask(GradientDifference(1.0), (x, -x, 0.2), batch),
            )
        assert short.n_rows == whole.n_rows
        assert np.allclose(short.ask(SecondMoment(), (), EVERY_ROW), whole.ask(SecondMoment(), (), EVERY_ROW))
        weights = np.array([3.0, 30.0])
        assert np.allclose(
            short.ask(FeatureCurvature(), (x, weights), EVERY_ROW),
            whole.ask(FeatureCurvature(), (x, weights), EVERY_ROW),
        )
        turned = np.array([[0.0, 2.0], [1.0, 0.0]])
        assert np.allclose(
            short.transformed(turned).ask(ClippedGradient(0.1), (x,), Batch(None)),
            whole.transformed(turned).ask(ClippedGradient(0.1), (x,), Batch(None)),
        )

    @pytest.mark.parametrize("bounds", [None, ((-1.0, 5.0), (1.0, 9.0))])
    def test_long_rows_are_mapped_to_full_length(self, bounds):
        rowmap = RowMap.declare(0.5, False, bounds, 2)
        mapped = rowmap.apply(long_row(rowmap, 2, feature=1)[None])[0]
        assert mapped == pytest.approx([0.0, 0.5])
        assert FAR > 1

    def test_runs_follow_the_time_they_take(self):
        model = fitted(steps=2)
        attacks = attacks_on(model, model.plan_, make_selection_stream(0))
        assert FEWEST_RUNS <= bearable_runs(attacks, make_streams(0)) <= MOST_RUNS


def test_a_statement_survives_the_folder(tmp_path):
    fitted().save(tmp_path / "model")
    words = json.loads((tmp_path / "model" / "model.json").read_text())
    assert words["privacy"]["plan_digest"] == load_model(tmp_path / "model").plan_.digest
