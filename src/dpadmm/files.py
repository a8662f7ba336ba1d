"""Write to a temporary neighbour, then rename: a reader sees the old file or the new one, never half of one."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO


@contextmanager
def replacing(target: Path) -> Iterator[IO[bytes]]:
    """A binary stream that becomes `target` if the block succeeds and vanishes if it does not."""
    name = target.with_name(f".{target.name}.{uuid.uuid4().hex}")
    try:
        with name.open("xb") as stream:
            yield stream
        name.replace(target)
    except BaseException:
        name.unlink(missing_ok=True)
        raise
