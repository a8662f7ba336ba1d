"""`score.py` and `score.sql` of a model folder predict as the library does, on every kind of model and column."""

from __future__ import annotations

import csv
import io
import json
import sqlite3
import subprocess
import sys
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpadmm import (
    DPLinearRegression,
    DPLinearSVC,
    DPLogisticRegression,
    DPSearchCV,
    PrivateQuantileClipper,
    load_model,
)
from dpadmm.cli.app import run
from dpadmm.cli.raw_columns import raw_columns
from dpadmm.scoring import Category, LinearScore, Number, Promise, Ranged, YesNo, score_files, standalone
from dpadmm.tables import Schema, encode

LAST_BITS = 1e-12
"""Stated rounding: relative to the sum of the sizes of what is added, which is at most about 100 here."""

WEIRD = 'we"ird); DROP TABLE rows_to_score; --'
SCHEMA: dict[str, Any] = {
    "=1+1": {"kind": "numeric", "lower": -5, "upper": 20.5},
    WEIRD: {"kind": "categorical", "categories": ["o'brien", "'); DROP TABLE t; --", "=cmd()", 'a "q"', "back\\", ""]},
    "it's {0} %s": {"kind": "categorical", "categories": [3, 1, 2], "unseen": "error"},
    "float cat": {"kind": "categorical", "categories": [0.5, 1.25, -1e-3]},
    "new\nline": {"kind": "categorical", "categories": [True, False]},
    "bäck\\släsh 漢": {"kind": "boolean"},
    "id": {"kind": "ignore"},
    "strict": {"kind": "categorical", "categories": ["x", "y\nz", "naïve"], "unseen": "error"},
    "only": {"kind": "categorical", "categories": [True]},
}
TYPES = ["REAL", "TEXT", "REAL", "REAL", "TEXT", "TEXT", "TEXT", "TEXT", "TEXT"]
WRONG = ["oops", "", "1e400", "nan", "None", "Infinity", "12 34", "x" * 5000]


def raw_table(rows: int, seed: int, wrong: float = 0.0) -> pd.DataFrame:
    """Text cells that fit the schema, some of them unseen categories, and `wrong` of all cells that do not."""
    rng = np.random.default_rng(seed)
    seen: list[list[str]] = [
        [" 3.25 ", "-5", "20.5", "7e0", "-100", "1e300", "0"],
        ["o'brien", " '); DROP TABLE t; -- ", "=cmd()", 'a "q"', "back\\", "", "unseen", "O'BRIEN"],
        ["3", "1.0", "2"],
        ["0.5", "1.25", "-0.001", "7"],
        ["True", "no", "F", "1"],
        ["yes", " N ", "t", "0.0"],
        ["secret"],
        ["x", "y\nz", "naïve"],
        ["true", "false", "maybe"],
    ]
    columns = {name: rng.choice(np.array(cells, dtype=object), rows) for name, cells in zip(SCHEMA, seen, strict=True)}
    frame = pd.DataFrame(columns)
    for name in frame.columns:
        hit = rng.random(rows) < wrong
        frame.loc[hit, name] = rng.choice(np.array(WRONG, dtype=object), int(hit.sum()))
    age = pd.to_numeric(frame["=1+1"], errors="coerce").fillna(0).clip(-5, 20.5)
    marks = age + 6 * (frame["strict"] == "x") + rng.normal(0, 3, rows)
    frame["target"] = np.where(marks > 6, "ill", "well")
    frame.loc[marks > 14, "target"] = "it's \\ dead"
    frame["marks"] = np.round(marks, 3).astype(str)
    return frame


def declared(target: str) -> Schema:
    targets = {
        "two": {"column": "target", "kind": "classes", "classes": ["well", "ill"]},
        "three": {"column": "target", "kind": "classes", "classes": ["well", "it's \\ dead", "ill"]},
        "number": {"column": "marks", "kind": "numeric", "lower": -10, "upper": 40},
    }
    other = {"marks": {"kind": "ignore"}} if target != "number" else {"target": {"kind": "ignore"}}
    return Schema.from_dict({"columns": {**SCHEMA, **other}, "target": targets[target]})


def by_python(folder: Path, table: Path) -> list[list[str]]:
    """What `score.py` prints, run by a Python that finds nothing but its installed packages."""
    done = subprocess.run(
        [sys.executable, "-I", str(folder / "score.py"), str(table)], capture_output=True, check=True, cwd="/"
    )
    return list(csv.reader(io.StringIO(done.stdout.decode("utf-8"), newline="")))[1:]


