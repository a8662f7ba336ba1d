"""Peak memory of `fit` over the size of its input, and of a table on disk that is larger than what may be resident."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.peak import FOR_TARGETS, MAPPED_FEATURES
from benchmarks.processes import in_fresh_process
from benchmarks.report import Row

FILE_GB = "DPADMM_BENCH_FILE_GB"
"""Variable with the size of the table on disk, 20 by default."""
SPARE_DISK = 10 * 10**9
"""What the table leaves of the disk; where that is not enough the table is smaller, and the row says how large."""
TABLES = {
    "dense f32, 1,000,000 × 100": ("dense", "1000000", "100", "float32"),
    "dense f64, 1,000,000 × 100": ("dense", "1000000", "100", "float64"),
    "dense f64, 100,000 × 1,000": ("dense", "100000", "1000", "float64"),
    "dense f32, 4,000,000 × 25, short rows": ("dense", "4000000", "25", "float32"),
    "CSR, 200,000 × 50,000, 75 a row": ("sparse", "200000", "50000", "75"),
    "CSR, 3,000,000 × 300, 12 a row": ("sparse", "3000000", "300", "12"),
}
HARDER_TABLES = {
    "auto, dense f32, 20,000 × 1,000, few rows for the features": ("auto", "dense", "20000", "1000", "float32"),
    "auto, dense f32, 5,000,000 × 10, shorter rows": ("auto", "dense", "5000000", "10", "float32"),
    "auto, dense f32, 1,000,000 × 100, column by column": ("auto", "by columns", "1000000", "100", "float32"),
    "auto, CSR with 64-bit indices, 200,000 × 50,000": ("auto", "long indices", "200000", "50000", "75"),
    "auto, CSR, 200,000 × 50,000, 20 classes": ("auto", "sparse", "200000", "50000", "75", "20"),
    "dp-sgd, dense f32, 1,000,000 × 100, with its plan": ("dp-sgd", "dense", "1000000", "100", "float32"),
}
"""Where what a fit takes besides the table is no small part of it, or the table is copied: without a target."""
ON_TWO_THREADS = {
    "auto, dense f32, 1,000,000 × 100, two threads": ("auto", "dense", "1000000", "100", "float32"),
    "full-admm, dense f32, 20,000 × 5,000, 100 classes, two threads": (
        "full-admm",
        "dense",
        "20000",
        "5000",
        "float32",
        "100",
    ),
}
"""Sums of blocks that wait to be added take memory, too."""


def run(quick: bool) -> Iterator[Row]:
    for case, arguments in TABLES.items():
        for solver in FOR_TARGETS:
            yield over_input(f"{solver}, {case}", in_fresh_process("-m", "benchmarks.peak", solver, *arguments), 1.3)
    for case, arguments in ON_TWO_THREADS.items():
        yield over_input(case, in_fresh_process("-m", "benchmarks.peak", *arguments, DPADMM_NUM_THREADS="2"), 1.3)
    for case, arguments in HARDER_TABLES.items():
        yield over_input(case, in_fresh_process("-m", "benchmarks.peak", *arguments))
    if not quick:
        with rows_on_disk() as (path, size):
            for solver in FOR_TARGETS:
                yield on_disk(solver, size, in_fresh_process("-m", "benchmarks.peak", solver, "mapped", str(path)))


def over_input(case: str, found: dict[str, Any], target: float | None = None) -> Row:
    """Input and what `fit` adds to it, over the input."""
    value = None if "failed" in found else (found["input"] + found["extra"]) / found["input"]
    note = found.get("failed") or f"{found['input'] / 1e6:.0f} MB and {found['extra'] / 1e6:.0f} MB"
    return Row("memory", case, "peak over input", value, "×", target, "at most", note, found)


def on_disk(solver: str, size: int, found: dict[str, Any]) -> Row:
    case = f"{solver}, {size / 1e9:.0f} GB memory-mapped"
    value = None if "failed" in found else found["peak"] / 1e9
    note = found.get("failed") or f"{found['seconds']:.0f} s"
    return Row("memory", case, "peak resident", value, "GB", 4.0, "at most", note, found)


@contextmanager
def rows_on_disk() -> Iterator[tuple[Path, int]]:
    """A table as large as was asked for or the disk allows, and its size in bytes; deleted afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="dpadmm-bench-"))
    try:
        free = shutil.disk_usage(folder).free - SPARE_DISK
        n_rows = max(0, min(int(os.environ.get(FILE_GB, 20)) * 10**9, free)) // (4 * MAPPED_FEATURES)
        write_rows(folder / "rows.npy", n_rows)
        yield folder / "rows.npy", n_rows * 4 * MAPPED_FEATURES
    finally:
        shutil.rmtree(folder)


def write_rows(path: Path, n_rows: int, block: int = 250_000) -> None:
    """Float32 rows, the same block over and over: what they hold does not matter here."""
    rows = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(n_rows, MAPPED_FEATURES))
    fresh = np.random.default_rng(0).random((block, MAPPED_FEATURES), dtype=np.float32)
    for start in range(0, n_rows, block):
        rows[start : start + block] = fresh[: n_rows - start]
    rows.flush()
