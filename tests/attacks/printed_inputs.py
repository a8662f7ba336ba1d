"""Small tables, odd budgets and what the commands print of them: for the attacks on printed numbers."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dpadmm.cli.app import run

SCHEMA = """
[columns.age]
kind = "numeric"
lower = 0
upper = 100

[columns.visits]
kind = "numeric"
lower = 0
upper = 9

[target]
column = "ill"
kind = "classes"
classes = ["no", "yes"]
"""
ROWS = 300


def odd_budget(number: int) -> tuple[str, str]:
    """Budgets whose nearest decimals of six digits lie below them."""
    rng = random.Random(number)
    epsilon = f"{rng.uniform(0.4, 2.0):.5f}{rng.choice('01234')}{rng.randrange(1, 99):02d}"
    return epsilon, f"{rng.randrange(100000, 999999) / 1e5:.5f}{rng.choice('1234')}e-6"


def write_table(folder: Path) -> None:
    rng = np.random.default_rng(0)
    age = rng.integers(0, 101, ROWS)
    ill = np.where(age + rng.normal(0, 10, ROWS) > 50, "yes", "no")
    pd.DataFrame({"age": age, "visits": rng.integers(0, 10, ROWS), "ill": ill}).to_csv(folder / "t.csv", index=False)
    (folder / "s.toml").write_text(SCHEMA)


def training(folder: Path, epsilon: str, delta: str) -> list[str]:
    places = [str(folder / "t.csv"), "--schema", str(folder / "s.toml"), "--out", str(folder / "model"), "--force"]
    return [*places, "--epsilon", epsilon, "--delta", delta]


def printed(arguments: list[str], capsys: pytest.CaptureFixture[str], code: int = 0) -> str:
    capsys.readouterr()
    assert run(arguments) == code
    shown = capsys.readouterr()
    return shown.out + shown.err
