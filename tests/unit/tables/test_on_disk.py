"""Parquet row blocks: the same numbers as in memory, in a file that nobody finds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpadmm.cli.app import run
from dpadmm.cli.model_folder import features_of
from dpadmm.errors import FileProblem, InvalidData, InvalidSchema
from dpadmm.estimators.sklearn_input import feature_table
from dpadmm.rows.file_pages import _shared_mapping
from dpadmm.tables import Schema, encode, encoded_on_disk

SCHEMA = Schema.from_dict(
    {
        "columns": {
            "age": {"kind": "numeric", "lower": 0, "upper": 100},
            "code": {"kind": "categorical", "categories": [1, 2]},
            "married": {"kind": "boolean"},
        },
        "target": {"column": "income", "kind": "classes", "classes": ["low", "high"]},
    }
)


@pytest.fixture
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "age": rng.uniform(-10, 120, 500),
            "code": pd.array([None if k == 7 else k % 3 for k in range(500)], dtype="Int64"),
            "married": rng.random(500) < 0.5,
            "income": np.where(rng.random(500) < 0.4, "low", "high"),
        }
    )


@pytest.fixture
def path(frame: pd.DataFrame, tmp_path: Path) -> Path:
    frame.to_parquet(tmp_path / "people.parquet", row_group_size=130)
    return tmp_path / "people.parquet"


@pytest.mark.parametrize("block_rows", [1, 64, 10_000])
def test_the_numbers_are_those_of_memory(path: Path, frame: pd.DataFrame, tmp_path: Path, block_rows: int) -> None:
    expected = encode(frame, SCHEMA, with_target=True, invalid_rows="zero")
    with encoded_on_disk(path, SCHEMA, tmp_path, with_target=True, invalid_rows="zero", block_rows=block_rows) as found:
        assert np.array_equal(found.X, expected.X.astype(np.float32), equal_nan=True)
        assert np.array_equal(found.y, expected.y)
        assert np.array_equal(found.valid, expected.valid)
        assert found.feature_names == expected.feature_names
        assert [each.name for each in tmp_path.iterdir()] == ["people.parquet"]


def test_estimators_see_the_mapped_file_and_no_copy(path: Path, tmp_path: Path) -> None:
    with encoded_on_disk(path, SCHEMA, tmp_path, with_target=True, invalid_rows="zero") as found:
        seen = feature_table(features_of(found), True, None)
        assert np.shares_memory(seen, found.X)
        assert _shared_mapping(seen) is not None


def test_an_invalid_row_of_any_block_is_refused(frame: pd.DataFrame, tmp_path: Path) -> None:
    frame.loc[499, "age"] = np.nan
    frame.to_parquet(tmp_path / "people.parquet")
    with (
        pytest.raises(InvalidData, match="missing"),
        encoded_on_disk(tmp_path / "people.parquet", SCHEMA, tmp_path, with_target=True, block_rows=100),
    ):
        pass


@pytest.mark.parametrize(
    ("change", "refusal"),
    [
        (lambda path, folder: path.write_text("no parquet"), InvalidData),
        (lambda path, folder: path.rename(folder / "people.csv"), FileProblem),
        (lambda path, folder: pd.DataFrame({"age": [1.0]}).to_parquet(path), InvalidSchema),
        (lambda path, folder: pd.read_parquet(path).head(0).to_parquet(path), InvalidData),
    ],
)
def test_what_cannot_be_read_is_refused(path: Path, tmp_path: Path, change: Any, refusal: type[Exception]) -> None:
    change(path, tmp_path)
    with pytest.raises(refusal), encoded_on_disk(path, SCHEMA, tmp_path, with_target=True):
        pass


def test_the_command_line_trains_from_disk(path: Path, tmp_path: Path) -> None:
    (tmp_path / "people.toml").write_text(SCHEMA.to_toml())
    asked = ["fit", str(path), "--schema", str(tmp_path / "people.toml"), "--epsilon", "1", "--delta", "1e-5"]
    asked += ["--invalid-rows", "zero", "--quiet"]
    assert run([*asked, "--out", str(tmp_path / "model"), "--on-disk", str(tmp_path)]) == 0
    assert (tmp_path / "model" / "model.npz").is_file()
    assert run([*asked, "--out", str(tmp_path / "other"), "--on-disk", str(tmp_path / "nowhere")]) != 0
    assert not (tmp_path / "other").exists()
