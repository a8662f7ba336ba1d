"""Reading tables: text stays text, types come from nowhere, errors quote nothing."""

from __future__ import annotations

import gzip
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpadmm.errors import FileProblem, InvalidData
from dpadmm.tables import read_table
from dpadmm.tables.lines import UNREADABLE

SECRET = "SECRET-7431"


def csv_file(folder: Path, content: str | bytes, name: str = "t.csv") -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def test_csv_cells_are_text(tmp_path: Path) -> None:
    frame = read_table(csv_file(tmp_path, 'id, age,note\n007,1e3,"a,""b"\nNA,,null\n'))
    assert list(frame.columns) == ["id", "age", "note"]
    assert frame.astype(object).values.tolist() == [["007", "1e3", 'a,"b'], ["NA", "", "null"]]


@pytest.mark.parametrize("line", [b"7", b"7,8,9", b"\xff,8", b'7,"8', b'7,"8"9', b"7\r8,9", b"," + b"x" * 131_073])
def test_a_line_that_cannot_be_read_is_one_unreadable_row(tmp_path: Path, line: bytes) -> None:
    frame = read_table(csv_file(tmp_path, b"a,b\n1,2\n" + line + b'\n3,"4"\n'))
    assert frame.values.tolist() == [["1", "2"], [UNREADABLE, UNREADABLE], ["3", "4"]]


def test_a_line_break_in_quotes_makes_two_unreadable_rows(tmp_path: Path) -> None:
    frame = read_table(csv_file(tmp_path, 'a,b\n1,"2\n3"\n4,5\n'))
    assert frame["a"].tolist() == [UNREADABLE, UNREADABLE, "4"]


def test_types_do_not_depend_on_values(tmp_path: Path) -> None:
    numbers = read_table(csv_file(tmp_path, "a,b\n1,2\n3,4\n"))
    words = read_table(csv_file(tmp_path, "a,b\n1,x\n,4\n"))
    assert list(numbers.dtypes) == list(words.dtypes)


@pytest.mark.parametrize("name", ["t.csv.gz", "T.CSV.GZ"])
def test_compressed(tmp_path: Path, name: str) -> None:
    frame = read_table(csv_file(tmp_path, gzip.compress(b"\xef\xbb\xbfa,b\r\n1,2\r\n"), name))
    assert frame.astype(object).to_dict("list") == {"a": ["1"], "b": ["2"]}


def test_first_column_never_becomes_an_index(tmp_path: Path) -> None:
    frame = read_table(csv_file(tmp_path, "a,b\n1,2,3\n4,5\n"))
    assert frame.values.tolist() == [[UNREADABLE, UNREADABLE], ["4", "5"]]


def test_long_rows(tmp_path: Path) -> None:
    names = [f"column{i}" for i in range(5_000)]
    frame = read_table(csv_file(tmp_path, ",".join(names) + "\n" + ",".join(["1" * 500] * len(names)) + "\n"))
    assert frame.shape == (1, 5_000)


def test_parquet_keeps_types_and_every_column(tmp_path: Path) -> None:
    (tmp_path / "year=2020").mkdir()
    path = tmp_path / "year=2020" / "t.parquet"
    source = pd.DataFrame({"n": [1.5, None], "s": ["x", None], "b": [True, False]}, index=pd.Index([5, 6], name="key"))
    source.to_parquet(path)
    frame = read_table(path)
    assert sorted(frame.columns) == ["b", "key", "n", "s"]
    assert frame["n"].dtype == float
    assert frame["b"].tolist() == [True, False]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (f'a,b,c,d,e,f,g,h,"{SECRET}\n1,2\n', "cannot be read"),
        (f"a,b,c,d,e,f,g,h,{SECRET}".encode() + b"\xff\n1,2\n", "cannot be read"),
        (f"a,b\r1,{SECRET}\r", "cannot be read"),
        ("", "empty table"),
        ("a,b\n", "empty table"),
        ("a,b", "empty table"),
        ("a,b,a\n1,2,3\n", "present twice"),
    ],
)
def test_bad_csv(tmp_path: Path, content: str | bytes, says: str) -> None:
    with pytest.raises(InvalidData, match=says) as caught:
        read_table(csv_file(tmp_path, content))
    assert "7431" not in str(caught.value)
    assert caught.value.__context__ is None


def test_bad_compression(tmp_path: Path) -> None:
    whole = gzip.compress(b"a,b\n" + b"1,2\n" * 1000)
    for content in (whole[:20], b"a,b\n1,2\n", whole[:-9] + b"x" * 9):
        with pytest.raises(InvalidData, match="cannot be read") as caught:
            read_table(csv_file(tmp_path, content, "t.csv.gz"))
        assert caught.value.__context__ is None


def test_bad_parquet(tmp_path: Path) -> None:
    path = csv_file(tmp_path, f"PAR1{SECRET}PAR1", "t.parquet")
    with pytest.raises(InvalidData, match="Parquet") as caught:
        read_table(path)
    assert "7431" not in str(caught.value)
    pq.write_table(pa.table({"a": pa.array([], pa.int64())}), path)
    with pytest.raises(InvalidData, match="empty table"):
        read_table(path)


def test_files_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(FileProblem, match=r"\.csv, \.csv\.gz, \.parquet"):
        read_table(csv_file(tmp_path, "a\n1\n", "t.xlsx"))
    with pytest.raises(FileProblem, match="not a file"):
        read_table(tmp_path / "none.csv")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(FileProblem, match="not a file"):
        read_table(str(tmp_path / "folder.csv"))
