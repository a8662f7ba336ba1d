"""`DPSearchCV`: what it may show, what it must not, what it charges, and the mutants that would break its proof."""

from __future__ import annotations

import gc
import inspect
import json
import math
import pickle
from dataclasses import replace
from unittest import mock

import numpy as np
import pytest
from scipy import sparse
from scipy.stats import loguniform
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from dpadmm import (
    Budget,
    DPLinearRegression,
    DPLinearSVC,
    DPLogisticRegression,
    DPSearchCV,
    Ledger,
    PrivateQuantileClipper,
    load_model,
)
from dpadmm.audit.lower_bound import epsilon_lower_bound
from dpadmm.errors import BudgetExceeded, Diverged, InvalidData, InvalidParameter, PromiseBroken, QueryRefused
from dpadmm.estimators.base import PrivateLinearModel
from dpadmm.estimators.search.candidates import make_candidates
from dpadmm.estimators.search.row_split import RowPart, Sizes, divide
from dpadmm.estimators.search.trial import Bench, Trial
from dpadmm.kernels import kernel_choice
from dpadmm.oracles.gate import Gate
from dpadmm.oracles.private import PrivateOracle
from dpadmm.privacy.accountants.gaussian import gaussian_epsilon
from dpadmm.privacy.calibration import calibrate
from dpadmm.privacy.ledger import release_digest, verify
from dpadmm.privacy.ledger.payment import Payment
from dpadmm.privacy.plan import Request
from dpadmm.privacy.questions import SCORE, CentredScore
from dpadmm.privacy.sampling import Everything
from dpadmm.privacy.selection import Repetitions, verify_any_plan
from dpadmm.privacy.wording import rounded_up
from dpadmm.problem.losses import Logistic, Softmax, Squared
from dpadmm.problem.rowmap import RowMap
from dpadmm.problem.scores import Accuracy, ClippedLoss, make_score
from dpadmm.randomness import make_selection_stream, make_streams
from dpadmm.rows.local import LocalRows
from dpadmm.rows.packed import PackedRows
from dpadmm.rows.scored import ScoredRows
from dpadmm.sessions import Work
from tests.asking import EVERY_ROW

from .taint import Stub, differences, observe
from .test_ledger import Untouchable

ROWS = np.random.default_rng(0)
X = ROWS.uniform(-1, 1, (300, 4))
Y = (X[:, 0] > 0).astype(int)
CHEAP = {"solver": "dp-gd", "steps": 5}
SPACE = {"alpha": [1e-4, 1e-2], "penalty": ["l1", "l2"]}


def model(**more):
    return DPLogisticRegression(**{"epsilon": 1.0, "delta": 1e-4, "classes": [0, 1]} | CHEAP | more)


def search(space=None, trials="geometric", mean_trials=3.0, validation=0.25, **more):
    settings = {"scoring": None, "score_bound": None, "accountant": None, "n_candidates": 5, "shape": None}
    chosen = {name: more.pop(name) for name in list(more) if name in settings}
    return DPSearchCV(
        model(**more), space or SPACE, trials=trials, mean_trials=mean_trials, validation=validation, **chosen
    )


def unpaid(plan):
    """Work under a plan, without a ledger."""
    return Work(plan, Payment(None, None, seeded=False), make_streams())


def fixed_number(monkeypatch, trials):
    monkeypatch.setattr(Repetitions, "draw", lambda law, stream: trials)