def by_sql(text: str, frame: pd.DataFrame, types: Sequence[str]) -> list[tuple[Any, ...]]:
    """What the query answers for a table whose rows are numbered by `n`; the table is there afterwards."""
    place = sqlite3.connect(":memory:")
    names = ['"' + str(name).replace('"', '""') + '"' for name in frame.columns]
    kinds = [f"{name} {kind}" for name, kind in zip(names, types, strict=True)]
    place.execute(f"CREATE TABLE rows_to_score (row_number INTEGER, {', '.join(kinds)})")
    rows = [(number, *row) for number, row in enumerate(frame.astype(object).to_numpy().tolist())]
    place.executemany(f"INSERT INTO rows_to_score VALUES ({', '.join('?' * (len(names) + 1))})", rows)
    query = text.replace("FROM my_table AS t", "FROM rows_to_score AS t").replace("t.my_key AS", "t.row_number AS")
    found = sorted(place.execute(query).fetchall())
    assert place.execute("SELECT count(*) FROM rows_to_score").fetchone() == (len(frame),)
    assert [row[0] for row in found] == list(range(len(frame)))
    return found


def features_named(schema: Schema, encoded: Any) -> pd.DataFrame:
    return pd.DataFrame(encoded.X, columns=list(schema.feature_names))


def require_equal(found: Sequence[Any], wanted: Sequence[Any]) -> None:
    """Predictions equal, labels exactly and numbers but for the last bits."""
    assert len(found) == len(wanted)
    for one, other in zip(found, wanted, strict=True):
        if isinstance(other, float):
            assert float(one) == pytest.approx(other, rel=LAST_BITS, abs=100 * LAST_BITS)
        else:
            assert one == other


@pytest.mark.parametrize(
    ("target", "options"),
    [
        ("two", "--model logistic"),
        ("two", "--model logistic --no-intercept --row-norm 0.7"),
        ("two", "--model svm --row-norm 3 --penalty l1 --alpha 0.01"),
        ("three", "--model logistic --penalty group"),
        ("three", "--model logistic --no-intercept --row-norm 2"),
        ("number", "--model regression"),
        ("number", "--model huber --row-norm 1.5 --no-intercept"),
        ("two", "tune --try alpha=1e-4,1e-2 --penalty l2"),
    ],
)
def test_files_of_a_fit_predict_as_the_command_does(tmp_path: Path, target: str, options: str) -> None:
    schema, words = declared(target), options.split()
    command = words.pop(0) if words[0] == "tune" else "fit"
    train = raw_table(400, 0)
    if target == "two":
        train["target"] = train["target"].replace("it's \\ dead", "ill")
    train.to_parquet(tmp_path / "train.parquet", index=False)
    (tmp_path / "schema.toml").write_text(schema.to_toml(), encoding="utf-8")
    arguments = ["--schema", str(tmp_path / "schema.toml"), "--epsilon", "20", "--delta", "1e-5", "--seed", "1"]
    given = [command, str(tmp_path / "train.parquet"), *arguments, "--quiet", "--out", str(tmp_path / "model"), *words]
    assert run(given + (["--steps", "10"] if command == "fit" else [])) == 0

    fresh = raw_table(500, 1, wrong=0.03).drop(columns=["target", "marks"])
    fresh.to_csv(tmp_path / "new.csv", index=False)
    fresh.to_parquet(tmp_path / "new.parquet", index=False)  # cells with line breaks
    out = tmp_path / "p.csv"
    asked = ["predict", str(tmp_path / "model"), str(tmp_path / "new.parquet"), "--out", str(out)]
    assert run([*asked, "--invalid-rows", "blank"]) == 0
    wanted = [line[0] for line in csv.reader(out.open(encoding="utf-8", newline=""))][1:]
    model = load_model(tmp_path / "model")
    encoded = encode(fresh, schema, with_target=False, invalid_rows="zero")
    X = features_named(schema, encoded)[encoded.valid]
    scores = np.atleast_2d(model.margins(X).T).T
    assert 0 < encoded.valid.sum() < len(fresh)
    assert len(set(wanted)) > 2

    number = target == "number"
    lines = by_python(tmp_path / "model", tmp_path / "new.csv")
    answers = by_sql((tmp_path / "model" / "score.sql").read_text(encoding="utf-8"), fresh, TYPES)
    for found in ([line[0] for line in lines], ["" if row[-1] is None else row[-1] for row in answers]):
        require_equal(found, [float(each) if number and each else each for each in wanted])
    valid = np.flatnonzero(encoded.valid)
    for found in ([lines[i][1:] for i in valid], [answers[i][1:-1] for i in valid]):
        np.testing.assert_allclose(np.array(found, dtype=float), scores, rtol=LAST_BITS, atol=100 * LAST_BITS)
    assert all(cell == "" for i in np.flatnonzero(~encoded.valid) for cell in lines[i])
    assert all(cell is None for i in np.flatnonzero(~encoded.valid) for cell in answers[i][1:])


