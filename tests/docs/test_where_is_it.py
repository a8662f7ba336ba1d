"""docs/where-is-it.md: every place that the page names exists, and holds the name that stands beside it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "where-is-it.md").read_text(encoding="utf-8")
ANSWERS = [line.strip("|").split("|") for line in PAGE.splitlines() if line.startswith("| Where")]
PLACE = re.compile(r"`([a-z_0-9/]+(?:\.py|/))`(?:: `([\w.]+)`)?")
PLACES = [found for _, answer in ANSWERS for found in PLACE.findall(answer)]


def test_there_are_at_least_twenty_questions() -> None:
    assert len(ANSWERS) >= 20
    assert all(PLACE.search(answer) for _, answer in ANSWERS)


@pytest.mark.parametrize(("path", "name"), PLACES)
def test_the_place_exists(path: str, name: str) -> None:
    place = ROOT / "src" / "dpadmm" / path
    assert place.exists()
    if name:
        text = place.read_text(encoding="utf-8")
        assert all(re.search(rf"\b(class|def) {part}\b", text) for part in name.split("."))
