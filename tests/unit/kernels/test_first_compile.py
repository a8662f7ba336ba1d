"""A fit that has to compile its kernels says so before it falls silent, and says it once."""

from __future__ import annotations

import logging
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from dpadmm import DPLogisticRegression, DPSearchCV, kernels
from dpadmm.cli.screen import log_on_screen
from dpadmm.kernels import kernel_choice

WORK = kernels.FitSize(10, 1000, 10)


@pytest.fixture(autouse=True)
def nothing_stored(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.setattr(kernel_choice, "_announced", set())
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "none"))


@pytest.mark.parametrize("search", [False, True])
@pytest.mark.parametrize("verbose", [0, 1])
def test_a_fit_says_that_it_compiles_before_it_does(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, verbose: int, search: bool
) -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (300, 2))
    monkeypatch.setattr(kernels, "choose", lambda *work: "compiled")
    monkeypatch.setattr(kernels, "use", _interrupted)
    model = DPLogisticRegression(1.0, 1e-4, classes=[0, 1], penalty="l1", random_state=0, verbose=verbose)
    asked = DPSearchCV(model, {"alpha": [1e-3]}, mean_trials=2.0) if search else model
    with caplog.at_level(logging.INFO, "dpadmm"), pytest.raises(KeyboardInterrupt):
        asked.fit(X, (X[:, 0] > 0).astype(int))
    assert [record.getMessage() for record in caplog.records] == [kernel_choice.COMPILING]
    assert caplog.records[0].levelno == logging.WARNING


def _interrupted(name: str) -> Any:
    raise KeyboardInterrupt


def test_it_is_said_once_and_only_where_something_is_compiled(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "dpadmm"):
        kernels.announce("numpy", WORK)
        assert not caplog.records
        kernels.announce("compiled", WORK)
        kernels.announce("compiled", WORK)
        assert [record.levelno for record in caplog.records] == [logging.WARNING]
        monkeypatch.setattr(kernel_choice, "_announced", set())
        monkeypatch.setattr(kernel_choice, "_machine_code_is_stored", lambda loop: True)
        kernels.announce("compiled", WORK)
        assert len(caplog.records) == 1


def test_commands_show_it_unless_they_are_quiet(capsys: pytest.CaptureFixture[str]) -> None:
    for visible in (True, False):
        with log_on_screen(visible):
            logging.getLogger("dpadmm").info("a word")
        assert ("dpadmm: a word" in capsys.readouterr().err) is visible
    assert not logging.getLogger("dpadmm").handlers


def test_python_shows_it_and_a_quiet_command_does_not() -> None:
    """In a process where nobody set up a logger."""
    asked = "from dpadmm import kernels; kernels.announce('compiled', kernels.FitSize(10, 1000, 10))"
    quiet = f"from dpadmm.cli.screen import log_on_screen\nwith log_on_screen(False): exec({asked!r})"
    for code, shown in ((asked, f"{kernel_choice.COMPILING}\n"), (quiet, "")):
        found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert found.stderr == shown
