"""Where the library keeps files, and how it writes them: whole or not at all."""

from __future__ import annotations

import os
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO


def cache_directory(kind: str) -> Path:
    """`$DPADMM_CACHE`/kind, or `dpadmm`/kind in the platform's user cache directory."""
    if chosen := os.environ.get("DPADMM_CACHE"):
        return Path(chosen).expanduser() / kind
    if sys.platform == "win32":
        root = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        root = Path.home() / "Library" / "Caches"
    else:
        root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return root / "dpadmm" / kind


@contextmanager
def replacing(target: Path) -> Iterator[IO[bytes]]:
    """A binary stream that becomes `target` if the block succeeds and vanishes if it does not.

    It is a temporary neighbour, renamed at the end: a reader sees the old file or the new one, never half of one.
    """
    name = target.with_name(f".{target.name}.{uuid.uuid4().hex}")
    try:
        with name.open("xb") as stream:
            yield stream
        name.replace(target)
    except BaseException:
        name.unlink(missing_ok=True)
        raise
