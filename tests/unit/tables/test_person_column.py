"""The column of the persons: declared, checked, read, and never a feature."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from dpadmm.errors import InvalidData, InvalidSchema
from dpadmm.tables import Schema, check, encode, encoded_on_disk, read_table

SCHEMA = """
person = "id"

[columns.age]
kind = "numeric"
lower = 0
upper = 10

[target]
column = "ill"
kind = "classes"
classes = ["no", "yes"]
"""
FRAME = pd.DataFrame(
    {"id": [" a ", "a", "b", "007", "7"], "age": [1.0, 2.0, 3.0, 4.0, 5.0], "ill": ["no", "yes", "no", "yes", "no"]}
)


def test_ids_are_read_and_are_no_feature():
    schema = Schema.from_toml(SCHEMA)
    encoded = encode(FRAME, schema, with_target=True, with_person=True)
    assert schema.feature_names == ("age",)
    assert encoded.person.tolist() == ["a", "a", "b", "007", "7"]
    assert encoded.units == 4
    assert encode(FRAME, schema, with_target=True).person is None
    assert encode(FRAME.drop(columns="id"), schema, with_target=False).units == 5


def test_a_schema_is_written_as_it_was_read():
    schema = Schema.from_toml(SCHEMA)
    assert Schema.from_toml(schema.to_toml()) == schema
    assert Schema.from_dict(schema.to_dict()) == schema


@pytest.mark.parametrize("missing", ["", "NA", None, float("nan"), " null "])
def test_a_row_without_an_id_is_not_valid(missing):
    schema, frame = Schema.from_toml(SCHEMA), FRAME.astype({"id": object})
    frame.loc[2, "id"] = missing
    with pytest.raises(InvalidData, match="missing"):
        encode(frame, schema, with_target=True, with_person=True)
    blanked = encode(frame, schema, with_target=True, with_person=True, invalid_rows="zero")
    assert blanked.valid.tolist() == [True, True, False, True, True]
    assert np.isnan(blanked.X[2]).all()
    assert blanked.person[2] is None
    assert blanked.units == 3


def test_check_finds_rows_without_an_id(tmp_path):
    frame = FRAME.copy()
    frame.loc[3, "id"] = ""
    frame.to_csv(tmp_path / "t.csv", index=False)
    (found,) = check(tmp_path / "t.csv", Schema.from_toml(SCHEMA)).found
    assert (found.column, found.kind.key, found.count) == ("id", "no-id", 1)
    FRAME.drop(columns="id").to_csv(tmp_path / "u.csv", index=False)
    assert [each.kind.key for each in check(tmp_path / "u.csv", Schema.from_toml(SCHEMA)).found] == ["column-absent"]


def test_ids_of_a_file_are_those_of_the_table(tmp_path):
    schema = Schema.from_toml(SCHEMA)
    FRAME.to_parquet(tmp_path / "t.parquet")
    whole = encode(read_table(tmp_path / "t.parquet"), schema, with_target=True, with_person=True)
    with encoded_on_disk(
        tmp_path / "t.parquet", schema, tmp_path, with_target=True, with_person=True, block_rows=2
    ) as found:
        assert found.person.tolist() == whole.person.tolist()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (('person = "id"', 'person = "ill"'), "two columns"),
        (('person = "id"', 'person = "age"'), "declared as a feature"),
        (('person = "id"', "person = 3"), "name of one column"),
        (('person = "id"', 'owner = "id"'), "unknown owner"),
    ],
)
def test_a_column_that_is_something_else_is_refused(change, words):
    with pytest.raises(InvalidSchema, match=words):
        Schema.from_toml(SCHEMA.replace(*change))


def test_the_column_may_be_declared_to_be_ignored():
    text = SCHEMA.replace("[target]", '[columns.id]\nkind = "ignore"\n\n[target]')
    assert encode(FRAME, Schema.from_toml(text), with_target=True, with_person=True).units == 4


def test_the_column_of_the_persons_is_no_target():
    schema = Schema.from_toml(SCHEMA.partition("[target]")[0])
    with pytest.raises(InvalidSchema, match="column of the persons"):
        Schema.from_toml(schema.to_toml() + '\n[columns.id]\nkind = "ignore"\n').with_target("id")
