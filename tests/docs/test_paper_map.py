"""docs/paper-map.md: every symbol exists, and no numbered item of the papers is missing."""

from __future__ import annotations

import dataclasses
import re
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

MAP = Path(__file__).parents[2] / "docs" / "paper-map.md"
SYMBOL = re.compile(r"`(dpadmm\.[A-Za-z_][\w.]*)`")

# What each paper numbers: (item, first, last). The supplement of Liu 2022 is not covered.
NUMBERED = {
    "Liu 2022": [
        ("Eq. ({})", 1, 13),
        ("Algorithm {}", 1, 2),
        ("Definition {}", 1, 6),
        ("Lemma {}", 1, 5),
        ("Property {}", 1, 3),
        ("Theorem {}", 1, 6),
        ("Corollary {}", 1, 1),
        ("Remark {}", 1, 2),
    ],
    "Chen & Lee 2020": [
        ("Eq. ({})", 1, 32),
        ("Algorithm {}", 1, 2),
        ("Definition {}", 1, 4),
        ("Lemma {}", 1, 3),
        ("Proposition {}", 1, 1),
        ("Theorem {}", 1, 3),
    ],
    "Chan 2024": [
        ("Eq. ({})", 1, 2),
        ("Algorithm {}", 1, 3),
        ("Lemma 2.{}", 1, 2),
        ("Lemma 5.{}", 3, 4),
        ("Definition 2.{}", 3, 3),
        ("Definition 3.{}", 1, 1),
        ("Definition 4.{}", 1, 1),
        ("Definition 5.{}", 2, 2),
        ("Fact 3.{}", 2, 3),
        ("Remark 2.{}", 4, 4),
        ("Theorem 4.{}", 2, 2),
        ("Theorem 5.{}", 1, 1),
    ],
    "Huang & Gong 2020": [
        ("Eq. ({})", 1, 40),
        ("Algorithm {}", 1, 1),
        ("Definition {}", 1, 3),
        ("Theorem {}", 4, 4),
        ("Lemma {}", 5, 5),
        ("Theorem {}", 6, 7),
    ],
}
ITEMS = [
    (paper, pattern.format(number))
    for paper, kinds in NUMBERED.items()
    for pattern, first, last in kinds
    for number in range(first, last + 1)
]


@cache
def section(paper: str) -> str:
    parts = re.split(r"^## (.+)$", MAP.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))[paper]


def rows(text: str) -> list[list[str]]:
    return [
        [cell.strip() for cell in line.strip().strip("|").split("|")]
        for line in text.splitlines()
        if line.startswith("|") and not set(line) <= set("|- ")
    ]


def resolve(symbol: str) -> Any:
    """The object a dotted path names: the longest importable prefix, then attributes."""
    parts = symbol.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            found: Any = import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        for name in parts[cut:]:
            fields = {f.name for f in dataclasses.fields(found)} if dataclasses.is_dataclass(found) else set()
            found = getattr(found, name, name) if name in fields else getattr(found, name)
        return found
    raise AttributeError(symbol)


def symbols() -> list[str]:
    return sorted(set(SYMBOL.findall(MAP.read_text(encoding="utf-8"))))


@pytest.mark.parametrize("symbol", symbols())
def test_symbol_exists(symbol: str) -> None:
    assert resolve(symbol) is not None


@pytest.mark.parametrize(("paper", "item"), ITEMS, ids=lambda value: value)
def test_item_has_exactly_one_row(paper: str, item: str) -> None:
    found = [row for row in rows(section(paper)) if row[0] == item]
    assert len(found) == 1, f"{item} of {paper} has {len(found)} rows"


@pytest.mark.parametrize("paper", tuple(NUMBERED))
def test_every_row_names_a_symbol_or_says_why_not(paper: str) -> None:
    for row in rows(section(paper)):
        assert len(row) == 4, row
        if row[0] == "item":
            continue
        assert SYMBOL.search(row[2]) or row[2].startswith("not implemented because "), row
        assert row[3], row


def test_a_wrong_symbol_is_noticed() -> None:
    with pytest.raises(AttributeError):
        resolve("dpadmm.solvers.sadmm.SADMM.no_such_method")
    with pytest.raises(AttributeError):
        resolve("dpadmm.no_such_module.Thing")


def test_errors_referred_to_are_listed() -> None:
    text = MAP.read_text(encoding="utf-8")
    listed = {row[0] for row in rows(section("Errors of the papers and what is done instead"))}
    assert set(re.findall(r"\bE\d+\b", text)) <= listed
