"""Bytes of an SQLite file that carry no entry must be zero: so that a flipped byte shows in empty space too.

A table that only grows has pages of three kinds: leaves, inner nodes, and overflow pages of long texts. What lies
between the pointers and the cells of a leaf or a root, and behind the end of a text, is empty and was never anything
else; inner nodes below a root, which large ledgers have, may keep remains of their past there
(https://sqlite.org/fileformat2.html).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

HEADER_SIZE = 100
# The pages where the list of tables and the table of entries begin.
ROOTS = (1, 2)
LEAF, INNER = 13, 5
# (first byte, last byte + 1, value): fields of the header that are the same in every ledger.
CONSTANT = ((32, 40, 0), (40, 44, 3), (44, 48, 4), (48, 56, 0), (56, 60, 1), (64, 68, 0), (72, 92, 0))
# Versions of the file format for writing and reading: with a rollback journal, or as earlier versions of this library.
JOURNALS = (0x0101, 0x0202)
# The version of the SQLite that wrote last, as a number: all that is known of it.
SQLITE_VERSIONS = range(3_000_000, 4_000_000)


def stray_bytes(file: bytes, length: int) -> list[str]:
    """Where a file of intact entries holds bytes that SQLite never wrote there."""
    size = _number(file, 16, 2)
    size = 65536 if size == 1 else size
    found = [] if _sound_header(file, size) and len(file) == length else ["the header of the file was changed"]
    for root in ROOTS:
        for page in _tree(file, size, root):
            for number, empty in page.empty_spaces(file):
                if any(empty):
                    found.append(f"page {number} of the file was changed in its empty space")
    return found


@dataclass(frozen=True)
class TreePage:
    """A leaf or an inner node."""

    number: int
    data: bytes
    entries: bool = False

    @property
    def _offset(self) -> int:
        return HEADER_SIZE if self.number == 1 else 0

    @property
    def kind(self) -> int:
        return self.data[self._offset]

    @property
    def cells(self) -> list[int]:
        """Where each cell begins."""
        start = self._offset + (12 if self.kind == INNER else 8)
        return [_number(self.data, start + 2 * i, 2) for i in range(_number(self.data, self._offset + 3, 2))]

    @property
    def children(self) -> list[int]:
        if self.kind != INNER:
            return []
        return [*(_number(self.data, cell, 4) for cell in self.cells), _number(self.data, self._offset + 8, 4)]

    def empty_spaces(self, file: bytes) -> Iterator[tuple[int, bytes]]:
        """(page, bytes) of the space between pointers and cells, and behind the texts that overflow."""
        cells = self.cells
        if self.kind == LEAF or self.number in ROOTS:
            content = _number(self.data, self._offset + 5, 2) or 65536
            yield self.number, self.data[self._offset + (8 if self.kind == LEAF else 12) + 2 * len(cells) : content]
        for cell in cells if self.kind == LEAF else ():
            if self.entries:
                # The number of an entry is the key of its row; SQLite writes nothing in its column, and reads nothing.
                yield self.number, self.data[(at := _first_kind(self.data, cell)) : at + 1]
            yield from _overflow(file, self.data, cell)


def _sound_header(file: bytes, size: int) -> bool:
    constant = all(_number(file, first, last - first) == value for first, last, value in CONSTANT)
    known = _number(file, 18, 2) in JOURNALS and _number(file, 96, 4) in SQLITE_VERSIONS
    return constant and known and file[24:28] == file[92:96] and len(file) == size * _number(file, 28, 4)


def _tree(file: bytes, size: int, root: int) -> Iterator[TreePage]:
    waiting = [root]
    while waiting:
        number = waiting.pop()
        page = TreePage(number, file[(number - 1) * size : number * size], root == ROOTS[1])
        yield page
        waiting += page.children


def _first_kind(data: bytes, cell: int) -> int:
    """Where a row says what its first column holds."""
    at = cell
    for _ in ("length of the row", "its key", "length of the kinds"):
        _, at = _varint(data, at)
    return at


def _overflow(file: bytes, data: bytes, cell: int) -> Iterator[tuple[int, bytes]]:
    """The empty end of the last overflow page of one cell, if it has any."""
    length, at = _varint(data, cell)
    _, at = _varint(data, at)
    size = len(data)
    most, least = size - 35, (size - 12) * 32 // 255 - 23
    if length <= most:
        return
    local = least + (length - least) % (size - 4)
    local = local if local <= most else least
    number, rest = _number(data, at + local, 4), length - local
    while rest > size - 4:
        number, rest = _number(file, (number - 1) * size, 4), rest - (size - 4)
    yield number, file[(number - 1) * size + 4 + rest : number * size]


def _number(data: bytes, at: int, length: int) -> int:
    return int.from_bytes(data[at : at + length], "big")


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """SQLite's variable-length integer at a place, and the place behind it."""
    value = 0
    for place in range(at, at + 8):
        value = (value << 7) | (data[place] & 0x7F)
        if data[place] < 0x80:
            return value, place + 1
    return (value << 8) | data[at + 8], at + 9
