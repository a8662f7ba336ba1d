"""`dpadmm check`: every bad cell is found where an editor shows it, and nothing is written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from dpadmm.cli.app import run
from dpadmm.tables import Schema, check
from dpadmm.tables.findings import FEW

SCHEMA = """\
[columns.age]
kind = "numeric"
lower = 0
upper = 100

[columns.height]
kind = "numeric"
lower = 0
upper = 250
fill = 170

[columns.work]
kind = "categorical"
categories = ["private", "state"]

[columns.code]
kind = "categorical"
categories = ["a", "b"]
unseen = "error"

[columns.married]
kind = "boolean"

[columns.outcome]
kind = "categorical"
categories = ["well", "ill"]
"""
HEAD = "age,height,work,code,married,outcome\n"
GOOD = "50,180,state,a,yes,well\n"


def written(folder: Path, text: str | bytes, name: str = "t.csv") -> list[str]:
    (folder / name).write_bytes(text.encode() if isinstance(text, str) else text)
    (folder / "s.toml").write_text(SCHEMA)
    return ["check", str(folder / name), "--schema", str(folder / "s.toml"), "--target", "outcome"]


def found(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> tuple[int, dict[str, Any]]:
    code = run([*arguments, "--json"])
    return code, json.loads(capsys.readouterr().out)


def cells(told: dict[str, Any]) -> set[tuple[str, str, int, str]]:
    return {
        (finding["column"], finding["kind"], place["line"], place["value"])
        for finding in told["findings"]
        for place in finding["places"]
    }


def test_a_clean_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = written(tmp_path, HEAD + 3 * GOOD)
    code, told = found(capsys, arguments)
    assert (code, told["rows"], told["refused_rows"], told["findings"]) == (0, 3, 0, [])
    assert run(arguments) == 0
    lines = capsys.readouterr().out.strip().splitlines()
    assert "All 3 rows fit" in "".join(lines)
    assert lines[0] == lines[-1]
    assert "private data: do not share it" in lines[0]


def test_every_kind_of_cell_is_named_with_its_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = HEAD + GOOD + "x,,other,c,maybe,dead\n" + ",300,,,,\n" + GOOD + "-1,180,NA,a,no,ill\n"
    code, told = found(capsys, written(tmp_path, table))
    assert code == 2
    assert (told["rows"], told["refused_rows"]) == (5, 2)
    assert cells(told) == {
        ("age", "not-a-number", 3, "'x'"),
        ("age", "missing", 4, "''"),
        ("age", "clipped", 6, "'-1'"),
        ("height", "filled", 3, "''"),
        ("height", "clipped", 4, "'300'"),
        ("work", "unseen-as-none", 3, "'other'"),
        ("work", "missing-as-none", 4, "''"),
        ("work", "missing-as-none", 6, "'NA'"),
        ("code", "unseen", 3, "'c'"),
        ("code", "missing", 4, "''"),
        ("married", "not-boolean", 3, "'maybe'"),
        ("married", "missing", 4, "''"),
        ("outcome", "label", 3, "'dead'"),
        ("outcome", "missing", 4, "''"),
    }


def test_what_is_accepted_is_told_and_ends_well(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, told = found(capsys, written(tmp_path, HEAD + "101,NA,other,a,t,well\n"))
    assert code == 0
    assert {finding["kind"] for finding in told["findings"]} == {"clipped", "filled", "unseen-as-none"}


def test_lines_are_those_of_an_editor(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Empty lines move the rows below them; a cell with a line break is two lines that cannot be read."""
    table = HEAD + '50,180,"sta\nte",a,yes,well\r\n' + "\n\n" + "x,180,state,a,yes,well\n"
    _, told = found(capsys, written(tmp_path, table))
    assert cells(told) == {
        (None, "quote", 2, "'50,180,\"sta'"),
        (None, "fields", 3, "4 fields, the header has 6"),
        ("age", "not-a-number", 6, "'x'"),
    }
    assert (told["rows"], told["refused_rows"]) == (3, 3)


