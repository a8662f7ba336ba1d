"""`fit`, `predict`, `evaluate`, `statement` and `schema` from raw table to released numbers."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from dpadmm import load_model
from dpadmm.cli.app import run
from dpadmm.cli.model_folder import MODEL_FILES
from dpadmm.errors import FileProblem
from dpadmm.tables import Schema
from tests.unit.cli.made_up_tables import SCHEMA, SECRET, fit_arguments, make_frame, tree, write_inputs

COEFFICIENT = "feature,coefficient before row scaling"
ENOUGH = ("--epsilon", "20")
"""For standard errors: so few rows tell too little at a smaller ε."""


def fitted(folder: Path, *more: str) -> Path:
    write_inputs(folder)
    assert run(fit_arguments(folder, *more)) == 0
    return folder / "model"


def test_model_folder_is_complete_and_holds_no_row(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = fitted(tmp_path, "--penalty", "l1")
    assert tree(model) == set(MODEL_FILES)
    assert tree(tmp_path) == {"train.csv", "schema.toml", "model", *(f"model/{name}" for name in MODEL_FILES)}
    for path in model.iterdir():
        assert SECRET.encode() not in path.read_bytes()
    shown = capsys.readouterr()
    assert (shown.out, shown.err) == ("", "")
    loaded = load_model(model)
    assert loaded.plan_.budget.epsilon == 1.0
    assert not loaded.privacy_.seeded
    assert list(loaded.feature_names_in_) == ["age", "work=private", "work=state", "married"]


def test_summary_and_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_inputs(tmp_path)
    arguments = [word for word in fit_arguments(tmp_path) if word != "--quiet"]
    assert run(arguments) == 0
    shown = capsys.readouterr()
    assert "(1, 1e-05)-differentially private" in shown.out
    assert f"`dpadmm statement {tmp_path / 'model'}`" in shown.out
    assert "NOT private" not in shown.out
    assert shown.err == ""
    assert run([*arguments, "--force", "--seed", "3"]) == 0
    assert "seeded: NOT private" in capsys.readouterr().out
    assert run([*arguments, "--force", "--json", "--seed", "3"]) == 0
    summary = json.loads(capsys.readouterr().out)
    assert summary["features"] == 4
    assert summary["privacy"]["seeded"] is True


def test_standard_errors_reach_report_predictions_and_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_inputs(tmp_path)
    assert run(fit_arguments(tmp_path, *ENOUGH, "--json")) == 0
    assert json.loads(capsys.readouterr().out)["standard_errors"] is True
    model = tmp_path / "model"
    assert (model / "coefficients.csv").read_text().startswith(f"{COEFFICIENT},noise std,")
    assert "rows held fixed" in (model / "report.html").read_text()
    out = tmp_path / "predictions.csv"
    assert run(["predict", str(model), str(tmp_path / "train.csv"), "--out", str(out), "--std"]) == 0
    assert (pd.read_csv(out)["std of score"] > 0).all()
    capsys.readouterr()
    assert run(fit_arguments(tmp_path, *ENOUGH, "--json", "--force", "--no-standard-errors")) == 0
    assert json.loads(capsys.readouterr().out)["standard_errors"] is False
    assert (model / "coefficients.csv").read_text().startswith(f"{COEFFICIENT},typical")
    assert run(["predict", str(model), str(tmp_path / "train.csv"), "--out", str(out), "--std", "--force"]) != 0


def test_standard_errors_that_cannot_be_are_refused_before_the_table_is_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_inputs(tmp_path)
    (tmp_path / "train.csv").write_text("not a table")
    assert run(fit_arguments(tmp_path, "--solver", "full-admm", "--standard-errors")) == 2
    assert "--standard-errors where there are none: only solver 'auto'" in capsys.readouterr().err
    graph = ["--penalty", "graph", "--private-graph", "0.2"]
    assert run(fit_arguments(tmp_path, *graph, "--standard-errors")) == 2
    said = capsys.readouterr().err
    assert "private preparation adds noise of its own" in said
    assert "solver" not in said


@pytest.mark.parametrize(
    ("more", "why", "asked"),
    [
        (["--solver", "full-admm"], "only solver 'auto' has them", False),
        (["--standard-errors"], "below 500 standard errors", False),
        (
            [*ENOUGH, "--penalty", "l1"],
            "not computed, because they take longer than the fit. --standard-errors computes",
            True,
        ),
        ([*ENOUGH, "--no-standard-errors"], "none, as asked", True),
    ],
)
def test_why_there_are_no_standard_errors_is_said_by_fit_and_by_predict(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], more: list[str], why: str, asked: bool
) -> None:
    write_inputs(tmp_path)
    assert run([word for word in fit_arguments(tmp_path, *more) if word != "--quiet"]) == 0
    assert why in " ".join(capsys.readouterr().out.split())
    table, out = str(tmp_path / "train.csv"), str(tmp_path / "predictions.csv")
    assert run(["predict", str(tmp_path / "model"), table, "--out", out, "--std"]) == 2
    said = capsys.readouterr().err
    assert "a new fit costs its whole budget again" in said
    assert ("fit --standard-errors" in said) is asked
    assert asked or why in said


def test_python_does_not_write_into_the_folder_of_a_fit(tmp_path: Path) -> None:
    folder = fitted(tmp_path)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    for force in (False, True):
        with pytest.raises(FileProblem):
            load_model(folder).save(folder, force=force)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


@pytest.mark.parametrize(
    "options",
    [
        "--model svm --penalty l2",
        "--penalty elasticnet --l1-ratio 0.2 --no-intercept",
        "--penalty group",
        "--penalty group --groups groups.csv",
        "--penalty graph --graph edges.csv",
        "--penalty fused --row-norm 2 --clip-norm 0.3",
        "--solver dp-sadmm --smoothing 1.5 --batch-size 50 --sampler fixed --accountant rdp",
        "--solver dp-vradmm",
        "--solver ssadmm --relation add-remove --rows 500",
        "--solver mpadmm --invalid-rows zero",
        "--solver noisy-admm --penalty fused --steps 2 --accountant iteration-paper",
        "--solver dp-sgd --rows 400",
        "--solver dp-gd --penalty scad",
        "--arithmetic exact",
    ],
)
def test_every_option_trains(tmp_path: Path, options: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("edges.csv").write_text("age,married\n")
    Path("groups.csv").write_text("age,a\nmarried,a\n")
    fitted(tmp_path, *options.split())


def test_predict_keeps_rows_in_order(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = fitted(tmp_path, "--epsilon", "50")
    fresh = make_frame(300, seed=1)
    fresh.drop(columns=["outcome", "id"]).to_parquet(tmp_path / "new.parquet")
    out = tmp_path / "predictions.csv"
    assert run(["predict", str(model), str(tmp_path / "new.parquet"), "--out", str(out), "--proba"]) == 0
    predictions = pd.read_csv(out)
    assert list(predictions.columns) == ["prediction", "probability=well", "probability=ill"]
    assert len(predictions) == 300
    assert (predictions["prediction"] == fresh["outcome"]).mean() > 0.8
    assert ((predictions["probability=ill"] > 0.5) == (predictions["prediction"] == "ill")).all()
    assert "predictions.csv" in capsys.readouterr().out


def test_predict_leaves_invalid_rows_blank_when_asked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = fitted(tmp_path)
    fresh = make_frame(3).astype(object)
    fresh.loc[1, "age"] = SECRET
    fresh.to_csv(tmp_path / "new.csv", index=False)
    arguments = ["predict", str(model), str(tmp_path / "new.csv"), "--out", str(tmp_path / "p.csv")]
    assert run(arguments) == 2
    assert not (tmp_path / "p.csv").exists()
    assert run([*arguments, "--invalid-rows", "blank"]) == 0
    predictions = pd.read_csv(tmp_path / "p.csv", skip_blank_lines=False)
    assert predictions["prediction"].isna().tolist() == [False, True, False]
    assert run(arguments) == 4
    shown = capsys.readouterr()
    assert SECRET not in shown.out + shown.err


def test_evaluate_needs_the_declaration(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = fitted(tmp_path, "--epsilon", "50")
    make_frame(300, seed=1).to_csv(tmp_path / "test.csv", index=False)
    arguments = ["evaluate", str(model), str(tmp_path / "test.csv")]
    assert run(arguments) == 3
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "--public-or-test" in shown.err
    assert run([*arguments, "--public-or-test"]) == 0
    assert "accuracy" in capsys.readouterr().out
    assert run([*arguments, "--public-or-test", "--json"]) == 0
    metrics = json.loads(capsys.readouterr().out)
    assert set(metrics) == {"rows", "accuracy", "largest_class", "auc", "log_loss"}
    assert metrics["accuracy"] > 0.8
    assert metrics["auc"] > 0.9


def test_regression(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    schema = SCHEMA.replace('categories = ["well", "ill"]', "lower = 0\nupper = 10").replace(
        '[columns.outcome]\nkind = "categorical"', '[columns.outcome]\nkind = "numeric"'
    )
    write_inputs(tmp_path, schema)
    frame = make_frame(2000)
    frame["outcome"] = frame["age"] / 10.0
    frame.to_csv(tmp_path / "train.csv", index=False)
    assert run(fit_arguments(tmp_path)) == 2
    assert "--model regression or huber" in capsys.readouterr().err
    for model in ("regression", "huber"):
        assert run(fit_arguments(tmp_path, "--model", model, "--epsilon", "50", "--steps", "200", "--force")) == 0
        table = str(tmp_path / "train.csv")
        assert run(["evaluate", str(tmp_path / "model"), table, "--public-or-test", "--json"]) == 0
        metrics = json.loads(capsys.readouterr().out)
        assert metrics["r2"] > 0.8
        assert metrics["mean_absolute_error"] < 2


def test_several_classes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_inputs(tmp_path, SCHEMA.replace('["well", "ill"]', '["well", "ill", "dead"]'))
    assert run(fit_arguments(tmp_path, "--penalty", "nuclear")) == 0
    head = (tmp_path / "model" / "coefficients.csv").read_text().splitlines()[0]
    assert head.split(",")[1:4] == [f"coefficient before row scaling for {label}" for label in ("well", "ill", "dead")]
    assert run(fit_arguments(tmp_path, "--model", "svm", "--force")) == 2
    assert "two classes" in capsys.readouterr().err


def test_statement(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = fitted(tmp_path)
    assert run(["statement", str(model)]) == 0
    text = capsys.readouterr().out
    assert text == (model / "statement.txt").read_text()
    assert run(["statement", str(model), "--json", "--verify"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert content["statement"] + "\n" == text
    assert content["epsilon_verified"] <= 1.0


def test_the_summary_warns_of_a_budget_too_small_for_the_rows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_inputs(tmp_path)
    arguments = [word for word in fit_arguments(tmp_path, "--epsilon", "0.001") if word != "--quiet"]
    assert run(arguments) == 0
    outlook = load_model(tmp_path / "model").privacy_.outlook
    assert outlook
    assert outlook in " ".join(capsys.readouterr().out.split())
    assert outlook in (tmp_path / "model" / "statement.txt").read_text()


def test_schema_template_holds_names_only(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table, _ = write_inputs(tmp_path)
    out = tmp_path / "template.toml"
    assert run(["schema", table, "--out", str(out)]) == 0
    text = out.read_text()
    assert SECRET not in text
    assert all(f"[columns.{name}]" in text for name in make_frame(1).columns)
    assert run(["schema", table, "--out", str(out)]) == 4
    assert run(["schema", table, "--out", str(out), "--force", "--json"]) == 0
    assert json.loads(capsys.readouterr().out.split("\n", 1)[1])["columns"] == 5


def test_example_schema_is_valid() -> None:
    schema = Schema.read(Path(__file__).parents[3] / "examples" / "adult.toml")
    assert schema.n_features == 104
    assert schema.target is not None
    assert schema.target.classes == ("<=50K", ">50K")
