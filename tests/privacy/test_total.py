"""`compose_statements`: every private part counts, nothing else passes, and words promise no more than the weakest."""

from __future__ import annotations

import json
import math
from unittest import mock

import numpy as np
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from dpadmm import (
    DPLogisticRegression,
    DPSearchCV,
    LaplacianBlur,
    PrivateGraph,
    PrivateQuantileClipper,
    PrivateSecondMoment,
    compose_statements,
    load_model,
)
from dpadmm.errors import InvalidParameter, PrivacyError, SchemeMismatch
from dpadmm.estimators.pipelines import NOTHING_ELSE
from dpadmm.preparation.base import COSTS_IN_ADDITION
from dpadmm.preparation.composed_statements import FIXED_IN_ADVANCE
from dpadmm.privacy.accountants import make_accountant
from dpadmm.privacy.arithmetic import RESERVED_SHARE, Arithmetic, weakest
from dpadmm.privacy.calibration import verify_plan
from dpadmm.privacy.composition import _set_aside, compose_plans
from dpadmm.privacy.statement import PrivacyStatement
from dpadmm.privacy.wording import version1_words as words
from dpadmm.problem.smoothers import RingLaplacian
from tests.version1 import stated

ROWS = np.random.default_rng(0)
X = ROWS.uniform(-1, 1, (400, 4))
Y = (X[:, 0] > 0).astype(int)


def model(**more):
    settings = {"epsilon": 0.5, "delta": 1e-5, "classes": [0, 1], "random_state": 0}
    return DPLogisticRegression(**settings | more)


def keys(statement):
    return [assumption.key for assumption in statement.facts.assumptions]


@pytest.fixture(scope="module")
def clipper():
    return PrivateQuantileClipper((-4, 4), epsilon=0.5, random_state=0).fit(X)


@pytest.fixture(scope="module")
def plain():
    return model(solver="dp-gd", steps=5).fit(X, Y)


@pytest.fixture(scope="module")
def exact():
    return model(solver="dp-gd", steps=5, arithmetic="exact").fit(X, Y)


@pytest.fixture(scope="module")
def hidden():
    return model(solver="noisy-admm", steps=2).fit(X, Y)


@pytest.fixture(scope="module")
def found():
    return DPSearchCV(model(penalty="l1", solver="dp-gd", steps=2), {"alpha": [1e-4, 1e-2]}, mean_trials=2.0).fit(X, Y)


