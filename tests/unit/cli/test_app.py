"""The program as a whole: help, version, exit codes, interruption, unexpected problems, and the demo."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from dpadmm import __version__, load_model
from dpadmm.cli import app as program
from dpadmm.cli.model_folder import MODEL_FILES
from dpadmm.datasets import make_demo
from dpadmm.scoring import SCORE_FILES
from tests.unit.cli.made_up_tables import SECRET, fit_arguments, tree, write_inputs

COMMANDS = ("demo", "plan", "schema", "check", "fit", "tune", "predict", "evaluate", "statement", "ledger", "version")
PLAN = ["plan", "--rows", "1000", "--features", "5", "--epsilon", "1", "--delta", "1e-5"]
PROGRAM = [sys.executable, "-m", "dpadmm"]


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (["--version"], ["version"]):
        assert program.run(arguments) == 0
        assert capsys.readouterr().out == f"dpadmm {__version__}\n"
    assert program.run(["version", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"version": __version__}


def test_help_names_exit_codes_and_gives_examples(capsys: pytest.CaptureFixture[str]) -> None:
    assert program.run(["--help"]) == 0
    overview = capsys.readouterr().out
    assert all(name in overview for name in (*COMMANDS, "130 interrupted", "--debug"))
    for name in COMMANDS:
        assert program.run([name, "--help"]) == 0
        text = capsys.readouterr().out
        assert "Exit codes" in text
        assert f"dpadmm {name}" in text
        assert "Examples" in text or name == "version"


@pytest.mark.parametrize("arguments", [["magic"], ["plan"], ["--magic"], ["plan", "--rows", "many"]])
def test_usage_errors(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert program.run(arguments) == 2
    assert "--help` lists the " in capsys.readouterr().err
    assert program.run([*arguments, "--json"]) == 2
    assert json.loads(capsys.readouterr().out)["error"]["type"] == "UsageError"


def test_a_command_that_is_none_and_a_group_without_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert program.run(["ft"]) == 2
    assert "No such command 'ft'. Did you mean 'fit'? `dpadmm --help` lists the commands." in capsys.readouterr().err
    assert program.run(["ledger"]) == 2
    shown = capsys.readouterr()
    assert "export" in shown.out
    assert shown.err == ""


def test_unexpected_problems_are_not_quoted(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(request: object) -> None:
        raise ValueError(SECRET)

    monkeypatch.setattr("dpadmm.cli.plan_command.make_plan", broken)
    for extra in ([], ["--json"]):
        assert program.run([*PLAN, *extra]) == 1
        shown = capsys.readouterr()
        assert SECRET not in shown.out + shown.err
        assert "ValueError" in shown.out + shown.err
    with pytest.raises(ValueError, match=SECRET):
        program.run(["--debug", *PLAN])


def test_typer_prints_no_local_variables() -> None:
    assert program.app.pretty_exceptions_enable is False
    assert program.app.pretty_exceptions_show_locals is False


def test_interruption(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("dpadmm.estimators.base.run", interrupted)
    write_inputs(tmp_path)
    before = tree(tmp_path)
    assert program.run(fit_arguments(tmp_path)) == 130
    shown = capsys.readouterr()
    assert shown.err.count("\n") == 1
    assert "nothing was written" in shown.err
    assert "as spent" in shown.err
    assert tree(tmp_path) == before


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_control_c_in_the_middle_of_training(tmp_path: Path) -> None:
    write_inputs(tmp_path)
    before = tree(tmp_path)
    command = [*PROGRAM, *fit_arguments(tmp_path, "--steps", "100000000")]
    # While Numba compiles, an interruption may fall into one of its finalisers, where Python ignores it; and whoever
    # runs the tests in the background of a shell has it ignored from the start.
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "DPADMM_KERNELS": "numpy"},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    deadline = time.monotonic() + 60
    while tree(tmp_path) == before and time.monotonic() < deadline and process.poll() is None:
        time.sleep(0.05)
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    try:
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130
    assert out == ""
    assert err.startswith("error: interrupted")
    assert "Traceback" not in err
    assert tree(tmp_path) == before


def test_demo_in_a_process_of_its_own(tmp_path: Path) -> None:
    started = time.monotonic()
    done = subprocess.run([*PROGRAM, "demo"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert time.monotonic() - started < 60
    assert "\x1b" not in done.stdout
    for words in ("private", "without privacy", "of 20", "(1, 1e-05)-differentially private", "report.html"):
        assert words in done.stdout
    report = tmp_path / "dpadmm-report"
    assert tree(report) == set(MODEL_FILES) - {"schema.toml"}
    assert not load_model(report).privacy_.seeded


def test_demo_replaces_its_own_report_only(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dpadmm.cli.demo_command.make_demo", lambda **chosen: make_demo(**{**chosen, "n_rows": 2000}))
    out = tmp_path / "report"
    for _ in range(2):
        assert program.run(["demo", "--out", str(out), "--json", "--solver", "ssadmm", "--epsilon", "20"]) == 0
        summary = json.loads(capsys.readouterr().out)
        assert summary["relevant"] == 20
        assert summary["accuracy"] > 0.7
        assert summary["privacy"]["epsilon"] == 20
    names = {line.split(",")[0] for line in (out / "coefficients.csv").read_text().splitlines()}
    assert {"s1", "s100"} <= names
    assert all("'s1'" in text or '"s1"' in text for text in map(Path.read_text, map(out.joinpath, SCORE_FILES)))
    (out / "thesis.txt").write_text("years of work")
    assert program.run(["demo", "--out", str(out)]) == 4
    assert (out / "thesis.txt").exists()
    assert tree(tmp_path) == {"report", *(f"report/{path.name}" for path in out.iterdir())}
