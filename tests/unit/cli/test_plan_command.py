"""`dpadmm plan`: keys, golden numbers, refusals."""

from __future__ import annotations

import json

import pytest

from dpadmm.cli.app import run

BASE = ["plan", "--rows", "48842", "--features", "105", "--epsilon", "1", "--delta", "1e-5"]
KEYS = {"epsilon", "delta", "relation", "accountant", "noise_std", "noise_multiplier", "steps", "proof_status"}


def planned(capsys: pytest.CaptureFixture[str], *more: str) -> dict[str, object]:
    assert run([*BASE, *more, "--json"]) == 0
    summary: dict[str, object] = json.loads(capsys.readouterr().out)
    return summary


@pytest.mark.parametrize(
    ("options", "noise_std"),
    [
        ("--solver dp-sadmm --sampler fixed --batch-size 221 --steps 2210 --accountant pld", 0.0109),
        ("--solver dp-sadmm --sampler fixed --batch-size 221 --steps 2210 --accountant rdp", 0.0171),
        ("--solver dp-sadmm --sampler poisson --batch-size 221 --steps 2210 --accountant pld", 0.0073),
        ("--solver dp-sadmm --sampler truncated-poisson --batch-size 221 --steps 2210", 0.0073),
        ("--solver dp-sadmm --sampler full --steps 2210", 0.0072),
        ("--solver full-admm --sampler full --steps 2210", 0.0072),
        ("--solver dp-gd --sampler full --steps 2210 --accountant pld", 0.0072),
    ],
)
def test_golden_noise(capsys: pytest.CaptureFixture[str], options: str, noise_std: float) -> None:
    summary = planned(capsys, *options.split(), "--relation", "replace-one")
    assert summary["noise_std"] == pytest.approx(noise_std, rel=0.02)
    assert summary["steps"] == 2210
    assert summary["relation"] == "replace-one"


def test_keys_come_first_and_are_plain(capsys: pytest.CaptureFixture[str]) -> None:
    summary = planned(capsys)
    assert set(list(summary)[: len(KEYS)]) == KEYS
    assert isinstance(summary["steps"], int)
    assert isinstance(summary["proof_status"], str)
    assert 0.99 <= float(str(summary["epsilon_achieved"])) <= 1.0


@pytest.mark.parametrize("name", ["granular", "exact"])
def test_the_plan_names_its_arithmetic(capsys: pytest.CaptureFixture[str], name: str) -> None:
    assert planned(capsys, "--arithmetic", name)["arithmetic"] == name
    assert run([*BASE, "--arithmetic", name]) == 0
    assert name in capsys.readouterr().out


def test_unknown_arithmetic_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*BASE, "--arithmetic", "float"]) != 0
    assert "granular" in capsys.readouterr().err


@pytest.mark.parametrize("solver", ["full-admm", "dp-sadmm", "dp-vradmm", "ssadmm", "mpadmm", "dp-sgd", "dp-gd"])
@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
def test_every_solver_has_a_plan(capsys: pytest.CaptureFixture[str], solver: str, relation: str) -> None:
    summary = planned(capsys, "--solver", solver, "--relation", relation)
    assert summary["solver"] == solver
    assert summary["relation"] == relation


def test_several_queries_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    summary = planned(capsys, "--solver", "dp-vradmm", "--classes", "5")
    queries = summary["queries"]
    assert isinstance(queries, list)
    assert [query["kind"] for query in queries] == ["snapshot", "difference"]
    assert summary["noise_std"] == queries[0]["noise_std"]


def test_hidden_passes_release_once(capsys: pytest.CaptureFixture[str]) -> None:
    hidden = ["--solver", "noisy-admm", "--steps", "10"]
    summary = planned(capsys, *hidden)
    assert (summary["steps"], summary["releases"]) == (10, 1)
    assert run([*BASE, *hidden]) == 0
    shown = capsys.readouterr().out
    assert "10 passes, one release" in shown
    coupling = next(query["passage"]["coupling"] for query in summary["queries"])
    assert f"{coupling:.3g}; step size times penalty parameter" in shown


def test_table_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*BASE, "--solver", "dp-vradmm"]) == 0
    shown = capsys.readouterr().out
    assert "\x1b" not in shown
    for words in ("ε = 1, δ = 1e-05, replace-one", "snapshot", "difference", "truncated-poisson"):
        assert words in shown


@pytest.mark.parametrize(
    ("options", "code", "word"),
    [
        ("--epsilon 0", 2, "epsilon"),
        ("--epsilon -1", 2, "epsilon"),
        ("--epsilon nan", 2, "epsilon"),
        ("--epsilon inf", 2, "epsilon"),
        ("--epsilon many", 2, "--epsilon"),
        ("--delta 0", 2, "delta"),
        ("--delta 1", 2, "delta"),
        ("--delta 3e-5", 2, "delta < 1/n"),
        ("--relation neighbours", 2, "replace-one"),
        ("--solver magic", 2, "full-admm"),
        ("--solver dp-sadmm --sampler magic", 2, "truncated-poisson"),
        ("--solver dp-sadmm --sampler shuffle", 3, "shuffled"),
        ("--solver dp-sadmm --accountant magic", 2, "pld"),
        ("--solver dp-sadmm --accountant gaussian", 3, "full-data"),
        ("--solver dp-sadmm --sampler fixed --relation add-remove", 3, "replace-one"),
        ("--solver dp-sadmm --batch-size 50000", 2, "batch_size"),
        ("--solver full-admm --sampler poisson", 2, "mini-batch"),
        ("--solver dp-sadmm --epsilon 1000", 3, "a smaller epsilon"),
        ("--steps 0", 2, "--steps"),
        ("--rows 0", 2, "--rows"),
        ("--stepz 3", 2, "--stepz"),
    ],
)
def test_refusals(capsys: pytest.CaptureFixture[str], options: str, code: int, word: str) -> None:
    arguments = [*BASE, *options.split()]
    assert run(arguments) == code
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith(("error: Got ", "error: Invalid value for ", "error: No such option "))
    assert shown.err.count("\n") == 1
    assert word in shown.err
    assert run([*arguments, "--json"]) == code
    shown = capsys.readouterr()
    assert shown.err == ""
    assert json.loads(shown.out)["error"]["exit_code"] == code
