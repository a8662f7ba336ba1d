"""The Python of the guide to neural networks runs, block after block, in an empty folder."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")
pytest.importorskip("opacus", reason="Opacus is not installed")

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


def test_the_blocks_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = BLOCK.findall((ROOT / "docs" / "neural.md").read_text())
    assert len(blocks) == 4
    names: dict[str, Any] = {}
    for block in blocks:
        exec(block, names)
    assert "(1, 1e-05)-differentially private" in capsys.readouterr().out
    assert (tmp_path / "network" / "network.json").exists()
    solvers = [names[name].privacy.solver for name in ("dp_sgd", "dp_adam", "dp_lssgd", "dp_lsadam")]
    assert solvers == ["dp-sgd", "dp-adam", "dp-lssgd", "dp-lsadam"]


def test_the_example_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(ROOT / "examples" / "private_network.py"), run_name="__main__")
    assert "differentially private" in capsys.readouterr().out
