"""The lines of a CSV file: each is read by itself, so that no line decides how another is read."""

from __future__ import annotations

import csv
import gzip
import io
from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NamedTuple, cast

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
from numpy.typing import NDArray

from dpadmm.tables.findings import FindingKind, shown

LONGEST_CELL = 131_072
"""Characters of a cell."""
LONGEST_LINE = 1 << 25
"""Bytes of a line."""
BLOCK = 1 << 22
_MARK = b"\xef\xbb\xbf"


class Unreadable:
    """What stands in every cell of a line that could not be read: no number, no text, and not missing."""

    def __repr__(self) -> str:
        return "UNREADABLE"


UNREADABLE: Any = Unreadable()


class Broken(NamedTuple):
    """Why a line could not be read, and words that may quote it."""

    kind: FindingKind
    words: str


@dataclass
class Lines:
    """What the lines below the header hold.

    Attributes
    ----------
    names : list of str
    cells : list of pa.Table
        Text, one row for each line that is not blank; null where the line could not be read.
    numbers : array of int
        The line of each row, as an editor counts.
    broken : dict of int to Broken
        The rows that could not be read, the first row 0.
    """

    names: list[str]
    cells: list[pa.Table]
    numbers: array[int]
    broken: dict[int, Broken]

    def frame(self) -> pd.DataFrame:
        """All rows, with `UNREADABLE` in each cell of a row that could not be read."""
        # Columns are named by their places until the end: names may stand twice.
        places = [str(place) for place in range(len(self.names))]
        table = pa.concat_tables(self.cells) if self.cells else pa.table({place: pa.array([]) for place in places})
        frame: pd.DataFrame = table.to_pandas()
        if self.broken:
            frame = frame.astype(object)
            frame.iloc[list(self.broken)] = UNREADABLE
        return frame.set_axis(self.names, axis=1)


def unreadable_rows(frame: pd.DataFrame) -> NDArray[np.bool_]:
    """Which rows of a frame stand for lines that could not be read."""
    first = frame.iloc[:, 0]
    if first.dtype != object:
        return np.zeros(len(frame), dtype=bool)
    return np.fromiter((isinstance(cell, Unreadable) for cell in first), dtype=bool, count=len(frame))


def read_lines(path: Path) -> Lines | None:
    """All lines of a CSV file, or None if its first line is no header."""
    with _opened(path) as stream:
        names = _names(_line(stream))
        if names is None:
            return None
        lines = Lines(names, [], array("q"), {})
        number = 2
        for block in _blocks(stream) if names else ():
            read = read_at_once(block, lines, number)
            number += read_each(block, lines, number) if read is None else read
        return lines


def header_of(path: Path, errors: str = "strict") -> list[str]:
    """The names in the first line of a CSV file; `errors` is what becomes of bytes that are not UTF-8."""
    with _opened(path) as stream:
        return _names(_line(stream), errors) or []


def fields_of(line: bytes, n_columns: int) -> list[str] | Broken:
    """The cells of one line, or why they cannot be read: a function of this line and of the number of columns."""
    text = _text_of(line)
    if isinstance(text, Broken):
        return text
    fields = _split(text)
    if fields is None:
        return Broken(FindingKind.QUOTE, shown(text))
    if len(fields) != n_columns:
        return Broken(FindingKind.FIELDS, f"{len(fields)} fields, the header has {n_columns}")
    if len(text) > LONGEST_CELL and max(map(len, fields)) > LONGEST_CELL:
        return Broken(FindingKind.TOO_LONG, shown(text))
    return fields


def _text_of(line: bytes) -> str | Broken:
    if len(line) > LONGEST_LINE:
        return Broken(FindingKind.TOO_LONG, shown(line[:200].decode(errors="surrogateescape")))
    try:
        text = line.decode()
    except UnicodeDecodeError:
        return Broken(FindingKind.ENCODING, shown(line[:200].decode(errors="surrogateescape")))
    return Broken(FindingKind.LINE_BREAK, shown(text)) if "\r" in text else text


def _split(text: str) -> list[str] | None:
    """Split a line at its commas; None if a quote is not closed, is followed by text, or holds too much."""
    if '"' not in text:
        return text.split(",")
    try:
        return next(csv.reader((text,), strict=True))
    except csv.Error:
        return None