class TestUse:
    @pytest.mark.parametrize("trials", ["geometric", "logarithmic", "poisson"])
    def test_a_search_learns(self, trials):
        found = search(trials=trials, epsilon=50.0, mean_trials=4.0, random_state=1).fit(X, Y)
        assert found.score(X, Y) > 0.85
        assert found.best_params_ in make_candidates(SPACE, 1, SPACE)
        assert 0.5 < found.best_score_ < 1.5
        assert found.predict_proba(X).shape == (300, 2)
        assert found.decision_function(X).shape == (300,)
        assert found.classes_.tolist() == [0, 1]
        assert found.n_features_in_ == 4

    @pytest.mark.slow
    def test_it_finds_the_better_candidate(self):
        """With much budget the hopeless penalty loses: the score does select."""
        space = {"penalty": ["l1"], "alpha": [1e-5, 10.0]}
        wins = [
            search(space, epsilon=100.0, mean_trials=6.0, random_state=s, steps=20).fit(X, Y).best_params_
            for s in range(8)
        ]
        assert sum(params["alpha"] == 1e-5 for params in wins) >= 7

    def test_other_models_tables_and_weights(self):
        wide = sparse.csr_matrix(X.astype(np.float32))
        assert search().fit(wide, Y).best_estimator_.coef_.shape == (1, 4)
        three = np.digitize(X[:, 0], [-0.3, 0.3])
        assert search(classes=[0, 1, 2]).fit(X, three).predict(X).shape == (300,)
        assert DPSearchCV(DPLinearSVC(1.0, 1e-4, **CHEAP), SPACE).fit(X, Y).best_params_
        regression = DPSearchCV(DPLinearRegression(5.0, 1e-4, **CHEAP), {"loss": ["squared", "huber"]}, score_bound=0.5)
        assert regression.fit(X, X[:, 0]).predict(X).shape == (300,)
        weighted = search(class_weight={1: 3.0}).fit(X, Y, public_weight=np.linspace(0, 1, 300))
        assert any("weights are public" in line for line in weighted.privacy_.assumptions)

    def test_names_of_columns_reach_the_winner(self):
        import pandas as pd

        found = search().fit(pd.DataFrame(X, columns=list("abcd")), Y)
        assert found.best_estimator_.feature_names_in_.tolist() == list("abcd")

    def test_clone_and_parameters(self):
        tuned = search(random_state=3)
        assert clone(tuned).get_params()["estimator__random_state"] == 3
        same = [clone(tuned).fit(X, Y).best_estimator_.weights_ for _ in range(2)]
        assert np.array_equal(*same)

    def test_distributions_are_drawn_beforehand(self):
        space = {"penalty": ["l1"], "alpha": loguniform(1e-5, 1e-1)}
        first, second = (make_candidates(space, 7, ["alpha", "penalty"]) for _ in range(2))
        assert first == second
        assert len(first) == 7
        assert search(space).fit(X, Y).best_params_["penalty"] == "l1"

    def test_the_plan_is_known_before_any_row(self):
        tuned = search()
        before = tuned.plan(n_rows=300, n_features=4)
        assert before == tuned.fit(X, Y).plan_
        assert before.epsilon_achieved <= 1.0

    @pytest.mark.parametrize("solver", ["auto", "dp-gd"])
    @pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
    @pytest.mark.parametrize("declared", [None, 300])
    def test_relations(self, relation, declared, solver):
        """A trial asks exactly what was planned, whatever else was declared; anything else is refused."""
        tuned = search(relation=relation, n_rows=declared, solver=solver, bounds=(-1, 1), mean_trials=1.5).fit(X, Y)
        assert tuned.privacy_.relation == relation
        assert verify_any_plan(tuned.plan_) <= 1.0


class TestStatement:
    def test_it_tells_the_whole_search(self, tmp_path):
        tuned = search(epsilon=2.0).fit(X, Y)
        text = tuned.privacy_.text
        single = tuned.plan_.base_budget
        for words in (
            "(2, 0.0001)-differentially private",
            "geometric with mean 3",
            "4 candidates",
            f"({rounded_up(single.epsilon, 4)}, {rounded_up(single.delta, 4)})-private",
            "225 training rows",
            "75 other rows",
            "number of trials stays secret",
            "profile accountant",
            "docs/proofs/tuning.md",
        ):
            assert words in text
        assert tuned.best_estimator_.privacy_ is tuned.privacy_
        assert tuned.best_estimator_.epsilon == 2.0
        tuned.save(tmp_path / "model")
        again = load_model(tmp_path / "model")
        assert again.privacy_ == tuned.privacy_
        assert again.plan_ == tuned.plan_
        assert again.privacy_.plan_digest == again.plan_.digest

    def test_a_search_with_hidden_passes_says_what_is_rounded(self):
        """A search over noisy-admm beside another solver, and over its steps."""
        space = {"solver": ["noisy-admm", "dp-sadmm"], "steps": [1, 2]}
        said = search(space, mean_trials=2.0).fit(X, Y).privacy_
        assert said.arithmetic_name == "granular"
        assert "Arithmetic: granular. Each sum is rounded" in said.text
        assert "Each hidden state is rounded" in said.text
        assert "floating" not in said.text
        assert "the order in which rows were visited stays secret; the sampled batches stay secret" in said.text

    def test_hidden_passes_beside_private_preparation_are_refused_in_words(self):
        with pytest.raises(InvalidParameter, match="'noisy-admm' with private preparation"):
            search({"alpha": [1e-4]}, solver="noisy-admm", bounds=PrivateQuantileClipper((-1, 1))).fit(X, Y)

    def test_proofs_are_named_once(self):
        status = search({"alpha": [1e-4]}, solver="auto", steps=None).plan(300, 4).proof_status
        assert "docs/proofs/auto.md" in status
        assert status.count("docs/proofs/gaussian.md") == 1

    def test_a_seeded_search_says_so(self):
        assert search(random_state=0).fit(X, Y).privacy_.text.startswith("seeded: NOT private")

    def test_a_single_fit_says_that_selection_on_private_scores_is_not_covered(self):
        statement = model().fit(X, Y).privacy_.text
        assert "GridSearchCV" in statement
        assert "not covered" in statement
        assert "GridSearchCV" not in search().fit(X, Y).privacy_.text


