"""CSV or Parquet → DataFrame, without letting the values choose a type or appear in an error."""

from __future__ import annotations

import zlib
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet

from dpadmm.errors import FileProblem, InvalidData
from dpadmm.tables.lines import Lines, header_of, read_lines

SUFFIXES = (".csv", ".csv.gz", ".parquet")
_TROUBLE = (pa.ArrowException, OSError, EOFError, zlib.error, ValueError, TypeError, KeyError)


def read_table(path: str | Path) -> pd.DataFrame:
    """Read a table by its suffix.

    Every cell of a CSV file (comma-separated, UTF-8, with a header) is read as text, so that no value decides the type
    of a column. Each line is read by itself: a line that cannot be read is a row whose cells are all `UNREADABLE`, and
    `encode` takes it for an invalid row. Parquet columns keep the types they were written with. What a cell means is
    the schema's to say.

    Parameters
    ----------
    path : str or Path
        A file ending in .csv, .csv.gz or .parquet.

    Raises
    ------
    FileProblem
        Missing file or unsupported suffix.
    InvalidData
        No header with distinct names, no row, a damaged gzip file, or no Parquet file.
    """
    path = Path(path)
    suffix = suffix_of(path)
    frame = _read_parquet(path) if suffix == ".parquet" else _read_csv(path)
    if frame is None:
        form = "a Parquet file" if suffix == ".parquet" else "comma-separated UTF-8 text with a header line"
        raise InvalidData(f"the table {path}, which cannot be read", form, "repair the file or write it again")
    _check_shape(path, frame)
    return frame


def suffix_of(path: Path) -> str:
    """How the name of a table ends; refused unless it is a file of a kind that can be read."""
    suffix = next((known for known in SUFFIXES if path.name.lower().endswith(known)), None)
    if suffix is None:
        raise FileProblem(
            f"the table {path}, whose name has no known ending",
            "a file ending in " + ", ".join(SUFFIXES),
            "convert or rename it",
        )
    if not path.is_file():
        raise FileProblem(f"the table {path}, which is not a file", "a file that exists", "correct the path")
    return suffix


def names_in(path: Path, errors: str = "strict") -> list[str]:
    """Column names as the file has them, whatever they are; none if it cannot be read: what a parser says may quote it.

    A table without a header shows its first row as names. `errors` is what becomes of bytes that are not UTF-8.
    """
    suffix = suffix_of(path)
    try:
        if suffix == ".parquet":
            return [str(name) for name in pyarrow.parquet.read_schema(path).names]
        return header_of(path, errors)
    except _TROUBLE:
        return []


def csv_lines(path: Path) -> Lines | None:
    """The lines of a CSV file, or None: what a parser says may quote cells, so it ends here and is not even chained."""
    try:
        return read_lines(path)
    except _TROUBLE:
        return None


def _read_csv(path: Path) -> pd.DataFrame | None:
    lines = csv_lines(path)
    return None if lines is None else lines.frame()


def _read_parquet(path: Path) -> pd.DataFrame | None:
    # One file: a dataset reader would invent columns from folder names such as `year=2020`.
    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            frame: pd.DataFrame = file.read().to_pandas(ignore_metadata=True, integer_object_nulls=True)
    except _TROUBLE:
        return None
    return frame


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