RANGE = ([-2.0, -1.0, 0.0, -3.0], [2.0, 3.0, 5.0, 3.0])
FITTED: dict[str, Any] = {
    "binary": lambda: DPLogisticRegression(20.0, classes=["a'", "=b"], steps=5, random_state=0),
    "integers": lambda: DPLogisticRegression(20.0, classes=[7, -3], bounds=RANGE, steps=5, random_state=0),
    "long doubles": lambda: DPLinearSVC(20.0, classes=np.array([0.5, 2.0], dtype=np.longdouble), random_state=0),
    "truths": lambda: DPLinearSVC(20.0, classes=[False, True], row_norm=2.0, fit_intercept=False, random_state=0),
    "floats": lambda: DPLinearSVC(20.0, classes=[0.5, 1e-7], bounds=RANGE, row_norm=0.5, random_state=0),
    "softmax": lambda: DPLogisticRegression(20.0, classes=list("pqr"), bounds=RANGE, steps=5, random_state=0),
    "regression": lambda: DPLinearRegression(20.0, target_bounds=(-7, 9), bounds=RANGE, steps=5, random_state=0),
    "huber": lambda: DPLinearRegression(20.0, target_bounds=(-7, 9), loss="huber", row_norm=3.0, random_state=0),
    "clipper": lambda: DPLogisticRegression(
        20.0, classes=[0, 1], bounds=PrivateQuantileClipper((-9, 9), share=0.3), steps=5, random_state=0
    ),
    "search": lambda: DPSearchCV(
        DPLogisticRegression(20.0, classes=[0, 1], penalty="l1", random_state=0), {"alpha": [1e-4, 1e-2]}
    ),
}


@pytest.mark.parametrize("name", FITTED)
@pytest.mark.parametrize(("precision", "named"), [(np.float64, True), (np.float32, False)])
def test_files_of_a_saved_model_predict_as_it_does(tmp_path: Path, name: str, precision: Any, named: bool) -> None:
    rng = np.random.default_rng(3)
    X = rng.normal(0, 2, (600, 4)).astype(precision)
    X[0] = 0.0
    marks = X @ [1.0, -0.5, 0.25, 0.0] + rng.normal(0, 0.2, 600)
    model = FITTED[name]()
    classes = getattr(getattr(model, "estimator", model), "classes", None)
    y = marks if classes is None else np.array(classes)[np.digitize(marks, [0, 2][: len(classes) - 1])]
    columns = ['a"; --', "'", "=x", "ü"]
    table: Any = pd.DataFrame(X, columns=columns) if named else X
    folder = model.fit(table, y).save(tmp_path / "model")
    best = load_model(folder)
    rows = pd.DataFrame(X.astype(np.float64), columns=columns if named else ["x0", "x1", "x2", "x3"])
    rows.to_csv(tmp_path / "new.csv", index=False)
    wide = rows if named else rows.to_numpy()
    wanted, scores = best.predict(wide).tolist(), np.atleast_2d(best.margins(wide).T).T

    lines = by_python(folder, tmp_path / "new.csv")
    answers = by_sql((folder / "score.sql").read_text(encoding="utf-8"), rows, ["REAL"] * 4)
    said = [line[0] for line in lines]
    require_equal(said, wanted if isinstance(wanted[0], float) and classes is None else [str(each) for each in wanted])
    require_equal([row[-1] for row in answers], wanted)
    for found in ([line[1:] for line in lines], [row[1:-1] for row in answers]):
        np.testing.assert_allclose(np.array(found, dtype=float), scores, rtol=LAST_BITS, atol=100 * LAST_BITS)