class TestNothing:
    """A Poisson number of trials may be zero, and a trial may fail: a public model is released, and said so."""

    def test_no_trial(self, monkeypatch, tmp_path):
        fixed_number(monkeypatch, 0)
        tuned = search(trials="poisson").fit(X, Y)
        assert tuned.best_params_ is None
        assert tuned.best_score_ is None
        assert not tuned.best_estimator_.weights_.any()
        assert set(tuned.predict(X)) == {0}
        assert "public default" in tuned.privacy_.text
        tuned.save(tmp_path / "model")
        assert set(load_model(tmp_path / "model").predict(X)) == {0}

    def test_the_default_is_the_same_for_every_table(self, monkeypatch, tmp_path):
        fixed_number(monkeypatch, 0)
        tuned = search(trials="poisson", random_state=1)
        one = observe(clone(tuned), X, Y, tmp_path / "one")
        two = observe(clone(tuned), -X, 1 - Y, tmp_path / "two")
        assert one["failure"] is None
        assert differences(one, two) == []

    def test_failed_trials_are_outcomes_not_messages(self, monkeypatch):
        def diverge(*args, **kwargs):
            raise Diverged("the iterates left the finite numbers")

        monkeypatch.setattr(PrivateLinearModel, "fit", diverge)
        assert search().fit(X, Y).best_params_ is None


class TestBarrier:
    @pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
    def test_nothing_of_two_tables_differs_but_the_releases(self, relation, tmp_path):
        tuned = search(random_state=2, relation=relation)
        one = observe(clone(tuned), X, Y, tmp_path / "one")
        two = observe(clone(tuned), 3 * X[::-1] + 0.1, 1 - Y, tmp_path / "two")
        assert one["failure"] is None
        assert differences(one, two) == []

    def test_a_declared_row_count_hides_the_real_one(self, tmp_path):
        tuned = search(random_state=2, relation="add-remove", n_rows=310)
        seen = [observe(clone(tuned), X[:n], Y[:n], tmp_path / str(n)) for n in (300, 299)]
        assert seen[0]["failure"] is None
        assert differences(*seen) == []

    def test_the_harness_notices_an_exact_score(self, monkeypatch, tmp_path):
        honest = Stub.release

        def exact(stub, mechanism, total, query, clip, gate):
            return total if query.kind == SCORE else honest(stub, mechanism, total, query, clip, gate)

        monkeypatch.setattr(Stub, "release", exact)
        tuned = search(random_state=2, mean_trials=6.0)
        seen = [observe(clone(tuned), X, y, tmp_path / name) for name, y in (("one", Y), ("two", 1 - Y))]
        assert "attributes" in differences(*seen)

    def test_the_number_of_trials_cannot_be_seen(self, monkeypatch, tmp_path):
        """The first trial wins whatever comes after it: then everything visible is the same for 1 and for 9 trials."""

        class Falling(Stub):
            level = 1000.0

            def release(self, mechanism, total, query, clip, gate):
                answer = super().release(mechanism, total, query, clip, gate)
                if query.kind == "score":
                    self.level -= 1.0
                    return np.full(total.shape, self.level)
                return answer

        seen = []
        for trials in (1, 9):
            fixed_number(monkeypatch, trials)
            tuned = search(random_state=4)
            shown = observe(tuned, X, Y, tmp_path / str(trials), Falling())
            # A second search on the same stub-free object would differ; what was asked inside is not visible outside.
            seen.append({**shown, "queries": None, "pickle": pickle.dumps(tuned)})
        assert differences(*seen) == []

    @pytest.mark.parametrize("mode", ["pickle", "files", "attributes", "memory"])
    def test_losers_cannot_be_reached(self, monkeypatch, tmp_path, mode):
        fixed_number(monkeypatch, 8)
        losers, run = [], Bench.run

        def watched(bench, candidate, seed):
            trial = run(bench, candidate, seed)
            losers.append((trial.score, trial.model.weights_.tobytes()))
            return trial

        monkeypatch.setattr(Bench, "run", watched)
        tuned = search().fit(X, Y)
        losers = [(score, weights) for score, weights in losers if score != tuned.best_score_]
        assert len(losers) == 7
        if mode == "pickle":
            seen = pickle.dumps(tuned)
            assert tuned.best_estimator_.weights_.tobytes() in seen
            assert not any(weights in seen or np.float64(score).tobytes() in seen for score, weights in losers)
        elif mode == "files":
            tuned.save(tmp_path / "model")
            written = b"".join(path.read_bytes() for path in (tmp_path / "model").iterdir())
            assert tuned.best_estimator_.weights_.tobytes() in written
            assert not any(weights in written or repr(score).encode() in written for score, weights in losers)
        elif mode == "attributes":
            names = {name for name in dir(tuned) if name.endswith("_") and not name.startswith("_")}
            released = {"best_estimator_", "best_params_", "best_score_", "plan_", "privacy_"}
            assert names == released | {"classes_", "n_features_in_"}
        else:
            del run, watched
            gc.collect()
            alive = [o for o in gc.get_objects() if isinstance(o, PrivateLinearModel) and hasattr(o, "weights_")]
            assert not {o.weights_.tobytes() for o in alive} & {weights for _, weights in losers}

    def test_nothing_is_printed_or_logged(self, capsys):
        search(verbose=1).fit(X, Y)
        assert capsys.readouterr() == ("", "")

    def test_a_trial_that_asks_otherwise_than_planned_is_refused(self, monkeypatch):
        tuned = search()
        plan = tuned.plan(300, 4)
        other = tuple(replace(q, noise_multiplier=2 * q.noise_multiplier) for q in plan.bases[0].queries)
        wrong = replace(plan, bases=(replace(plan.bases[0], queries=other),))
        monkeypatch.setattr(DPSearchCV, "_plan", lambda *args, **kwargs: wrong)
        with pytest.raises(PromiseBroken, match="other queries"):
            tuned.fit(X, Y)


