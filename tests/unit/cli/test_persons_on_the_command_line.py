"""Persons with several rows on the command line: one declaration, and refusals in its own words."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from dpadmm.cli.app import run

SCHEMA = """
person = "id"

[columns.age]
kind = "numeric"
lower = 0
upper = 1

[target]
column = "ill"
kind = "classes"
classes = ["no", "yes"]
"""
PERSONS = 200
BUDGET = ["--epsilon", "1", "--delta", "1e-4"]


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(0)
    ids = np.repeat(np.arange(PERSONS), 1 + rng.poisson(2, PERSONS))
    age = rng.random(len(ids))
    frame = pd.DataFrame({"id": [f"p{each}" for each in ids], "age": age, "ill": np.where(age > 0.5, "yes", "no")})
    frame.to_csv(tmp_path / "t.csv", index=False)
    (tmp_path / "s.toml").write_text(SCHEMA)
    (tmp_path / "rows.toml").write_text(SCHEMA.replace('person = "id"', "") + '\n[columns.id]\nkind = "ignore"\n')
    return tmp_path


def fit(folder, *more, schema="s.toml"):
    where = [str(folder / "t.csv"), "--schema", str(folder / schema), *BUDGET, "--out", str(folder / "m")]
    return ["fit", *where, "--quiet", "--solver", "full-admm", *more]


def plan(folder, *more, schema="s.toml"):
    return ["plan", "--schema", str(folder / schema), *BUDGET, "--solver", "full-admm", "--json", *more]


def test_the_plan_shown_is_that_of_the_fit(folder, capsys):
    assert run(plan(folder, "--persons", str(PERSONS))) == 0
    shown = json.loads(capsys.readouterr().out)
    assert (shown["unit"], shown["persons"]) == ("person", PERSONS)
    assert run(fit(folder)) == 0
    stored = json.loads((folder / "m" / "model.json").read_text())
    assert stored["plan"]["unit"] == "person"
    from dpadmm import load_model

    assert load_model(folder / "m").plan_.digest == shown["digest"]


def test_a_plan_without_a_schema_is_for_persons_if_they_are_counted(capsys):
    asked = ["plan", "--features", "3", *BUDGET, "--json"]
    assert run([*asked, "--persons", "500"]) == 0
    assert json.loads(capsys.readouterr().out)["unit"] == "person"
    assert run([*asked, "--rows", "500"]) == 0
    assert "unit" not in json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(
    ("more", "schema", "words"),
    [
        (["--rows", "200"], "s.toml", "Got --rows for a table of persons"),
        (["--persons", "200"], "rows.toml", "names no column of persons"),
        (["--persons", "199"], "s.toml", "a --persons that differs from the table"),
        (["--solver", "noisy-admm"], "s.toml", "hidden-passes"),
        (["--arithmetic", "exact"], "s.toml", "arithmetic='exact' for a promise to persons"),
    ],
)
def test_what_does_not_fit_together_is_refused(folder, capsys, more, schema, words):
    assert run(fit(folder, *more, schema=schema)) == 2
    assert words in capsys.readouterr().err
    assert not (folder / "m").exists()


def test_a_plan_needs_a_number(folder, capsys):
    assert run(["plan", "--schema", str(folder / "s.toml"), *BUDGET]) == 2
    assert "Got no --persons" in capsys.readouterr().err


def test_the_screen_speaks_of_persons(folder, capsys):
    assert run([*plan(folder, "--persons", "200")[:-3], "--persons", "200"]) == 0
    shown = capsys.readouterr().out
    assert "all persons" in shown
    assert "persons used" in shown
    assert "one person with all their rows" in shown


def test_a_search_states_its_cost_for_persons(folder, capsys):
    where = [str(folder / "t.csv"), "--schema", str(folder / "s.toml"), *BUDGET, "--penalty", "l1"]
    tried = ["--try", "alpha=1e-4,1e-3", "--dry-run"]
    assert run(["tune", *where, *tried]) == 2
    assert "--dry-run without --persons" in capsys.readouterr().err
    assert run(["tune", *where, *tried, "--persons", "200"]) == 0
    assert "160 train, 40 score" in capsys.readouterr().out


def test_a_ledger_keeps_units_apart(folder, capsys):
    place, named = str(folder / "l.db"), ["--dataset", "people", *BUDGET]
    assert run(["ledger", "init", place, *named, "--unit", "person", "--test", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["datasets"][0]["unit"] == "person"
    charged = ["--ledger", place, "--dataset", "people", "--epsilon", "0.1", "--seed", "1"]
    assert run(fit(folder, *charged, schema="rows.toml")) != 0
    assert "protects rows" in capsys.readouterr().err
    assert run(fit(folder, *charged)) == 0
    assert run(["ledger", "show", place]) == 0
    assert "persons" in capsys.readouterr().out


def test_audits_with_canaries_know_single_rows_only(folder, capsys):
    asked = ["audit", "--one-run", str(folder / "t.csv"), "--schema", str(folder / "s.toml"), *BUDGET]
    assert run(asked) == 2
    assert "canaries are single rows" in capsys.readouterr().err
    assert run(["audit", "--solver", "full-admm", "--epsilon", "1", "--unit", "person", "--runs", "200", "--json"]) == 0


def test_a_model_is_used_without_ids(folder, capsys):
    assert run(fit(folder)) == 0
    table = pd.read_csv(folder / "t.csv").drop(columns="id")
    table.to_csv(folder / "new.csv", index=False)
    assert run(["predict", str(folder / "m"), str(folder / "new.csv"), "--out", str(folder / "p.csv")]) == 0
    assert run(["evaluate", str(folder / "m"), str(folder / "t.csv"), "--public-or-test"]) == 0