def _names(line: bytes, errors: str = "strict") -> list[str] | None:
    """Names of the columns, none in an empty line."""
    try:
        text = line.removeprefix(_MARK).decode(errors=errors)
    except UnicodeDecodeError:
        return None
    if len(line) > LONGEST_LINE or "\r" in text:
        return None
    names = _split(text) if text else []
    return None if names is None else [name.strip() for name in names]


def _blocks(stream: IO[bytes]) -> Iterator[bytes]:
    """The rest of a file, a few megabytes of whole lines at a time; only a line that is too long may lack its end."""
    while block := stream.read(BLOCK):
        if not block.endswith(b"\n"):
            rest = stream.readline(LONGEST_LINE + 2)
            block += rest
            if len(rest) > LONGEST_LINE and not rest.endswith(b"\n"):
                _skip(stream)
                block += b"\n"
        yield block


def read_each(block: bytes, lines: Lines, number: int) -> int:
    """Add the rows of a block, the first line of which has this number, line by line; returns how many lines it has."""
    cells: list[str | None] = []
    n_columns = len(lines.names)
    texts = block.removesuffix(b"\n").split(b"\n")
    for place, text in enumerate(texts):
        line = text.removesuffix(b"\r")
        if not line:
            continue
        fields = fields_of(line, n_columns)
        if isinstance(fields, Broken):
            lines.broken[len(lines.numbers)] = fields
            cells.extend([None] * n_columns)
        else:
            cells.extend(fields)
        lines.numbers.append(number + place)
    if cells:
        columns = [pa.array(cells[place::n_columns], pa.large_string()) for place in range(n_columns)]
        lines.cells.append(pa.table(columns, [str(place) for place in range(n_columns)]))
    return len(texts)


def read_at_once(block: bytes, lines: Lines, number: int) -> int | None:
    """What `read_each` does, or None where a line of this block needs to be looked at by itself.

    Without quotes, blank lines and carriage returns other than in line ends, a line is what stands between line feeds
    and a cell is what stands between commas, for pyarrow as for `read_each`. pyarrow refuses bytes that are not UTF-8
    and another number of cells; a byte order mark, which it would drop, is left to `read_each`. So is what is too long.
    """
    plain = block.replace(b"\r\n", b"\n") if b"\r" in block else block
    if (
        len(plain) > LONGEST_LINE
        or plain.startswith((b"\n", _MARK))
        or any(odd in plain for odd in (b'"', b"\r", b"\n\n", b"\0"))
    ):
        return None
    places = [str(place) for place in range(len(lines.names))]
    try:
        table = pyarrow.csv.read_csv(
            io.BytesIO(plain),
            read_options=pyarrow.csv.ReadOptions(column_names=places, block_size=len(plain) + 1),
            parse_options=pyarrow.csv.ParseOptions(quote_char=False),
            convert_options=pyarrow.csv.ConvertOptions(
                column_types={place: pa.large_string() for place in places}, strings_can_be_null=False
            ),
        )
    except (pa.ArrowException, ValueError):
        return None
    if any(pc.max(pc.binary_length(column)).as_py() > LONGEST_CELL for column in table.columns):
        return None
    lines.cells.append(table)
    lines.numbers.extend(range(number, number + table.num_rows))
    return int(table.num_rows)


def _line(stream: IO[bytes]) -> bytes:
    return _without_end(stream.readline(LONGEST_LINE + 2))


def _without_end(line: bytes) -> bytes:
    return line.removesuffix(b"\n").removesuffix(b"\r")


def _skip(stream: IO[bytes]) -> None:
    """Read to the end of a line that is too long."""
    while (rest := stream.readline(BLOCK)) and rest[-1] != 10:
        pass


@contextmanager
def _opened(path: Path) -> Iterator[IO[bytes]]:
    if path.suffix.lower() != ".gz":
        with path.open("rb") as stream:
            yield stream
        return
    with gzip.open(path, "rb") as packed, io.BufferedReader(cast("io.RawIOBase", packed), BLOCK) as stream:
        yield stream