class TestLaw:
    """K and the candidates are drawn as the proof has it: a fixed or favoured number would need another bound."""

    def trials_of(self, monkeypatch, fits, mean):
        plan, seen = search(mean_trials=mean).plan(300, 4), []
        monkeypatch.setattr(DPSearchCV, "_plan", lambda *args, **kwargs: plan)

        def recorded(bench, candidate, seed):
            seen[-1].append((candidate["alpha"], candidate["penalty"]))
            return Trial(-math.inf, None, candidate)

        monkeypatch.setattr(Bench, "run", recorded)
        for _ in range(fits):
            seen.append([])
            search(mean_trials=mean).fit(X, Y)
        return seen

    def test_the_number_of_trials_has_the_planned_law(self, monkeypatch):
        seen = self.trials_of(monkeypatch, 150, 3.0)
        counts = np.array([len(trials) for trials in seen])
        # Geometric with mean 3: variance 6; five standard errors.
        assert abs(counts.mean() - 3.0) <= 5 * math.sqrt(6.0 / 150)
        assert len(set(counts.tolist())) >= 5
        drawn = [trial for trials in seen for trial in trials]
        shares = [drawn.count(one) / len(drawn) for one in set(drawn)]
        assert len(shares) == 4
        assert max(abs(share - 0.25) for share in shares) <= 5 * math.sqrt(0.25 / len(drawn))

    def test_what_is_loaded_depends_on_the_expected_number_of_trials(self, monkeypatch):
        """The count of the process would else tell the secret one, by the kernels it loads and the files they leave."""
        read = set()
        for seed in range(6):
            monkeypatch.setattr(kernel_choice, "_read_so_far", 0.0)
            DPSearchCV(model(random_state=seed), SPACE, mean_trials=4.0).fit(X, Y)
            read.add(kernel_choice._read_so_far)
        assert len(read) == 1
        assert read != {0.0}

    def test_the_statement_does_not_deny_what_was_learned(self):
        """A search learns parameters, a private step bounds; a plain fit neither."""
        learned = "parameters, bounds and penalties, but for what these queries learned, were chosen"
        searched = DPSearchCV(model(random_state=0), SPACE, mean_trials=2.0).fit(X, Y)
        prepared = model(bounds=PrivateQuantileClipper((-1, 1), share=0.2), random_state=0).fit(X, Y)
        assert learned in searched.privacy_.text
        assert learned in prepared.privacy_.text
        assert learned not in model(random_state=0).fit(X, Y).privacy_.text

    def test_a_plan_in_exact_arithmetic_is_refused_as_its_fit_is(self):
        with pytest.raises(InvalidParameter, match="exact"):
            DPSearchCV(model(arithmetic="exact"), SPACE).plan(300, 4)

    def test_secret_streams_differ_between_searches(self):
        drawn = {tuple(make_selection_stream().below(2**60) for _ in range(2)) for _ in range(50)}
        assert len(drawn) == 50
        with pytest.raises(TypeError, match="never copied"):
            pickle.dumps(make_selection_stream())


