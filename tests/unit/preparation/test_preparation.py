"""Private preparation as users meet it: what is learned, bad input, scikit-learn, files, the command line."""

from __future__ import annotations

import contextlib
import json
import math
import warnings
from unittest import SkipTest, mock

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import estimator_checks_generator

import dpadmm
from dpadmm import (
    DPLinearRegression,
    DPLogisticRegression,
    PrivateGraph,
    PrivateQuantileClipper,
    PrivateSecondMoment,
    compose_statements,
)
from dpadmm.cli.app import run
from dpadmm.errors import InvalidData, InvalidParameter
from dpadmm.preparation.covariance_cleaning import clean
from dpadmm.preparation.moments import NoisyMoment
from dpadmm.preparation.sparse_precision import edges_of
from dpadmm.problem.incidence import signed_incidence

OWN = {"epsilon": 1.0, "random_state": 0}


def correlated(n=20_000, seed=0):
    """Six features: 0 and 1 go together, 2 and 3 exclude each other, 4 and 5 are alone."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-0.4, 0.4, (n, 6))
    X[:, 1] = X[:, 0] + 0.2 * X[:, 1]
    X[:, 3] = -X[:, 2] + 0.2 * X[:, 3]
    return X


class TestQuantiles:
    def test_bounds_are_found_within_the_public_ones(self):
        rng = np.random.default_rng(0)
        X = np.column_stack([rng.normal(50, 10, 20_000), rng.exponential(2.0, 20_000)])
        clipper = PrivateQuantileClipper(([-1000, 0], [1000, 500]), rounds=14, **OWN).fit(X)
        exact = np.quantile(X, (0.05, 0.95), axis=0)
        spread = exact[1] - exact[0]
        assert np.all(np.abs(clipper.lower_ - exact[0]) < 0.15 * spread)
        assert np.all(np.abs(clipper.upper_ - exact[1]) < 0.15 * spread)

    def test_rows_are_clipped_and_scaled(self):
        X = np.random.default_rng(0).normal(50, 10, (5000, 2)).astype(np.float32)
        clipper = PrivateQuantileClipper((0, 100), **OWN)
        scaled = clipper.fit_transform(X)
        assert scaled.dtype == np.float32
        assert (scaled.min(), scaled.max()) == (0.0, 1.0)
        middle = np.abs(X - 50) < 5
        expected = (X - clipper.lower_) / (clipper.upper_ - clipper.lower_)
        np.testing.assert_allclose(scaled[middle], expected[middle], rtol=1e-5)

    def test_sparse_rows_stay_sparse(self):
        dense = np.random.default_rng(0).exponential(1.0, (5000, 3)) * (np.arange(3) < 2)
        X = sparse.csr_matrix(dense)
        step = PrivateQuantileClipper((0, 50), (0, 0.95), **OWN)
        scaled, twin = step.fit_transform(X), clone(step).fit(dense)
        assert sparse.issparse(scaled)
        np.testing.assert_array_equal(step.upper_, twin.upper_)
        np.testing.assert_allclose(scaled.toarray(), twin.transform(dense), atol=1e-12)
        assert X.max() > 1

    @pytest.mark.parametrize("value", [0.0, 3.0, 10.0])
    def test_constant_and_rare_columns_keep_their_public_bounds(self, value):
        X = np.column_stack([np.full(5000, value), np.arange(5000) < 5, np.arange(5000) % 2])
        clipper = PrivateQuantileClipper(([0, 0, 0], [10, 1, 1]), **OWN).fit(X)
        assert (clipper.lower_[0], clipper.upper_[0]) == (0, 10)
        assert (clipper.lower_[1], clipper.upper_[1]) == (0, 1)
        assert (clipper.lower_[2], clipper.upper_[2]) == (0, 1)
        assert np.isfinite(clipper.transform(X)).all()

    def test_too_few_rows_leave_everything_as_declared(self):
        clipper = PrivateQuantileClipper((0, 1), epsilon=0.1, delta=1e-3, random_state=0).fit(np.eye(20))
        assert np.all((clipper.lower_ == 0) & (clipper.upper_ == 1))

    @pytest.mark.parametrize("quantiles", [(0.9, 0.1), (0.5, 0.5), (-0.1, 0.9), (0.1, 1.1), (0, 1), 0.5, ("a", "b")])
    def test_impossible_quantiles_are_refused(self, quantiles):
        with pytest.raises(InvalidParameter, match="quantiles"):
            PrivateQuantileClipper((0, 1), quantiles, **OWN).fit(np.eye(4))

    @pytest.mark.parametrize("rounds", [0, 41, 2.5, True])
    def test_impossible_rounds_are_refused(self, rounds):
        with pytest.raises(InvalidParameter, match="rounds"):
            PrivateQuantileClipper((0, 1), rounds=rounds, **OWN).fit(np.eye(4))

    @pytest.mark.parametrize("bounds", [None, (1, 0), (0, np.inf), "ab", (0, [1, 2])])
    def test_bounds_must_be_public_and_finite(self, bounds):
        with pytest.raises(InvalidParameter, match="bounds"):
            PrivateQuantileClipper(bounds, **OWN).fit(np.eye(4))

    @pytest.mark.parametrize("step", [PrivateQuantileClipper((0, 1)), PrivateQuantileClipper((-1, 1), (0, 0.9))])
    def test_sparse_rows_with_a_lower_bound_are_refused_before_anything_is_asked(self, step):
        X, y = sparse.csr_matrix(np.eye(40)), np.arange(40) % 2
        with pytest.raises(InvalidParameter, match="sparse"):
            clone(step).set_params(epsilon=1.0).fit(X)
        with pytest.raises(InvalidParameter, match="sparse"):
            DPLogisticRegression(bounds=step).fit(X, y)

    def test_clipping_to_private_bounds_helps_where_public_ones_are_wide(self):
        rng = np.random.default_rng(0)
        X = rng.normal(40, 12, (20_000, 4))
        y = (X @ [1, -1, 0.5, 0] > 20).astype(int)
        score = {}
        for name, bounds in (("public", (0, 1e5)), ("private", PrivateQuantileClipper((0, 1e5), rounds=18))):
            score[name] = DPLogisticRegression(1.0, bounds=bounds, classes=[0, 1], random_state=0).fit(X, y).score(X, y)
        assert score["private"] > score["public"] + 0.02


class TestSecondMoment:
    @pytest.mark.parametrize("row_norm", [1.0, 10.0])
    def test_it_is_the_second_moment_with_noise(self, row_norm):
        X = correlated() * row_norm
        moment = PrivateSecondMoment(row_norm=row_norm, centred=False, **OWN).fit(X)
        mapped = moment.row_map_.apply(X)
        residual = (moment.second_moment_ - mapped.T @ mapped / len(X)) / moment.noise_std_
        assert np.allclose(moment.second_moment_, moment.second_moment_.T)
        assert 0.3 < residual[np.triu_indices(6, 1)].std() < 2.0
        assert np.linalg.eigvalsh(moment.covariance_).min() > 0

    def test_the_mean_is_taken_off(self):
        X = correlated() + 0.3
        moment = PrivateSecondMoment(**OWN).fit(X)
        mapped = moment.row_map_.apply(X)
        weight = (mapped[:, -1] ** 2)[:, None]
        mean = (weight * X).sum(axis=0) / weight.sum()
        np.testing.assert_allclose(moment.mean_, mean, atol=0.03)
        assert moment.second_moment_.shape == (7, 7)

    def test_whitened_rows_vary_alike(self):
        X = correlated(50_000)
        moment = PrivateSecondMoment(**OWN).fit(X)
        before, after = (np.linalg.cond(np.cov(rows.T)) for rows in (X, moment.transform(X)))
        assert before > 50 > 4 > after

    def test_singular_and_empty_moments(self):
        for X in (np.zeros((500, 3)), np.ones((500, 3)), np.tile(np.eye(3)[0], (500, 1))):
            moment = PrivateSecondMoment(**OWN).fit(X)
            assert np.isfinite(moment.transform(X)).all()

    def test_noise_that_hides_the_constant_leaves_the_mean_alone(self):
        noisy = NoisyMoment(np.diag([1.0, 1.0, 0.1]), noise=0.2, intercept=True, n_rows=100)
        assert not noisy.centred
        assert noisy.covariance.shape == (2, 2)
        assert not noisy.mean.any()


class TestGraph:
    def test_edges_are_found_with_their_sign(self):
        graph = PrivateGraph(**OWN).fit(correlated())
        found = {(i, j): weight for i, j, weight in graph.edges_}
        assert set(found) == {(0, 1), (2, 3)}
        assert found[0, 1] > 0.2 > -0.2 > found[2, 3]
        np.testing.assert_allclose(graph.phi_.toarray()[0, :4], np.abs(graph.edges_[0][2]) * np.array(
            [1, -1, 0, 0] if graph.edges_[0][:2] == (0, 1) else [0, 0, 1, 1]
        ))  # fmt: skip

    def test_noise_makes_few_edges(self):
        """At most about one for ten features, on tables without any; thirty times the expectation would be an alarm."""
        rng, d = np.random.default_rng(0), 40
        found = [
            len(PrivateGraph(epsilon=1.0, random_state=seed).fit(rng.uniform(-0.2, 0.2, (2000, d))).edges_)
            for seed in range(20)
        ]
        assert np.mean(found) < 0.1 * d

    def test_no_edges_leave_a_lasso(self):
        rng = np.random.default_rng(0)
        X = rng.uniform(-1, 1, (3000, 3))
        y = (X[:, 0] > 0).astype(int)
        model = DPLogisticRegression(penalty="graph", graph=PrivateGraph(), classes=[0, 1], random_state=0).fit(X, y)
        assert model.graph_ == []
        assert model.score(X, y) > 0.9
        alone = PrivateGraph(**OWN).fit(X)
        assert alone.edges_ == []
        assert alone.phi_.shape == (0, 3)
        np.testing.assert_allclose(alone.transform(X), X)

    @pytest.mark.parametrize("X", [np.zeros((500, 4)), np.ones((500, 4)), np.tile(np.arange(4.0), (500, 1))])
    def test_constant_columns(self, X):
        graph = PrivateGraph(**OWN).fit(X)
        assert np.isfinite(graph.transform(X)).all()

    def test_copies_of_a_column_do_not_break_it(self):
        X = np.repeat(correlated()[:, :1], 5, axis=1)
        assert len(PrivateGraph(**OWN).fit(X).edges_) >= 4

    def test_one_feature_has_no_graph(self):
        X = np.linspace(-1, 1, 400)[:, None]
        y = (X[:, 0] > 0).astype(int)
        model = DPLogisticRegression(penalty="graph", graph=PrivateGraph(), classes=[0, 1], random_state=0).fit(X, y)
        assert model.graph_ == []

    def test_a_graphical_lasso_that_never_converges_gives_no_edges(self):
        with mock.patch("sklearn.covariance.graphical_lasso", side_effect=FloatingPointError("Non SPD result")):
            assert PrivateGraph(**OWN).fit(correlated()).edges_ == []

    def test_a_graphical_lasso_that_fails_once_is_tried_on_a_shrunk_matrix(self):
        from sklearn.covariance import graphical_lasso

        tries = []

        def stubborn(covariance, *rest, **more):
            tries.append(covariance)
            if len(tries) == 1:
                raise FloatingPointError("Non SPD result")
            return graphical_lasso(covariance, *rest, **more)

        with mock.patch("sklearn.covariance.graphical_lasso", stubborn):
            assert len(PrivateGraph(**OWN).fit(correlated()).edges_) == 2
        assert abs(tries[1][0, 1]) == pytest.approx(0.9 * abs(tries[0][0, 1]))

    def test_only_the_strongest_edges_are_kept(self):
        every = PrivateGraph(weighted=True, **OWN).fit(correlated()).edges_
        assert [abs(weight) for *_, weight in every] == sorted((abs(weight) for *_, weight in every), reverse=True)
        assert PrivateGraph(weighted=True, max_edges=1, **OWN).fit(correlated()).edges_ == every[:1]
        assert PrivateGraph(**OWN).fit(correlated()).edges_ == [
            (i, j, math.copysign(1.0, weight)) for i, j, weight in every
        ]

    def test_too_many_features_are_refused_before_anything_is_read(self):
        wide = sparse.csr_matrix((20, 3001))
        for step in (PrivateGraph(**OWN), PrivateSecondMoment(**OWN)):
            with pytest.raises(InvalidParameter, match="at most 3000"):
                step.fit(wide)
        with pytest.raises(InvalidParameter, match="at most 3000"):
            DPLogisticRegression(penalty="graph", graph=PrivateGraph()).fit(wide, np.arange(20) % 2)

    @pytest.mark.parametrize("more", [{"strictness": 0}, {"strictness": "x"}, {"max_edges": 0}, {"smoothing": -1}])
    def test_impossible_choices_are_refused(self, more):
        with pytest.raises(InvalidParameter, match=next(iter(more))):
            PrivateGraph(**OWN, **more).fit(np.eye(4))

    def test_rows_are_averaged_along_the_edges(self):
        X = correlated()
        blurred = PrivateGraph(**OWN).fit(X).transform(X)
        assert np.abs(blurred[:, 0] - blurred[:, 1]).mean() < 0.8 * np.abs(X[:, 0] - X[:, 1]).mean()
        np.testing.assert_allclose(blurred[:, 4:], X[:, 4:], atol=1e-12)

    def test_cleaning_keeps_what_stands_out_of_the_noise(self):
        rng, d, noise = np.random.default_rng(0), 60, 0.01
        direction = rng.standard_normal(d) / np.sqrt(d)
        truth = np.eye(d) * 0.3 + 0.6 * np.outer(direction, direction)
        truth[3, 7] = truth[7, 3] = 0.2
        raw = rng.standard_normal((d, d)) * noise * np.sqrt(2)
        noisy = truth + (raw + raw.T) / 2
        off = ~np.eye(d, dtype=bool)
        cleaned = clean(noisy, noise)
        assert np.abs((cleaned.matrix - truth)[off]).mean() < 0.85 * np.abs((noisy - truth)[off]).mean()
        assert cleaned.matrix[3, 7] > 0.1
        assert (3, 7) in [edge[:2] for edge in edges_of(cleaned.matrix, cleaned.threshold)]

    def test_signed_incidence_has_public_lists_as_a_special_case(self):
        edges = [(0, 1), (1, 2, 0.5)]
        from dpadmm.problem.incidence import Edges

        expected = Edges.parse(edges, 3).incidence().toarray()
        np.testing.assert_array_equal(signed_incidence(edges, 3).toarray(), expected)


class TestBadInput:
    STEPS = (PrivateQuantileClipper((0, 1), **OWN), PrivateSecondMoment(**OWN), PrivateGraph(**OWN))

    @pytest.mark.parametrize("step", STEPS, ids=lambda step: type(step).__name__)
    def test_missing_values_are_refused_or_count_for_nothing(self, step):
        X = np.random.default_rng(0).uniform(0, 1, (300, 3))
        X[5, 1], X[6, 2] = np.nan, np.inf
        with pytest.raises(InvalidData, match="NaN"):
            clone(step).fit(X)
        silent = clone(step).set_params(invalid_rows="zero").fit(X)
        assert np.isfinite(np.delete(silent.transform(X), [5, 6], axis=0)).all()

    @pytest.mark.parametrize("step", STEPS, ids=lambda step: type(step).__name__)
    def test_a_step_by_itself_needs_a_budget(self, step):
        with pytest.raises(InvalidParameter, match="epsilon"):
            clone(step).set_params(epsilon=None).fit(np.eye(9))
        with pytest.raises(InvalidParameter, match="delta"):
            clone(step).set_params(delta=0.5).fit(np.eye(9))
        with pytest.raises(InvalidParameter, match="relation"):
            clone(step).set_params(relation="neighbours").fit(np.eye(9))
        with pytest.raises(InvalidParameter, match="invalid_rows"):
            clone(step).set_params(invalid_rows="drop").fit(np.eye(9))
        with pytest.raises(InvalidParameter, match="n_rows"):
            clone(step).set_params(n_rows=10).fit(np.eye(9))

    def test_a_nominal_number_of_rows_is_taken_under_add_remove(self):
        own = {"relation": "add-remove", "n_rows": 100, **OWN}
        steps = [PrivateQuantileClipper((0, 1), **own), PrivateSecondMoment(**own), PrivateGraph(**own)]
        for step in steps:
            step.fit(np.eye(90))
            assert step.plan_.n_rows == 100
            assert any("n_rows was declared" in assumption for assumption in step.privacy_.assumptions)

    def test_a_failed_refit_leaves_every_attribute_as_it_was(self):
        X = correlated(500)
        model = DPLogisticRegression(penalty="graph", graph=PrivateGraph(), classes=[0, 1], random_state=0)
        before = dict(vars(model.fit(X, np.arange(500) % 2)))
        with pytest.raises(InvalidData):
            model.fit(np.full((500, 6), np.nan), np.arange(500) % 2)
        assert vars(model) == before


class TestScikitLearn:
    @pytest.mark.parametrize("step", TestBadInput.STEPS, ids=lambda step: type(step).__name__)
    def test_estimator_checks(self, step):
        """All of scikit-learn's own checks."""
        step = PrivateQuantileClipper((-10, 10), **OWN) if isinstance(step, PrivateQuantileClipper) else step
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for estimator, check in estimator_checks_generator(step):
                with contextlib.suppress(SkipTest):
                    check(estimator)

    def test_a_pipeline_has_the_total_of_its_parts(self):
        X = correlated(4000)
        y = (X[:, 0] > 0).astype(int)
        pipeline = make_pipeline(
            PrivateQuantileClipper((-5, 5), epsilon=0.3, random_state=0),
            DPLogisticRegression(0.7, classes=[0, 1], random_state=0),
        ).fit(X, y)
        assert pipeline.score(X, y) > 0.9
        total = compose_statements(pipeline)
        assert 0.7 < total.epsilon < 1.0
        assert str(total.epsilon)[:4] in total.text

    def test_parameters_of_a_step_are_seen_by_a_search(self):
        X = correlated(2000)
        model = DPLogisticRegression(penalty="graph", graph=PrivateGraph(), classes=[0, 1], random_state=0, delta=1e-4)
        search = GridSearchCV(model, {"graph__share": [0.1, 0.5]}, cv=2).fit(X, (X[:, 0] > 0).astype(int))
        assert len(search.cv_results_["params"]) == 2
        assert model.graph.share == 0.2

    def test_regression_takes_steps_too(self):
        X = correlated(5000)
        y = X[:, 0] + X[:, 1]
        steps = {"bounds": PrivateQuantileClipper((-2, 2)), "graph": PrivateGraph()}
        model = DPLinearRegression(penalty="graph", random_state=0, **steps).fit(X, y)
        assert model.score(X, y) > 0.8


