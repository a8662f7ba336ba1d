"""`dpadmm ledger` and `dpadmm fit --ledger`: what they print, what they refuse, and with which exit code."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing

import numpy as np
import pandas as pd
import pytest

from dpadmm import DPLogisticRegression, Ledger, load_model
from dpadmm.cli.app import run
from dpadmm.errors import FileProblem
from dpadmm.estimators.loading import checksum
from dpadmm.privacy.ledger import verify

SCHEMA = """
[columns.age]
kind = "numeric"
lower = 0
upper = 100

[target]
column = "ill"
kind = "classes"
classes = ["no", "yes"]
"""
LIMIT = ["--dataset", "census", "--epsilon", "1", "--delta", "1e-5", "--owner", "Ada"]


@pytest.fixture
def path(tmp_path):
    assert run(["ledger", "init", str(tmp_path / "ledger.db"), *LIMIT]) == 0
    return tmp_path / "ledger.db"


@pytest.fixture
def trained(path, tmp_path, capsys):
    X = np.random.default_rng(0).uniform(-1, 1, (400, 3))
    model = DPLogisticRegression(0.3, 1e-6, classes=[0, 1], ledger=path, dataset="census")
    model.fit(X, (X[:, 0] > 0).astype(int)).save(tmp_path / "model")
    capsys.readouterr()
    return path


def said(capsys) -> dict:
    return json.loads(capsys.readouterr().out)


def test_init_show_limit_verify_export_as_json(tmp_path, capsys):
    place = str(tmp_path / "ledger.db")
    assert run(["ledger", "init", place, "--json"]) == 0
    assert said(capsys)["datasets"] == []
    assert run(["ledger", "limit", place, *LIMIT, "--json"]) == 0
    (account,) = said(capsys)["datasets"]
    assert account["limit"] == {"epsilon": 1.0, "delta": 1e-5}
    assert account["spent"] == {"epsilon": 0.0, "delta": 0.0}
    assert run(["ledger", "show", place, "--json"]) == 0
    shown = said(capsys)
    assert [entry["kind"] for entry in shown["entries"]] == ["create", "limit"]
    assert run(["ledger", "verify", place, "--head", shown["head"], "--json"]) == 0
    assert said(capsys) == {"ok": True, "place": place, "entries": 2, "head": shown["head"], "problems": []}
    assert run(["ledger", "export", place, "--json"]) == 0
    assert said(capsys) == shown
    assert run(["ledger", "export", place, "--out", str(tmp_path / "copy.jsonl")]) == 0
    lines = (tmp_path / "copy.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == shown["entries"]
    assert capsys.readouterr().out == f"Wrote {tmp_path / 'copy.jsonl'}.\n"


def test_show_has_a_table_and_a_picture(trained, tmp_path, capsys):
    picture = tmp_path / "spending.png"
    assert run(["ledger", "show", str(trained), "--picture", str(picture)]) == 0
    text = capsys.readouterr().out
    for word in ("census", "Ada", "committed", "secret", "0.3, 1e-06", "Head: 4:", f"Wrote {picture}."):
        assert word in text
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert run(["ledger", "show", str(trained), "--picture", str(picture)]) == 4


def test_the_picture_of_an_empty_ledger_can_be_drawn(tmp_path, path, capsys):
    assert run(["ledger", "show", str(path), "--picture", str(tmp_path / "spending.png")]) == 0


def test_verify_finds_a_flipped_byte(trained, capsys):
    raw = bytearray(trained.read_bytes())
    raw[len(raw) // 2] ^= 1
    trained.write_bytes(raw)
    assert run(["ledger", "verify", str(trained), "--json"]) == 4
    shown = said(capsys)
    assert not shown["ok"]
    assert shown["problems"]
    assert run(["ledger", "verify", str(trained)]) == 4


def test_verify_finds_the_model_that_paid_and_one_that_did_not(trained, tmp_path, capsys):
    assert run(["ledger", "verify", str(trained), "--model", str(tmp_path / "model")]) == 0
    assert f"{tmp_path / 'model'}: this ledger holds its finished charge" in capsys.readouterr().out
    X = np.random.default_rng(0).uniform(-1, 1, (400, 3))
    DPLogisticRegression(0.3, 1e-6, classes=[0, 1]).fit(X, (X[:, 0] > 0).astype(int)).save(tmp_path / "unpaid")
    assert run(["ledger", "verify", str(trained), "--model", str(tmp_path / "unpaid")]) == 4
    said = capsys.readouterr().out
    assert "no finished charge" in said
    assert "holds its finished charge" not in said


def test_a_statement_that_does_not_match_its_model_is_refused(trained, tmp_path, capsys):
    words = tmp_path / "model" / "model.json"
    words.write_text(words.read_text().replace('"epsilon": 0.3', '"epsilon": 0.1'))
    assert run(["ledger", "verify", str(trained), "--model", str(tmp_path / "model"), "--json"]) == 4
    assert "corrupt" in said(capsys)["error"]["message"]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        (("privacy", "plan_digest"), "0" * 64),
        (("privacy", "epsilon"), 0.1),
        (("privacy", "delta"), 1e-9),
        (("privacy", "epsilon_achieved"), 0.1),
        (("privacy", "relation"), "add-remove"),
        (("plan", "epsilon"), 0.2),
    ],
    ids=lambda value: ".".join(value) if isinstance(value, tuple) else "",
)
def test_a_statement_of_another_plan_is_refused_even_with_a_checksum_made_anew(trained, tmp_path, capsys, field, value):
    words = tmp_path / "model" / "model.json"
    described = json.loads(words.read_text())
    described[field[0]][field[1]] = value
    described.pop("checksum")
    words.write_text(json.dumps({**described, "checksum": checksum(described)}))
    with pytest.raises(FileProblem, match="speaks of another plan"):
        load_model(tmp_path / "model")
    for command in (["ledger", "verify", str(trained), "--model"], ["statement"]):
        assert run([*command, str(tmp_path / "model"), "--json"]) == 4
        assert "another plan" in said(capsys)["error"]["message"]
    assert verify(trained).ok


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["show", "none.db"], 4, "ledger init"),
        (["verify", "schema.toml"], 4, "not a ledger"),
        (["init", "ledger.db"], 4, "dpadmm ledger limit PATH --dataset NAME"),
        (["init", "schema.toml"], 4, "which exists"),
        (["limit", "ledger.db", "--epsilon", "2"], 2, "all three"),
        (["limit", "ledger.db", "--dataset", "x", "--epsilon", "0", "--delta", "1e-5"], 2, "epsilon"),
        (["limit", "ledger.db", *LIMIT[:-1], "Eve"], 2, "'Ada' declared"),
        (["limit", "ledger.db", *LIMIT[:2], "--epsilon", ".1", *LIMIT[4:]], 2, "what is spent"),
        (["verify", "ledger.db", "--head", "5"], 2, "number:hash"),
        (["verify", "ledger.db", "--model", "nowhere"], 4, "holds no model"),
    ],
)  # fmt: skip
def test_bad_input(trained, tmp_path, monkeypatch, capsys, arguments, code, words):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "schema.toml").write_text(SCHEMA)
    before = Ledger(trained).head
    assert run(["ledger", *arguments]) == code
    assert words in capsys.readouterr().err
    assert run(["ledger", *arguments, "--json"]) == code
    assert words in said(capsys)["error"]["message"]
    assert Ledger(trained).head == before


class TestFit:
    @pytest.fixture
    def arguments(self, path, tmp_path):
        rows = np.random.default_rng(0)
        age = rows.uniform(0, 100, 500)
        frame = pd.DataFrame({"age": age, "ill": np.where(age > 50, "yes", "no")})
        frame.to_csv(tmp_path / "people.csv", index=False)
        (tmp_path / "schema.toml").write_text(SCHEMA)
        common = ["fit", str(tmp_path / "people.csv"), "--schema", str(tmp_path / "schema.toml"), "--quiet"]
        common += ["--delta", "1e-6", "--out", str(tmp_path / "model"), "--force"]
        return [*common, "--ledger", str(path), "--dataset", "census"]

    def test_a_fit_is_charged_and_found_again(self, arguments, path, tmp_path):
        assert run([*arguments, "--epsilon", "0.5"]) == 0
        assert run(["ledger", "verify", str(path), "--model", str(tmp_path / "model")]) == 0

    def test_a_fit_says_what_it_was_charged_to_and_not_where(self, arguments, path, tmp_path, capsys):
        capsys.readouterr()
        assert run([*(word for word in arguments if word != "--quiet"), "--epsilon", "0.5"]) == 0
        shown = capsys.readouterr().out
        assert "charged to" in shown
        assert "census" in shown
        assert path.name not in shown

    def test_a_fit_beyond_the_limit_is_refused_before_the_table_is_opened(self, arguments, path, tmp_path, capsys):
        (tmp_path / "people.csv").unlink()
        for more in (["--epsilon", "2"], ["--epsilon", "2", "--rows", "500"]):
            assert run([*arguments, *more]) == 3
            assert "Nothing was charged" in capsys.readouterr().err
        assert run([*arguments, "--epsilon", "0.5", "--seed", "1"]) == 3
        assert run([*arguments, "--epsilon", "0.5"]) == 4
        assert Ledger(path).account("census").fits == ()

    def test_a_missing_name_is_refused_and_nothing_is_lost(self, arguments, path, capsys):
        before = Ledger(path).head
        assert run([*arguments[:-2], "--epsilon", "0.5"]) == 2
        assert "--dataset NAME" in capsys.readouterr().err
        assert Ledger(path).head == before

    @pytest.mark.parametrize("made", ["newer", "foreign"])
    def test_a_ledger_of_another_kind_is_refused_before_the_table_is_opened(
        self, arguments, path, tmp_path, capsys, made
    ):
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("PRAGMA user_version = 2")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        if made == "foreign":
            path.write_text("a,b\n1,2\n")
        before = path.read_bytes()
        (tmp_path / "people.csv").unlink()
        assert run([*arguments, "--epsilon", "0.5"]) == 4
        assert ("newer dpadmm" if made == "newer" else "not a ledger") in capsys.readouterr().err
        assert path.read_bytes() == before

    def test_an_unknown_data_set_is_refused(self, arguments, capsys):
        assert run([*arguments[:-1], "cenus", "--epsilon", "0.5"]) == 2
        assert "does not hold" in capsys.readouterr().err
