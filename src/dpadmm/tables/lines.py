"""Where the rows of a CSV file stand: line numbers as an editor shows them, and lines that no reader accepts."""

from __future__ import annotations

import csv
import zlib
from collections.abc import Collection, Iterator
from pathlib import Path

from dpadmm.tables.findings import Kind, Place, shown
from dpadmm.tables.reading import opened_text


def lines_of(path: Path, rows: Collection[int], n_rows: int) -> dict[int, int]:
    """The line on which each wanted row begins; nothing where this count of the rows is not that of the reader."""
    wanted, found, last = set(rows), {}, -1
    try:
        for last, (line, _) in enumerate(_numbered(path)):
            if last in wanted:
                found[last] = line
    except (OSError, EOFError, zlib.error, csv.Error):
        return {}
    return found if last + 1 == n_rows else {}


def broken_lines(path: Path, n_columns: int) -> tuple[list[tuple[Kind, Place]], int]:
    """Rows with another number of fields than the header, or with bytes that are not UTF-8; and the number of rows."""
    broken, row = [], 0
    try:
        for row, (line, fields) in enumerate(_numbered(path), start=1):
            if len(fields) != n_columns:
                counted = f"{len(fields)} fields, the header has {n_columns}"
                broken.append((Kind.FIELDS, Place(row, line, counted)))
            odd = next((field for field in fields if _undecoded(field)), None)
            if odd is not None:
                broken.append((Kind.ENCODING, Place(row, line, shown(odd))))
    except (OSError, EOFError, zlib.error, csv.Error):
        broken.append((Kind.UNREADABLE, Place(row + 1, None, None)))
    return broken, row


def _numbered(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Rows below the header, each with the line on which it begins; empty lines are no rows, as for the reader."""
    with opened_text(path, errors="surrogateescape") as text:
        reader = csv.reader(text)
        next(reader, None)
        line = reader.line_num + 1
        for fields in reader:
            if fields:
                yield line, fields
            line = reader.line_num + 1


def _undecoded(field: str) -> bool:
    return any("\udc80" <= character <= "\udcff" for character in field)