class TestParts:
    def test_every_row_is_in_exactly_one_part(self):
        numbers = np.arange(300.0)[:, None]
        training, validation = divide(numbers, Y, None, Sizes(225, 75), False, make_selection_stream())
        assert sorted([*training.X[:, 0], *validation.X[:, 0]]) == list(range(300))
        assert (len(training.y), len(validation.y)) == (225, 75)

    def test_the_parts_do_not_depend_on_the_rows(self):
        numbers = np.arange(300.0)[:, None]
        kept = [
            divide(numbers, y, None, Sizes(225, 75), False, make_selection_stream(5))[0].X for y in (Y, 1 - Y, 0 * Y)
        ]
        assert np.array_equal(kept[0], kept[1])
        assert np.array_equal(kept[0], kept[2])

    def test_with_a_private_row_count_a_row_moves_no_other(self):
        """Claim 1 for add-remove: the same coins, one row less, and every other row stays in its part."""
        numbers = np.arange(300.0)[:, None]
        both = [divide(numbers[:n], Y[:n], None, Sizes(225, 75), True, make_selection_stream(5)) for n in (300, 299)]
        for longer, shorter in zip(*both, strict=True):
            kept, fewer = (set(part.X[np.isfinite(part.X)].tolist()) for part in (longer, shorter))
            assert kept - {299.0} == fewer

    def test_with_a_private_row_count_no_part_is_empty(self):
        for seed in range(20):
            parts = divide(np.ones((1, 2)), Y[:1], None, Sizes(7, 3), True, make_selection_stream(seed))
            assert all(len(part.y) >= 1 for part in parts)
        tuned = search(relation="add-remove", n_rows=300)
        assert tuned.fit(X[:2], Y[:2]).best_estimator_.weights_.shape == (5,)
        assert search(relation="add-remove", n_rows=300).fit(sparse.csr_matrix(X[:2]), Y[:2])

    @pytest.mark.parametrize(("declared", "words"), [(149, "twice"), (100, "at least 50")])
    def test_with_a_private_row_count_no_fall_of_the_coins_is_refused(self, declared, words):
        tuned = search(relation="add-remove", n_rows=declared)
        with pytest.raises(InvalidParameter, match=words):
            tuned.set_params(validation=0.4 if words == "twice" else 0.1).fit(X, Y)

    def test_a_trial_that_fails_neither_stops_nor_tells(self, monkeypatch):
        fixed_number(monkeypatch, 3)
        monkeypatch.setattr(PrivateLinearModel, "_fit", mock.Mock(side_effect=FloatingPointError("SECRET")))
        assert search().fit(X, Y).best_params_ is None

    def test_a_search_in_exact_arithmetic_is_refused(self):
        with pytest.raises(InvalidParameter, match="granular"):
            search(arithmetic="exact").fit(X, Y)

    def test_a_fit_reads_no_validation_row_and_a_score_no_training_row(self):
        tuned, rows = search(), []
        plan = tuned.plan(300, 4)
        for changed in ("none", "validation", "training"):
            parts = divide(X, Y, None, Sizes(225, 75), False, make_selection_stream(1))
            training, validation = (replace(part, X=part.X.copy()) for part in parts)
            if changed != "none":
                (validation if changed == "validation" else training).X[:] *= -1
            target = tuned.estimator.declare_target(Y)
            single = {"epsilon": plan.base_budget.epsilon, "delta": plan.base_budget.delta}
            bench = Bench(tuned.estimator, target, plan, unpaid(plan), training, validation, Accuracy(), single)
            rows.append(bench.run({"alpha": 1e-4, "penalty": "l1"}, 0))
        plain, other_judges, other_lessons = rows
        assert np.array_equal(plain.model.weights_, other_judges.model.weights_)
        assert plain.score != other_judges.score
        assert not np.array_equal(plain.model.weights_, other_lessons.model.weights_)


