"""What public numbers say against a fit is told before the charge, decided by no cell, and moot once declared."""

from __future__ import annotations

import json
import math
import os
import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpadmm import (
    DPLinearRegression,
    DPLinearSVC,
    DPLogisticRegression,
    DPSearchCV,
    Ledger,
    PrivateQuantileClipper,
    load_model,
)
from dpadmm.cli.app import run
from dpadmm.declare.remarks import DEFAULT_ALPHA, remarks_on
from dpadmm.errors import (
    PublicWarning,
    TooLargeRowNorm,
    TooSmallBudget,
    UndeclaredBounds,
    UndeclaredTargetBounds,
    UnusedSetting,
)
from dpadmm.privacy.budget import Budget
from tests.unit.cli.made_up_tables import fit_arguments, write_inputs

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (600, 3))
Y = (X[:, 0] > 0).astype(int)
FAST: dict[str, Any] = {"solver": "dp-gd", "steps": 2}


def warned(model: Any, rows: int = 600, table: Any = X) -> list[type[Warning]]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(table[:rows], Y[:rows])
    return [each.category for each in caught if issubclass(each.category, PublicWarning)]


def classifier(**more: Any) -> DPLogisticRegression:
    return DPLogisticRegression(1.0, 1e-6, **{"classes": [0, 1], **FAST, **more})


def regression(**more: Any) -> DPLinearRegression:
    return DPLinearRegression(1.0, 1e-6, **{"row_norm": 2.0, **FAST, **more})


@pytest.mark.parametrize("kind", [DPLogisticRegression, DPLinearSVC])
def test_features_without_bounds(kind: Any) -> None:
    assert warned(kind(1.0, 1e-6, classes=[0, 1], **FAST)) == [UndeclaredBounds]


@pytest.mark.parametrize(
    "declared",
    [
        {"bounds": (-1, 1)},
        {"bounds": (np.full(3, -1.0), np.ones(3))},
        {"row_norm": 1.0},
        {"row_norm": 2.0},
        {"bounds": PrivateQuantileClipper((-2, 2), share=0.2)},
    ],
)
def test_a_declaration_makes_it_moot(declared: dict[str, Any]) -> None:
    assert warned(classifier(**declared)) == []


def test_targets_without_bounds() -> None:
    assert warned(regression()) == [UndeclaredTargetBounds]
    assert warned(regression(target_bounds=(-1, 1))) == []
    assert warned(regression(row_norm=None)) == [UndeclaredBounds, UndeclaredTargetBounds]


def test_a_budget_too_small() -> None:
    assert warned(classifier(row_norm=1.0), rows=20) == [TooSmallBudget]
    (remark,) = remarks_on(Budget(1.0, 1e-6), 20)
    assert remarks_on(Budget(1.0, 1e-6), remark.facts["rows"]) == ()
    assert remarks_on(Budget(1.0, 1e-6), remark.facts["rows"] - 1) != ()
    assert f"about {remark.facts['rows']} rows" in remark.text


def test_rows_are_advised_only_where_delta_allows_them() -> None:
    """At this delta that many rows would be refused: it must stay below one over their number."""
    hopeless = Budget(1e-4, 1e-4)
    (remark,) = remarks_on(hopeless, 600)
    assert "rows do not help" in remark.text
    assert "larger epsilon" in remark.text
    assert "it takes about" not in remark.text
    for epsilon in (1e-4, 1e-3, 1e-2, 0.1):
        for delta in (1e-4, 1e-5, 1e-6, 1e-8):
            for remark in remarks_on(Budget(epsilon, delta), 50):
                if remark.facts["rows"] is not None:
                    Budget(epsilon, delta).require_meaningful(remark.facts["rows"])


@pytest.mark.parametrize(
    ("given", "remarks"),
    [
        ({"alpha": 0.1}, [UnusedSetting]),
        ({"alpha": DEFAULT_ALPHA}, []),
        ({"alpha": 0.1, "penalty": "l2"}, []),
        ({"batch_size": 20}, [UnusedSetting]),
        ({"batch_size": 20, "solver": "auto", "steps": None}, [UnusedSetting]),
        ({"batch_size": 20, "solver": "dp-sadmm"}, []),
        ({"bounds": (-1, 1), "row_norm": 10.0}, [TooLargeRowNorm]),
        ({"bounds": (-1, 1), "row_norm": 2.01}, []),
        ({"bounds": (-1, 1), "row_norm": 2.01, "fit_intercept": False}, [TooLargeRowNorm]),
    ],
)
def test_settings_that_do_nothing_or_add_noise(given: dict[str, Any], remarks: list[type[Warning]]) -> None:
    assert warned(classifier(**{"row_norm": 1.0, **given})) == remarks