def a_score(inputs: Sequence[Any], **changes: Any) -> LinearScore:
    width = sum(each.width for each in inputs)
    weights = np.random.default_rng(0).normal(size=(width + 1, 1))
    fields = {"weights": weights, "row_norm": 1.0, "intercept": True, "labels": ["no", "yes"], "target_range": None}
    promise = Promise(1.0, 1e-6, "replace-one", False, "0" * 64)
    return LinearScore(inputs, **{**fields, "promise": promise, **changes})


def loaded(text: str) -> dict[str, Any]:
    namespace: dict[str, Any] = {"__name__": "score"}
    exec(compile(text, "score.py", "exec"), namespace)
    return namespace


def test_fill_values_stand_for_missing_cells_and_not_for_wrong_ones() -> None:
    inputs = (
        Ranged("age", 0.0, 100.0, 40.0),
        YesNo("well", True),
        Category("work", ("a", "b"), True, "b"),
        Category("size", (1, 2.5), False, 2.5),
        Category("flag", (True, False), True, False),
    )
    texts = score_files(a_score(inputs))
    score = loaded(texts["score.py"])
    full = ["40", "yes", "b", "2.5", "no"]
    missing: list[Any] = [None, "", " NA ", "NaN", "null", "n/a", "<NA>", "none"]
    rows = [
        full,
        *([cell] * 5 for cell in missing),
        ["?", *full[1:]],
        [*full[:2], "?", *full[3:]],
        [*full[:3], "9", "f"],
    ]
    found = score["scores"](rows)
    np.testing.assert_allclose(found[1:9], [found[0]] * 8, rtol=LAST_BITS)
    assert found[9:11] == [None, None]
    assert found[11] not in (None, found[0])
    names = [each.name for each in inputs]
    answers = by_sql(
        texts["score.sql"], pd.DataFrame(rows, columns=names, dtype=object), ["REAL", *["TEXT"] * 2, "REAL", "TEXT"]
    )
    for mine, its in zip(found, answers, strict=True):
        assert its[1] is None if mine is None else its[1] == pytest.approx(mine[0], rel=LAST_BITS)


CELLS: list[Any] = [
    "1", " 1.0 ", "yes", "T", "0", "no ", "", "nan", "inf", "1_0", "1e5", "٣", "a", " a\t", "A", "x\x00", b"a", b"1",
    None, float("nan"), float("inf"), 1, 1.0, 2, 2.5, True, False, np.float32(1.0), np.int8(1), np.bool_(True), 10**400,
    2**53 + 1, pd.NA, pd.NaT, pd.Timestamp("2020-01-01"), complex(1, 0), [1], (1,), {}, object(), "1.0\n", np.str_("a"),
    Decimal("1.0"), Decimal("2.50"), Fraction(5, 2), np.int64(2), np.float16(2.5), 0, 0.0, np.bool_(False), -1e300,
]  # fmt: skip


@pytest.mark.parametrize("cell", CELLS, ids=range(len(CELLS)))
def test_each_cell_is_read_as_the_library_reads_it(cell: Any) -> None:
    schema = Schema.from_dict(
        {
            "columns": {
                "number": {"kind": "numeric", "lower": -3, "upper": 70},
                "truth": {"kind": "boolean"},
                "text": {"kind": "categorical", "categories": ["a", "1", "2.5", "True", ""], "unseen": "error"},
                "numbers": {"kind": "categorical", "categories": [1, 2.5, 2**53 + 1]},
                "truths": {"kind": "categorical", "categories": [True, False], "unseen": "error"},
            }
        }
    )
    fitting: dict[str, Any] = {"number": 1.0, "truth": "yes", "text": "a", "numbers": 1, "truths": True}
    score = loaded(score_files(a_score(raw_columns(schema)))["score.py"])
    for name in fitting:
        row = {**fitting, name: cell}
        series = {key: pd.Series([value, None], dtype=object)[:1] for key, value in row.items()}
        encoded = encode(pd.DataFrame(series), schema, with_target=False, invalid_rows="zero")
        found = score["features"](row)
        assert (found is not None) == bool(encoded.valid[0])
        assert found is None or found == encoded.X[0].tolist()


