"""Bad input: one clear message, the right exit code, no data value, nothing left behind."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest

from dpadmm.cli.app import run
from tests.unit.cli.made_up_tables import SCHEMA, SECRET, fit_arguments, make_frame, tree, write_inputs


def refused(
    folder: Path, arguments: list[str], code: int, word: str, capsys: pytest.CaptureFixture[str], before: set[str]
) -> None:
    """The command fails with one line, quotes no secret and leaves the folder as it was."""
    assert run(arguments) == code
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("error: ")
    assert shown.err.count("\n") == 1
    assert word in shown.err
    assert "Traceback" not in shown.err
    assert run([*arguments, "--json"]) == code
    as_json = capsys.readouterr()
    assert json.loads(as_json.out)["error"]["exit_code"] == code
    assert SECRET not in shown.err + as_json.out + as_json.err
    assert tree(folder) == before


@pytest.mark.parametrize(
    ("options", "code", "word"),
    [
        ("--epsilon 0", 2, "epsilon"),
        ("--epsilon nan", 2, "epsilon"),
        ("--delta 1", 2, "delta"),
        ("--relation sideways", 2, "relation"),
        ("--solver magic", 2, "solver"),
        ("--penalty magic", 2, "penalty"),
        ("--penalty graph", 2, "--private-graph SHARE"),
        ("--ledger team.db", 2, "--dataset NAME"),
        ("--penalty graph --graph absent.csv", 4, "--graph"),
        ("--sampler magic", 2, "sampler"),
        ("--solver dp-sadmm --sampler shuffle", 3, "shuffled"),
        ("--accountant magic", 2, "accountant"),
        ("--model magic", 2, "--model"),
        ("--model regression", 2, "--model logistic or svm"),
        ("--sampler poisson", 2, "mini-batch"),
        ("--alpha -1", 2, "alpha"),
        ("--penalty elasticnet --l1-ratio 2", 2, "l1_ratio"),
        ("--clip-norm 0", 2, "clip_norm"),
        ("--row-norm 0", 2, "row_norm"),
        ("--smoothing -1", 2, ""),
        ("--steps 0", 2, "--steps"),
        ("--seed -1", 2, "random_state"),
        ("--invalid-rows maybe", 2, "--invalid-rows"),
        ("--target nobody", 2, "nobody"),
        ("--target id", 2, "'ignore'"),
        ("--schema absent.toml", 4, "absent.toml"),
        ("--rows 100 --solver dp-sadmm --batch-size 200", 2, "batch_size"),
        ("--rows 200000", 2, "delta"),
        ("--solver dp-sadmm --sampler fixed --relation add-remove --rows 400", 3, "replace-one"),
        ("--out absent/model", 4, "parent"),
        ("--out schema.toml", 4, "file"),
    ],
)
def test_public_choices_are_refused_before_the_table_is_read(
    tmp_path: Path,
    options: str,
    code: int,
    word: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    write_inputs(tmp_path)
    arguments = fit_arguments(tmp_path, *options.split(), table="a-table-that-is-not-there.csv")
    refused(tmp_path, arguments, code, word, capsys, tree(tmp_path))


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"age": SECRET}, "unreadable"),
        ({"age": np.nan}, "missing"),
        ({"age": "inf"}, "unreadable"),
        ({"married": SECRET}, "unreadable"),
        ({"outcome": SECRET}, "undeclared"),
        ({"outcome": ""}, "missing"),
    ],
)
def test_bad_cells(tmp_path: Path, change: dict[str, object], word: str, capsys: pytest.CaptureFixture[str]) -> None:
    write_inputs(tmp_path, **change)
    refused(tmp_path, fit_arguments(tmp_path), 2, word, capsys, tree(tmp_path))
    assert run(fit_arguments(tmp_path, "--invalid-rows", "zero")) == 0


def test_one_strange_category_counts_as_none(tmp_path: Path) -> None:
    write_inputs(tmp_path, work=SECRET)
    assert run(fit_arguments(tmp_path)) == 0


@pytest.mark.parametrize(
    ("schema", "word"),
    [
        (SCHEMA + '[columns.height]\nkind = "boolean"\n', "missing columns 'height'"),
        (SCHEMA.replace('[columns.id]\nkind = "ignore"\n', ""), "does not declare 'id'"),
        (SCHEMA.replace("lower = 0\n", ""), "lower and upper"),
        (SCHEMA.replace('categories = ["private", "state"]', ""), "categories"),
        (SCHEMA.replace('kind = "boolean"', 'kind = "magic"'), "magic"),
        (SCHEMA + "this is no TOML", "TOML"),
        ("", "columns"),
    ],
)
def test_bad_schema(tmp_path: Path, schema: str, word: str, capsys: pytest.CaptureFixture[str]) -> None:
    write_inputs(tmp_path, schema)
    refused(tmp_path, fit_arguments(tmp_path), 2, word, capsys, tree(tmp_path))


@pytest.mark.parametrize(
    ("name", "content", "code", "word"),
    [
        ("t.csv", b"", 2, "empty"),
        ("t.csv", b"age,work,married,id,outcome\n", 2, "empty"),
        ("t.csv", f"{SECRET},private,yes,1,ill\n{SECRET},state,no,2,well\n".encode(), 2, "header"),
        ("t.csv", f"age,work,married,id,outcome\n{SECRET}\n".encode(), 2, "dpadmm check"),
        ("t.csv", b"age,work,married,id,outcome\n\xff\xfe,private,yes,1,ill\n", 2, "dpadmm check"),
        ("t.parquet", SECRET.encode(), 2, "cannot be read"),
        ("t.xlsx", SECRET.encode(), 4, "ending in"),
    ],
)
def test_bad_tables(
    tmp_path: Path, name: str, content: bytes, code: int, word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    write_inputs(tmp_path)
    (tmp_path / name).write_bytes(content)
    arguments = fit_arguments(tmp_path, table=str(tmp_path / name))
    refused(tmp_path, arguments, code, word, capsys, tree(tmp_path))


@pytest.mark.parametrize(
    ("options", "code", "word"),
    [
        ("--solver dp-sadmm --batch-size 401", 2, "batch_size"),
        ("--delta 0.0025", 2, "delta < 1/n"),
        ("--rows 399", 2, "--relation add-remove"),
        ("--solver dp-sadmm --sampler fixed --relation add-remove", 3, "replace-one"),
        ("--solver dp-sadmm --accountant gaussian", 3, "full-data"),
    ],
)
def test_what_only_the_row_count_shows(
    tmp_path: Path, options: str, code: int, word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    write_inputs(tmp_path)
    refused(tmp_path, fit_arguments(tmp_path, *options.split()), code, word, capsys, tree(tmp_path))


def test_output_folder_is_never_overwritten_unasked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_inputs(tmp_path)
    assert run(fit_arguments(tmp_path)) == 0
    before = (tmp_path / "model" / "model.npz").read_bytes()
    refused(tmp_path, fit_arguments(tmp_path), 4, "not empty", capsys, tree(tmp_path))
    assert (tmp_path / "model" / "model.npz").read_bytes() == before
    assert run(fit_arguments(tmp_path, "--force")) == 0
    assert (tmp_path / "model" / "model.npz").read_bytes() != before
    (tmp_path / "model" / "thesis.txt").write_text("years of work")
    refused(tmp_path, fit_arguments(tmp_path, "--force"), 4, "other files", capsys, tree(tmp_path))


def test_failed_training_leaves_the_earlier_model(tmp_path: Path) -> None:
    write_inputs(tmp_path)
    assert run(fit_arguments(tmp_path)) == 0
    before = (tmp_path / "model" / "model.npz").read_bytes()
    write_inputs(tmp_path, age=SECRET)
    assert run(fit_arguments(tmp_path, "--force")) == 2
    assert (tmp_path / "model" / "model.npz").read_bytes() == before


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs a folder that even root cannot write")
def test_unwritable_output(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_inputs(tmp_path)
    arguments = fit_arguments(tmp_path, out="/proc/self/model")
    refused(tmp_path, arguments, 4, "cannot be written", capsys, tree(tmp_path))


def test_full_disk(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def no_space(folder: Path, report: object) -> None:
        raise OSError(28, SECRET)

    monkeypatch.setattr("dpadmm.cli.model_folder.write_report", no_space)
    write_inputs(tmp_path)
    refused(tmp_path, fit_arguments(tmp_path), 4, "space", capsys, tree(tmp_path))


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("model.npz", lambda data: data[: len(data) // 2]),
        ("model.npz", lambda data: SECRET.encode()),
        ("model.json", lambda data: b"{"),
        ("model.json", lambda data: data.replace(b'"noise_multiplier": ', b'"noise_multiplier": 9')),
        ("schema.toml", lambda data: SECRET.encode()),
        ("schema.toml", lambda data: data.replace(b"columns.age", b"columns.Age")),
    ],
)
def test_corrupt_model(tmp_path: Path, name: str, damage: object, capsys: pytest.CaptureFixture[str]) -> None:
    table, _ = write_inputs(tmp_path)
    assert run(fit_arguments(tmp_path)) == 0
    path = tmp_path / "model" / name
    path.write_bytes(damage(path.read_bytes()))  # type: ignore[operator]
    arguments = ["predict", str(tmp_path / "model"), table, "--out", str(tmp_path / "p.csv")]
    refused(tmp_path, arguments, 4, "model", capsys, tree(tmp_path))


def test_model_without_schema_or_without_anything(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table, _ = write_inputs(tmp_path)
    assert run(fit_arguments(tmp_path)) == 0
    (tmp_path / "model" / "schema.toml").unlink()
    refused(
        tmp_path,
        ["evaluate", str(tmp_path / "model"), table, "--public-or-test"],
        4,
        "without schema.toml",
        capsys,
        tree(tmp_path),
    )
    refused(tmp_path, ["statement", str(tmp_path / "absent")], 4, "holds no model", capsys, tree(tmp_path))


def test_bad_prediction_requests(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table, _ = write_inputs(tmp_path)
    assert run(fit_arguments(tmp_path, "--model", "svm")) == 0
    model, before = str(tmp_path / "model"), tree(tmp_path)
    out = str(tmp_path / "p.csv")
    refused(tmp_path, ["predict", model, table, "--out", out, "--proba"], 2, "--proba", capsys, before)
    refused(tmp_path, ["predict", model, table, "--out", model], 4, "folder", capsys, before)
    refused(tmp_path, ["predict", model, table, "--out", str(tmp_path / "no" / "p")], 4, "folder", capsys, before)
    refused(tmp_path, ["predict", model, "absent.csv", "--out", out], 4, "absent.csv", capsys, before)
    wide = make_frame(5).assign(extra=SECRET)
    wide.to_csv(tmp_path / "wide.csv", index=False)
    before = tree(tmp_path)
    refused(tmp_path, ["predict", model, str(tmp_path / "wide.csv"), "--out", out], 2, "'extra'", capsys, before)