def test_the_first_few_of_many(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = written(tmp_path, HEAD + 20 * GOOD.replace("50", "x"))
    _, told = found(capsys, arguments)
    (finding,) = told["findings"]
    assert finding["count"] == told["refused_rows"] == 20
    assert [place["line"] for place in finding["places"]] == list(range(2, 2 + FEW))
    run(arguments)
    assert "and 15 more" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.parquet"])
def test_each_kind_of_file(tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    arguments = written(tmp_path, HEAD + GOOD + GOOD.replace("50", "x"))
    frame = pd.read_csv(tmp_path / "t.csv", dtype=str, keep_default_na=False)
    frame.to_parquet(tmp_path / name) if name.endswith("parquet") else frame.to_csv(tmp_path / name, index=False)
    arguments[1] = str(tmp_path / name)
    code, told = found(capsys, arguments)
    assert code == 2
    (finding,) = told["findings"]
    assert (finding["column"], finding["kind"]) == ("age", "not-a-number")
    line = None if name.endswith("parquet") else 3
    assert finding["places"] == [{"row": 2, "line": line, "value": "'x'"}]


def test_block_by_block(tmp_path: Path) -> None:
    frame = pd.DataFrame({"age": [1.0, None, 300.0, 5.0, None, 7.0]})
    frame.to_parquet(tmp_path / "t.parquet")
    schema = Schema.from_dict({"columns": {"age": {"kind": "numeric", "lower": 0, "upper": 100}}})
    whole = check(tmp_path / "t.parquet", schema)
    assert whole == check(tmp_path / "t.parquet", schema, block_rows=1)
    assert (whole.rows, whole.refused_rows) == (6, 2)
    assert [place.row for finding in whole.found for place in finding.places] == [2, 5, 3]


@pytest.mark.parametrize(
    ("table", "kinds"),
    [
        ("age,age,work\n1,2,3\n", {"column-twice", "column-absent", "target-absent"}),
        (HEAD.replace("age", "agee") + GOOD, {"column-absent", "column-undeclared"}),
        (HEAD.replace(",outcome", "") + GOOD.replace(",well", ""), {"target-absent"}),
        (GOOD + GOOD, {"no-header"}),
        (HEAD, {"no-rows"}),
        ("", {"unreadable"}),
        (HEAD + GOOD + "1,2\n", {"fields"}),
        (HEAD.encode() + GOOD.encode() + b"50,180,\xff,a,yes,well\n", {"encoding"}),
        (HEAD + GOOD + '50,"180,state', {"quote"}),
        (HEAD + GOOD + "50,180,sta\rte,a,yes,well\n", {"line-break"}),
        (HEAD + GOOD + "50,180," + "x" * 131_073 + ",a,yes,well\n", {"too-long"}),
    ],
)
def test_what_is_wrong_with_the_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], table: str | bytes, kinds: set[str]
) -> None:
    arguments = written(tmp_path, table)
    code, told = found(capsys, arguments)
    assert code == 2
    assert {finding["kind"] for finding in told["findings"]} == kinds
    assert run(arguments) == 2
    assert run(["fit", *arguments[1:], "--epsilon", "1", "--delta", "1e-5", "--out", str(tmp_path / "m")]) == 2


def test_broken_lines_are_numbered(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, told = found(capsys, written(tmp_path, HEAD + GOOD + "\n" + "1,2\n" + GOOD))
    (finding,) = told["findings"]
    assert finding["places"] == [{"row": 2, "line": 4, "value": "2 fields, the header has 6"}]


def test_a_broken_parquet_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, told = found(capsys, written(tmp_path, b"PAR1 or not", "t.parquet"))
    assert code == 2
    assert [finding["kind"] for finding in told["findings"]] == ["unreadable"]


def test_files_that_are_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written(tmp_path, HEAD)
    assert run(["check", str(tmp_path / "absent.csv"), "--schema", str(tmp_path / "s.toml")]) == 4
    assert run(["check", str(tmp_path / "s.toml"), "--schema", str(tmp_path / "s.toml")]) == 4


def test_nothing_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = written(tmp_path, HEAD + GOOD.replace("50", "x"))
    monkeypatch.setenv("DPADMM_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*")}
    assert run(arguments) == 2
    assert {path: path.read_bytes() for path in tmp_path.rglob("*")} == before


def test_the_refusal_of_fit_points_here_without_a_value(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = written(tmp_path, HEAD + GOOD + "7431x,180,state,a,yes,well\n")
    assert run(["fit", *arguments[1:], "--epsilon", "1", "--delta", "1e-5", "--out", str(tmp_path / "m")]) == 2
    said = capsys.readouterr().err
    assert "dpadmm check TABLE --schema SCHEMA" in said
    assert "7431" not in said
