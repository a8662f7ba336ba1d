"""Reading what was written earlier, by whomever: within limits, and each entry by its type.

Whatever a file holds, what comes out is what the library writes, or a `FileProblem`.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any, TypeVar

from dpadmm.errors import DpadmmError, FileProblem

MOST_WORDS = 1 << 28
"""Bytes of a file of words: a model of a million features with names and bounds needs half of it."""
LARGEST_WHOLE = 2**53
"""Whole numbers beyond it are not all floats, and count nothing that this library can ask or hold."""

MISFITS = (DpadmmError, ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""What wrong content can raise in code that was written for right content."""

Record = TypeVar("Record")


def unreadable(what: str, why: str) -> FileProblem:
    """The refusal of stored content; `why` names what is wrong and quotes nothing."""
    return FileProblem(
        f"{what} {why}", "one as this library writes it", "restore it from where it was written, or make it again"
    )


@contextmanager
def reading(what: str) -> Iterator[None]:
    """Turn whatever wrong content raises into one refusal."""
    try:
        yield
    except FileProblem:
        raise
    except MISFITS:
        raise unreadable(what, "that does not hold what it should") from None


def read_words(path: Path, most: int = MOST_WORDS) -> bytes:
    """A regular file of at most so many bytes; a device or a pipe might never end."""
    if path.exists() and not path.is_file():
        raise unreadable(str(path), "that is no regular file")
    with path.open("rb") as stream:
        size = os.fstat(stream.fileno()).st_size
        if size > most:
            raise unreadable(str(path), f"of more than {most} bytes")
        return stream.read(size)


def parse(content: bytes | str, what: str) -> dict[str, Any]:
    """A JSON object without repeated names, NaN or infinities."""
    with reading(what):
        text = content.decode("utf-8") if isinstance(content, bytes) else content
        return entries(json.loads(text, object_pairs_hook=_once, parse_constant=_no_number), what)


def entries(value: Any, what: str) -> dict[str, Any]:
    """A dictionary with names as keys."""
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise unreadable(what, "that is no object with names")
    return dict(value)


def exactly(value: Any, what: str, needed: Collection[str], possible: Collection[str] = ()) -> dict[str, Any]:
    """A dictionary with all `needed` keys, and none besides these and the `possible` ones."""
    found = entries(value, what)
    if missing := sorted(set(needed) - set(found)):
        raise unreadable(what, f"without {', '.join(missing)}")
    if extra := len(set(found) - set(needed) - set(possible)):
        raise unreadable(what, f"with {extra} more entries than it can have")
    return found


def whole(value: Any, what: str, least: int = 1) -> int:
    """An integer of sensible size."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= LARGEST_WHOLE:
        raise unreadable(what, f"that is no whole number from {least} to 2**53")
    return value


def real(value: Any, what: str) -> float:
    """A finite number."""
    known = isinstance(value, (int, float)) and not isinstance(value, bool)
    try:
        number = float(value) if known else math.nan
    except OverflowError:  # of an integer beyond the floats
        number = math.inf
    if not math.isfinite(number):
        raise unreadable(what, "that is no finite number")
    return number


def text(value: Any, what: str) -> str:
    """A string."""
    if not isinstance(value, str):
        raise unreadable(what, "that is no text")
    return value


def flag(value: Any, what: str) -> bool:
    """True or false."""
    if not isinstance(value, bool):
        raise unreadable(what, "that is neither true nor false")
    return value


def listed(value: Any, what: str) -> list[Any]:
    """A list."""
    if not isinstance(value, (list, tuple)):
        raise unreadable(what, "that is no list")
    return list(value)


def texts(value: Any, what: str) -> tuple[str, ...]:
    """A list of strings."""
    return tuple(text(each, what) for each in listed(value, what))


_BY_TYPE: dict[str, Callable[[Any, str], Any]] = {
    "int": whole,
    "float": real,
    "str": text,
    "bool": flag,
    "tuple[str, ...]": texts,
}


def record(kind: type[Record], value: Any, what: str) -> Record:
    """A frozen dataclass of numbers, texts and flags, each of its declared type; `name` stands for the class."""
    known = {field.name: field for field in fields(kind)}  # type: ignore[arg-type]
    needed = [name for name, field in known.items() if field.default is MISSING]
    given = {key: each for key, each in entries(value, what).items() if key != "name"}
    exactly(given, what, needed, known)
    for key, each in given.items():
        declared, _, optional = str(known[key].type).partition(" | ")
        if not (optional and each is None):
            _BY_TYPE[declared](each, f"{key} of {what}")
    with reading(what):
        return kind(**given)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name twice")
    return found


def _no_number(constant: str) -> Any:
    raise ValueError("NaN or an infinity")
