"""The estimators as a user meets them: every solver, penalty, relation, format; bad input; persistence."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from dpadmm import DPLinearRegression, DPLinearSVC, DPLogisticRegression, load_model
from dpadmm.declare.penalties import PENALTIES
from dpadmm.errors import (
    CannotCertify,
    FileProblem,
    InvalidData,
    InvalidParameter,
    SchemeMismatch,
    UnsupportedProblem,
)
from dpadmm.problem.smoothers import GraphLaplacian
from dpadmm.solvers import SOLVERS

N_ROWS, N_FEATURES = 3000, 6
TRUTH = np.array([2.0, 2.0, 0.0, 0.0, -2.0, -2.0])


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (N_ROWS, N_FEATURES))
    return X, np.where(X @ TRUTH + 0.3 * rng.standard_normal(N_ROWS) > 0, 1, 0)


EXTRAS = {"group": {"groups": [0, 0, 1, 1, 2, 2]}, "graph": {"graph": [(0, 1), (4, 5)]}}


@pytest.mark.parametrize("solver", SOLVERS.names())
@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
def test_every_solver_learns_with_its_defaults(solver, relation, table):
    X, y = table
    if (solver, relation) == ("noisy-admm", "add-remove"):
        with pytest.raises(SchemeMismatch, match="only replacing a row is proved"):
            DPLogisticRegression(2.0, 1e-5, solver=solver, relation=relation, classes=[0, 1]).fit(X, y)
        return
    model = DPLogisticRegression(2.0, 1e-5, solver=solver, relation=relation, classes=[0, 1], random_state=0).fit(X, y)
    assert model.score(X, y) > 0.85
    assert 0.99 * 2.0 <= model.plan_.epsilon_achieved <= 2.0
    assert model.n_iter_ >= 1


@pytest.mark.parametrize("penalty", PENALTIES.names())
@pytest.mark.parametrize("solver", ["auto", "full-admm", "dp-sadmm"])
def test_every_penalty_trains(penalty, solver, table):
    X, y = table
    options = EXTRAS.get(penalty, {})
    model = DPLogisticRegression(
        2.0, penalty=penalty, alpha=1e-3, solver=solver, classes=[0, 1], random_state=0, **options
    ).fit(X, y)
    assert model.score(X, y) > 0.85
    assert model.coef_.shape == (1, N_FEATURES)


@pytest.mark.parametrize(("choice", "clip"), [({"clip_norm": 0.7}, 0.7), ({"smoothing": 1.0}, 0.745236)])
def test_auto_gives_way_where_a_choice_is_not_its_own(choice, clip, table):
    model = DPLogisticRegression(2.0, classes=[0, 1], random_state=0, **choice).fit(*table)
    assert model.privacy_.solver == "full-admm"
    assert model.plan_.queries[0].clip_norm == pytest.approx(clip, abs=1e-6)


def test_a_strong_l1_penalty_gives_exact_zeros(table):
    model = DPLogisticRegression(2.0, penalty="l1", alpha=0.03, classes=[0, 1], random_state=0).fit(*table)
    assert {2, 3} <= set(np.flatnonzero(model.coef_[0] == 0))


def test_a_fused_penalty_gives_exactly_equal_neighbours(table):
    model = DPLogisticRegression(2.0, penalty="fused", alpha=0.05, classes=[0, 1], random_state=0).fit(*table)
    assert len(np.unique(model.coef_[0])) < N_FEATURES


@pytest.mark.parametrize("sampler", ["full", "poisson", "truncated-poisson", "fixed"])
def test_every_sampler_trains(sampler, table):
    model = DPLogisticRegression(2.0, solver="dp-sadmm", sampler=sampler, classes=[0, 1], random_state=0).fit(*table)
    assert model.plan_.queries[0].sampler.name == sampler
    assert model.score(*table) > 0.85


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix, pd.DataFrame])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_formats_and_precisions_agree(make, dtype, table):
    X, y = table
    reference = DPLogisticRegression(2.0, classes=[0, 1], random_state=3).fit(X, y)
    model = DPLogisticRegression(2.0, classes=[0, 1], random_state=3).fit(make(X.astype(dtype)), y)
    np.testing.assert_allclose(model.coef_, reference.coef_, rtol=1e-3, atol=1e-3)


def test_softmax_for_three_classes(table):
    X, _ = table
    y = np.array(["low", "mid", "top"])[np.digitize(X[:, 0], [-0.4, 0.4])]
    model = DPLogisticRegression(3.0, classes=["low", "mid", "top"], random_state=0).fit(X, y)
    assert model.score(X, y) > 0.75
    assert model.coef_.shape == (3, N_FEATURES)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)


def test_svc_and_regression(table):
    X, y = table
    assert DPLinearSVC(2.0, classes=[0, 1], random_state=0).fit(X, y).score(X, y) > 0.85
    target = 40.0 + 5 * X @ TRUTH / 2
    for loss in ("squared", "huber"):
        model = DPLinearRegression(3.0, loss=loss, target_bounds=(20.0, 60.0), row_norm=3.0, random_state=0).fit(
            X, target
        )
        assert model.score(X, target) > 0.8
        np.testing.assert_allclose(model.predict(X), X @ model.coef_ + model.intercept_)


def test_smoothing_never_changes_the_plan(table):
    plain = DPLogisticRegression(1.0, solver="full-admm", classes=[0, 1], random_state=0).fit(*table)
    for smoothing in (3.0, GraphLaplacian(1.0, ((0, 1), (1, 2)), N_FEATURES + 1)):
        smoothed = DPLogisticRegression(
            1.0, solver="full-admm", smoothing=smoothing, classes=[0, 1], random_state=0
        ).fit(*table)
        assert smoothed.plan_ == plain.plan_
        assert not np.array_equal(smoothed.coef_, plain.coef_)


def test_strongly_convex_branch_is_reachable(table):
    for solver in ("dp-sadmm", "dp-vradmm"):
        model = DPLogisticRegression(
            3.0, penalty="l2", alpha=1e-2, solver=solver, solver_options={"convexity": "strong"}, classes=[0, 1],
            random_state=0,
        ).fit(*table)  # fmt: skip
        assert model.score(*table) > 0.8


def test_bounds_are_folded_back_into_raw_units(table):
    X, y = table
    model = DPLogisticRegression(3.0, bounds=(-10, 10), row_norm=5.0, classes=[0, 1], random_state=0).fit(10 * X, y)
    scores = 10 * X @ model.coef_[0] + model.intercept_[0]
    np.testing.assert_allclose(model.decision_function(10 * X), scores)


def test_pipelines_clone_and_grid_search_account_for_every_fit(table):
    X, y = table
    model = DPLogisticRegression(1.0, classes=[0, 1], random_state=0)
    assert clone(model).get_params() == model.get_params()
    make_pipeline(FunctionTransformer(), model).fit(X, y)
    search = GridSearchCV(model, {"alpha": [1e-4, 1e-3]}, cv=2).fit(X, y)
    assert search.best_estimator_.privacy_.epsilon == 1.0


def test_unseeded_fits_are_private_and_differ(table):
    first, second = (DPLogisticRegression(1.0, classes=[0, 1]).fit(*table) for _ in range(2))
    assert not np.array_equal(first.coef_, second.coef_)
    assert "NOT private" not in str(first.privacy_)


def test_a_seed_is_called_not_private(table):
    model = DPLogisticRegression(1.0, classes=[0, 1], random_state=7).fit(*table)
    assert str(model.privacy_).startswith("seeded: NOT private")


def test_statement_reads_for_people_and_machines(table):
    model = DPLogisticRegression(0.5, 1e-6, solver="dp-sadmm", classes=[0, 1]).fit(*table)
    words, fields = str(model.privacy_), json.loads(model.privacy_.to_json())
    for part in ("(0.5, 1e-06)-differentially private", "replace-one", "one row of the table", "pld", "proved"):
        assert part in words
    for key in (
        "version", "epsilon", "delta", "relation", "unit", "queries", "accountant", "assumptions", "proofs",
        "arithmetic", "library_version",
    ):  # fmt: skip
        assert fields[key]


def test_undeclared_classes_and_row_counts_are_stated_as_assumptions(table):
    model = DPLogisticRegression(1.0, relation="add-remove", random_state=0).fit(*table)
    assert any("class labels" in line for line in model.privacy_.assumptions)
    assert any("row count" in line or "number of rows" in line for line in model.privacy_.assumptions)
    declared = DPLogisticRegression(1.0, relation="add-remove", n_rows=2900, classes=[0, 1], random_state=0).fit(*table)
    assert declared.plan_.n_rows == 2900


BAD = [
    ({"epsilon": 0}, InvalidParameter, "epsilon > 0"),
    ({"epsilon": -1}, InvalidParameter, "epsilon > 0"),
    ({"epsilon": "much"}, InvalidParameter, "epsilon > 0"),
    ({"delta": 0}, InvalidParameter, "delta > 0"),
    ({"delta": 1.0}, InvalidParameter, "delta < 1"),
    ({"delta": 0.01}, InvalidParameter, "delta < 1/n"),
    ({"relation": "swap"}, InvalidParameter, "replace-one"),
    ({"solver": "newton"}, InvalidParameter, "full-admm"),
    ({"penalty": "l0"}, InvalidParameter, "elasticnet"),
    ({"penalty": "graph"}, InvalidParameter, "public"),
    ({"penalty": "group"}, InvalidParameter, "groups"),
    ({"penalty": "graph", "graph": [(0, 99)]}, InvalidParameter, "Expected two different nodes"),
    ({"alpha": -1.0, "penalty": "l1"}, InvalidParameter, "alpha=-1.0.* >= 0"),
    ({"batch_size": 10**6, "solver": "dp-sadmm"}, InvalidParameter, "smaller batch"),
    ({"steps": 0}, InvalidParameter, "steps=0.* >= 1"),
    ({"sampler": "shuffle", "solver": "dp-sadmm"}, SchemeMismatch, "shuffled"),
    ({"sampler": "poisson"}, InvalidParameter, "dp-sadmm"),
    ({"sampler": "fixed", "solver": "dp-sadmm", "relation": "add-remove"}, SchemeMismatch, "add-remove"),
    ({"accountant": "rdp", "solver": "dp-sadmm"}, SchemeMismatch, "rdp"),
    ({"accountant": "gaussian", "solver": "dp-sadmm"}, SchemeMismatch, "pld"),
    ({"accountant": "magic"}, InvalidParameter, "pld"),
    ({"solver": "full-admm", "clip_norm": 0.0}, InvalidParameter, "clip_norm=0.0.* > 1e-100"),
    ({"row_norm": -1.0}, InvalidParameter, "row_norm=-1.0.* > 0"),
    ({"classes": [0]}, InvalidParameter, "classes"),
    ({"classes": [0, 2]}, InvalidData, "Declare all classes"),
    ({"invalid_rows": "drop"}, InvalidParameter, "'zero'"),
    ({"smoothing": "lots"}, InvalidParameter, "ring Laplacian"),
    ({"solver_options": {"speed": 9}}, InvalidParameter, "options among"),
    ({"random_state": "dice"}, InvalidParameter, "non-negative int"),
    ({"penalty": "fused", "solver": "dp-gd"}, UnsupportedProblem, "ADMM solver"),
    ({"steps": "ten"}, InvalidParameter, "steps"),
    ({"row_norm": "long"}, InvalidParameter, "row_norm"),
    ({"alpha": None, "penalty": "l1"}, InvalidParameter, "alpha"),
    ({"bounds": (-1e308, 1e308)}, InvalidParameter, "Declare the range"),
    ({"solver": "full-admm", "solver_options": {"momentum": 1}}, InvalidParameter, "momentum < 1"),
    ({"solver": "ssadmm", "solver_options": {"averaging": "median"}}, InvalidParameter, "'tail'"),
    ({"solver": "dp-vradmm", "solver_options": {"gradient_clip": 10.0}}, InvalidParameter, "clip_norm"),
    ({"solver": "dp-vradmm", "solver_options": {"epochs": 2.5}}, InvalidParameter, "epochs"),
    ({"solver": "dp-sadmm", "solver_options": {"steps": 0}}, InvalidParameter, "steps"),
    ({"solver": "dp-gd", "penalty": "l1", "smoothing": 1.0}, UnsupportedProblem, "ADMM solver"),
    ({"penalty": "group", "groups": [[0.9, 1]]}, InvalidParameter, "groups"),
    ({"solver_options": {"steps": 2.5}}, InvalidParameter, "steps"),
    ({"solver_options": {"smoother": None}}, InvalidParameter, "smoothing"),
    (
        {"penalty": "l2", "alpha": 0, "solver": "dp-sadmm", "solver_options": {"convexity": "strong"}},
        InvalidParameter,
        "alpha > 0",
    ),
    ({"classes": [[0], [1, 2]]}, InvalidParameter, "classes"),
    ({"n_rows": 17}, InvalidParameter, "add-remove"),
    (
        {"solver": "dp-sadmm", "steps": 2000, "epsilon": 900.0, "sampler": "fixed"},
        CannotCertify,
        "Got 2000 subsampled releases",
    ),
]


@pytest.mark.parametrize(("parameters", "error", "words"), BAD)
def test_bad_parameters_say_what_to_do(parameters, error, words, table):
    with pytest.raises(error, match=words):
        DPLogisticRegression(**{"classes": [0, 1], "random_state": 0, **parameters}).fit(*table)


def test_complex_rows_are_refused_without_quoting_them(table):
    with pytest.raises(InvalidData, match="Complex data not supported") as refusal:
        DPLogisticRegression(1.0).fit(table[0] + 7431.5j, table[1])
    assert "7431" not in str(refusal.value)


@pytest.mark.parametrize("solver", ["full-admm", "dp-sadmm", "ssadmm", "mpadmm", "dp-vradmm", "dp-gd", "auto"])
@pytest.mark.parametrize("unit", [1e-3, 100.0])
def test_a_fit_does_not_depend_on_the_unit_of_the_rows(solver, unit, table):
    X, y = table
    options = {"solver": solver, "penalty": "l1", "classes": [0, 1], "fit_intercept": False, "random_state": 0}
    plain = DPLogisticRegression(2.0, alpha=1e-3, row_norm=1.0, **options).fit(X, y)
    scaled = DPLogisticRegression(2.0, alpha=1e-3 * unit, row_norm=unit, **options).fit(unit * X, y)
    np.testing.assert_allclose(unit * scaled.coef_, plain.coef_, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("penalty", "options"), [("fused", {}), ("group", {"groups": []}), ("graph", {"graph": []})])
def test_penalties_with_nothing_to_penalise(penalty, options, table):
    X, y = table
    model = DPLogisticRegression(2.0, penalty=penalty, classes=[0, 1], random_state=0, **options).fit(X[:, :1], y)
    assert model.coef_.shape == (1, 1)


def test_means_of_skewed_targets_survive_the_default_clip():
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-1, 1, (20_000, 2)), (rng.random(20_000) < 0.1).astype(float)
    model = DPLinearRegression(10.0, 1e-6, target_bounds=(0, 1), random_state=0).fit(X, y)
    assert model.predict(X).mean() == pytest.approx(0.1, abs=0.02)


def test_log_probabilities_of_confident_rows(table):
    model = DPLogisticRegression(2.0, classes=[0, 1], random_state=0).fit(*table)
    model.weights_ = 1e3 * model.weights_
    scores = model.decision_function(table[0])
    np.testing.assert_allclose(model.predict_log_proba(table[0])[:, 0], -np.logaddexp(0, scores))


def test_steps_are_taken_exactly(table):
    for solver in SOLVERS:
        model = DPLogisticRegression(1.0, solver=solver, steps=7, classes=[0, 1], random_state=0).fit(*table)
        assert model.n_iter_ == 7


def test_a_failed_refit_changes_nothing(table):
    model = DPLogisticRegression(1.0, classes=[0, 1], random_state=0).fit(*table)
    before = model.coef_.copy()
    model.set_params(classes=["a", "b"])
    with pytest.raises(InvalidData):
        model.fit(*table)
    assert model.classes_.tolist() == [0, 1]
    np.testing.assert_array_equal(model.coef_, before)


def test_the_intercept_is_never_penalised(table):
    X, _ = table
    y = np.ones(len(X), dtype=int)
    y[:30] = 0
    for penalty, solver, options in (
        ("l2", "full-admm", {}),
        ("l2", "dp-sadmm", {"convexity": "strong"}),
        ("l1", "dp-gd", {}),
    ):
        model = DPLogisticRegression(
            50.0, penalty=penalty, alpha=1.0, solver=solver, solver_options=options, classes=[0, 1], random_state=0
        ).fit(X, y)
        assert model.intercept_[0] > 1
        assert np.abs(model.coef_).max() < 0.5


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_bad_rows_are_refused_or_count_as_zero(bad, table):
    X, y = table[0].copy(), table[1]
    X[5, 2] = bad
    with pytest.raises(InvalidData, match="invalid_rows") as refusal:
        DPLogisticRegression(1.0, classes=[0, 1], random_state=0).fit(X, y)
    assert "5" not in str(refusal.value)
    tolerant = DPLogisticRegression(1.0, classes=[0, 1], invalid_rows="zero", random_state=0).fit(X, y)
    X[5] = 0
    assert tolerant.n_features_in_ == N_FEATURES
    assert tolerant.score(X, y) > 0.8


def test_labels_outside_the_classes_can_count_as_zero(table):
    X, y = table
    labels = y.astype(float)
    labels[:3] = 9
    model = DPLogisticRegression(1.0, classes=[0, 1], invalid_rows="zero", random_state=0).fit(X, labels)
    assert model.classes_.tolist() == [0, 1]


def test_text_in_the_rows_is_not_quoted(table):
    X = table[0].astype(object)
    X[3, 3] = "SECRET-7431"
    for rows in (X, pd.DataFrame(X), X.tolist()):
        with pytest.raises(InvalidData, match="not numbers") as refusal:
            DPLogisticRegression(1.0, classes=[0, 1]).fit(rows, table[1])
        assert "SECRET" not in str(refusal.value)
        assert refusal.value.__cause__ is None


@pytest.mark.parametrize("model", [
    DPLogisticRegression(2.0, penalty="l1", random_state=0),
    DPLogisticRegression(2.0, penalty="l1", bounds=(-1, 1), random_state=0),
    DPLinearSVC(2.0, random_state=0),
    DPLinearRegression(2.0, target_bounds=(0, 1), random_state=0),
])  # fmt: skip
def test_models_survive_saving(model, table, tmp_path):
    X, y = table
    model.fit(X, y)
    loaded = load_model(model.save(tmp_path / "model"))
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    assert loaded.privacy_ == model.privacy_
    assert loaded.plan_ == model.plan_
    assert loaded.plan_.digest == model.plan_.digest


def test_numpy_parameters_survive_saving(table, tmp_path):
    model = DPLogisticRegression(np.float32(2.0), alpha=np.float32(0.1), classes=[0, 1], random_state=0).fit(*table)
    assert load_model(model.save(tmp_path)).alpha == pytest.approx(0.1)


def test_text_classes_and_column_names_survive_saving(table, tmp_path):
    X = pd.DataFrame(table[0], columns=list("abcdef"))
    y = np.where(table[1] == 1, "yes", "no").astype(object)
    model = DPLogisticRegression(2.0, classes=["no", "yes"], random_state=0).fit(X, y)
    loaded = load_model(model.save(tmp_path))
    assert loaded.predict(X).tolist() == model.predict(X).tolist()


@pytest.mark.parametrize("damage", ["truncate", "garbage", "missing", "swap", "other weights"])
def test_damaged_model_files_are_refused(damage, table, tmp_path):
    model = DPLogisticRegression(2.0, classes=[0, 1], random_state=0).fit(*table)
    folder = model.save(tmp_path / "model")
    if damage == "truncate":
        (folder / "model.npz").write_bytes((folder / "model.npz").read_bytes()[:40])
    elif damage == "garbage":
        (folder / "model.json").write_text("{not json")
    elif damage == "missing":
        (folder / "model.npz").unlink()
    elif damage == "other weights":
        other = DPLogisticRegression(2.0, classes=[0, 1], random_state=1).fit(*table).save(tmp_path / "other")
        (folder / "model.npz").write_bytes((other / "model.npz").read_bytes())
    else:
        words = json.loads((folder / "model.json").read_text())
        words["n_features"] = 4
        (folder / "model.json").write_text(json.dumps(words))
    with pytest.raises(FileProblem):
        load_model(folder)


def test_an_unwritable_folder_is_a_clear_error(table, tmp_path):
    model = DPLogisticRegression(2.0, classes=[0, 1], random_state=0).fit(*table)
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(FileProblem, match="writable"):
        model.save(tmp_path / "file" / "model")


def test_a_model_is_not_written_over_unless_forced(table, tmp_path):
    first, second = (DPLogisticRegression(2.0, classes=[0, 1], random_state=seed).fit(*table) for seed in (0, 1))
    folder = first.save(tmp_path / "model")
    with pytest.raises(FileProblem, match="force=True"):
        second.save(folder)
    np.testing.assert_array_equal(load_model(folder).weights_, first.weights_)
    assert second.save(str(folder), force=True) == folder
    np.testing.assert_array_equal(load_model(folder).weights_, second.weights_)


@pytest.mark.parametrize("force", [False, True])
def test_a_folder_with_other_files_is_never_written_over(table, tmp_path, force):
    model = DPLogisticRegression(2.0, classes=[0, 1], random_state=0).fit(*table)
    (tmp_path / "statement.txt").write_text("of another model")
    with pytest.raises(FileProblem, match="Choose another name"):
        model.save(tmp_path, force=force)
    assert [path.name for path in tmp_path.iterdir()] == ["statement.txt"]


def test_verbose_shows_a_bar_on_standard_error_only(table, capsys):
    DPLogisticRegression(1.0, classes=[0, 1], random_state=0, steps=5, verbose=1).fit(*table)
    out, err = capsys.readouterr()
    assert out == ""
    assert "5/5" in err
