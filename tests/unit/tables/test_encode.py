"""Encoding: bounded, row by row, by declared constants, and silent about values."""

from __future__ import annotations

import datetime
import decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpadmm.errors import InvalidData, InvalidParameter, InvalidSchema
from dpadmm.tables import EncodedTable, Schema, encode, read_table

SECRET = "SECRET-7431"
SCHEMA = Schema.from_dict(
    {
        "columns": {
            "age": {"kind": "numeric", "lower": 0, "upper": 100},
            "work": {"kind": "categorical", "categories": ["private", "state"]},
            "code": {"kind": "categorical", "categories": [1, 2], "unseen": "error"},
            "married": {"kind": "boolean"},
            "id": {"kind": "ignore"},
        },
        "target": {"column": "income", "kind": "classes", "classes": ["low", "high"]},
    }
)
GOOD = {"age": "50", "work": "state", "code": "2", "married": "yes", "id": SECRET, "income": "high"}


def table(*changes: dict[str, Any]) -> pd.DataFrame:
    return pd.DataFrame([{**GOOD, **change} for change in changes])


def run(*changes: dict[str, Any], **options: Any) -> EncodedTable:
    return encode(table(*changes), SCHEMA, **{"with_target": True, "invalid_rows": "zero", **options})


def one_column(declared: dict[str, Any], cells: Any) -> EncodedTable:
    schema = Schema.from_dict({"columns": {"a": declared}})
    return encode(pd.DataFrame({"a": cells}), schema, with_target=False, invalid_rows="zero")


def test_good_row() -> None:
    encoded = run({}, {"age": 150, "work": " private ", "code": 1.0, "married": False, "income": "low "})
    np.testing.assert_array_equal(encoded.X, [[0.5, 0, 1, 0, 1, 1], [1, 1, 0, 1, 0, 0]])
    assert encoded.y is not None
    assert encoded.y.tolist() == ["high", "low"]
    assert encoded.valid.all()
    assert encoded.feature_names == ("age", "work=private", "work=state", "code=1", "code=2", "married")
    assert encoded.X.dtype == np.float64


@pytest.mark.parametrize(
    "cell", ["", "NA", None, np.nan, np.inf, "-inf", "1e999", SECRET, "12,5", [1], 1j, pd.NaT, pd.NA]
)
def test_bad_number_blanks_its_row_only(cell: Any) -> None:
    encoded = run({}, {"age": cell}, {"age": -5})
    assert encoded.valid.tolist() == [True, False, True]
    assert np.isnan(encoded.X[1]).all()
    assert not np.isnan(encoded.X[[0, 2]]).any()
    assert encoded.X[2, 0] == 0


@pytest.mark.parametrize("cell", ["other", "", None, np.nan, 3, "Private"])
def test_unseen_category_is_zeros_by_default(cell: Any) -> None:
    encoded = run({"work": cell})
    assert encoded.valid.all()
    np.testing.assert_array_equal(encoded.X[0, 1:3], [0, 0])


@pytest.mark.parametrize(
    "change", [{"code": 3}, {"code": None}, {"married": "maybe"}, {"married": None}, {"income": SECRET}]
)
def test_other_invalid_cells(change: dict[str, Any]) -> None:
    encoded = run({}, change)
    assert encoded.valid.tolist() == [True, False]
    assert np.isnan(encoded.X[1]).all()
    assert encoded.y is not None
    assert set(encoded.y) <= {"low", "high"}


@pytest.mark.parametrize(
    "change", [{"age": SECRET}, {"code": SECRET}, {"married": SECRET}, {"income": SECRET}, {"age": "7431e999"}]
)
def test_error_says_nothing_about_rows(change: dict[str, Any]) -> None:
    messages = set()
    for rows in ([change], [{}, change], [{}] * 50 + [change] * 20):
        with pytest.raises(InvalidData) as caught:
            run(*rows, invalid_rows="error")
        assert caught.value.__context__ is None
        messages.add(str(caught.value))
    assert len(messages) == 1
    message = messages.pop()
    assert not any(character.isdigit() for character in message)
    assert not any(f"'{name}'" in message for name in GOOD)


def test_each_row_by_itself() -> None:
    """Whatever another row holds, a row is encoded the same: otherwise one person could move everyone's features."""
    cells: list[Any] = ["1", "2.5", "18446744073709551615", "-1", "x", "", "1e400", None, "0x10", "True", "１"]
    declared = {"kind": "numeric", "lower": -10, "upper": 10}
    together = one_column(declared, cells).X[:, 0]
    alone = [one_column(declared, [cell]).X[0, 0] for cell in cells]
    np.testing.assert_array_equal(together, alone)


