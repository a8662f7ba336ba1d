"""What the kernels of this process were made of. Imported before every other file here, so that a file replaced later,
by an upgrade under a running process, is not taken for the one that was read."""

from __future__ import annotations

import hashlib
from pathlib import Path


def _digest(folder: Path) -> str | None:
    sources = sorted(folder.rglob("*.py"))
    digest = hashlib.sha256()
    for source in sources:
        digest.update(source.relative_to(folder).as_posix().encode() + b"\0" + source.read_bytes() + b"\0")
    return digest.hexdigest() if sources else None


DIGEST = _digest(Path(__file__).parent)
"""SHA-256 of all files of this package and of its folders, None where they cannot be seen."""