class TestWhatCounts:
    def test_a_search_is_refused_by_name(self, found, clipper, tmp_path):
        loaded = load_model(found.save(tmp_path / "model"))
        for part in (found, found.best_estimator_, loaded, make_pipeline(clipper, found)):
            with pytest.raises(InvalidParameter, match="DPSearchCV"):
                compose_statements(clipper, part)

    def test_steps_that_learn_without_noise_are_refused_by_name(self, clipper, plain):
        searched = GridSearchCV(plain, {"alpha": [1e-4]})
        columns = ColumnTransformer([("clip", clipper, [0, 1])])
        for step in (StandardScaler(), columns, FeatureUnion([("clip", clipper)]), searched):
            for parts in ((step, plain), (make_pipeline(clipper, step, plain),)):
                with pytest.raises(InvalidParameter, match=type(step).__name__):
                    compose_statements(*parts)

    def test_subclasses_of_harmless_classes_are_refused(self, plain):
        class Centred(FunctionTransformer):
            """Learns from rows."""

        class Steps(Pipeline):
            """May do anything."""

        for part in (make_pipeline(Centred(), plain), Steps([("model", plain)])):
            with pytest.raises(InvalidParameter, match="without noise"):
                compose_statements(part)

    def test_pipelines_of_pipelines_count_every_part(self, clipper, plain):
        blur = LaplacianBlur(RingLaplacian(1.0))
        nested = make_pipeline(make_pipeline("passthrough", clipper, None), blur, plain)
        assert compose_statements(nested) == compose_statements(clipper, plain)
        assert compose_statements(nested).epsilon > 0.7

    def test_functions_are_assumed_to_map_row_by_row(self, plain):
        with_function = compose_statements(make_pipeline(FunctionTransformer(np.abs), plain))
        assert "maps a row by itself" in with_function.text
        assert "maps a row by itself" not in compose_statements(plain).text

    def test_unfitted_parts_are_refused(self, clipper):
        for part in (model(), PrivateGraph(epsilon=1.0), make_pipeline(clipper, model()), DPSearchCV(model(), {})):
            with pytest.raises(InvalidParameter, match="not fitted"):
                compose_statements(part)

    def test_owners_with_different_numbers_of_rows_are_refused_by_number(self, plain):
        other = model(solver="dp-gd", steps=5).fit(X[:300], Y[:300])
        for compose in (
            lambda: compose_statements(plain, other),
            lambda: compose_plans([plain.plan_, other.plan_], 1e-5),
        ):
            with pytest.raises(InvalidParameter, match=r"different numbers of rows \(300, 400\)"):
                compose()

    def test_relations_are_not_mixed_and_something_must_be_composed(self, plain):
        removed = model(solver="dp-gd", steps=5, relation="add-remove", n_rows=400).fit(X, Y)
        with pytest.raises(InvalidParameter, match="add-remove and replace-one"):
            compose_plans([plain.plan_, removed.plan_], 1e-5)
        with pytest.raises(InvalidParameter, match="no plan"):
            compose_plans([], 1e-5)

    def test_totals_assume_that_the_plans_were_fixed_in_advance(self, plain, clipper):
        said = compose_statements(clipper, plain)
        assert said.facts.assumes(FIXED_IN_ADVANCE)
        assert "the plans of all parts were fixed in advance: which parts there are" in said.text
        assert not plain.privacy_.facts.assumes(FIXED_IN_ADVANCE)

    def test_a_list_is_refused_with_a_remedy(self, clipper, plain):
        with pytest.raises(InvalidParameter, match="Pass them one by one"):
            compose_statements([clipper, plain])

    def test_delta_must_mean_something(self, plain):
        with pytest.raises(InvalidParameter, match="number of rows"):
            compose_statements(plain, delta=0.1)

    def test_hidden_passes_and_mini_batches_have_no_common_accountant(self, hidden):
        batches = model(solver="dp-sadmm", steps=5).fit(X, Y)
        with pytest.raises(SchemeMismatch, match="ledger") as refusal:
            compose_statements(hidden, batches)
        assert "accountant=" not in str(refusal.value)


class TestPartsOfEarlierVersions:
    def test_their_further_assumptions_are_quoted_and_standing_ones_said_once(self, clipper, plain):
        extra = "the hospital trained it on a Tuesday"
        earlier = stated(plain, assumptions=(*words.assumptions(plain.privacy_.facts), extra))
        part = model(solver="dp-gd", steps=5).fit(X, Y)
        part.plan_, part.privacy_ = plain.plan_, earlier
        said = compose_statements(clipper, part)
        assert said.facts.solvers == ("PrivateQuantileClipper", "dp-gd")
        assert said.assumptions.count(extra) == 1
        assert [key for key in keys(said) if key == "as-stored"] == ["as-stored"]
        assert said.epsilon == compose_statements(clipper, plain).epsilon
        assert PrivacyStatement.from_dict(json.loads(said.to_json())) == said