def test_a_setting_that_any_trial_of_a_search_uses_is_not_remarked() -> None:
    for penalties, remarks in ((["none", "l2"], []), (["none"], [UnusedSetting])):
        search = DPSearchCV(classifier(row_norm=1.0, alpha=0.1), {"penalty": penalties}, mean_trials=2.0)
        assert warned(search) == remarks


def test_the_default_of_alpha_is_that_of_the_estimators() -> None:
    assert {kind().alpha for kind in (DPLogisticRegression, DPLinearSVC, DPLinearRegression)} == {DEFAULT_ALPHA}


def test_the_meaning_of_nothing_declared_has_not_changed() -> None:
    plain, said = (classifier(random_state=0, row_norm=norm).fit(X, Y) for norm in (None, 1.0))
    np.testing.assert_array_equal(plain.coef_, said.coef_)
    assert plain.plan_.digest == said.plan_.digest
    plain, said = (regression(random_state=0, target_bounds=bounds).fit(X, Y) for bounds in (None, (-1, 1)))
    np.testing.assert_array_equal(plain.coef_, said.coef_)


def test_models_are_stored_with_it(tmp_path: Path) -> None:
    model = regression(row_norm=None, random_state=0).fit(X, Y)
    loaded = load_model(model.save(tmp_path / "m"))
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    assert loaded.row_norm is None
    assert loaded.target_bounds is None


def test_no_cell_decides() -> None:
    tables = (X, np.zeros_like(X), np.full_like(X, 1e12), np.eye(3)[np.arange(600) % 3])
    assert len({tuple(warned(classifier(), table=table)) for table in tables}) == 1


def test_it_comes_before_the_charge(tmp_path: Path) -> None:
    """As an error it ends the fit with nothing spent; as a warning it comes while nothing is."""
    ledger = Ledger.create(tmp_path / "ledger.db")
    ledger.set_limit("people", Budget(5.0, 1e-5), owner="Ada")
    charged = {"ledger": ledger, "dataset": "people"}
    models = [classifier(**charged), regression(**charged)]
    models.append(DPSearchCV(classifier(penalty="l1", **charged), {"alpha": [1e-4]}, mean_trials=2.0))
    before = ledger.head
    for model in models:
        with warnings.catch_warnings():
            warnings.simplefilter("error", PublicWarning)
            with pytest.raises(PublicWarning):
                model.fit(X, Y)
        assert ledger.head == before
        assert not hasattr(model, "coef_")


def test_a_search_warns_once_whatever_its_trials_do() -> None:
    said = set()
    for seed in range(4):
        model = classifier(penalty="l1", random_state=seed)
        said.add(tuple(warned(DPSearchCV(model, {"alpha": [1e-4, 1e-3]}, mean_trials=6.0))))
    assert said == {(UndeclaredBounds,)}
    search = DPSearchCV(classifier(), {"bounds": [(-1, 1), None]}, mean_trials=2.0)
    assert warned(search) == [UndeclaredBounds]
    assert warned(DPSearchCV(classifier(), {"row_norm": [1.0, 2.0]}, mean_trials=2.0)) == []


def test_warnings_as_errors_change_no_trial() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", PublicWarning)
        with pytest.raises(UndeclaredBounds):
            DPSearchCV(classifier(penalty="l1"), {"alpha": [1e-4]}, mean_trials=2.0).fit(X, Y)
        search = DPSearchCV(classifier(row_norm=1.0), {"bounds": [(-1, 1)]}, mean_trials=2.0).fit(X, Y)
    assert search.best_score_ is not None


