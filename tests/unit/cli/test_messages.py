"""Messages name the thing that is wrong and the next step, and never a value of the table."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpadmm import DPLinearRegression, DPLinearSVC, DPLogisticRegression, DPSearchCV
from dpadmm.cli.app import run
from dpadmm.errors import InvalidData, InvalidParameter, InvalidSchema, UnknownParameter
from dpadmm.report.coefficients import Coefficients
from dpadmm.tables import Schema, encode
from tests.unit.cli.made_up_tables import fit_arguments, write_inputs

rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, (200, 3))
Y = (X[:, 0] > 0).astype(int)


def model(**more: Any) -> DPLogisticRegression:
    return DPLogisticRegression(**{"epsilon": 1.0, "delta": 1e-4, "classes": [0, 1], "random_state": 0, **more})


@pytest.mark.parametrize("kind", [DPLogisticRegression, DPLinearSVC, DPLinearRegression])
@pytest.mark.parametrize(
    ("name", "instead"), [("C", "alpha"), ("max_iter", "steps"), ("tol", "steps"), ("epsilonn", "epsilon")]
)
def test_habits_of_scikit_learn_are_answered(kind: Any, name: str, instead: str) -> None:
    with pytest.raises(InvalidParameter, match=rf"{name}=.*{instead}") as refusal:
        kind(**{name: 1})
    assert isinstance(refusal.value, TypeError)


def test_a_search_sends_the_budget_to_its_model() -> None:
    with pytest.raises(UnknownParameter, match="Give it to the model"):
        DPSearchCV(DPLogisticRegression(), {"alpha": [1e-3]}, epsilon=1)


def test_sample_weight_is_answered() -> None:
    for estimator in (model(), DPSearchCV(model(), {"alpha": [0.1]})):
        with pytest.raises(InvalidParameter, match="public_weight"):
            estimator.fit(X, Y, sample_weight=np.ones(200))


def test_text_columns_are_named_without_their_cells() -> None:
    frame = pd.DataFrame(X, columns=["age", "city", "income"])
    frame["city"] = ["SECRET-7431"] * 200
    for call in (lambda: model().fit(frame, Y), lambda: model().fit(X, Y).predict(frame)):
        with pytest.raises(InvalidData, match="column 'city'") as refusal:
            call()
        assert "SECRET" not in str(refusal.value)
        assert "age" not in str(refusal.value)


@pytest.mark.parametrize(
    ("bounds", "words"),
    [
        ((1, -1), "reversed or equal, for feature 0"),
        (([-1, 1, -1], [1, -1, 1]), "reversed or equal, for feature 1"),
        (([0, 0], [1, 1]), "2 numbers for 3 features"),
        ([(0, 1), (0, 1), (0, 1)], r"list of pairs.*zip"),
        ((0, 1, 2), "3 of them"),
        ((0, np.inf), "not a pair of finite numbers"),
    ],
)
def test_bounds_say_what_is_wrong_with_them(bounds: Any, words: str) -> None:
    with pytest.raises(InvalidParameter, match=words):
        model(bounds=bounds).fit(X, Y)


def test_a_missing_number_cannot_be_scored() -> None:
    fitted, row = model().fit(X, Y), np.array([[0.5, np.nan, 0.25]])
    for method in (fitted.predict, fitted.predict_proba, fitted.decision_function):
        with pytest.raises(InvalidData, match=r"NaN.*Drop these rows") as refusal:
            method(row)
        assert "0.25" not in str(refusal.value)


@pytest.mark.parametrize("labels", [np.array(["yes"] * 200), np.array(["no"] * 200, dtype=object)])
def test_a_regression_on_texts_is_sent_to_a_classifier(labels: Any) -> None:
    with pytest.raises(InvalidData, match="DPLogisticRegression"):
        DPLinearRegression(1.0, 1e-4).fit(X, labels)
    numbers = np.array(["0.5"] * 200)
    assert DPLinearRegression(1.0, 1e-4, random_state=0).fit(X, numbers).n_features_in_ == 3


def test_a_misspelt_option_names_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    for wrong in ("--eps", "--epsilonn"):
        assert run(["plan", wrong, "1"]) == 2
        assert "Did you mean --epsilon?" in capsys.readouterr().err


def test_a_table_without_target_is_not_evaluated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_inputs(tmp_path)
    assert run(fit_arguments(tmp_path, "--steps", "2")) == 0
    table = next(tmp_path.glob("*.csv"))
    target = Schema.read(tmp_path / "model" / "schema.toml").target
    assert target is not None
    pd.read_csv(table).drop(columns=target.column).to_csv(tmp_path / "blind.csv", index=False)
    capsys.readouterr()
    assert run(["evaluate", str(tmp_path / "model"), str(tmp_path / "blind.csv"), "--public-or-test"]) == 2
    assert f"without the target column '{target.column}'" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["", "Unnamed: 0"])
def test_an_index_column_is_recognised(name: str) -> None:
    schema = Schema.from_dict({"columns": {"a": {"kind": "boolean"}}})
    with pytest.raises(InvalidSchema, match="index=False"):
        encode(pd.DataFrame({name: [0, 1], "a": ["yes", "no"]}), schema, with_target=False)


@pytest.mark.parametrize("name", ["=1+1", "+1", "-cost", "@a", "\ta", "\r=a", " =a", "=cmd|' /C calc'!A0"])
def test_names_are_never_formulas_and_numbers_stay_numbers(name: str) -> None:
    table = Coefficients((name, "age"), (name,), np.array([[-2.5, 1.0]]), np.array([-1.0]))
    rows = list(csv.reader(io.StringIO(table.to_csv(), newline="")))
    shown = "'" + name.replace("\r", " ")
    assert rows[1] == [shown, "-2.5"]
    assert rows[2:] == [["age", "1.0"], ["(intercept)", "-1.0"]]


def test_a_column_named_after_a_class_begins_with_a_word_of_the_library() -> None:
    table = Coefficients(("age",), ("=1+1", "b"), np.array([[-2.5], [1.0]]), np.array([-1.0, 1.0]))
    head = next(csv.reader(io.StringIO(table.to_csv(), newline="")))
    assert head == ["feature", *(f"coefficient before row scaling for {name}" for name in ("=1+1", "b"))]
