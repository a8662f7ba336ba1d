"""The column names of a table, without its rows."""

from __future__ import annotations

import csv
import gzip
import zlib
from pathlib import Path

from dpadmm.errors import FileProblem, InvalidData


def column_names(table: Path) -> list[str]:
    """Read the header of a CSV file or the schema of a Parquet file."""
    if not table.is_file():
        raise FileProblem(f"the table {table}, which is no file", "a file that exists", "correct the path")
    names = _attempt(table)
    if not names or len(set(names)) != len(names):
        raise InvalidData(
            f"the table {table} without a header of distinct names",
            "a CSV (UTF-8) or Parquet file whose columns have names",
            "add or repair the header",
        )
    return names


def _attempt(table: Path) -> list[str]:
    """The names, or none: what a parser says about a broken file may quote it."""
    name = table.name.lower()
    if not name.endswith((".csv", ".csv.gz", ".parquet")):
        raise FileProblem(f"the table {table}", "a file ending in .csv, .csv.gz or .parquet", "convert or rename it")
    try:
        if name.endswith(".parquet"):
            from pyarrow import parquet

            return [str(column) for column in parquet.read_schema(table).names]
        opener = gzip.open if name.endswith(".gz") else open
        with opener(table, "rt", encoding="utf-8-sig", newline="") as text:
            return [column.strip() for column in next(csv.reader(text), [])]
    except (OSError, EOFError, zlib.error, ValueError, csv.Error):
        return []