class TestCommands:
    def test_the_schema_declares_the_ranges(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        write_inputs(tmp_path)
        assert run([*fit_arguments(tmp_path), "--json"]) == 0
        told = capsys.readouterr()
        assert json.loads(told.out)["warnings"] == []
        assert told.err == ""

    @pytest.mark.parametrize("known", [[], ["--rows", "400"]])
    def test_fit(self, tmp_path: Path, capsys: pytest.CaptureFixture[str], known: list[str]) -> None:
        write_inputs(tmp_path)
        assert run([*fit_arguments(tmp_path), "--epsilon", "0.003", *known, "--json"]) == 0
        told = capsys.readouterr()
        (warning,) = json.loads(told.out)["warnings"]
        assert warning["kind"] == "too-small-budget"
        assert told.err == f"warning: {warning['text']}\n"

    def test_plan(self, capsys: pytest.CaptureFixture[str]) -> None:
        small = ["plan", "--rows", "20", "--features", "3", "--epsilon", "0.1", "--delta", "1e-6"]
        assert run([*small, "--json"]) == 0
        (warning,) = json.loads(capsys.readouterr().out)["warnings"]
        assert warning["kind"] == "too-small-budget"
        assert run(small) == 0
        assert "too small for the number of rows" in capsys.readouterr().out
        assert run([*small, "--rows", "50000", "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["warnings"] == []

    def test_tune(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        write_inputs(tmp_path)
        changed = ["tune" if word == "fit" else word for word in fit_arguments(tmp_path)]
        asked = [*changed, "--try", "penalty=none,l2", "--mean-trials", "2", "--epsilon", "0.01", "--json"]
        assert run([*asked, "--rows", "400", "--dry-run"]) == 0
        dry = json.loads(capsys.readouterr().out)["warnings"]
        assert run(asked) == 0
        told = capsys.readouterr()
        assert json.loads(told.out)["warnings"] == dry
        assert [warning["kind"] for warning in dry] == ["too-small-budget"]
        assert told.err.count("warning: ") == 1


def test_a_target_of_another_range_is_ruined_without_bounds_and_is_not_with_them() -> None:
    rng = np.random.default_rng(0)
    rows = rng.uniform(-1, 1, (20_000, 3))
    pay = 40 + 20 * rows @ [1.0, -0.5, 0.3] + rng.normal(0, 2, len(rows))
    good, bad = (
        DPLinearRegression(1.0, 1e-6, row_norm=2.0, target_bounds=bounds, random_state=0).fit(rows, pay)
        for bounds in ((0, 80), None)
    )
    assert good.score(rows, pay) > 0.9
    assert bad.score(rows, pay) < -1


def test_raw_columns_are_worse_without_bounds() -> None:
    folder = os.environ.get("DPADMM_DATA")
    if folder is None or not (Path(folder) / "adult.npz").is_file():
        pytest.skip("adult is not here: point DPADMM_DATA at it")
    adult = np.load(Path(folder) / "adult.npz")
    bounds = (adult["num_lo"], adult["num_hi"])
    accuracy = [
        DPLogisticRegression(1.0, 1e-5, classes=[-1, 1], bounds=declared, random_state=0)
        .fit(adult["Xnum_raw"], adult["y"])
        .score(adult["Xnum_raw_test"], adult["ytest"])
        for declared in (None, bounds)
    ]
    assert accuracy[1] > accuracy[0] + 0.01


@pytest.mark.parametrize("search", [False, True])
def test_a_warning_names_the_line_of_the_user(search):
    X, y = np.random.default_rng(0).normal(size=(400, 3)), np.tile([0, 1], 200)
    model = DPLogisticRegression(classes=[0, 1], random_state=0)
    if search:
        model = DPSearchCV(model, {"alpha": [1e-4]})
    with pytest.warns(UndeclaredBounds) as given:
        model.fit(X, y)
    assert {warning.filename for warning in given} == {__file__}


def test_a_warning_about_a_column_of_labels_names_the_line_of_the_user():
    X, y = np.random.default_rng(0).uniform(size=(400, 3)), np.tile([0, 1], 200)
    with pytest.warns(UserWarning, match="column-vector") as given:
        DPLogisticRegression(classes=[0, 1], bounds=(0, 1), random_state=0).fit(X, y.reshape(-1, 1))
    assert {warning.filename for warning in given} == {__file__}


@pytest.mark.parametrize("features", [1, 2, 3, 5, 7, 11, 1001])
def test_the_longest_row_is_printed_no_shorter_than_it_is(features: int) -> None:
    """The root of two printed as 1.414 says of rows of length 1.41421 that there are none."""
    settings = [{"bounds": (-1, 1), "row_norm": 1e3}]
    (remark,) = remarks_on(Budget(1.0, 1e-9), 10**6, settings, features=features)
    said = re.findall(r"no row is longer than ([0-9.]+)\.|row_norm=([0-9.]+) or less", remark.text)
    assert all(math.sqrt(features) <= float(a or b) <= math.sqrt(features) * (1 + 1e-5) for a, b in said)
    assert len(said) == 2