class TestScore:
    def rows(self, x, y, score, weights=None, loss=None, valid=None):
        packed = PackedRows.of(RowMap(), x, np.ones(len(y), bool) if valid is None else valid)
        return ScoredRows(packed, y, loss or Logistic(), score, weights)

    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    @pytest.mark.parametrize("score", [Accuracy(), ClippedLoss(), ClippedLoss(0.01)])
    def test_one_row_moves_the_sum_by_at_most_the_clip(self, score, dtype):
        """Each contribution within ±½: replacing a row moves the sum by at most 1, adding one by at most ½."""
        rng, point = np.random.default_rng(3), np.array([5.0, -3.0, 0.5, 2.0, 1.0])
        moved, single = [], []
        for _ in range(60):
            x = (rng.standard_normal((5, 4)) * 10.0 ** rng.integers(-3, 5)).astype(dtype)
            y = rng.choice([-1.0, 1.0], 5)
            other_x, other_y = x.copy(), y.copy()
            other_x[2], other_y[2] = -x[2], -y[2] if rng.random() < 0.5 else y[2]
            sums = [
                self.rows(a, b, score).ask(CentredScore(0.5), (point,), EVERY_ROW)[0]
                for a, b in ((x, y), (other_x, other_y))
            ]
            moved.append(abs(sums[0] - sums[1]))
            single.append(abs(self.rows(x[:1], y[:1], score).ask(CentredScore(0.5), (point,), EVERY_ROW)[0]))
        assert max(moved) <= 1.0
        assert max(single) <= 0.5
        assert max(single) > 0.45
        assert max(moved) > 0.7

    def test_weights_and_invalid_rows(self):
        point, x, y = np.ones(5), np.ones((4, 4)), np.ones(4)
        assert self.rows(x, y, Accuracy()).ask(CentredScore(0.5), (point,), EVERY_ROW)[0] == 2.0
        assert (
            self.rows(x, y, Accuracy(), np.array([1, 0.5, 0, 0.25])).ask(CentredScore(0.5), (point,), EVERY_ROW)[0]
            == 0.875
        )
        assert self.rows(x, y, Accuracy(), np.full(4, 9.0)).ask(CentredScore(0.5), (point,), EVERY_ROW)[0] == 2.0
        valid = np.array([True, False, True, False])
        assert self.rows(x, y, Accuracy(), valid=valid).ask(CentredScore(0.5), (point,), EVERY_ROW)[0] == 1.0
        x[0] = np.nan
        assert self.rows(x, y, Accuracy()).ask(CentredScore(0.5), (point,), EVERY_ROW)[0] == 1.5

    def test_scores_are_what_they_say(self):
        margin, target = np.array([2.0, -1.0, 0.5]), np.array([1.0, 1.0, -1.0])
        assert Accuracy().values(margin, target, Logistic()).tolist() == [1.0, 0.0, 0.0]
        several = np.array([[1.0, 2.0, 0.0], [3.0, 0.0, 1.0]])
        assert Accuracy().values(several, np.array([1, 2]), Softmax(3)).tolist() == [1.0, 0.0]
        assert ClippedLoss(0.5).values(np.array([0.0, 3.0]), np.array([0.5, 0.0]), Squared()).tolist() == [0.75, 0.0]
        with pytest.raises(InvalidParameter):
            make_score("accuracy", 1.0)

    @pytest.mark.statistical
    def test_the_noise_is_the_planned_one(self):
        plan = calibrate(Budget(1.0, 1e-4), [Request("score", 1, CentredScore(0.5))], Everything(), 75)
        rows = self.rows(X[:75], 2.0 * Y[:75] - 1, Accuracy())
        point = np.array([1.0, 0, 0, 0, 0])
        answers = [PrivateOracle(rows, Gate(plan), make_streams()).ask(SCORE, point) for _ in range(1500)]
        spread = plan.queries[0].noise_std
        # One record moves the mean by 1/75 under replace-one: the noise is that over µ.
        assert spread == pytest.approx(1 / 75 / (2 / plan.queries[0].noise_multiplier))
        assert np.mean(answers) == pytest.approx(0.5, abs=5 * spread / math.sqrt(1500))
        assert np.std(answers) == pytest.approx(spread, rel=5 / math.sqrt(2 * 1500))

    def test_the_barrier_admits_one_score_of_all_rows(self):
        plan = calibrate(Budget(1.0, 1e-4), [Request("score", 1, CentredScore(0.5))], Everything(), 75)
        rows, point = self.rows(X[:75], 2.0 * Y[:75] - 1, Accuracy()), np.zeros(5)
        oracle = PrivateOracle(rows, Gate(plan), make_streams())
        oracle.ask(SCORE, point)
        with pytest.raises(QueryRefused):
            oracle.ask(SCORE, point)
        plain = LocalRows(PackedRows.of(RowMap(), X, np.ones(300, bool)), 2.0 * Y - 1, Logistic())
        with pytest.raises(QueryRefused):
            PrivateOracle(plain, Gate(plan), make_streams()).ask(SCORE, point)
        silent = replace(plan, queries=(replace(plan.queries[0], noise_multiplier=0.0),))
        with pytest.raises(QueryRefused, match="without noise"):
            PrivateOracle(rows, Gate(silent), make_streams()).ask(SCORE, point)


@pytest.mark.slow
@pytest.mark.statistical
class TestAudit:
    """The released score attacked on two tables that differ in one validation row."""

    def lower_bound(self, noise=1.0, runs=500):
        tuned = search(mean_trials=3.0)
        plan = tuned.plan(40, 4)
        query = plan.score.queries[0]
        louder = replace(query, noise_multiplier=noise * query.noise_multiplier)
        # The plan says what is claimed; the mutant draws less noise than it says.
        bench_plan = replace(plan, score=replace(plan.score, queries=(louder,)))
        fitted, target = model().fit(X, Y), tuned.estimator.declare_target(Y)
        scores = []
        for label in (0, 1):
            labels = np.append(Y[30:39], label)
            parts = RowPart(X[:30], Y[:30], None), RowPart(X[30:40], labels, None)
            bench = Bench(tuned.estimator, target, bench_plan, unpaid(bench_plan), *parts, Accuracy(), {})
            stream = make_selection_stream()
            scores.append(
                [max(bench._scored(fitted, None) for _ in range(plan.repetitions.draw(stream))) for _ in range(runs)]
            )
        return epsilon_lower_bound(*scores, delta=1e-4).epsilon

    def test_the_score_keeps_its_promise(self):
        assert self.lower_bound() <= 1.0

    def test_a_score_almost_without_noise_is_caught(self):
        assert self.lower_bound(noise=0.02) > 1.0