@pytest.mark.parametrize("other", [2, None, np.nan])
def test_a_missing_number_does_not_rename_the_others(other: Any) -> None:
    """pandas makes integers floats when one is missing; the others must keep their category."""
    encoded = one_column({"kind": "categorical", "categories": ["1", "2"]}, [1, other])
    assert encoded.X[0].tolist() == [1, 0]


@pytest.mark.parametrize(
    "cells",
    [
        np.array([1, 3], dtype=np.int8),
        np.array([1, 3], dtype=np.float32),
        pd.array([1, 3], dtype="Int64"),
        pd.Categorical([1, 3]),
        [decimal.Decimal(1), decimal.Decimal(3)],
        [" 1", "3e0"],
    ],
)
def test_typed_numbers(cells: Any) -> None:
    encoded = one_column({"kind": "numeric", "lower": 1, "upper": 5}, cells)
    np.testing.assert_array_equal(encoded.X[:, 0], [0, 0.5])
    assert encoded.valid.all()


def test_typed_missing_numbers() -> None:
    assert one_column({"kind": "numeric", "lower": 0, "upper": 1}, pd.array([1, None], "Int64")).valid.tolist() == [
        True,
        False,
    ]
    days = [datetime.date(2020, 1, 1)]
    assert not one_column({"kind": "numeric", "lower": 0, "upper": 1}, days).valid.any()
    assert not one_column({"kind": "numeric", "lower": 0, "upper": 1}, pd.to_datetime(days)).valid.any()


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        ([True, False], [1, 0]),
        (pd.array([True, False], "boolean"), [1, 0]),
        ([1, 0], [1, 0]),
        ([1.0, 0.0], [1, 0]),
        (["TRUE", " f"], [1, 0]),
        (["Y", "no"], [1, 0]),
    ],
)
def test_booleans(cells: Any, expected: list[int]) -> None:
    assert one_column({"kind": "boolean"}, cells).X[:, 0].tolist() == expected


def test_numeric_target_is_clipped_in_its_own_units() -> None:
    schema = Schema.from_dict(
        {"columns": {"a": {"kind": "boolean"}}, "target": {"column": "y", "kind": "numeric", "lower": -5, "upper": 5}}
    )
    frame = pd.DataFrame({"a": ["1"] * 4, "y": ["2.5", "99", "-99", "x"]})
    encoded = encode(frame, schema, with_target=True, invalid_rows="zero")
    assert encoded.y is not None
    assert encoded.y[:3].tolist() == [2.5, 5, -5]
    assert encoded.valid.tolist() == [True, True, True, False]


@pytest.mark.parametrize(("classes", "kind"), [([-1, 1], "i"), ([False, True], "b"), (["a", "b"], "U")])
def test_classes_keep_their_type(classes: list[Any], kind: str) -> None:
    declared = {"columns": {"a": {"kind": "boolean"}}, "target": {"column": "y", "kind": "classes", "classes": classes}}
    frame = pd.DataFrame({"a": ["1", "0"], "y": [str(value) for value in classes]})
    encoded = encode(frame, Schema.from_dict(declared), with_target=True)
    assert encoded.y is not None
    assert encoded.y.dtype.kind == kind
    assert encoded.y.tolist() == classes


def test_target_may_be_absent_or_ignored() -> None:
    frame = table({"income": SECRET})
    assert encode(frame, SCHEMA, with_target=False).y is None
    assert encode(frame.drop(columns=["income", "id"]), SCHEMA, with_target=False).valid.all()


def test_columns_in_any_order() -> None:
    frame = table({}, {"age": 1})
    straight = encode(frame, SCHEMA, with_target=True)
    np.testing.assert_array_equal(straight.X, encode(frame[sorted(frame.columns)], SCHEMA, with_target=True).X)


def test_column_names_may_be_numbers() -> None:
    schema = Schema.from_dict({"columns": {"0": {"kind": "boolean"}}})
    assert encode(pd.DataFrame({0: ["1"]}), schema, with_target=False).X.tolist() == [[1]]
    with pytest.raises(InvalidSchema, match="present twice '0'"):
        encode(pd.DataFrame({0: ["1"], "0": ["1"]}), schema, with_target=False)


def test_column_names_are_checked_before_values() -> None:
    frame = table({"age": SECRET})
    with pytest.raises(InvalidSchema, match="missing columns 'age', 'income'") as caught:
        encode(frame.drop(columns=["age", "income"]), SCHEMA, with_target=True)
    assert "7431" not in str(caught.value)
    with pytest.raises(InvalidSchema, match="does not declare 'extra'"):
        encode(frame.assign(extra=SECRET), SCHEMA, with_target=True)
    with pytest.raises(InvalidSchema, match="present twice 'age'"):
        encode(pd.concat([frame, frame[["age"]]], axis=1), SCHEMA, with_target=True)
    with pytest.raises(InvalidSchema, match="without target"):
        encode(frame, Schema(SCHEMA.columns), with_target=True)


