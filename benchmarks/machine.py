"""The machine a run was made on, and how fast one of its cores reads memory."""

from __future__ import annotations

import os
import platform
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks.measure import seconds

BANDWIDTH_BYTES = 1 << 29
"""Far larger than any cache."""


def describe() -> dict[str, Any]:
    return {
        "cpu": _cpu_model(),
        "cores": os.cpu_count(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "system": platform.system(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "bandwidth_gb_s": read_bandwidth() / 1e9,
    }


def load() -> float:
    """How many programs wanted a processor over the last minute, this one included."""
    return round(os.getloadavg()[0], 1)


def read_bandwidth(rounds: int = 7) -> float:
    """Bytes a second of one thread that reads an array from memory: a dot product with itself."""
    array = np.ones(BANDWIDTH_BYTES // 8)
    return array.nbytes / median(seconds(lambda: array @ array) for _ in range(rounds))


def _cpu_model() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
