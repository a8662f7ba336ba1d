"""Everything that parties say to each other: eight messages, each a record of typed fields and nothing more.

| message | from | says |
|---|---|---|
| `Invite` | coordinator | an epoch of an approved proposal begins |
| `Hello` | silo | the owner approved it; here are a nonce, an ephemeral key and the mark of all I did |
| `Gathered` | coordinator | what all silos said: their hellos, then their acknowledgements |
| `Acknowledgement` | silo | I saw these hellos, and these marks I knew of you |
| `Ready` | silo | all of it holds and my ledger is charged |
| `Ask` | coordinator | question number k, the places it is asked at, and the coordinates |
| `Answer` | silo | my masked and noised sum |
| `Close` | coordinator | this epoch is over; forget its secrets |

A silo that does not go along sends `REFUSED`, always the same bytes.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, ClassVar, TypeVar

import numpy as np

from dpadmm.errors import FileProblem
from dpadmm.network.encoding import digest
from dpadmm.stored_json import unreadable

REFUSED = b"refused"
DIGEST_BYTES = 32


@dataclass(frozen=True, eq=False)
class Message:
    """A record that is sent as its name and its fields."""

    name: ClassVar[str]

    @property
    def content(self) -> tuple[object, ...]:
        return (self.name, *(getattr(self, field.name) for field in fields(self)))


@dataclass(frozen=True, eq=False)
class Invite(Message):
    proposal: bytes
    epoch: int

    name: ClassVar[str] = "invite"


@dataclass(frozen=True, eq=False)
class Hello(Message):
    proposal: bytes
    epoch: int
    nonce: bytes
    ephemeral: bytes
    mark: bytes

    name: ClassVar[str] = "hello"


@dataclass(frozen=True, eq=False)
class Gathered(Message):
    """Signed messages of all silos, in the order of their names, as they were received; `of` is what they are."""

    proposal: bytes
    epoch: int
    of: str
    parts: tuple[bytes, ...]

    name: ClassVar[str] = "gathered"


@dataclass(frozen=True, eq=False)
class Acknowledgement(Message):
    """`marks` has the name, and the mark in the last hello, of each peer that was met before."""

    hellos: bytes
    marks: tuple[tuple[str, bytes], ...]

    name: ClassVar[str] = "acknowledgement"


@dataclass(frozen=True, eq=False)
class Ready(Message):
    session: bytes

    name: ClassVar[str] = "ready"


@dataclass(frozen=True, eq=False)
class Ask(Message):
    """A question; `at` holds arrays and numbers, `coordinates` a matrix, or nothing for those of the table."""

    session: bytes
    number: int
    kind: str
    at: tuple[Any, ...]
    coordinates: tuple[Any, ...]

    name: ClassVar[str] = "ask"

    @cached_property
    def question(self) -> bytes:
        """Digest of what is asked, without when: part of the label of the masks."""
        return digest(self.kind, self.at, self.coordinates)


@dataclass(frozen=True, eq=False)
class Answer(Message):
    session: bytes
    number: int
    question: bytes
    masked: bytes

    name: ClassVar[str] = "answer"


@dataclass(frozen=True, eq=False)
class Close(Message):
    session: bytes

    name: ClassVar[str] = "close"


Said = TypeVar("Said", bound=Message)

_TYPES: dict[str, type] = {"bytes": bytes, "int": int, "str": str}


def read_as(kind: type[Said], content: tuple[object, ...]) -> Said:
    """The message of this kind; `FileProblem` for any other content."""
    known = fields(kind)
    if len(content) != len(known) + 1 or content[0] != kind.name:
        raise _other(kind)
    for field, value in zip(known, content[1:], strict=True):
        wanted = _TYPES.get(str(field.type), tuple)
        if type(value) is not wanted:
            raise _other(kind)
    return kind(*content[1:])


def marks_of(said: Acknowledgement) -> dict[str, bytes]:
    """The marks of peers, by name; `FileProblem` where they are none."""
    try:
        found = dict(said.marks)
    except (TypeError, ValueError):
        raise _other(Acknowledgement) from None
    if len(found) < len(said.marks) or not all(type(mark) is bytes for mark in found.values()):
        raise _other(Acknowledgement)
    return found


def places_of(ask: Ask) -> tuple[tuple[Any, ...], Any]:
    """Where a question is asked, and in which coordinates; arrays and finite numbers alone."""
    if not all(isinstance(place, (np.ndarray, float)) for place in ask.at):
        raise _other(Ask)
    if len(ask.coordinates) > 1 or not all(isinstance(matrix, np.ndarray) for matrix in ask.coordinates):
        raise _other(Ask)
    return ask.at, ask.coordinates[0] if ask.coordinates else None


def _other(kind: type[Message]) -> FileProblem:
    return unreadable(f"a message {kind.name!r}", "that is not as this library writes one")
