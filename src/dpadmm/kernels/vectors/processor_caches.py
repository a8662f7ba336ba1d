"""What is known of the caches of this processor, for which machine code is made."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

FIRST_CACHE = Path("/sys/devices/system/cpu/cpu0/cache/index0/size")
ROOMY_FROM = 48
"""KiB of a first cache that has room for rows asked for in advance beside those being read."""


def first_cache() -> int:
    """KiB of the first data cache, or zero where the system does not say."""
    with suppress(OSError, ValueError):
        return int(FIRST_CACHE.read_text().strip().removesuffix("K"))
    return 0


ROOMY = first_cache() >= ROOMY_FROM
NEARNESS = 3 if ROOMY else 2
"""How near memory is asked for: into the first cache, or into the second."""
