"""`dpadmm audit`: keys for programs, words for people, clear refusals."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from dpadmm import load_model
from dpadmm.cli.app import run
from dpadmm.cli.audit_command import SOLVER_RUNS
from dpadmm.declare import recipe
from dpadmm.estimators.loading import checksum
from dpadmm.privacy.arithmetic import Arithmetic
from dpadmm.privacy.plan_facts import restated
from dpadmm.privacy.statement import PrivacyStatement
from dpadmm.solvers.base import SOLVERS
from tests.unit.cli.made_up_tables import SECRET, fit_arguments, tree, write_inputs


def test_json_has_the_documented_keys(capsys):
    assert run(["audit", "--solver", "dp-gd", "--epsilon", "1", "--runs", "400", "--seed", "0", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert {"claimed", "lower_bound", "confidence", "runs", "delta", "solver", "method"} <= set(result)
    assert result["claimed"] == 1.0
    assert result["runs"] == 400
    assert 0 < result["lower_bound"] <= 1
    assert result["refuted"] is False
    assert 0 < result["power"] < 1


@pytest.mark.parametrize("name", list(SOLVERS))
def test_every_solver_can_be_audited(name, capsys):
    assert run(["audit", "-s", name, "-e", "0.5", "-r", "200", "--relation", "replace-one"]) == 0
    shown = capsys.readouterr().out
    assert "claimed" in shown
    assert "no proof" in shown


def test_add_remove(capsys):
    assert run(["audit", "-e", "1", "-r", "200", "--relation", "add-remove", "--json"]) == 0
    assert not json.loads(capsys.readouterr().out)["refuted"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--solver", "magic", "--epsilon", "1"], "one of"),
        (["--epsilon", "-1"], "epsilon > 0"),
        (["--epsilon", "1", "--delta", "0"], "delta > 0"),
        (["--epsilon", "1", "--runs", "5"], "runs"),
        (["--epsilon", "1", "--confidence", "1.5"], "probabilit"),
    ],
)
def test_unusable_options_are_refused(arguments, said, capsys):
    assert run(["audit", *arguments]) != 0
    captured = capsys.readouterr()
    assert said in captured.out + captured.err


SMALL = ("--runs", "200", "--seed", "0")


def fitted(folder, *more):
    write_inputs(folder)
    assert run(fit_arguments(folder, "--steps", "2", *more)) == 0
    return str(folder / "model")


def forge_model(folder, **changes):
    """Change the statement with its checksum, and take away the files that repeat it."""
    words = json.loads((folder / "model.json").read_text())
    del words["checksum"]
    words["privacy"] |= changes
    (folder / "model.json").write_text(json.dumps({**words, "checksum": checksum(words)}))
    for name in ("statement.txt", "statement.json"):
        (folder / name).unlink()


class TestAllSolvers:
    def test_one_table_and_one_picture(self, tmp_path, capsys):
        picture = tmp_path / "audit.svg"
        assert run(["audit", "-s", "all", "-e", "1", *SMALL, "--picture", str(picture)]) == 0
        shown = capsys.readouterr().out
        assert all(name in shown for name in SOLVERS)
        assert "REFUTED" not in shown
        drawn = picture.read_text(encoding="utf-8")
        assert drawn.startswith("<?xml")
        assert all(name in drawn for name in SOLVERS)
        assert len(drawn) < 60_000

    @pytest.mark.slow
    def test_json_is_a_list_of_what_one_solver_gives(self, capsys):
        assert run(["audit", "-s", "all", "-e", "1", *SMALL, "--json"]) == 0
        audits = json.loads(capsys.readouterr().out)["audits"]
        assert [audit["solver"] for audit in audits] == list(SOLVERS)
        assert all({"claimed", "proven", "lower_bound", "power", "detectable_noise"} <= set(audit) for audit in audits)

    @pytest.mark.slow
    def test_a_solver_without_a_proof_is_named_and_left_out(self, capsys):
        asked = ["-e", "1", *SMALL, "--relation", "add-remove"]
        assert run(["audit", "-s", "all", *asked]) == 0
        assert "noisy-admm refuses to train under add-remove" in capsys.readouterr().out
        assert run(["audit", "-s", "all", *asked, "--json"]) == 0
        found = json.loads(capsys.readouterr().out)
        assert found["unproved"] == ["noisy-admm"]
        assert [audit["solver"] for audit in found["audits"]] == [name for name in SOLVERS if name != "noisy-admm"]
        assert run(["audit", "-s", "noisy-admm", *asked]) != 0
        assert "replace-one" in capsys.readouterr().err

    def test_a_picture_needs_a_known_format_and_a_new_name(self, tmp_path, capsys):
        assert run(["audit", "-e", "1", *SMALL, "--picture", str(tmp_path / "audit.gif")]) == 2
        (tmp_path / "audit.png").write_bytes(b"")
        assert run(["audit", "-e", "1", *SMALL, "--picture", str(tmp_path / "audit.png")]) == 4
        assert "exists" in capsys.readouterr().err


class TestModels:
    def test_words_and_keys(self, tmp_path, capsys):
        model = fitted(tmp_path)
        capsys.readouterr()
        assert run(["audit", model, *SMALL]) == 0
        shown = capsys.readouterr().out
        for word in (
            "claimed",
            "proven",
            "lower bound",
            "power",
            "agrees with the recorded plan",
            "docs/proofs",
            "no proof",
        ):
            assert word in shown
        assert run(["audit", model, *SMALL, "--json"]) == 0
        result = json.loads(capsys.readouterr().out)
        assert {"claimed", "lower_bound", "confidence", "runs", "solver", "proven", "power", "relation"} <= set(result)
        assert (result["claimed"], result["solver"], result["refuted"]) == (1.0, "auto", False)

    @pytest.mark.parametrize(
        ("options", "named"),
        [
            ("--arithmetic exact", "moments, gradient"),
            ("--solver noisy-admm", "hidden passes"),
            ("--penalty graph --private-graph 0.3", "feature moment"),
        ],
    )
    def test_every_model_is_attacked(self, tmp_path, options, named, capsys):
        model = fitted(tmp_path, *options.split())
        capsys.readouterr()
        assert run(["audit", model, *SMALL]) == 0
        shown = " ".join(capsys.readouterr().out.split())
        for words in ("claimed", "proven", "agrees with the recorded plan", "attacked", named, "no proof"):
            assert words in shown
        assert run(["audit", model, *SMALL, "--json"]) == 0
        result = json.loads(capsys.readouterr().out)
        assert (result["claimed"], result["runs"], result["confidence"]) == (1.0, 200, 0.999)
        assert 0 <= result["lower_bound"] <= 0.9 < result["proven"] <= 1.0
        assert result["statement_agrees"]
        assert result["no_attack"] is None
        assert any(named in attack for attack in result["attacks"])

    def test_a_model_of_other_defaults_is_attacked_and_the_reason_named(self, tmp_path, capsys, monkeypatch):
        model = fitted(tmp_path, "--solver", "full-admm", "--steps", "2")
        monkeypatch.setattr(recipe, "default_clip", lambda loss, reach: 0.3)
        capsys.readouterr()
        assert run(["audit", model, *SMALL]) == 0
        assert "or its defaults have changed since" in " ".join(capsys.readouterr().out.split())

    def test_searches_are_attacked_too(self, tmp_path, capsys):
        write_inputs(tmp_path)
        fit = [word for word in fit_arguments(tmp_path)[1:] if word != "--quiet"]
        assert run(["tune", *fit, "--solver", "dp-gd", "--steps", "2", "--try", "penalty=none,l2"]) == 0
        model = tmp_path / "model"
        capsys.readouterr()
        assert run(["audit", str(model), *SMALL, "--json"]) == 0
        result = json.loads(capsys.readouterr().out)
        assert (result["claimed"], result["runs"], result["refuted"]) == (1.0, 200, False)
        assert len(result["attacks"]) == 2
        forge_model(model, search=None)
        assert run(["audit", str(model), *SMALL]) == 4
        assert "differ in search" in capsys.readouterr().err

    @staticmethod
    def of_an_earlier_version(folder):
        """Plans of the first versions name no arithmetic: their noise was floating-point."""
        model = Path(fitted(folder))
        loaded = load_model(model)
        plan = replace(loaded.plan_, arithmetic=Arithmetic.FLOATING)
        words = json.loads((model / "model.json").read_text())
        words |= {"plan": plan.to_dict(), "privacy": PrivacyStatement(restated(loaded.privacy_.facts, plan)).to_dict()}
        del words["checksum"]
        (model / "model.json").write_text(json.dumps({**words, "checksum": checksum(words)}))
        for name in ("statement.txt", "statement.json", "plan.json"):
            (model / name).unlink()
        return str(model)

    def test_what_cannot_be_attacked_is_checked_and_named(self, tmp_path, capsys):
        model = self.of_an_earlier_version(tmp_path)
        capsys.readouterr()
        assert run(["audit", model, *SMALL]) == 0
        shown = " ".join(capsys.readouterr().out.split())
        for words in ("claimed", "proven", "agrees with the recorded plan", "no attack was made", "earlier version"):
            assert words in shown
        assert "stands" not in shown
        assert run(["audit", model, *SMALL, "--json"]) == 0
        result = json.loads(capsys.readouterr().out)
        assert (result["claimed"], result["lower_bound"], result["runs"], result["confidence"]) == (1.0, None, 0, 0.999)
        assert 0.9 < result["proven"] <= 1.0
        assert result["statement_agrees"]
        assert "earlier version" in result["no_attack"]

    @pytest.mark.parametrize("options", ["--arithmetic exact", "--solver noisy-admm"])
    def test_and_refused_where_the_statement_lies(self, tmp_path, options, capsys):
        model = Path(fitted(tmp_path, *options.split()))
        forge_model(model, queries=[])
        assert run(["audit", str(model), *SMALL]) == 4
        assert "queries" in capsys.readouterr().err

    def test_no_picture_without_a_bound(self, tmp_path, capsys):
        model, picture = self.of_an_earlier_version(tmp_path), tmp_path / "audit.png"
        assert run(["audit", model, *SMALL, "--picture", str(picture)]) == 2
        assert "earlier version" in capsys.readouterr().err
        assert not picture.exists()

    def test_seeded_models_are_refused(self, tmp_path, capsys):
        model = fitted(tmp_path, "--seed", "1")
        assert run(["audit", model, *SMALL]) == 3
        assert "seeded" in capsys.readouterr().err

    def test_foreign_folders_are_refused(self, tmp_path, capsys):
        assert run(["audit", str(tmp_path), *SMALL]) == 4
        assert "holds no model" in capsys.readouterr().err
        (tmp_path / "model.json").write_text("{}")
        assert run(["audit", str(tmp_path), *SMALL]) == 4

    def test_a_file_is_told_that_a_folder_is_expected(self, tmp_path, capsys):
        (tmp_path / "people.csv").write_text("age,ill\n1,no\n")
        assert run(["audit", str(tmp_path / "people.csv"), *SMALL]) == 4
        assert "people.csv, which is a file. Expected the folder of a saved model" in capsys.readouterr().err

    def test_a_statement_of_another_plan_is_refused(self, tmp_path, capsys):
        model = Path(fitted(tmp_path))
        words = json.loads((model / "model.json").read_text())
        words["privacy"]["plan_digest"] = "0" * 64
        words["checksum"] = checksum({key: value for key, value in words.items() if key != "checksum"})
        (model / "model.json").write_text(json.dumps(words))
        assert run(["audit", str(model), *SMALL]) == 4
        assert "another plan" in capsys.readouterr().err

    def test_a_statement_that_promises_more_than_its_plan_is_refused(self, tmp_path, capsys):
        model = Path(fitted(tmp_path))
        words = json.loads((model / "model.json").read_text())
        words["privacy"]["epsilon"] = 0.1
        words["checksum"] = checksum({key: value for key, value in words.items() if key != "checksum"})
        (model / "model.json").write_text(json.dumps(words))
        assert run(["audit", str(model), *SMALL]) == 4
        assert "statement" in capsys.readouterr().err

    def test_a_model_has_its_own_claim(self, tmp_path, capsys):
        assert run(["audit", str(tmp_path), "--epsilon", "1"]) == 2
        assert "--epsilon with a model folder" in capsys.readouterr().err


class TestOneRun:
    @staticmethod
    def arguments(folder, *more):
        write_inputs(folder)
        table = ["--one-run", str(folder / "train.csv"), "--schema", str(folder / "schema.toml"), "--target", "outcome"]
        return ["audit", *table, "--epsilon", "1", "--delta", "1e-5", "--canaries", "50", *more]

    def test_words_and_keys(self, tmp_path, capsys):
        assert run(self.arguments(tmp_path)) == 0
        shown = capsys.readouterr()
        assert "canaries" in shown.out
        assert "spent its whole budget" in shown.out
        assert SECRET not in shown.out + shown.err
        assert run(self.arguments(tmp_path, "--json", "--seed", "0", "--guesses", "40")) == 0
        result = json.loads(capsys.readouterr().out)
        assert (result["runs"], result["canaries"], result["guesses"], result["refuted"]) == (1, 50, 40, False)
        assert {"claimed", "lower_bound", "confidence", "correct", "solver", "power"} <= set(result)
        assert result["seeded"] is True
        assert tree(tmp_path) == {"train.csv", "schema.toml"}

    def test_a_seeded_one_is_not_private(self, tmp_path, capsys):
        assert run(self.arguments(tmp_path, "--seed", "0")) == 0
        assert "this result is NOT private. Do not publish it." in capsys.readouterr().out
        assert run(self.arguments(tmp_path)) == 0
        assert "NOT private" not in capsys.readouterr().out
        assert run(self.arguments(tmp_path, "--json")) == 0
        assert json.loads(capsys.readouterr().out)["seeded"] is False

    def test_the_ledger_is_charged_and_may_refuse(self, tmp_path, capsys):
        book = str(tmp_path / "book.db")
        limit = ["--dataset", "people", "--epsilon", "1.1", "--delta", "1e-5"]
        assert run(["ledger", "init", book, *limit]) == 0
        charged = self.arguments(tmp_path, "--ledger", book, "--dataset", "people")
        assert run(charged) == 0
        assert "charged to the ledger" in capsys.readouterr().out
        assert run(charged) == 3

    @pytest.mark.parametrize(
        ("more", "said"),
        [
            (["--runs", "500"], "--runs with --one-run"),
            (["--solver", "all"], "one solver"),
            (["--guesses", "60"], "guesses"),
            (["--rows", "7"], "differs from the table"),
        ],
    )
    def test_what_does_not_fit_is_refused(self, tmp_path, more, said, capsys):
        assert run(self.arguments(tmp_path, *more)) == 2
        assert said in capsys.readouterr().err

    def test_it_needs_a_schema_and_a_delta(self, tmp_path, capsys):
        assert run(["audit", "--one-run", str(tmp_path / "train.csv"), "--epsilon", "1"]) == 2
        assert "--schema or --delta" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "--epsilon"),
        ([], "the folder of a model"),
        ([], "--one-run TABLE"),
        (["-e", "1", "--ledger", "book.db"], "--ledger with no --one-run"),
        (["-e", "1", "--row-norm", "2", "--model", "svm"], "--model, --row-norm with no --one-run"),
        (["model", "--relation", "add-remove"], "--relation with a model folder"),
        (["model", "--no-intercept"], "--no-intercept with a model folder"),
    ],
)
def test_half_a_command_is_refused(arguments, said, capsys):
    assert run(["audit", *arguments]) == 2
    assert said in capsys.readouterr().err


def test_help_names_solvers_and_the_number_of_runs(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    assert run(["audit", "--help"]) == 0
    shown = capsys.readouterr().out
    assert all(name in shown for name in SOLVERS)
    assert str(SOLVER_RUNS) in shown.split("--runs ")[-1].split("--confidence")[0]
