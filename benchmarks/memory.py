"""Peak memory of `fit` over the size of its input, and of a table on disk that is larger than what may be resident."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.peak import MAPPED_FEATURES, STEPS
from benchmarks.processes import in_fresh_process
from benchmarks.report import Row

FILE_GB = "DPADMM_BENCH_FILE_GB"
"""Variable with the size of the table on disk, 6 by default: more than may be resident. 20 takes minutes to write."""
SPARE_DISK = 10 * 10**9
TABLES = {
    "dense f32, 400 MB": ("dense", "1000000", "100", "float32"),
    "dense f64, 800 MB": ("dense", "1000000", "100", "float64"),
    "CSR, 200,000 × 50,000, 75 a row": ("sparse", "200000", "50000", "75"),
}


def run(quick: bool) -> Iterator[Row]:
    for case, arguments in TABLES.items():
        yield over_input(case, in_fresh_process("-m", "benchmarks.peak", *arguments))
    if not quick:
        yield from on_disk()


def over_input(case: str, found: dict[str, Any]) -> Row:
    """Input and what `fit` adds to it, over the input."""
    value = None if "failed" in found else (found["input"] + found["extra"]) / found["input"]
    return Row("memory", case, "peak over input", value, "×", 1.3, "at most", found.get("failed", ""), found)


def on_disk() -> Iterator[Row]:
    folder = Path(tempfile.mkdtemp(prefix="dpadmm-bench-"))
    try:
        size = min(int(os.environ.get(FILE_GB, 6)) * 10**9, shutil.disk_usage(folder).free - SPARE_DISK)
        write_rows(folder / "rows.npy", size // (4 * MAPPED_FEATURES))
        found = in_fresh_process("-m", "benchmarks.peak", "mapped", str(folder / "rows.npy"))
    finally:
        shutil.rmtree(folder)
    case = f"{size / 1e9:.0f} GB memory-mapped, {STEPS} steps"
    value = None if "failed" in found else found["peak"] / 1e9
    yield Row("memory", case, "peak resident", value, "GB", 4.0, "at most", found.get("failed", ""), found)


def write_rows(path: Path, n_rows: int, block: int = 250_000) -> None:
    """Float32 rows, the same block over and over: what they hold does not matter here."""
    rows = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(n_rows, MAPPED_FEATURES))
    fresh = np.random.default_rng(0).random((block, MAPPED_FEATURES), dtype=np.float32)
    for start in range(0, n_rows, block):
        rows[start : start + block] = fresh[: n_rows - start]
    rows.flush()
