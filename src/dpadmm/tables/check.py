"""What is wrong with a table, cell by cell, by the rules that `encode` reads it by; for the eyes of its owner alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpadmm.errors import InvalidData
from dpadmm.tables.columns import Boolean, Classes, Column, Ignore, Numeric, TargetKind
from dpadmm.tables.encode import known_ids, read_codes, read_ids, read_numbers
from dpadmm.tables.findings import FEW, Finding, FindingKind, Findings, Place, shown
from dpadmm.tables.lines import Lines, unreadable_rows
from dpadmm.tables.missing import missing_among
from dpadmm.tables.on_disk import BLOCK_ROWS, row_blocks
from dpadmm.tables.reading import csv_lines, names_in, suffix_of
from dpadmm.tables.schema import Schema

Mask = NDArray[np.bool_]


class _Ids:
    """What the column of the persons holds."""


Declared = Column | TargetKind | _Ids


def check(path: str | Path, schema: Schema, *, block_rows: int = BLOCK_ROWS) -> Findings:
    """Find every cell that does not fit its schema. The result is private like the table.

    Parameters
    ----------
    path : str or Path
        A file ending in .csv, .csv.gz or .parquet; of Parquet only `block_rows` rows are in memory at a time.
    schema : Schema
        With its target, if labels are to be checked.

    Formal guarantees
    -----------------
    None: what is found is exact and quotes cells. Nothing is written anywhere.
    """
    path = Path(path)
    suffix = suffix_of(path)
    names = names_in(path, errors="surrogateescape")
    found = _Found(names)
    for column, kind in _about_names(names, schema):
        found.add(column, kind, 1)
    if not names or found.has(FindingKind.COLUMN_TWICE) or found.has(FindingKind.NO_HEADER):
        return found.findings({})
    if suffix == ".parquet":
        found.look_at_blocks(path, schema, block_rows)
        return found.findings({})
    lines = csv_lines(path)
    if lines is None:
        found.add(None, FindingKind.UNREADABLE, 1)
        return found.findings({})
    found.look_at_lines(lines, schema)
    return found.findings({row: lines.numbers[row] for row in found.wanted()})


class _Found:
    """What was found so far, block of rows by block of rows."""

    def __init__(self, names: Sequence[str]) -> None:
        self.rows = 0
        self._names = list(names)
        self._refused = 0
        self._all: dict[tuple[str | None, FindingKind], Finding] = {}

    def add(self, column: str | None, kind: FindingKind, count: int, places: Iterable[Place] = ()) -> None:
        self._all.setdefault((column, kind), Finding(column, kind)).add(count, places)

    def has(self, kind: FindingKind) -> bool:
        return any(known is kind for _, known in self._all)

    def look_at_blocks(self, path: Path, schema: Schema, block_rows: int) -> None:
        """A Parquet file, block by block."""
        try:
            for frame in row_blocks(path, block_rows):
                self._look(frame, schema, np.zeros(len(frame), dtype=bool))
        except InvalidData:
            self.add(None, FindingKind.UNREADABLE, 1)
            return
        if not self.rows:
            self.add(None, FindingKind.NO_ROWS, 1)

    def look_at_lines(self, lines: Lines, schema: Schema) -> None:
        """A CSV file: lines that cannot be read, and the cells of the others."""
        if not len(lines.numbers):
            self.add(None, FindingKind.NO_ROWS, 1)
            return
        for row, (kind, words) in lines.broken.items():
            self.add(None, kind, 1, [Place(row + 1, None, words)])
        frame = lines.frame()
        self._look(frame, schema, unreadable_rows(frame))

    def _look(self, frame: pd.DataFrame, schema: Schema, broken: Mask) -> None:
        """Every declared column of one block, without the rows of broken lines."""
        frame = frame.set_axis([str(name) for name in frame.columns], axis=1)
        refused = broken.copy()
        for name, column in _declared(schema).items():
            if name not in frame.columns:
                continue
            for kind, cells in _looked(frame[name], column):
                places = np.flatnonzero(cells & ~broken)
                if len(places):
                    first = places[:FEW]
                    values = frame[name].iloc[first].astype(object).tolist()
                    where = [Place(self.rows + int(k) + 1, None, shown(v)) for k, v in zip(first, values, strict=True)]
                    self.add(name, kind, len(places), where)
                    refused |= cells & kind.refused
        self.rows += len(frame)
        self._refused += int(refused.sum())

    def wanted(self) -> set[int]:
        """Rows whose lines are shown, the first of them 0."""
        return {place.row - 1 for finding in self._all.values() for place in finding.places}

    def findings(self, lines: Mapping[int, int]) -> Findings:
        """All of it in the order of the columns, what is refused first; with lines, as far as they are known."""
        for finding in self._all.values():
            finding.places = [replace(place, line=lines.get(place.row - 1, place.line)) for place in finding.places]
        return Findings(self.rows, self._refused, tuple(sorted(self._all.values(), key=self._order)))

    def _order(self, finding: Finding) -> tuple[int, str, int]:
        column = finding.column
        if column is None:
            return -1, "", list(FindingKind).index(finding.kind)
        place = self._names.index(column) if column in self._names else len(self._names)
        return place, column, list(FindingKind).index(finding.kind)


def _about_names(names: list[str], schema: Schema) -> Iterator[tuple[str | None, FindingKind]]:
    """What is wrong with the names of the columns."""
    if not names:
        yield None, FindingKind.UNREADABLE
        return
    target = None if schema.target is None else schema.target.column
    declared = _declared(schema)
    if not declared.keys() & set(names):
        yield None, FindingKind.NO_HEADER
        return
    person = () if schema.person is None else (schema.person,)
    for name in (*schema.required, *person, *(() if target is None else (target,))):
        if name not in names:
            yield name, FindingKind.TARGET_ABSENT if name == target else FindingKind.COLUMN_ABSENT
    for name, times in Counter(names).items():
        if times > 1:
            yield name, FindingKind.COLUMN_TWICE
        if name not in declared:
            yield name, FindingKind.COLUMN_UNDECLARED


def _declared(schema: Schema) -> dict[str, Declared]:
    """All columns a table may have, the target and the ids among them."""
    target = {} if schema.target is None else {schema.target.column: schema.target.kind}
    person = {} if schema.person is None else {schema.person: _Ids()}
    return {**schema.columns, **target, **person}


def _looked(series: pd.Series[Any], column: Declared) -> Iterator[tuple[FindingKind, Mask]]:
    """What there is to say about the cells of a column, each kind with the cells it is true of."""
    if isinstance(column, Ignore):
        return
    if isinstance(column, _Ids):
        yield FindingKind.NO_ID, ~known_ids(read_ids(series))
        return
    if isinstance(column, Numeric):
        numbers = read_numbers(series)
        unread, wrong, absent = np.isnan(numbers), FindingKind.NOT_A_NUMBER, FindingKind.MISSING
        yield FindingKind.CLIPPED, (numbers < column.lower) | (numbers > column.upper)
    elif isinstance(column, Boolean):
        unread, wrong, absent = read_codes(series, (False, True)) < 0, FindingKind.NOT_BOOLEAN, FindingKind.MISSING
    elif isinstance(column, Classes):
        unread, wrong, absent = read_codes(series, column.classes) < 0, FindingKind.LABEL, FindingKind.MISSING
    else:
        strict = column.unseen == "error"
        unread = read_codes(series, column.categories) < 0
        wrong, absent = (
            (FindingKind.UNSEEN, FindingKind.MISSING)
            if strict
            else (FindingKind.UNSEEN_AS_NONE, FindingKind.MISSING_AS_NONE)
        )
    if not isinstance(column, Classes) and column.fill is not None:
        absent = FindingKind.FILLED
    missing = missing_among(series, unread)
    yield absent, missing
    yield wrong, unread & ~missing
