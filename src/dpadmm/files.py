"""Write to a temporary neighbour, then rename: a reader sees the old file or the new one, never half of one."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO


@contextmanager
def replacing(target: Path) -> Iterator[IO[bytes]]:
    """A binary stream that becomes `target` if the block succeeds and vanishes if it does not."""
    stream = tempfile.NamedTemporaryFile(dir=target.parent, prefix=f".{target.name}.", delete=False)
    try:
        with stream:
            yield stream
        os.replace(stream.name, target)
    except BaseException:
        os.unlink(stream.name)
        raise
