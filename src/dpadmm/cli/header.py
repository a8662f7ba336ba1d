"""The column names of a table, without its rows."""

from __future__ import annotations

from pathlib import Path

from dpadmm.errors import InvalidData


def column_names(table: Path) -> list[str]:
    """Read the header of a CSV file or the schema of a Parquet file."""
    from dpadmm.tables.reading import names_in

    names = names_in(table)
    if not names or len(set(names)) != len(names):
        raise InvalidData(
            f"the table {table} without a header of distinct names",
            "a CSV (UTF-8) or Parquet file whose columns have names",
            "add or repair the header",
        )
    return names
