"""One table in memory, mapped from a file, and held by Dask: what a fit costs, in time of processors and in memory.

    python -m experiments.engines [--rows 200000] [--features 50]

Each way runs in a process of its own; memory is the largest resident set of that process. The models are compared.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import tempfile
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

PARTITIONS = (1, 10, 100)


def write(folder: Path, rows: int, features: int) -> None:
    rng = np.random.default_rng(0)
    table = np.lib.format.open_memmap(folder / "X.npy", "w+", np.float32, (rows, features))
    direction = rng.standard_normal(features)
    labels = np.empty(rows, dtype=np.int64)
    for start in range(0, rows, 100_000):
        block = slice(start, min(start + 100_000, rows))
        table[block] = rng.uniform(-1, 1, (block.stop - start, features))
        labels[block] = table[block] @ direction > 0
    table.flush()
    np.save(folder / "y.npy", labels)


def in_memory(folder: Path) -> tuple[Any, Any]:
    return np.load(folder / "X.npy"), np.load(folder / "y.npy")


def mapped(folder: Path) -> tuple[Any, Any]:
    return np.load(folder / "X.npy", mmap_mode="r"), np.load(folder / "y.npy")


def read(path: str, start: int, stop: int) -> Any:
    """A partition, read as from a file of its own."""
    return np.array(np.load(path, mmap_mode="r")[start:stop])


def dask_table(folder: Path, partitions: int) -> tuple[Any, Any]:
    import dask
    import dask.array as da

    path, labels = str(folder / "X.npy"), np.load(folder / "y.npy")
    features = np.load(path, mmap_mode="r").shape[1]
    cuts = np.linspace(0, len(labels), partitions + 1).astype(int).tolist()
    pieces = [
        da.from_delayed(dask.delayed(read)(path, start, stop), (stop - start, features), np.float32)
        for start, stop in pairwise(cuts)
    ]
    X = da.concatenate(pieces)
    return X, da.from_array(labels, chunks=(X.chunks[0],))


def fitted(make: Callable[..., tuple[Any, Any]], arguments: tuple[Any, ...], answer: Any) -> None:
    """Times one fit after a short one has loaded what is loaded on first use."""
    from dpadmm import DPLogisticRegression

    model = DPLogisticRegression(1.0, 1e-8, classes=[0, 1], random_state=0)
    small = np.random.default_rng(0).uniform(-1, 1, (1000, 5)).astype(np.float32)
    model.fit(small, (small[:, 0] > 0).astype(int))
    X, y = make(*arguments)
    start = time.process_time()
    model.fit(X, y)
    taken = time.process_time() - start
    answer.put((taken, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, model.weights_))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--features", type=int, default=50)
    chosen = parser.parse_args()
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write(folder, chosen.rows, chosen.features)
        ways: list[tuple[str, Callable[..., Any], tuple[Any, ...]]] = [
            ("in memory", in_memory, (folder,)),
            ("mapped from a file", mapped, (folder,)),
            *((f"Dask, {count} partitions", dask_table, (folder, count)) for count in PARTITIONS),
        ]
        size = chosen.rows * chosen.features * 4 / 2**20
        print(f"{chosen.rows} rows of {chosen.features} float32 features, {size:.0f} MiB; solver='auto'\n")
        print("| rows | fit (s of processors) | largest resident set (MiB) | model differs by |\n|---|---|---|---|")
        first = None
        for way, make, arguments in ways:
            answer = context.Queue()
            process = context.Process(target=fitted, args=(make, arguments, answer))
            process.start()
            taken, memory, weights = answer.get()
            process.join()
            first = weights if first is None else first
            distance = np.linalg.norm(weights - first) / np.linalg.norm(first)
            print(f"| {way} | {taken:.2f} | {memory:.0f} | {distance:.0e} |")


if __name__ == "__main__":
    main()
