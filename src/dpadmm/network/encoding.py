"""Values as bytes: every value has one encoding, and no two values, or sequences of values, share one.

Whatever is signed, hashed or used as a label is written here. A value begins with a letter for its type; what has a
length says it before it comes. So a sequence can be read in one way only, and a label such as ("a", 12) is never that
of ("a1", 2).
"""

from __future__ import annotations

import hashlib
import math
import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpadmm.errors import FileProblem
from dpadmm.stored_json import unreadable

Value = bytes | str | int | float | NDArray[np.float64] | tuple[Any, ...]

MOST_BYTES = 1 << 30
"""Of one message: a square matrix of the widest exact table has 2²⁵ bytes, its masked sum as many."""
MOST_DEPTH = 8
MOST_DIMENSIONS = 2
LENGTH = struct.Struct(">Q")
WHOLE = struct.Struct(">q")
REAL = struct.Struct(">d")


def encode(*values: Value) -> bytes:
    """The bytes of a sequence of values.

    Examples
    --------
    >>> encode("a", 12) == encode("a1", 2)
    False
    >>> decode(encode("a", (12, b"")))
    ('a', (12, b''))
    """
    return b"".join(map(_encoded, values))


def digest(*values: Value) -> bytes:
    """SHA-256 of the encoding of a sequence."""
    return hashlib.sha256(encode(*values)).digest()


def decode(content: bytes) -> tuple[Any, ...]:
    """The sequence that `encode` wrote; `FileProblem` for any other bytes."""
    if len(content) > MOST_BYTES:
        raise unreadable("a message", f"of more than {MOST_BYTES} bytes")
    return _Reader(content).sequence(len(content), 0)


def _encoded(value: Value) -> bytes:
    if isinstance(value, bool):
        raise TypeError("truth values are not sent")
    if isinstance(value, bytes):
        return b"b" + LENGTH.pack(len(value)) + value
    if isinstance(value, str):
        return _sized(b"s", value.encode())
    if isinstance(value, int):
        return b"i" + WHOLE.pack(value)
    if isinstance(value, float):
        return b"f" + REAL.pack(value)
    if isinstance(value, tuple):
        return _sized(b"t", encode(*value))
    if isinstance(value, np.ndarray) and value.dtype == np.float64:
        shape = b"".join(LENGTH.pack(size) for size in value.shape)
        return b"a" + LENGTH.pack(value.ndim) + shape + np.ascontiguousarray(value, dtype=">f8").tobytes()
    raise TypeError(f"a {type(value).__name__} is not sent")


def _sized(kind: bytes, content: bytes) -> bytes:
    return kind + LENGTH.pack(len(content)) + content


class _Reader:
    """Reads what `encode` wrote, and nothing else: each length is checked before it is used."""

    def __init__(self, content: bytes) -> None:
        self._content, self._at = memoryview(content), 0

    def sequence(self, end: int, depth: int) -> tuple[Any, ...]:
        if depth > MOST_DEPTH:
            raise _wrong()
        found = []
        while self._at < end:
            found.append(self._value(end, depth))
        return tuple(found)

    def _value(self, end: int, depth: int) -> Any:
        kind = bytes(self._take(1, end))
        if kind == b"i":
            return WHOLE.unpack(self._take(WHOLE.size, end))[0]
        if kind == b"f":
            return REAL.unpack(self._take(REAL.size, end))[0]
        if kind == b"a":
            return self._array(end)
        length = self._length(end)
        if kind == b"t":
            return self._inner(length, end, depth)
        if kind not in (b"b", b"s"):
            raise _wrong()
        content = bytes(self._take(length, end))
        return content if kind == b"b" else _text(content)

    def _inner(self, length: int, end: int, depth: int) -> tuple[Any, ...]:
        if self._at + length > end:
            raise _wrong()
        return self.sequence(self._at + length, depth + 1)

    def _array(self, end: int) -> NDArray[np.float64]:
        dimensions = self._length(end)
        if dimensions > MOST_DIMENSIONS:
            raise _wrong()
        shape: Sequence[int] = [self._length(end) for _ in range(dimensions)]
        content = self._take(8 * math.prod(shape), end)
        return np.frombuffer(content, dtype=">f8").astype(np.float64).reshape(shape)

    def _length(self, end: int) -> int:
        return int(LENGTH.unpack(self._take(LENGTH.size, end))[0])

    def _take(self, size: int, end: int) -> memoryview:
        if self._at + size > end:
            raise _wrong()
        self._at += size
        return self._content[self._at - size : self._at]


def _text(content: bytes) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise _wrong() from None


def _wrong() -> FileProblem:
    return unreadable("a message", "that is not as this library writes one")
