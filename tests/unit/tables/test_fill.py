"""Declared fill values: what a missing cell counts as, by a rule on the cell alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpadmm.cli.app import run
from dpadmm.errors import InvalidSchema
from dpadmm.tables import EncodedTable, Schema, encode, encoded_on_disk
from dpadmm.tables.missing import is_missing

AGE = {"kind": "numeric", "lower": 0, "upper": 100, "fill": 40}
WORK = {"kind": "categorical", "categories": ["private", "state", "unknown"], "fill": "unknown"}
MARRIED = {"kind": "boolean", "fill": False}
FILLED = {"age": AGE, "work": WORK, "married": MARRIED}
NOTHING: list[Any] = ["", "  ", "NA", "n/a", "<NA>", "NaN", "nan", "NULL", "None", None, np.nan, pd.NA, pd.NaT]
WRONG: list[Any] = ["?", "12,5", "unclear", "inf", -np.inf, "-", "missing", [1], 1j]


def one(declared: dict[str, Any], cells: Any) -> EncodedTable:
    schema = Schema.from_dict({"columns": {"a": declared}})
    return encode(pd.DataFrame({"a": cells}), schema, with_target=False, invalid_rows="zero")


@pytest.mark.parametrize("cell", NOTHING)
def test_a_missing_cell_counts_as_declared(cell: Any) -> None:
    assert is_missing(cell)
    assert one(AGE, [cell, "20"]).X[:, 0].tolist() == [0.4, 0.2]
    assert one(WORK, [cell]).X.tolist() == [[0, 0, 1]]
    assert one({**MARRIED, "fill": True}, [cell]).X.tolist() == [[1]]
    assert one(MARRIED, [cell]).X.tolist() == [[0]]


@pytest.mark.parametrize("cell", NOTHING)
def test_without_fill_nothing_has_changed(cell: Any) -> None:
    for declared in (AGE, MARRIED, {**WORK, "unseen": "error"}):
        plain = {key: value for key, value in declared.items() if key != "fill"}
        assert not one(plain, [cell]).valid.any()
    assert one({key: value for key, value in WORK.items() if key != "fill"}, [cell]).X.tolist() == [[0, 0, 0]]


@pytest.mark.parametrize("cell", WRONG)
def test_what_cannot_be_read_is_wrong_and_not_missing(cell: Any) -> None:
    assert not is_missing(cell)
    assert not one(AGE, [cell, "20"]).valid[0]
    assert not one(MARRIED, [cell, "no"]).valid[0]
    assert one(WORK, [cell, "state"]).X[0].tolist() == [0, 0, 0]
    assert not one({**WORK, "unseen": "error"}, [cell, "state"]).valid[0]


def test_a_declared_category_is_never_missing() -> None:
    countries = {"kind": "categorical", "categories": ["NA", "DE"], "fill": "DE"}
    assert one(countries, ["NA", "", "nan"]).X.tolist() == [[1, 0], [0, 1], [0, 1]]


@pytest.mark.parametrize(
    "cells",
    [
        pd.array([20, None], "Int64"),
        np.array([20.0, np.nan], np.float32),
        pd.Series([20, None], dtype="float64[pyarrow]"),
    ],
)
def test_typed_columns(cells: Any) -> None:
    np.testing.assert_allclose(one(AGE, cells).X[:, 0], [0.2, 0.4])
    assert not one(AGE, np.array([20.0, np.inf])).valid[1]


def test_numbers_as_categories() -> None:
    codes = {"kind": "categorical", "categories": [1, 2], "fill": 2.0}
    assert one(codes, ["1", "", "3"]).X.tolist() == [[1, 0], [0, 1], [0, 0]]


def test_each_row_by_itself() -> None:
    cells = ["1", *NOTHING, *WRONG, 5]
    together = one(AGE, cells).X[:, 0]
    np.testing.assert_array_equal(together, [one(AGE, pd.Series([cell], dtype=object)).X[0, 0] for cell in cells])


@pytest.mark.parametrize(
    ("declared", "says"),
    [
        ({**AGE, "fill": 101}, "from 0 to 100"),
        ({**AGE, "fill": float("nan")}, "from 0 to 100"),
        ({**AGE, "fill": "40"}, "from 0 to 100"),
        ({**AGE, "fill": True}, "from 0 to 100"),
        ({**AGE, "fill": 10**400}, "from 0 to 100"),
        ({**WORK, "fill": "other"}, "one of the categories"),
        ({**WORK, "fill": 1}, "one of the categories"),
        ({**WORK, "fill": ["unknown"]}, "one of the categories"),
        ({**MARRIED, "fill": "no"}, "true or false"),
        ({**MARRIED, "fill": 1}, "true or false"),
        ({"kind": "ignore", "fill": 1}, "unknown fill"),
    ],
)
def test_fill_must_fit_its_column(declared: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidSchema, match=says):
        Schema.from_dict({"columns": {"x": {"kind": "boolean"}, "a": declared}})


def test_a_target_has_no_fill() -> None:
    schema = Schema.from_dict({"columns": {"x": {"kind": "boolean"}, **FILLED}})
    for name in FILLED:
        with pytest.raises(InvalidSchema, match="target without fill"):
            schema.with_target(name)
    with pytest.raises(InvalidSchema, match="unknown fill"):
        Schema.from_dict({"columns": {"x": {"kind": "boolean"}}, "target": {"column": "y", **AGE}})


def test_schemas_are_written_and_read_back() -> None:
    schema = Schema.from_dict({"columns": {**FILLED, "zero": {**AGE, "fill": 0}}})
    assert Schema.from_toml(schema.to_toml()) == schema == Schema.from_dict(schema.to_dict())
    assert schema.to_dict()["columns"]["zero"]["fill"] == 0
    plain = Schema.from_dict({"columns": {"a": {"kind": "boolean"}, "b": {"kind": "numeric", "lower": 0, "upper": 1}}})
    assert "fill" not in plain.to_toml()


def test_the_template_tells_of_it() -> None:
    assert "fill = " in Schema.template(["a"])


def test_on_disk_as_in_memory(tmp_path: Path) -> None:
    frame = pd.DataFrame({"age": [1.0, None, 99.0], "work": ["state", None, "?"], "married": [True, None, False]})
    frame.to_parquet(tmp_path / "t.parquet")
    schema = Schema.from_dict({"columns": FILLED})
    expected = encode(frame, schema, with_target=False)
    assert expected.X[1].tolist() == [0.4, 0, 0, 1, 0]
    with encoded_on_disk(tmp_path / "t.parquet", schema, tmp_path, with_target=False, block_rows=1) as found:
        np.testing.assert_array_equal(found.X, expected.X.astype(np.float32))


def test_predictions_use_it_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A model of one feature, where a missing age must score as the age it counts as."""
    declared = {**AGE, "fill": 90}
    target = {"column": "y", "kind": "classes", "classes": ["no", "yes"]}
    (tmp_path / "s.toml").write_text(Schema.from_dict({"columns": {"age": declared}, "target": target}).to_toml())
    rows = [("" if k % 10 == 9 else str(k % 100), "yes" if k % 100 >= 50 else "no") for k in range(2000)]
    (tmp_path / "t.csv").write_text("age,y\n" + "".join(f"{age},{label}\n" for age, label in rows))
    fitted = ["fit", str(tmp_path / "t.csv"), "--schema", str(tmp_path / "s.toml"), "--out", str(tmp_path / "m")]
    assert run([*fitted, "--epsilon", "1", "--delta", "1e-6", "--quiet"]) == 0
    (tmp_path / "new.csv").write_text("age\n\n90\nNA\n")
    (tmp_path / "new.csv").write_text('age\n""\n90\nNA\n')
    out = str(tmp_path / "p.csv")
    assert run(["predict", str(tmp_path / "m"), str(tmp_path / "new.csv"), "--out", out, "--proba"]) == 0
    assert len(set(Path(out).read_text().splitlines()[1:])) == 1
    assert run(["evaluate", str(tmp_path / "m"), str(tmp_path / "t.csv"), "--public-or-test"]) == 0
