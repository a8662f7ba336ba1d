"""Whether a machine has room for a model, from public numbers alone: asked before anything is charged."""

from __future__ import annotations

import math
import os
from contextlib import suppress
from pathlib import Path

from dpadmm.errors import InvalidParameter
from dpadmm.solvers.base import LEAST_NUMBERS
from dpadmm.stored_json import LARGEST_WHOLE

GROUP_LIMIT = Path("/sys/fs/cgroup/memory.max")
"""What Linux lets the processes of a container have together."""


def require_room(weights: int, numbers_per_weight: int = LEAST_NUMBERS) -> None:
    """Refuse a model that does not fit in memory: it would fail, or swap without end, after its budget was charged."""
    if weights > LARGEST_WHOLE:
        raise InvalidParameter("a model of more than 2**53 weights", "fewer", "correct the number of features")
    needed, there = 8 * weights * numbers_per_weight, memory()
    if needed > there:
        raise InvalidParameter(
            f"a model of {weights:,} weights, whose training needs {needed / 2**30:,.1f} GiB",
            f"what fits in the {there / 2**30:,.1f} GiB of this machine",
            "hash or choose features, or use a larger machine",
        )


def memory() -> float:
    """Bytes of memory that this process can have at most, as far as the system tells; swap does not count."""
    limits = [math.inf]
    with suppress(AttributeError, ValueError, OSError):
        limits.append(float(os.sysconf("SC_PAGE_SIZE")) * os.sysconf("SC_PHYS_PAGES"))
    with suppress(ValueError, OSError):  # without a limit the file says "max"
        limits.append(float(GROUP_LIMIT.read_text()))
    return min(limit for limit in limits if limit > 0)
