"""Which code a measurement was made with, so that one made with other code is never taken for it."""

from __future__ import annotations

import hashlib
import inspect
import re
from functools import lru_cache
from pathlib import Path

import dpadmm

ROOT = Path(dpadmm.__file__).parent
COMPUTING = (
    *("cells", "datasets", "declare", "estimators", "exact_samplers", "kernels", "oracles", "preparation", "privacy"),
    *("problem", "rows", "sessions", "solvers", "randomness.py"),
)
"""Rooms whose code decides about numbers; commands, reports and pictures do not."""

DECLARING = ("exhibit",)
"""Files of this room that compute nothing."""


@lru_cache(maxsize=1)
def library_digest() -> str:
    """SHA-256 of all files that compute, but those of this room."""
    digest = hashlib.sha256()
    for source in sorted(path for room in COMPUTING for path in _sources(ROOT / room)):
        _add(digest, source)
    return digest.hexdigest()


def code_digest(algorithm: object) -> str:
    """Of the library, and of the file that defines the algorithm with those of this room that it imports."""
    digest = hashlib.sha256(library_digest().encode())
    home = Path(inspect.getfile(algorithm if inspect.isfunction(algorithm) else type(algorithm)))
    for source in sorted(_with_imports(home)):
        _add(digest, source)
    return digest.hexdigest()


def _with_imports(home: Path) -> set[Path]:
    found, waiting = set[Path](), [home]
    while waiting:
        source = waiting.pop()
        if source not in found:
            found.add(source)
            waiting += _imported(source)
    return found


def _imported(source: Path) -> list[Path]:
    """Files of this room that a file imports; those that only declare are in the settings of each measurement."""
    names = re.findall(rb"^from dpadmm\.reproduce\.([\w.]+) import", _content(source), flags=re.MULTILINE)
    files = [ROOT / "reproduce" / f"{name.decode().replace('.', '/')}.py" for name in names]
    return [path for path in files if path.is_file() and path.stem not in DECLARING]


def _sources(place: Path) -> list[Path]:
    return sorted(place.rglob("*.py")) if place.is_dir() else [place]


@lru_cache(maxsize=256)
def _content(source: Path) -> bytes:
    return source.read_bytes()


def _add(digest: hashlib._Hash, source: Path) -> None:
    digest.update(source.name.encode() + b"\0" + _content(source) + b"\0")
