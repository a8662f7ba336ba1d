"""Every mutant of docs/audit.md is refuted by its audit, and the same attack on unbroken code is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from experiments.mutants import MUTANTS

PAGE = Path(__file__).parents[2] / "docs" / "audit.md"
LONG = {
    "half the noise, mini-batches",
    "twice the rate",
    "realised batch size",
    "fixed size as Poisson",
    "range from the data",
    "norm from the data",
    "cap ignored",
    "joint sensitivity halved",
    "half the exact deviation",
    "half the second moment's noise",
    "half the counts' noise",
    "score almost without noise",
    "no clip, hidden passes",
    "every row hidden",
}
SLOW = {
    "quiet counts, saved model",
    "quiet passes, saved model",
    "quiet score, saved search",
    "many trials, saved search",
}
"""Smaller audits of the same are in `test_attacks.py`."""


def mark_of(name):
    return pytest.mark.slow if name in SLOW else pytest.mark.statistical if name in LONG else ()


@pytest.mark.parametrize("name", [pytest.param(name, marks=mark_of(name)) for name in MUTANTS])
def test_is_caught(name):
    mutant = MUTANTS[name]
    verdict = mutant.audit(mutant.runs)
    assert verdict.caught
    assert verdict.honest is None or verdict.honest <= verdict.claimed


def test_the_page_lists_all_of_them_as_caught():
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    for name, mutant in MUTANTS.items():
        (line,) = [line for line in lines if line.startswith(f"| {name} | {mutant.broken} |")]
        _, _, _, _, audited, caught, *_ = (cell.strip() for cell in line.split("|"))
        assert caught == "yes", name
        assert float(audited) > 0
