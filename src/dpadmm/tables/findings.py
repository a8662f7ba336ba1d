"""What can be wrong with a table, as facts; they quote cells, and are for the eyes of its owner alone."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

FEW = 5
"""Places that are shown of each finding."""
LONGEST = 40
"""Characters that are shown of a cell."""


class FindingKind(Enum):
    """What was found: its key, its words, and whether a row (or the table) with it is refused."""

    MISSING = ("missing", "missing", True)
    NOT_A_NUMBER = ("not-a-number", "not a finite number", True)
    NOT_BOOLEAN = ("not-boolean", "neither true nor false", True)
    UNSEEN = ("unseen", 'none of the declared categories, and the schema says unseen = "error"', True)
    LABEL = ("label", "none of the declared classes", True)
    NO_ID = ("no-id", "no id by which a person is known", True)
    COLUMN_ABSENT = ("column-absent", "declared in the schema, absent from the table", True)
    TARGET_ABSENT = ("target-absent", "the target, absent from the table: needed for all but predict", True)
    COLUMN_UNDECLARED = ("column-undeclared", "in the table, not declared in the schema", True)
    COLUMN_TWICE = ("column-twice", "a name that several columns have", True)
    NO_HEADER = ("no-header", "the first line names none of the declared columns", True)
    FIELDS = ("fields", "another number of fields than the header", True)
    ENCODING = ("encoding", "not UTF-8 text", True)
    QUOTE = (
        "quote",
        "a quote is not closed on this line, or text follows it; write the table as Parquet if cells hold line breaks",
        True,
    )
    LINE_BREAK = ("line-break", "a carriage return inside the line; lines end with LF or CR LF", True)
    TOO_LONG = ("too-long", "a cell of more than 131072 characters, or a line of more than 32 MiB", True)
    NO_ROWS = ("no-rows", "no row below the header", True)
    UNREADABLE = ("unreadable", "a file that cannot be read from here on", True)
    FILLED = ("filled", "missing: counts as the declared fill value", False)
    CLIPPED = ("clipped", "outside the declared range: counts as the nearer end of it", False)
    MISSING_AS_NONE = ("missing-as-none", "missing: counts as no category", False)
    UNSEEN_AS_NONE = ("unseen-as-none", "none of the declared categories: counts as no category", False)

    def __init__(self, key: str, words: str, refused: bool) -> None:
        self.key, self.words, self.refused = key, words, refused


@dataclass(frozen=True)
class Place:
    """One cell: its row (the first below the header is 1), its line in a CSV file, and what it holds."""

    row: int
    line: int | None
    value: str | None


@dataclass
class Finding:
    """One kind of thing in one column, how often, and where first."""

    column: str | None
    kind: FindingKind
    count: int = 0
    places: list[Place] = field(default_factory=list)

    def add(self, count: int, places: Iterable[Place]) -> None:
        """Count more cells, and keep the first few."""
        self.count += count
        self.places.extend(list(places)[: FEW - len(self.places)])


@dataclass(frozen=True)
class Findings:
    """Private: all that was found in a table.

    Attributes
    ----------
    rows : int
        Rows that were looked at.
    refused_rows : int
        Rows with a cell that does not fit the schema.
    found : tuple of Finding
    """

    rows: int
    refused_rows: int
    found: tuple[Finding, ...]

    @property
    def clean(self) -> bool:
        """Whether nothing is refused."""
        return not any(finding.kind.refused for finding in self.found)


def shown(cell: Any) -> str:
    """A cell as a quoted text of one line: whatever could steer a terminal is written as an escape.

    Examples
    --------
    >>> print(shown("a\\x1b[2Jb"), shown(12.5), shown("x" * 50))
    'a\\x1b[2Jb' '12.5' 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx'…
    """
    text = cell if isinstance(cell, str) else str(cell)
    return repr(text[:LONGEST]) + ("…" if len(text) > LONGEST else "")