class TestArithmetic:
    def test_the_weakest_speaks_for_all(self):
        granular, floating, exact = Arithmetic.GRANULAR, Arithmetic.FLOATING, Arithmetic.EXACT
        assert weakest([exact, exact]) is exact
        assert weakest([exact, granular]) is weakest([granular, exact]) is granular
        assert weakest([exact, floating, granular]) is floating

    def test_compositions_name_the_weakest(self, clipper, plain, exact, hidden):
        cases = {
            (clipper, plain): "granular",
            (clipper, exact): "granular",
            (exact, exact): "exact",
            (clipper, hidden): "granular",
            (exact, hidden): "granular",
        }
        for parts, name in cases.items():
            said = compose_statements(*parts)
            assert said.arithmetic_name == name
            assert f"Arithmetic: {name}." in said.text
            others = {"granular", "exact", "floating"} - {name}
            assert not any(f"Arithmetic: {other}" in said.text for other in others)

    def test_exact_parts_are_described_as_such_beside_others(self, clipper, exact):
        said = compose_statements(clipper, exact)
        assert ["discrete" in mechanism for mechanism in said.mechanisms] == [False, True]

    @pytest.mark.parametrize("delta", [1e-6, 1e-5, 1e-3])
    def test_the_distance_of_exact_noise_is_taken_off_delta(self, exact, plain, delta):
        for parts in ((exact, exact, exact), (exact, plain)):
            plans = [part.plan_ for part in parts]
            whole = compose_plans(plans, delta)
            owed = sum(
                RESERVED_SHARE * plan.budget.delta * (1 + math.exp(whole.budget.epsilon)) / (1 + math.exp(0.5))
                for plan in plans
                if plan.arithmetic is Arithmetic.EXACT
            )
            judge = make_accountant(whole.accountant)
            assert whole.budget.epsilon >= judge.certify(whole.event, delta - owed, whole.budget.relation)
            assert whole.budget.epsilon > judge.certify(whole.event, delta, whole.budget.relation)
            assert verify_plan(whole) <= whole.budget.epsilon

    def test_without_exact_parts_nothing_is_set_aside(self, plain):
        whole = compose_plans([plain.plan_], 1e-5)
        judge = make_accountant(whole.accountant)
        assert whole.budget.epsilon == judge.certify(whole.event, 1e-5, whole.budget.relation)

    def test_a_reserve_beyond_delta_is_refused(self, exact):
        with (
            mock.patch("dpadmm.privacy.composition._set_aside", return_value=1.0),
            pytest.raises(PrivacyError, match="no finite positive epsilon"),
        ):
            compose_plans([exact.plan_], 1e-5)

    def test_the_reserve_grows_with_the_total(self, exact):
        plans = [exact.plan_, exact.plan_]
        own = _set_aside(plans, 0.5, 1e-5)
        assert own == pytest.approx(2e-6 * 1e-5)
        assert _set_aside(plans, 2.0, 1e-5) == pytest.approx(own * (1 + math.exp(2.0)) / (1 + math.exp(0.5)))


class TestWords:
    @pytest.mark.parametrize(
        "step",
        [PrivateQuantileClipper((-4, 4), epsilon=0.5), PrivateSecondMoment(epsilon=0.5), PrivateGraph(epsilon=0.5)],
        ids=lambda step: type(step).__name__,
    )
    def test_a_step_by_itself_says_where_its_sensitivity_is_proved(self, step):
        said = step.fit(X).privacy_
        assert "sensitivities proved here (docs/proofs/preparation.md)" in said.text
        assert said.text.startswith("This transformer is")
        assert "this transformer was not chosen among others" in said.text
        assert f" {type(step).__name__} touched the data" in said.text
        assert f"The solver {type(step).__name__}" not in said.text

    def test_a_total_says_everything_once(self, clipper, plain, hidden):
        second = PrivateSecondMoment(epsilon=0.5, random_state=0).fit(X)
        for parts in ((clipper, second, plain), (clipper, second, hidden)):
            said = compose_statements(*parts)
            assert len(set(said.assumptions)) == len(said.assumptions)
            assert said.text.count("docs/proofs/preparation.md") == 1
            assert said.text.count("the noise and its generator stay secret") == 1
            assert keys(said).count(COSTS_IN_ADDITION) == 1
            assert keys(said).count(NOTHING_ELSE) == 1
            assert "composition is (" in said.text
        assert "docs/proofs/iteration.md" in said.proof_status

    def test_each_part_alone_says_what_it_does_not_cover(self, clipper):
        assert {COSTS_IN_ADDITION, NOTHING_ELSE} < set(keys(clipper.privacy_))

    def test_a_total_of_transformers_says_what_it_does_not_cover(self, clipper):
        second = PrivateSecondMoment(epsilon=0.5, random_state=0).fit(X)
        assert {COSTS_IN_ADDITION, NOTHING_ELSE} < set(keys(compose_statements(clipper, second)))