def test_models_with_steps_are_saved_with_what_was_learned(tmp_path):
    X = correlated(4000)
    steps = {"bounds": PrivateQuantileClipper((-2, 2)), "graph": PrivateGraph()}
    model = DPLogisticRegression(penalty="graph", classes=[0, 1], random_state=0, **steps)
    model.fit(X, (X[:, 0] > 0).astype(int)).save(tmp_path / "model")
    loaded = dpadmm.load_model(tmp_path / "model")
    assert loaded.graph_ == model.graph_
    assert loaded.privacy_ == model.privacy_
    np.testing.assert_array_equal(loaded.decision_function(X), model.decision_function(X))


@pytest.mark.parametrize(
    ("parameter", "wanted"), [("bounds", "PrivateQuantileClipper"), ("graph", "PrivateGraph")], ids=str
)
def test_a_step_in_the_wrong_place_is_told_which_belongs_there(parameter, wanted):
    model = DPLogisticRegression(penalty="graph", **{parameter: PrivateSecondMoment()})
    with pytest.raises(InvalidParameter, match=wanted):
        model.fit(np.zeros((4, 2)), [0, 1, 0, 1])


class TestCommandLine:
    PLAN = ("plan", "--rows", "48842", "--features", "105", "--epsilon", "1", "--delta", "1e-5", "--penalty", "graph")

    @pytest.mark.parametrize("solver", ["auto", "full-admm", "dp-vradmm"])
    def test_a_plan_prints_the_split(self, capsys, solver):
        assert run([*self.PLAN, "--solver", solver, "--private-graph", "0.25", "--json"]) == 0
        summary = json.loads(capsys.readouterr().out)
        assert summary["budget_split"] == pytest.approx({"feature moment": 0.25, "training": 0.75}, rel=1e-4)
        assert summary["queries"][0]["kind"] == "feature moment"
        assert run([*self.PLAN, "--solver", solver, "--private-graph", "0.25"]) == 0
        assert "25%" in capsys.readouterr().out

    def test_a_plan_with_a_graph_that_no_penalty_uses_is_refused_as_the_fit_is(self, capsys):
        assert run([*self.PLAN[:-2], "--private-graph", "0.25"]) == 2
        assert "penalty='graph'" in capsys.readouterr().err

    @pytest.mark.parametrize("share", ["0", "0.95", "2", "-1"])
    def test_impossible_shares_are_refused(self, capsys, share):
        assert run([*self.PLAN, "--private-graph", share]) != 0

    def fit(self, tmp_path, *more):
        X = correlated(600)
        table, schema = tmp_path / "table.csv", tmp_path / "schema.toml"
        names = [f"x{i}" for i in range(6)]
        lines = [",".join([*names, "y"])] + [
            ",".join([*map("{:.4f}".format, row), "yes" if row[0] > 0 else "no"]) for row in X
        ]
        table.write_text("\n".join(lines))
        columns = [f'[columns.{name}]\nkind = "numeric"\nlower = -1.0\nupper = 1.0\n' for name in names]
        schema.write_text("\n".join([*columns, '[target]\ncolumn = "y"\nkind = "classes"\nclasses = ["no", "yes"]\n']))
        budget = ("--epsilon", "1", "--delta", "1e-4", "--out", str(tmp_path / "model"), "--json")
        return run(["fit", str(table), "--schema", str(schema), *budget, *more])

    def test_a_fit_learns_its_graph(self, capsys, tmp_path):
        assert self.fit(tmp_path, "--penalty", "graph", "--private-graph", "0.3") == 0
        told = json.loads(capsys.readouterr().out)
        shares = {part["step"]: part["share"] for part in told["privacy"]["split"]}
        assert shares == pytest.approx({"feature moment": 0.3, "training": 0.7}, rel=1e-4)
        assert run(["statement", str(tmp_path / "model"), "--verify"]) == 0
        assert "30% for feature moment" in " ".join(capsys.readouterr().out.split())
        page = (tmp_path / "model" / "report.html").read_text()
        edges = dpadmm.load_model(tmp_path / "model").graph_
        assert f"<h2>Learned graph</h2><p>{len(edges)} edges" in page

    @pytest.mark.parametrize(
        "more", [("--private-graph", "0.3"), ("--penalty", "graph", "--private-graph", "3"), ("--penalty", "graph")]
    )
    def test_impossible_combinations_are_refused_before_the_table_is_opened(self, capsys, tmp_path, more):
        with mock.patch("dpadmm.cli.fit_command.training_rows", side_effect=AssertionError):
            assert self.fit(tmp_path, *more) != 0


@pytest.mark.parametrize("own", [{"bounds": (0, 1)}, {"row_norm": 2.0}, {"centred": False}])
def test_a_step_with_a_map_of_its_own_is_refused_in_a_model(own):
    """The model maps the rows; each of these alone would be forgotten silently."""
    PrivateGraph().require_usable(4, sparse_rows=False)
    with pytest.raises(InvalidParameter, match="those of the model"):
        PrivateGraph(**own).require_usable(4, sparse_rows=False)
