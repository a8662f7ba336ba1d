"""The performance page is rendered from results alone, and says which targets are missed."""

from __future__ import annotations

from pathlib import Path

from benchmarks.__main__ import PARTS
from benchmarks.page import HEADINGS, page
from benchmarks.report import Row

MACHINE = {
    "cpu": "a processor",
    "cores": 2,
    "memory_gib": 8.0,
    "system": "Linux",
    "python": "3.11",
    "numpy": "2.0",
    "dpadmm": "1",
    "date": "2026-01-01",
    "bandwidth_gb_s": 10.0,
}
GOOD = Row("gradient", "fast table", "speed-up", 4.0, "×", 3.0)
BAD = Row("memory", "large table", "peak over input", 2.6, "×", 1.3, "at most")
FIT = Row("fit", "adult: auto", "time", 0.1, "s", raw={"objective": 0.5, "uncached": 0.2})
GROWTH = Row("growth", "1 to 10 rows", "exponent", 1.0, "", 1.15, "at most", raw={"1": 0.1, "10": 1.0})
UNKNOWN = Row("fit", "adult: dp-sgd", "faster than a peer", None, "×", 20.0, note="absent")
SKIPPED = Row("fit", "adult: a peer", "time", None, "s", note="absent", raw={"objective": None, "uncached": None})


def rendered(*rows: Row) -> str:
    parts = {"gradient": {"date": "2026-01-02", "load": 0.7}}
    return page({"machine": MACHINE, "parts": parts, "rows": [row.as_json() for row in rows]})


def test_a_row_knows_whether_it_met_its_target() -> None:
    assert GOOD.met
    assert BAD.met is False
    assert FIT.met is None
    assert SKIPPED.met is None


def test_the_page_lists_what_is_missed() -> None:
    text = rendered(GOOD, BAD, FIT, GROWTH, UNKNOWN, SKIPPED)
    assert "2 of 3 targets are met" in text
    assert "- large table: peak over input 2.6 ×, wanted ≤ 1.3 ×." in text
    assert "| adult: auto | 0.1 s | 0.2 s | 0.5000 |" in text
    assert "| adult: a peer | – | – | – | absent |" in text
    assert "- adult: dp-sgd: faster than a peer, wanted ≥ 20 ×: absent." in text
    assert "a processor, 2 cores" in text
    assert text.count("Measured on 2026-01-02, at a load of 0.7 when it began.") == 1
    assert "Not in these results: covtype, w8a, mnist, wide." in text


def test_every_part_has_a_heading() -> None:
    assert set(HEADINGS) == set(PARTS)


def test_the_page_in_the_documentation_has_every_part() -> None:
    text = (Path(__file__).parents[2] / "docs" / "performance.md").read_text(encoding="utf-8")
    for title, _ in HEADINGS.values():
        assert f"## {title}" in text