def test_other_refusals() -> None:
    with pytest.raises(InvalidData, match="empty"):
        encode(table({}).iloc[:0], SCHEMA, with_target=True)
    with pytest.raises(InvalidData, match="DataFrame"):
        encode([[1]], SCHEMA, with_target=True)  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter, match="'error' or 'zero'"):
        run({}, invalid_rows="drop")


def test_input_is_left_alone_and_repr_is_silent() -> None:
    frame = table({}, {"age": SECRET})
    before = frame.copy()
    assert SECRET not in repr(encode(frame, SCHEMA, with_target=True, invalid_rows="zero"))
    assert "0.5" not in repr(run({}))
    pd.testing.assert_frame_equal(frame, before)


def test_csv_and_parquet_agree(tmp_path: Path) -> None:
    typed = pd.DataFrame(
        {
            "age": [20.0, 150.0, None],
            "work": ["state", None, "private"],
            "code": [1, 2, 2],
            "married": [True, False, True],
            "income": ["low", "high", "low"],
        }
    )
    typed.to_csv(tmp_path / "t.csv", index=False)
    typed.to_parquet(tmp_path / "t.parquet", index=False)
    first, second = (
        encode(read_table(tmp_path / name), SCHEMA, with_target=True, invalid_rows="zero")
        for name in ("t.csv", "t.parquet")
    )
    np.testing.assert_array_equal(first.X, second.X)
    np.testing.assert_array_equal(first.valid, [True, True, False])
    assert first.y is not None
    assert second.y is not None
    np.testing.assert_array_equal(first.y, second.y)


@pytest.mark.parametrize(
    "cell", [True, False, 1.0, -0.0, 0j, np.int8(1), decimal.Decimal("1.0"), decimal.Decimal("-0.00"), Fraction(1)]
)
@pytest.mark.parametrize("declared", [["0", "1"], ["False", "True"], ["1"], ["True", "0", "1"], ["1.0", "x"]])
def test_cells_of_equal_value_are_one_category(cell: Any, declared: list[str]) -> None:
    """Pandas keeps one of them for all in a column of categories: no cell may rename the others by being there."""
    schema = Schema.from_dict({"columns": {"c": {"kind": "categorical", "categories": declared, "unseen": "error"}}})
    before = pd.DataFrame({"c": pd.Series([1, 0, 1, 0], dtype="category")})
    for cells in ([cell, 0, 1, 0], [cell, 1, 0, 1, 0]):
        after = pd.DataFrame({"c": pd.Series(cells, dtype="category")})
        one, two = (encode(table, schema, with_target=False, invalid_rows="zero") for table in (before, after))
        np.testing.assert_array_equal(one.X[-3:], two.X[-3:])
        np.testing.assert_array_equal(one.valid[-3:], two.valid[-3:])


def test_text_is_no_truth_value() -> None:
    schema = Schema.from_dict({"columns": {"c": {"kind": "categorical", "categories": ["1", "no"], "unseen": "error"}}})
    cells = pd.DataFrame({"c": ["True", True, 1, "1", "no"]}, dtype=object)
    found = encode(cells, schema, with_target=False, invalid_rows="zero")
    np.testing.assert_array_equal(found.valid, [False, True, True, True, True])


@pytest.mark.parametrize(
    ("cell", "place"),
    [
        (2**53, 0),
        (2**53 + 1, 1),
        (float(2**53), 0),
        (0.1, 2),
        (decimal.Decimal("0.1"), 2),
        (np.float32(0.5), 3),
        (Fraction(1, 2), 3),
        ("1/2", -1),
        ("0.5", 3),
        (".5", -1),
        (decimal.Decimal("1e-999999999"), -1),
        (decimal.Decimal("1e999999999"), -1),
        (datetime.date(2020, 1, 2), 4),
        (None, -1),
        (b"0.1", -1),
        (10**400, -1),
        (7.0, 6),  # the usual way to write seven comes first
        ("7", 6),
        ("007", 5),
    ],
)
def test_numbers_are_found_by_value_and_texts_by_their_letters(cell: Any, place: int) -> None:
    declared = ["9007199254740992", "9007199254740993", "0.1", "0.5", "2020-01-02", "007", "7", "1e999999999"]
    cells = pd.DataFrame({"c": pd.Series([cell], dtype=object)})
    schema = Schema.from_dict({"columns": {"c": {"kind": "categorical", "categories": declared}}})
    found = encode(cells, schema, with_target=False).X[0]
    np.testing.assert_array_equal(found, np.arange(len(declared)) == place)
