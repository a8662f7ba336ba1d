"""Cells that attack `dpadmm check` and the messages of `dpadmm fit`: terminal codes, canaries, broken files."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from random import Random

import pytest

from dpadmm.cli.app import run
from dpadmm.cli.check_command import NOTICE
from dpadmm.tables import Schema, encode, read_table

from .campaign import Campaign

SCHEMA = """\
[columns.age]
kind = "numeric"
lower = 0
upper = 100

[columns.pay]
kind = "numeric"
lower = -5
upper = 5
fill = 0

[columns.work]
kind = "categorical"
categories = ["NA", "state"]

[columns.code]
kind = "categorical"
categories = [1, 2]
unseen = "error"
fill = 2

[columns.married]
kind = "boolean"

[target]
column = "outcome"
kind = "classes"
classes = ["well", "ill"]
"""
NAMES = ("age", "pay", "work", "code", "married", "outcome")
GOOD = ("50", "1.5", "state", "1", "yes", "ill")
CANARY = "CANARY-7431"
ODD = [
    *("", " ", "NA", "nan", "None", "null", "inf", "-1e999", "101", "7", "1.0", "0x10", "１", "yes", "TRUE", "maybe"),
    *(
        "\x1b[2J\x1b]0;title\x07",
        "\x9b31m",
        "\u202eevil",
        "\u2028line",
        "a\rb",
        "a\nb",
        "a\tb",
        "\x00",
        "\x7f",
        "\ufeff",
    ),
    *(":smile:", "[bold red]x[/]", "=1+1", CANARY, 'quote"d', "comma,d", "x" * 300, "é" * 50, "\U000e0041", "\x85"),
]
CHECKED = Campaign(
    room="outputs",
    attack="Terminal codes, markup, line breaks and odd numbers in the cells that `dpadmm check` quotes: no code is "
    "printed, and the rows it names are those that the fit refuses",
    before="no such command: a bad cell could not be found",
    sample=40,
    full=800,
)
SILENT = Campaign(
    room="outputs",
    attack="A canary in a table that `dpadmm fit` refuses, in any cell, with broken lines, headers and bytes: no "
    "message repeats it",
    before="none",
    sample=12,
    full=400,
)


def table(rows: list[list[str]]) -> bytes:
    stream = io.StringIO()
    csv.writer(stream, lineterminator="\n", quoting=csv.QUOTE_ALL).writerows(rows)
    return stream.getvalue().encode()


def texts_of(rows: list[list[str]]) -> list[str]:
    """The lines of the file, counted independently of the library."""
    return table(rows).decode().split("\n")[1:-1]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "s.toml").write_text(SCHEMA)
    return tmp_path


def test_what_check_shows(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with CHECKED.begin() as tally:
        for number in tally.each():
            chance = Random(number)
            rows = [[chance.choice(ODD) if chance.random() < 0.3 else cell for cell in GOOD] for _ in range(12)]
            path = folder / "t.csv"
            path.write_bytes(table([list(NAMES), *rows]))
            arguments = ["check", str(path), "--schema", str(folder / "s.toml")]
            code = run(arguments)
            text = capsys.readouterr().out
            run([*arguments, "--json"])
            printed = capsys.readouterr().out
            told = json.loads(printed)
            if not all(character.isprintable() or character == "\n" for character in text + printed):
                tally.defect(f"try {number}: a character that steers a terminal was printed")
            lines = text.strip().split("\n")
            if lines[0] != NOTICE or lines[-1] != NOTICE or told["notice"] != NOTICE:
                tally.defect(f"try {number}: the output does not say that it is private")
            encoded = encode(read_table(path), Schema.from_toml(SCHEMA), with_target=True, invalid_rows="zero")
            if told["refused_rows"] != int((~encoded.valid).sum()) or code != (0 if encoded.valid.all() else 2):
                tally.defect(f"try {number}: other rows than those that the fit refuses")
            if told["rows"] != len(texts_of([list(NAMES), *rows])):
                tally.defect(f"try {number}: other rows than lines")
            refused = [each for each in told["findings"] if each["refused"]]
            for place in (place for each in refused for place in each["places"]):
                if encoded.valid[place["row"] - 1] or place["line"] != place["row"] + 1:
                    tally.defect(f"try {number}: a wrong place")


def broken(chance: Random) -> bytes:
    """A table that cannot be fitted, with the canary in it."""
    rows = [list(GOOD) for _ in range(8)]
    rows[chance.randrange(8)][chance.choice((0, 4, 5))] = f"{CANARY}{chance.random()}"
    text = table([list(NAMES), *rows])
    way = chance.randrange(6)
    if way == 1:
        return text + CANARY.encode() + b",1\n"
    if way == 2:
        return text + b"50,1,state,1,yes,\xff" + CANARY.encode() + b"\n"
    if way == 3:
        return text.split(b"\n", 1)[1]
    if way == 4:
        return text + b'50,"' + CANARY.encode()
    if way == 5:
        return table([[CANARY if name == "age" else name for name in NAMES], *rows]).replace(b"pay", b"pay\xfe", 1)
    return text


def test_what_fit_says(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with SILENT.begin() as tally:
        for number in tally.each():
            path = folder / "t.csv"
            path.write_bytes(broken(Random(number)))
            more = ["--epsilon", "1", "--delta", "1e-5", "--out", str(folder / "model")]
            code = run(["fit", str(path), "--schema", str(folder / "s.toml"), *more])
            said = capsys.readouterr()
            if code != 2 or "7431" in said.out + said.err:
                tally.defect(f"try {number}: code {code}, or a message with a cell in it")
            if (folder / "model").exists():
                tally.defect(f"try {number}: a model was written")
