"""`dpadmm audit`: keys for programs, words for people, clear refusals."""

from __future__ import annotations

import json

import pytest

from dpadmm.cli.app import run
from dpadmm.solvers.base import SOLVERS


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
