"""Files that tell how features belong together: edges for the graph penalty, groups for the group penalty."""

from __future__ import annotations

import csv
import math
from pathlib import Path

from dpadmm.errors import FileProblem, InvalidParameter
from dpadmm.files import why
from dpadmm.stored_json import read_words
from dpadmm.tables import Schema

Edge = tuple[int, int, float]

MOST_LINES = 1 << 28
"""Bytes of such a file."""


def read_graph(path: Path, schema: Schema) -> list[Edge]:
    """Edges from a CSV file with lines `feature,feature` or `feature,feature,weight`."""
    position = {name: i for i, name in enumerate(schema.feature_names)}
    edges: list[Edge] = []
    for number, cells in _lines(path, "--graph"):
        if len(cells) not in (2, 3):
            raise _bad(path, number, "feature,feature or feature,feature,weight")
        weight = _weight(cells[2]) if len(cells) == 3 else 1.0
        if weight is None:
            raise _bad(path, number, "a positive weight")
        first, second = (_find(cell, position, path) for cell in cells[:2])
        edges.append((first, second, weight))
    if not edges:
        raise InvalidParameter(f"the graph file {path} without edges", "at least one edge", "add lines feature,feature")
    return edges


def read_groups(path: Path, schema: Schema) -> list[list[int]]:
    """Groups from a CSV file with lines `feature,group`; a feature that is not named is a group of its own."""
    position = {name: i for i, name in enumerate(schema.feature_names)}
    members: dict[str, list[int]] = {}
    for number, cells in _lines(path, "--groups"):
        if len(cells) != 2:
            raise _bad(path, number, "feature,group")
        members.setdefault(cells[1], []).append(_find(cells[0], position, path))
    named = {i for group in members.values() for i in group}
    return [*members.values(), *([i] for i in range(len(position)) if i not in named)]


def column_groups(schema: Schema) -> list[list[int]]:
    """The features of each column as one group, so that a categorical column enters or leaves as a whole."""
    groups, start = [], 0
    for name, column in schema.columns.items():
        width = len(column.features(name))
        if width:
            groups.append(list(range(start, start + width)))
        start += width
    return groups


def _lines(path: Path, option: str) -> list[tuple[int, list[str]]]:
    try:
        text = read_words(path, MOST_LINES).decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise FileProblem(
            f"{option} {path}, which cannot be read ({_reason(error)})",
            "a UTF-8 text file",
            "correct the path or the file",
        ) from None
    parsed = [(i, _cells(path, i, line)) for i, line in enumerate(text.splitlines(), start=1)]
    return [(i, cells) for i, cells in parsed if any(cells) and not cells[0].startswith("#")]


def _cells(path: Path, number: int, line: str) -> list[str]:
    try:
        return [cell.strip() for cell in next(csv.reader([line]), [])]
    except csv.Error:
        problem = _bad(path, number, "names of features, separated by a comma")
    raise problem


def _reason(error: OSError | UnicodeDecodeError) -> str:
    return why(error) if isinstance(error, OSError) else "not UTF-8"


def _find(name: str, position: dict[str, int], path: Path) -> int:
    if name not in position:
        # The name is not repeated: the wrong file may have been given.
        raise InvalidParameter(
            f"a name in {path} that is no feature of the schema",
            "names such as " + ", ".join(map(repr, list(position)[:5])),
            "use the names after encoding, COLUMN or COLUMN=CATEGORY",
        )
    return position[name]


def _weight(cell: str) -> float | None:
    try:
        weight = float(cell)
    except ValueError:
        return None
    return weight if math.isfinite(weight) and weight > 0 else None


def _bad(path: Path, number: int, expected: str) -> InvalidParameter:
    return InvalidParameter(f"line {number} of {path}", expected, "correct the line")