def test_a_model_that_sql_cannot_hold_has_only_the_python_file(tmp_path: Path) -> None:
    many = [Number(f"x{i}") for i in range(600)]
    assert set(score_files(a_score(many))) == {"score.py"}
    for odd in ("nul\0", "half \ud800"):
        texts = score_files(a_score([Number(odd)]))
        assert set(texts) == {"score.py"}
        assert loaded(texts["score.py"])["predict"]([{odd: 1.0}]) in (["no"], ["yes"])
        assert set(score_files(a_score([Category("c", (odd, "b"))]))) == {"score.py"}
    assert set(score_files(a_score([Number("x")], labels=[2**63, 0]))) == {"score.py"}
    for labels in ([b"a", b"b"], [0.5, float("inf")]):
        assert score_files(a_score([Number("x")], labels=labels)) == {}
    huge = a_score([Number("x")], weights=np.zeros((200_001, 1)))
    assert score_files(huge) == {}


def test_sums_of_many_columns_fit_the_depth_of_sqlite() -> None:
    inputs = [Ranged(f"x{i}", -1.0, 1.0) for i in range(500)]
    weights = np.random.default_rng(0).normal(size=(501, 10))
    texts = score_files(a_score(inputs, weights=weights, labels=list(range(10))))
    rows = pd.DataFrame(np.random.default_rng(1).uniform(-1, 1, (3, 500)), columns=[each.name for each in inputs])
    answers = by_sql(texts["score.sql"], rows, ["REAL"] * 500)
    score = loaded(texts["score.py"])
    assert [row[-1] for row in answers] == score["predict"](rows.to_numpy())


def test_the_first_of_equal_scores_wins_everywhere() -> None:
    score = a_score([Number("x")], weights=np.zeros((2, 3)), labels=["u", "v", "w"])
    texts = score_files(score)
    assert loaded(texts["score.py"])["predict"]([[1.0]]) == ["u"]
    assert by_sql(texts["score.sql"], pd.DataFrame({"x": [1.0, None]}), ["REAL"])[0][-1] == "u"
    assert by_sql(texts["score.sql"], pd.DataFrame({"x": [None, "a"]}), ["REAL"])[1][-1] is None


def test_files_say_what_covers_them_and_need_no_library() -> None:
    texts = score_files(a_score([Number("x")]))
    seeded = score_files(a_score([Number("x")], promise=Promise(1.0, 1e-6, "replace-one", True, "1" * 64)))
    for name, text in texts.items():
        assert "(1.0, 1e-06)-differentially private under replace-one" in text
        assert "post-processing" in text
        assert "import dpadmm" not in text
        assert "from dpadmm" not in text
        assert "NOT private" in seeded[name]
        assert "-differentially private" not in seeded[name]
    assert texts["score.py"].isascii()


def test_the_score_of_a_regression_is_explained() -> None:
    plain, texts = (score_files(a_score([Number("x")], target_range=limits)) for limits in (None, (0.0, 80.0)))
    for name, text in texts.items():
        assert "score = (prediction - middle) / half of the declared target range" in text
        assert "(prediction - middle)" not in plain[name]
    score = loaded(texts["score.py"])
    assert score["predict"]([{"x": 0.5}]) == [40 * score["scores"]([{"x": 0.5}])[0][0] + 40]


def trained_by_command(tmp_path: Path) -> Path:
    schema = declared("two")
    train = raw_table(300, 0)
    train["target"] = train["target"].replace("it's \\ dead", "ill")
    train.to_parquet(tmp_path / "train.parquet", index=False)
    (tmp_path / "schema.toml").write_text(schema.to_toml(), encoding="utf-8")
    arguments = ["--schema", str(tmp_path / "schema.toml"), "--epsilon", "1", "--delta", "1e-5", "--steps", "2"]
    folder = tmp_path / "model"
    assert run(["fit", str(tmp_path / "train.parquet"), *arguments, "--out", str(folder), "--quiet"]) == 0
    return folder


def test_a_device_in_the_place_of_a_file_is_refused(tmp_path: Path) -> None:
    folder = trained_by_command(tmp_path)
    for name in ("score.py", "score.sql", "statement.json", "plan.json", "statement.txt"):
        (folder / name).rename(tmp_path / name)
        (folder / name).symlink_to("/dev/zero")
        assert run(["statement", str(folder)]) == 4, name
        (folder / name).unlink()
        (tmp_path / name).rename(folder / name)
    assert run(["statement", str(folder)]) == 0


