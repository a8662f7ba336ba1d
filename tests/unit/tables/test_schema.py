"""Schemas: what they declare, how they are written and read back, and what is refused with a hint of what to write."""

from __future__ import annotations

import tomllib
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpadmm.errors import FileProblem, InvalidSchema
from dpadmm.tables import Schema
from dpadmm.tables.columns import Classes, Numeric

TEXT = """
[columns.age]
kind = "numeric"
lower = 17
upper = 90.5

[columns."work class"]
kind = "categorical"
categories = ["private", "state \\"gov\\"", "ü\\u007f\\t"]
unseen = "error"

[columns.code]
kind = "categorical"
categories = [1, 2, 3]

[columns.married]
kind = "boolean"

[columns.id]
kind = "ignore"

[target]
column = "income"
kind = "classes"
classes = ["low", "high"]
"""


def columns(**tables: Any) -> dict[str, Any]:
    return {"columns": {"x": {"kind": "boolean"}, **tables}}


def numeric(lower: object = 0, upper: object = 1, **more: object) -> dict[str, object]:
    return {"kind": "numeric", "lower": lower, "upper": upper, **more}


def test_features_after_expansion() -> None:
    schema = Schema.from_toml(TEXT)
    assert schema.feature_names == (
        "age",
        "work class=private",
        'work class=state "gov"',
        "work class=ü\x7f",
        "code=1",
        "code=2",
        "code=3",
        "married",
    )
    assert schema.n_features == 8
    assert schema.required == ("age", "work class", "code", "married")
    assert schema.target is not None
    assert schema.target.classes == ("low", "high")


def test_round_trips(tmp_path: Path) -> None:
    schema = Schema.from_toml(TEXT)
    assert Schema.from_dict(schema.to_dict()) == schema
    assert Schema.from_toml(schema.to_toml()) == schema
    path = tmp_path / "s.toml"
    path.write_text(schema.to_toml(), encoding="utf-8")
    assert Schema.read(path) == schema
    path.write_text(schema.to_toml(), encoding="utf-8-sig")
    assert Schema.read(str(path)) == schema


def test_round_trip_of_other_targets() -> None:
    for target in (
        {"column": "t", "kind": "numeric", "lower": -1e-300, "upper": 1e16},
        {"column": "a.b", "kind": "classes", "classes": [True, False]},
        {"column": "t", "kind": "classes", "classes": [-1, 1]},
    ):
        schema = Schema.from_dict({**columns(), "target": target})
        assert Schema.from_toml(schema.to_toml()) == schema
        assert schema.to_dict()["target"] == target


def test_target_chosen_later() -> None:
    schema = Schema.from_dict(
        columns(
            y={"kind": "categorical", "categories": ["a", "b"]},
            z=numeric(0, 2),
            k={"kind": "boolean"},
            i={"kind": "ignore"},
        )
    )
    chosen = schema.with_target("y")
    assert chosen.target is not None
    assert chosen.target.classes == ("a", "b")
    assert "y=a" not in chosen.feature_names
    assert chosen.with_target("y") is chosen
    assert schema.with_target("k").target.kind == Classes((False, True))  # type: ignore[union-attr]
    assert schema.with_target("z").target.kind == Numeric(0, 2)  # type: ignore[union-attr]
    assert schema.with_target("z").target.classes is None  # type: ignore[union-attr]
    with pytest.raises(InvalidSchema, match="own target 'y'"):
        chosen.with_target("z")
    with pytest.raises(InvalidSchema, match="does not declare"):
        schema.with_target("nope")
    with pytest.raises(InvalidSchema, match="ignore"):
        schema.with_target("i")


def test_numeric_scales_by_constants() -> None:
    kind = Numeric(10.0, 20.0)
    np.testing.assert_array_equal(kind.to_unit(np.array([0.0, 10, 15, 20, 99])), [0, 0, 0.5, 1, 1])
    np.testing.assert_array_equal(kind.from_unit(np.array([0.0, 0.5, 1])), [10, 15, 20])


