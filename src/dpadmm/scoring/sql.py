"""Words of standard SQL: numbers, texts and names that mean the same in every database, whatever they contain."""

from __future__ import annotations

from collections.abc import Sequence

LARGEST = 1.7976931348623157e308
WHOLE_DOUBLES = 2.0**53
"""Up to here a double holds every whole number."""

LARGEST_WHOLE = 2**63 - 1
"""Larger whole numbers become real ones, rounded, in many databases."""

LONGEST_TEXT = 4000
"""What texts are cut to before they are compared; the most that every database takes."""

TRUE_WORDS, FALSE_WORDS = ("true", "t", "yes", "y", "1", "1.0"), ("false", "f", "no", "n", "0", "0.0")
MISSING_WORDS = ("", "na", "n/a", "<na>", "nan", "null", "none")


def number(value: float) -> str:
    """A double, with an exponent: without one several databases would compute in decimals."""
    said = repr(float(value))
    said = said.replace("e", "E") if "e" in said else said + "E0"
    return f"({said})" if said.startswith("-") else said  # two signs in a row would begin a comment


def text(value: str) -> str:
    """A string."""
    return "'" + value.replace("'", "''") + "'"


def name(value: str) -> str:
    """A quoted name."""
    return '"' + value.replace('"', '""') + '"'


def label(value: object) -> str:
    """A class label."""
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, int):
        return str(value)
    return as_double(number(value)) if isinstance(value, float) else text(str(value))


def sayable(value: object) -> bool:
    """Whether a name, text or whole number can stand in a file of SQL at all."""
    if isinstance(value, int):
        return -LARGEST_WHOLE <= value <= LARGEST_WHOLE
    if not isinstance(value, str):
        return True
    return "\0" not in value and _encodes(value) and len(value) <= LONGEST_TEXT


def as_double(cell: str) -> str:
    return f"CAST({cell} AS DOUBLE PRECISION)"


def as_text(cell: str) -> str:
    return f"TRIM(CAST({cell} AS VARCHAR({LONGEST_TEXT})))"


def is_number(cell: str, largest: float = LARGEST) -> str:
    """Whether a cell is a finite number; SQLite, whose columns may hold anything, reads other text as zero."""
    read = as_double(cell)
    same = f"({read} = {cell} OR ABS({read}) >= {number(WHOLE_DOUBLES)})"
    return f"{read} BETWEEN {number(-largest)} AND {number(largest)} AND {same}"


def is_missing(cell: str) -> str:
    """Whether a cell holds nothing."""
    return f"{cell} IS NULL OR LOWER({as_text(cell)}) IN ({', '.join(map(text, MISSING_WORDS))})"


def truth(cell: str, true: str, false: str, other: str) -> str:
    """One of three words of SQL, by what a cell says."""
    read = f"LOWER({as_text(cell)})"
    yes, no = (", ".join(map(text, words)) for words in (TRUE_WORDS, FALSE_WORDS))
    return f"CASE WHEN {read} IN ({yes}) THEN {true} WHEN {read} IN ({no}) THEN {false} ELSE {other} END"


def total(terms: Sequence[str], indent: str) -> str:
    """A sum, in parentheses that stay shallow: SQLite refuses expressions deeper than a thousand."""
    if len(terms) <= 8:
        return f"\n{indent}+ ".join(terms) or "0.0E0"
    half = len(terms) // 2
    return f"({total(terms[:half], indent)})\n{indent}+ ({total(terms[half:], indent)})"


def _encodes(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True