@pytest.mark.parametrize("name", ["score.py", "score.sql"])
def test_a_changed_file_is_refused_and_an_absent_one_is_not(tmp_path: Path, name: str, capsys: Any) -> None:
    folder = trained_by_command(tmp_path)
    (folder / name).write_text((folder / name).read_text() + "\n")
    assert run(["statement", str(folder)]) == 4
    assert f"{name} contradicts its model" in capsys.readouterr().err
    (folder / name).unlink()
    assert run(["statement", str(folder)]) == 0


def test_a_folder_of_an_earlier_version_loads(tmp_path: Path) -> None:
    from dpadmm.estimators.loading import checksum
    from dpadmm.estimators.persistence import changed_score_files

    X = np.random.default_rng(0).normal(size=(200, 2))
    model = DPLogisticRegression(1.0, classes=[False, True], steps=2, random_state=0).fit(X, X[:, 0] > 0)
    folder = model.save(tmp_path / "model")
    words = json.loads((folder / "model.json").read_text())
    del words["score_files"], words["checksum"]
    (folder / "model.json").write_text(json.dumps({**words, "checksum": checksum(words)}))
    for name in ("score.py", "score.sql"):
        (folder / name).unlink()
    np.testing.assert_array_equal(load_model(folder).predict(X), model.predict(X))
    assert changed_score_files(folder) == []


def test_replacing_a_model_leaves_no_file_of_the_other(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 600))
    small = DPLinearSVC(1.0, classes=[False, True], steps=2).fit(X[:, :2], X[:, 0] > 0)
    wide = DPLinearSVC(1.0, classes=[False, True], steps=2).fit(X, X[:, 0] > 0)
    folder = small.save(tmp_path / "model")
    assert (folder / "score.sql").exists()
    wide.save(folder, force=True)
    assert not (folder / "score.sql").exists()
    assert (folder / "score.py").exists()


def test_blank_lines_and_single_columns_are_read_as_predict_reads_them(tmp_path: Path) -> None:
    (tmp_path / "score.py").write_text(score_files(a_score([Category("c", ("a", ""), True)]))["score.py"])
    (tmp_path / "one.csv").write_bytes(b'\xef\xbb\xbf c \r\n"a"\r\n\r\n""\r\n?\r\n')
    lines = by_python(tmp_path, tmp_path / "one.csv")
    assert [line[0] == "" for line in lines] == [False, False, True]
    from dpadmm.tables import read_table

    assert read_table(tmp_path / "one.csv")["c"].tolist() == ["a", "", "?"]


@pytest.mark.parametrize("text", ["d\na\n", "c,c\na,a\n", "c,d\na\n"])
def test_a_table_that_does_not_fit_is_refused_in_words_that_quote_no_cell(tmp_path: Path, text: str) -> None:
    (tmp_path / "score.py").write_text(score_files(a_score([Category("c", ("a", ""))]))["score.py"])
    (tmp_path / "wrong.csv").write_text(text)
    with pytest.raises(subprocess.CalledProcessError) as caught:
        by_python(tmp_path, tmp_path / "wrong.csv")
    assert caught.value.stderr.decode().startswith("given a table with")
    score = loaded((tmp_path / "score.py").read_text())
    with pytest.raises(ValueError, match="given a row of 2 cells; expected 1"):
        score["predict"]([["a", "b"]])


def test_numbers_of_numpy_are_written_as_plain_ones(tmp_path: Path) -> None:
    X = np.random.default_rng(0).normal(size=(200, 2))
    one = np.float64(1.0)
    model = DPLinearRegression(
        one, np.float64(1e-5), row_norm=one, target_bounds=(np.float32(-2), np.int64(2)), steps=2
    )
    folder = model.fit(X, X[:, 0]).save(tmp_path / "model")
    assert "np." not in (folder / "score.sql").read_text()
    score = loaded((folder / "score.py").read_text())
    np.testing.assert_allclose(score["predict"](X), model.predict(X), rtol=LAST_BITS, atol=LAST_BITS)


def test_the_program_in_the_package_does_nothing_by_itself() -> None:
    assert standalone.COLUMNS == []
    assert standalone.predict([]) == []


def test_numbers_of_any_type_say_what_the_number_says():
    for one in (1, 1.0, 1 + 0j, np.float32(1), np.float16(1), np.longdouble(1), np.complex64(1), np.int8(1)):
        assert standalone.text_of(one) == "1"
        assert standalone.number_of(one) == 1
    for none in (1j, np.complex128(1 + 2j), np.float32("nan")):
        assert standalone.text_of(none) is None
        assert standalone.number_of(none) is None
