"""CSV or Parquet → DataFrame, without letting the values choose a type or appear in an error."""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, cast

import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from dpadmm.errors import FileProblem, InvalidData

SUFFIXES = (".csv", ".csv.gz", ".parquet")
_LONGEST_ROW = 1 << 25


def read_table(path: str | Path) -> pd.DataFrame:
    """Read a table by its suffix.

    Every cell of a CSV file (comma-separated, UTF-8, with a header) is read as text, so that no value decides the type
    of a column; Parquet columns keep the types they were written with. What a cell means is the schema's to say.

    Parameters
    ----------
    path : str or Path
        A file ending in .csv, .csv.gz or .parquet.

    Raises
    ------
    FileProblem
        Missing file or unsupported suffix.
    InvalidData
        Not a readable, rectangular table with distinct column names and at least one row.
    """
    path = Path(path)
    suffix = suffix_of(path)
    frame = _attempt(path, suffix)
    if frame is None:
        form = "a Parquet file" if suffix == ".parquet" else "comma-separated UTF-8 text, as many fields in each row"
        raise InvalidData(
            f"the table {path}, which cannot be read",
            form,
            "let its owner run `dpadmm check TABLE --schema SCHEMA`, which finds the lines; repair the file or write "
            "it again",
        )
    _check_shape(path, frame)
    return frame


def suffix_of(path: Path) -> str:
    """How the name of a table ends; refused unless it is a file of a kind that can be read."""
    suffix = next((known for known in SUFFIXES if path.name.lower().endswith(known)), None)
    if suffix is None:
        raise FileProblem(f"the table {path}", "a file ending in " + ", ".join(SUFFIXES), "convert or rename it")
    if not path.is_file():
        raise FileProblem(f"the table {path}, which is no file", "a file that exists", "correct the path")
    return suffix


def names_in(path: Path, errors: str = "strict") -> list[str]:
    """Column names as the file has them, whatever they are; none if it cannot be read: what a parser says may quote it.

    A table without a header shows its first row as names. `errors` is what becomes of bytes that are not UTF-8.
    """
    suffix = suffix_of(path)
    try:
        if suffix == ".parquet":
            return [str(name) for name in pyarrow.parquet.read_schema(path).names]
        with opened_text(path, errors) as text:
            return [name.strip() for name in next(csv.reader(text), [])]
    except (pa.ArrowException, OSError, EOFError, zlib.error, ValueError, csv.Error):
        return []


@contextmanager
def opened_text(path: Path, errors: str = "strict") -> Iterator[IO[str]]:
    """A CSV file as text, its line ends untouched; `errors` is what becomes of bytes that are not UTF-8."""
    with _opened(path) as stream, io.TextIOWrapper(stream, encoding="utf-8-sig", errors=errors, newline="") as text:
        yield text


def _attempt(path: Path, suffix: str) -> pd.DataFrame | None:
    """The table, or None: parser errors quote cells, so they end here and are not even chained."""
    try:
        table = _read_parquet(path) if suffix == ".parquet" else _read_csv(path)
        frame: pd.DataFrame = table.to_pandas(ignore_metadata=True, integer_object_nulls=True)
    except (pa.ArrowException, OSError, EOFError, zlib.error, ValueError, csv.Error, TypeError, KeyError):
        return None
    return frame


def _read_parquet(path: Path) -> pa.Table:
    # One file: a dataset reader would invent columns from folder names such as `year=2020`.
    with pyarrow.parquet.ParquetFile(path) as file:
        return file.read()


def _read_csv(path: Path) -> pa.Table:
    with opened_text(path) as text:
        names = [name.strip() for name in next(csv.reader(text), [])]
    if not names:
        return pa.table({})
    with _opened(path) as stream:
        return pyarrow.csv.read_csv(
            stream,
            read_options=pyarrow.csv.ReadOptions(column_names=names, skip_rows_after_names=1, block_size=_LONGEST_ROW),
            parse_options=pyarrow.csv.ParseOptions(newlines_in_values=True),
            convert_options=pyarrow.csv.ConvertOptions(
                column_types={name: pa.string() for name in names}, strings_can_be_null=False
            ),
        )


def _opened(path: Path) -> IO[bytes]:
    return cast("IO[bytes]", gzip.open(path, "rb")) if path.suffix.lower() == ".gz" else path.open("rb")


def _check_shape(path: Path, frame: pd.DataFrame) -> None:
    names = frame.columns
    if names.duplicated().any():
        # Without a header the names are the first row, so they are not quoted.
        raise InvalidData(
            f"the table {path} with a column name present twice",
            "a header line with distinct column names",
            "add the header, or rename the columns",
        )
    if len(names) == 0 or len(frame) == 0:
        raise InvalidData(f"the empty table {path}", "a header and at least one row", "give a table that has rows")