@pytest.mark.parametrize(
    ("declared", "says"),
    [
        ({}, r"\[columns.NAME\]"),
        ([], "dictionary"),
        ({"columns": {}}, r"\[columns.NAME\]"),
        ({"columns": {"a": {"kind": "ignore"}}}, "without features"),
        ({"colums": {}, **columns()}, "colums"),
        (columns(a={}), "no kind"),
        (columns(a=3), "table"),
        (columns(a={"kind": "number"}), '"numeric" or "categorical"'),
        (columns(a={"kind": ["numeric"]}), '"numeric" or "categorical"'),
        (columns(a={"kind": "boolean", "lower": 1}), "unknown lower"),
        (columns(a=numeric(low=3)), "unknown low"),
        (columns(a={"kind": "numeric", "lower": 0}), "upper = …"),
        (columns(a={"kind": "numeric"}), "lower = …"),
        (columns(a=numeric("0", "1")), "lower = …"),
        (columns(a=numeric(False, True)), "lower = …"),
        (columns(a=numeric(1, 1)), "lower < upper"),
        (columns(a=numeric(2, 1)), "lower < upper"),
        (columns(a=numeric(0, float("inf"))), "finite"),
        (columns(a=numeric(float("nan"), 1)), "finite"),
        (columns(a=numeric(-1e308, 1e308)), "finite"),
        (columns(a=numeric(0, 10**400)), "finite"),
        (columns(a=numeric(0, 10**9000)), "finite"),
        (columns(a=numeric(fill=10**9000)), "declared range"),
        (columns(a={"kind": 10**9000}), '"numeric" or "categorical"'),
        (columns(a={"kind": "categorical", "categories": ["a"], "unseen": 10**9000}), '"zero" or "error"'),
        (columns(a={"kind": "categorical"}), "categories = "),
        (columns(a={"kind": "categorical", "categories": []}), "at least 1"),
        (columns(a={"kind": "categorical", "categories": "ab"}), "categories = "),
        (columns(a={"kind": "categorical", "categories": ["a", "a "]}), "twice"),
        (columns(a={"kind": "categorical", "categories": [1, 1.0]}), "twice"),
        (columns(a={"kind": "categorical", "categories": ["a", 1]}), "several sorts"),
        (columns(a={"kind": "categorical", "categories": [[1], [2]]}), "sorts"),
        (columns(a={"kind": "categorical", "categories": ["a"], "unseen": "warn"}), '"zero" or "error"'),
        (columns(a={"kind": "categorical", "categories": ["b"]}, **{"a=b": {"kind": "boolean"}}), "'a=b' twice"),
        ({**columns(), "target": {"kind": "classes", "classes": ["a", "b"]}}, "column = "),
        ({**columns(), "target": "y"}, "column = "),
        ({**columns(), "target": {"column": "y"}}, '"classes" or "numeric"'),
        ({**columns(), "target": {"column": "y", "kind": "classes"}}, "classes = "),
        ({**columns(), "target": {"column": "y", "kind": "classes", "classes": ["a"]}}, "at least 2"),
        ({**columns(), "target": {"column": "y", "kind": "classes", "classes": ["a", "b"], "up": 1}}, "unknown up"),
        ({**columns(), "target": {"column": "x", "kind": "classes", "classes": ["a", "b"]}}, "declared once"),
    ],
)
def test_refusals_say_what_to_write(declared: Any, says: str) -> None:
    with pytest.raises(InvalidSchema, match=says):
        Schema.from_dict(declared)


def test_duplicate_columns_in_the_file() -> None:
    with pytest.raises(InvalidSchema, match=r"not TOML \(at line \d+"):
        Schema.from_toml('[columns.a]\nkind = "boolean"\n[columns.a]\nkind = "boolean"\n')


def test_wrong_file_is_not_quoted(tmp_path: Path) -> None:
    """A table given in the place of the schema may be private."""
    path = tmp_path / "data.csv"
    for content in (b"SECRET-7431,2\n3,4\n", b"[SECRET-7431]\n[SECRET-7431]\n", b"\xffSECRET-7431"):
        path.write_bytes(content)
        with pytest.raises(InvalidSchema) as caught:
            Schema.read(path)
        assert "7431" not in str(caught.value)
        assert caught.value.__context__ is None


@pytest.mark.parametrize("part", ["a", '"a b"', "'a.b'"])
@pytest.mark.parametrize("form", ["{} = 1", "[{}]", "a = {{{} = 1}}"])
def test_a_key_without_end_is_refused_before_it_takes_memory(part: str, form: str) -> None:
    text = form.format(" . ".join([part] * 20_000))
    tracemalloc.start()
    with pytest.raises(InvalidSchema, match="not TOML"):
        Schema.from_toml(text)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1 << 24


def test_long_names_and_texts_with_dots_are_no_endless_keys() -> None:
    texts = ["a.b " * 300, "a" * 100_000, "a . b . c"]
    declared = columns(**{"x" * 9000: {"kind": "categorical", "categories": texts}})
    assert Schema.from_toml(Schema.from_dict(declared).to_toml()) == Schema.from_dict(declared)


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(FileProblem, match=r"none\.toml"):
        Schema.read(tmp_path / "none.toml")
    with pytest.raises(FileProblem):
        Schema.read(tmp_path)


def test_template_is_toml_made_of_names() -> None:
    names = ["age", "work class", 'quo"te', "ümlaut", "a.b"]
    text = Schema.template(names)
    assert list(tomllib.loads(text)["columns"]) == names
    with pytest.raises(InvalidSchema, match="without features"):
        Schema.from_toml(text)
    edited = text.replace('[columns.age]\nkind = "ignore"', '[columns.age]\nkind = "numeric"\nlower = 0\nupper = 9')
    assert Schema.from_toml(edited).feature_names == ("age",)