class TestLedger:
    @pytest.fixture
    def ledger(self, tmp_path):
        made = Ledger.create(tmp_path / "ledger.db")
        made.set_limit("census", Budget(2.0, 1e-3), owner="Ada")
        return made

    def paid(self, ledger, **more):
        return search(ledger=ledger, dataset="census", **more)

    def test_a_step_that_no_trial_could_make_is_refused_before_the_charge(self, ledger):
        """Once trials run a failure is silent, so what is public must be said before."""
        own = PrivateQuantileClipper((-1.0, 1.0), epsilon=1.0, delta=1e-6)
        with pytest.raises(InvalidParameter, match="of its own"):
            self.paid(ledger, bounds=own).fit(X, Y)
        assert not ledger.account("census").fits

    def test_one_charge_for_the_whole_search(self, ledger):
        tuned = self.paid(ledger, mean_trials=5.0).fit(X, Y)
        (fit,) = ledger.account("census").fits
        assert fit.committed
        assert fit.plan == tuned.plan_
        assert (fit.plan_digest, fit.release) == (tuned.plan_.digest, release_digest(tuned.best_estimator_.weights_))
        assert 1.0 < ledger.spent("census")[0] <= 2.0
        assert verify(ledger.place, releases=[(fit.plan_digest, fit.release)]).ok

    def test_a_search_too_dear_is_refused_before_a_row_is_read(self, ledger):
        self.paid(ledger).fit(X, Y)
        with pytest.raises(BudgetExceeded):
            self.paid(ledger, epsilon=1.9).fit(Untouchable(), Untouchable())
        with pytest.raises(PromiseBroken, match="seeded"):
            self.paid(ledger, random_state=0).fit(Untouchable(), Untouchable())
        assert len(ledger.account("census").fits) == 1

    def test_a_first_search_may_spend_the_whole_limit_by_its_certificate(self, ledger):
        ledger.set_limit("visits", Budget(1.0, 1e-4), owner="Ada")
        search(ledger=ledger, dataset="visits").fit(X, Y)
        with pytest.raises(BudgetExceeded):
            model(epsilon=0.01, ledger=ledger, dataset="visits").fit(X, Y)
        assert ledger.spent("visits")[0] <= 1.0
        assert verify(ledger.place).ok

    def test_a_search_and_fits_add_up(self, ledger):
        self.paid(ledger, epsilon=0.5).fit(X, Y)
        alone = ledger.spent("census")[0]
        model(epsilon=0.5, ledger=ledger, dataset="census").fit(X, Y)
        assert alone < ledger.spent("census")[0] < alone + 0.5

    def test_a_crashed_search_stays_charged(self, ledger, monkeypatch):
        monkeypatch.setattr(Bench, "run", lambda *args: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            self.paid(ledger).fit(X, Y)
        (fit,) = ledger.account("census").fits
        assert not fit.committed

    def test_bad_rows_cost_nothing(self, ledger):
        broken = X.copy()
        broken[3, 1] = np.nan
        with pytest.raises(InvalidData):
            self.paid(ledger).fit(broken, Y)
        assert ledger.account("census").fits == ()

    def test_a_forged_total_is_refused(self, ledger):
        plan = search(epsilon=3.0).plan(300, 4)
        forged = replace(plan, budget=Budget(0.5, 1e-4), epsilon_achieved=0.5)
        with pytest.raises(PromiseBroken, match="do not fit into its budget"):
            ledger.reserve("census", forged)

    def test_nothing_of_the_trials_is_recorded(self, ledger):
        self.paid(ledger).fit(X, Y)
        times = {entry.content["time"] for entry in ledger.entries if entry.content["kind"] in ("reserve", "commit")}
        assert len(times) == 1, "the time between them would tell how many trials there were"
        commit = [entry.content for entry in ledger.entries if entry.content["kind"] == "commit"]
        assert [set(entry) for entry in commit] == [{"dataset", "kind", "receipt", "release", "sequence", "time"}]

    def test_a_grid_search_is_charged_for_what_it_is(self, ledger):
        """Every fit composed, the folds as if on the whole table; and each statement says what that does not cover."""
        grid = GridSearchCV(
            model(epsilon=0.2, ledger=ledger, dataset="census"), {"alpha": [1e-4, 1e-3]}, cv=2, n_jobs=2
        ).fit(X, Y)
        fits = ledger.account("census").fits
        assert [fit.committed for fit in fits] == [True] * 5
        shift = math.sqrt(sum(fit.charge.shift**2 for fit in fits))
        assert ledger.spent("census")[0] == pytest.approx(gaussian_epsilon(shift, 1e-3), rel=1e-6)
        # δ of a single fit is a tenth of the limit's: at the same δ five fits cost more than two.
        assert gaussian_epsilon(shift, 1e-4) > 0.4
        statement = grid.best_estimator_.privacy_.text
        assert "GridSearchCV" in statement
        assert "not covered" in statement


class TestBadInput:
    @pytest.mark.parametrize(
        ("more", "words"),
        [
            ({"space": {"epsilon": [1, 2]}}, "budget"),
            ({"space": {"random_state": [1]}}, "repeatable"),
            ({"space": {"C": [1.0]}}, "Correct the name"),
            ({"space": {"alpha": 1.0}}, "no list"),
            ({"space": {"alpha": []}}, "param_space"),
            ({"space": [1, 2]}, "dictionary"),
            ({"space": "alpha"}, "dictionary"),
            ({"n_candidates": 0}, "n_candidates"),
            ({"trials": "fixed"}, "one of"),
            ({"mean_trials": 0.5}, "mean"),
            ({"validation": 0.0}, "validation"),
            ({"validation": 1.0}, "share"),
            ({"validation": 0.001}, "each part"),
            ({"scoring": "auc"}, "score"),
            ({"score_bound": 2.0}, "score_bound"),
            ({"accountant": "pld"}, "'profile' or 'rdp'"),
            ({"epsilon": -1.0}, "epsilon"),
            ({"delta": 0.1}, "1/n"),
            ({"dataset": "census"}, "ledger"),
            ({"relation": "swap"}, "relation"),
            ({"invalid_rows": "drop"}, "invalid_rows"),
        ],
        ids=lambda value: None if isinstance(value, str) else "-".join(value),
    )
    def test_refused_in_words(self, more, words):
        with pytest.raises(InvalidParameter, match=words):
            search(**more).fit(X, Y)

    @pytest.mark.parametrize(
        ("space", "more"),
        [
            ({"alpha": [1e-4, 1e-2]}, {}),
            ({"alpha": [1e-4, 1e-2], "penalty": ["none"]}, {"penalty": "l1"}),
            ([{"alpha": [1e-4]}, {"alpha": [1e-2]}, {"penalty": ["l2"]}], {}),
            ({"l1_ratio": [0.1, 0.9]}, {"penalty": "l1"}),
            ({"l1_ratio": [0.1, 0.9], "penalty": ["l1", "l2"]}, {"penalty": "elasticnet"}),
            ({"alpha": loguniform(1e-5, 1e-1)}, {}),
        ],
    )
    def test_what_no_candidate_uses_is_not_searched(self, tmp_path, space, more):
        ledger = Ledger.create(tmp_path / "ledger.db")
        ledger.set_limit("census", Budget(2.0, 1e-3))
        paid = search(space, **more, ledger=ledger, dataset="census")
        for call in (paid.check, lambda: paid.plan(300, 4), lambda: paid.fit(X, Y)):
            with pytest.raises(InvalidParameter, match="paid for and change nothing"):
                call()
        assert ledger.account("census").fits == ()

    @pytest.mark.parametrize(
        ("space", "more"),
        [
            ({"alpha": [1e-4, 1e-2], "penalty": ["none", "l1"]}, {}),
            ({"alpha": [1e-4], "steps": [3, 5]}, {}),
            ({"alpha": [1e-4, 1e-2]}, {"penalty": "fused"}),
            ({"l1_ratio": [0.1, 0.9]}, {"penalty": "elasticnet"}),
            ([{"l1_ratio": [0.1, 0.9], "penalty": ["elasticnet"]}, {"penalty": ["none"]}], {}),
        ],
    )
    def test_what_some_candidate_uses_is(self, space, more):
        search(space, **more).check()

    def test_a_regression_has_no_accuracy(self):
        with pytest.raises(InvalidParameter, match="loss"):
            DPSearchCV(DPLinearRegression(1.0, 1e-4), SPACE, scoring="accuracy").fit(X, X[:, 0])

    def test_other_estimators_are_refused(self):
        from sklearn.linear_model import LogisticRegression

        with pytest.raises(InvalidParameter, match="private fit"):
            DPSearchCV(LogisticRegression(), {"C": [1.0]}).fit(X, Y)

    def test_a_declared_row_count_with_weights_is_refused(self):
        with pytest.raises(InvalidParameter, match="public_weight"):
            search(relation="add-remove", n_rows=300).fit(X, Y, public_weight=np.ones(300))

    def test_the_public_parameters_are_documented(self):
        for name in inspect.signature(DPSearchCV).parameters:
            assert f"{name} :" in DPSearchCV.__doc__

    def test_statements_are_plain_json(self):
        assert json.loads(search().fit(X, Y).privacy_.to_json())["epsilon"] == 1.0
