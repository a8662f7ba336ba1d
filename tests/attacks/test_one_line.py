"""One line of a CSV file is replaced by anything at all: no other row may change, and no row may come or go."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest

from dpadmm.cli.app import run
from dpadmm.tables import EncodedTable, Schema, encode, lines, read_table
from dpadmm.tables.lines import Lines, read_at_once, read_each, read_lines

from .campaign import Campaign

BEFORE = "one quote that was not closed swallowed all rows up to the next one, and one line stopped the fit"
LINES = Campaign("input", "replace one line of a CSV file by anything, in blocks of every size", BEFORE, 300, 8_000)
PATHS = Campaign(
    "input",
    "read blocks of odd bytes at once and line by line: the same cells, or left to the second",
    "none",
    1_000,
    60_000,
)
SCHEMA = """\
[columns.age]
kind = "numeric"
lower = 0
upper = 100
fill = 40

[columns.work]
kind = "categorical"
categories = ["private", "state"]

[columns.note]
kind = "ignore"

[target]
column = "ill"
kind = "classes"
classes = ["no", "yes"]
"""
HEAD = b"age,work,note,ill\n"
PIECES = [
    *(b'"', b'""', b",", b",,,", b"\r", b"\0", b"\xff", b"\xef\xbb\xbf", b"\xc3", b"\xe2\x80\xa8", b"\x85", b"\x1a"),
    *(b"50", b"state", b"yes", b" ", b"NA", b"\\", b'\\"', b"#", b"'", b"\t", b"x" * 131_073, b"\xed\xa0\x80", b"\x0b"),
    *(b'50,state,"a,b",yes', b"50,state,,yes", b'50,"state","x""y",no', b'5"0,state,,yes', b'"50"x,state,,yes'),
]


def odd_line(rng: np.random.Generator) -> bytes:
    """A line that is not blank, with anything in it but a line feed."""
    line = b"".join(PIECES[k] for k in rng.integers(len(PIECES), size=rng.integers(1, 6)))
    return line if line.removesuffix(b"\r") else b"x"


def file_of(rows: list[bytes], end: bytes) -> bytes:
    return HEAD + end.join(rows) + end


def encoded(path: Path) -> EncodedTable:
    return encode(read_table(path), Schema.from_toml(SCHEMA), with_target=True, invalid_rows="zero")


def others(table: EncodedTable, row: int) -> tuple[bytes, ...]:
    """Everything that is known of all rows but one."""
    return tuple(np.delete(part, row, axis=0).tobytes() for part in (table.X, table.y, table.valid))


def test_one_line_changes_no_other_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t.csv"
    with LINES.begin() as tally:
        for number in tally.each():
            rng = np.random.default_rng(number)
            monkeypatch.setattr(lines, "BLOCK", int(rng.choice([1, 40, 1 << 22])))
            n, end = int(rng.integers(1, 9)), [b"\n", b"\r\n"][number % 2]
            rows = [b"%d,state,n,%s" % (k, [b"yes", b"no"][k % 2]) for k in range(n)]
            if number % 3 == 0:
                rows = [odd_line(rng) if rng.random() < 0.3 else row for row in rows]
            place = int(rng.integers(n))
            path.write_bytes(file_of(rows, end))
            before = encoded(path)
            path.write_bytes(file_of([*rows[:place], odd_line(rng), *rows[place + 1 :]], end))
            after = encoded(path)
            if len(before.X) != n or len(after.X) != n:
                tally.defect(f"try {number}: {len(before.X)} and {len(after.X)} rows of {n}")
            elif others(before, place) != others(after, place):
                tally.defect(f"try {number}: other rows changed")


def cells_of(found: Lines) -> list[list[str | None]]:
    return [list(row) for table in found.cells for row in zip(*table.to_pydict().values(), strict=True)]


def test_both_ways_to_read_a_block_agree() -> None:
    with PATHS.begin() as tally:
        taken = 0
        for number in tally.each():
            rng = np.random.default_rng(number)
            kinds = PIECES if number % 2 else [b"50", b"state", b"", "é".encode(), b"\t", b"'", b"\\", b" ", b"\x85"]
            n_columns, count = int(rng.integers(1, 4)), int(rng.integers(1, 5))
            end = [b"\n", b"\r\n"][int(rng.integers(2))]
            rows = [b",".join(kinds[k] for k in rng.integers(len(kinds), size=n_columns)) for _ in range(count)]
            block = end.join(rows) + end * int(rng.integers(2)) or b"x"
            each, at_once = (Lines(list("abc")[:n_columns], [], lines.array("q"), {}) for _ in range(2))
            size = read_each(block, each, 2)
            found = read_at_once(block, at_once, 2)
            if found is None:
                if at_once.cells or at_once.numbers:
                    tally.defect(f"try {number}: half of a block was read")
                continue
            taken += 1
            if found != size or each.broken or each.numbers != at_once.numbers or cells_of(each) != cells_of(at_once):
                tally.defect(f"try {number}: other cells")
        if taken < tally.tried // 20:
            tally.defect("the fast way was hardly ever taken")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "s.toml").write_text(SCHEMA)
    return tmp_path


@pytest.mark.parametrize("odd", [b'50,state,"open,yes', b"50,state,\xff,yes", b"50,state,,,yes", b"\0", b"a\rb", b'"'])
def test_a_broken_line_counts_for_nothing_or_is_refused_without_its_words(
    folder: Path, capsys: pytest.CaptureFixture[str], odd: bytes
) -> None:
    rows = [b'%d,private,"n",%s' % (k % 90, [b"yes", b"no"][k % 2]) for k in range(300)]
    (folder / "t.csv").write_bytes(file_of([*rows[:7], odd, *rows[8:]], b"\n"))
    table = encoded(folder / "t.csv")
    assert len(table.valid) == 300
    assert np.flatnonzero(~table.valid).tolist() == [7]
    asked = ["fit", str(folder / "t.csv"), "--schema", str(folder / "s.toml"), "--epsilon", "1", "--delta", "1e-5"]
    assert run([*asked, "--out", str(folder / "zero"), "--invalid-rows", "zero", "--quiet"]) == 0
    capsys.readouterr()
    assert run([*asked, "--out", str(folder / "error")]) == 2
    assert "dpadmm check" in capsys.readouterr().err
    assert run(["check", str(folder / "t.csv"), "--schema", str(folder / "s.toml")]) == 2
    assert "line 9" in capsys.readouterr().out


def test_an_open_quote_swallows_no_row(folder: Path) -> None:
    rows = [b"%d,private,n,%s" % (k % 90, [b"yes", b"no"][k % 2]) for k in range(1_998)]
    (folder / "t.csv").write_bytes(file_of([b'50,private,"open,yes', *rows, b'1,private,n",no'], b"\n"))
    table = encoded(folder / "t.csv")
    assert table.valid.tolist() == [False] + [True] * 1_999


def test_a_broken_line_is_invalid_where_every_column_takes_anything(folder: Path) -> None:
    schema = Schema.from_dict({"columns": {"work": {"kind": "categorical", "categories": ["UNREADABLE", "state"]}}})
    (folder / "t.csv").write_bytes(b'work\nstate\n"state\nother\n')
    table = encode(read_table(folder / "t.csv"), schema, with_target=False, invalid_rows="zero")
    assert table.valid.tolist() == [True, False, True]


def test_a_line_of_any_length_is_one_row(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "LONGEST_LINE", 1_000)
    for size in (100, 989, 990, 991, 1_001, 1_002, 5_000, 60_000):
        for block in (16, 1_000, 1 << 22):
            monkeypatch.setattr(lines, "BLOCK", block)
            line = b"1,state," + b"x" * size + b",no"
            (folder / "t.csv").write_bytes(file_of([b"1,state,,no", line, b"3,state,,no"], b"\n"))
            found = read_lines(folder / "t.csv")
            assert found is not None
            assert found.numbers.tolist() == [2, 3, 4]
            assert list(found.broken) == ([1] if len(line) > 1_000 else [])


def test_blank_lines_are_no_rows(folder: Path) -> None:
    (folder / "t.csv").write_bytes(b"\xef\xbb\xbfa,b\r\n\r\n1,2\r\n\n\n3,4\n\n5,6")
    found = read_lines(folder / "t.csv")
    assert found is not None
    assert (found.names, found.numbers.tolist()) == (["a", "b"], [3, 6, 8])
    assert cells_of(found) == [["1", "2"], ["3", "4"], ["5", "6"]]
    assert io.StringIO(found.frame().to_csv(index=False)).readline() == "a,b\n"
