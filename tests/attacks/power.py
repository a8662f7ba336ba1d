"""What a disk may hold after a power cut: a record of requests, replayed without what was never flushed.

A file's content is sure once the file was flushed, a name in a folder once the folder was. Everything later may be
there or not, whatever its order; a name may be there before the content of its file.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Request:
    """One line of the record of `fail_syscalls.c`; marks are what the program itself noted."""

    kind: str
    one: str
    two: str
    at: int
    data: bytes


def read_record(path: Path) -> list[Request]:
    """All requests, in order."""
    record, found = path.read_bytes(), []
    while record:
        head, _, rest = record.partition(b"\n")
        kind, one, two, at, size = head.decode().split("\t")
        found.append(Request(kind, one, two, int(at), rest[: int(size)]))
        record = rest[int(size) :]
    return found


@dataclass(eq=False)
class File:
    content: bytearray = field(default_factory=bytearray)
    sure: bytes = b""
    waiting: list[tuple[int, bytes]] = field(default_factory=list)

    def write(self, at: int, data: bytes) -> None:
        self.content.extend(bytes(max(0, at + len(data) - len(self.content))))
        self.content[at : at + len(data)] = data
        self.waiting.append((at, data))

    def truncate(self, size: int) -> None:
        self.content = (self.content + bytes(max(0, size - len(self.content))))[:size]

    def flush(self) -> None:
        self.sure, self.waiting = bytes(self.content), []

    def after_cut(self, chance: random.Random | None) -> bytes:
        """What is sure; with chance, also some of what was not flushed."""
        kept = File(bytearray(self.sure))
        for at, data in self.waiting if chance else []:
            if chance is not None and chance.random() < 0.5:
                kept.write(at, data)
        return bytes(kept.content)


@dataclass(eq=False)
class Folder:
    names: dict[str, File | Folder] = field(default_factory=dict)
    sure: dict[str, File | Folder] = field(default_factory=dict)

    def flush(self) -> None:
        self.sure = dict(self.names)


class Disk:
    """A folder as it is, and as a power cut would leave it."""

    def __init__(self, start: Path, place: str) -> None:
        self._place, self._root = place, _stored(start)

    def apply(self, request: Request) -> None:
        """Carry out one request; files without a name, and marks, leave nothing."""
        if request.kind == "mark" or "(deleted)" in request.one:
            return
        if request.kind in ("write", "truncate", "fsync"):
            found = self._find(request.one)
            if isinstance(found, File) and request.kind == "write":
                found.write(request.at, request.data)
            elif isinstance(found, File) and request.kind == "truncate":
                found.truncate(request.at)
            else:
                found.flush()
            return
        folder, name = self._parent(request.one)
        if request.kind in ("create", "mkdir"):
            folder.names[name] = Folder() if request.kind == "mkdir" else File()
        elif request.kind == "remove":
            del folder.names[name]
        else:
            other, new = self._parent(request.two)
            if request.kind == "exchange":
                folder.names[name], other.names[new] = other.names[new], folder.names[name]
            else:
                other.names[new] = folder.names[name] if request.kind == "link" else folder.names.pop(name)

    def cut(self, target: Path, chance: random.Random | None = None) -> None:
        """Write what is left after a power cut now: the least, or, with chance, something between that and all."""
        _write(self._root, target, chance)

    def _parent(self, path: str) -> tuple[Folder, str]:
        folder, name = path.rsplit("/", 1)
        found = self._find(folder)
        assert isinstance(found, Folder)
        return found, name

    def _find(self, path: str) -> File | Folder:
        found: File | Folder = self._root
        for name in path.removeprefix(self._place).strip("/").split("/"):
            if name:
                assert isinstance(found, Folder)
                found = found.names[name]
        return found


def _stored(path: Path) -> Folder:
    folder = Folder()
    for entry in path.iterdir():
        if entry.is_dir():
            folder.names[entry.name] = _stored(entry)
        else:
            content = entry.read_bytes()
            folder.names[entry.name] = File(bytearray(content), content)
    folder.flush()
    return folder


def _write(folder: Folder, target: Path, chance: random.Random | None) -> None:
    target.mkdir()
    names = folder.names if chance is not None and chance.random() < 0.7 else folder.sure
    for name, held in names.items():
        if isinstance(held, Folder):
            _write(held, target / name, chance)
        else:
            (target / name).write_bytes(held.after_cut(chance))
