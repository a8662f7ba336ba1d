"""Which path work takes: compiled kernels or their NumPy twins, and on how many threads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from benchmarks.measure import Work
from dpadmm import kernels
from dpadmm.kernels.threads import at_most_threads

Path = Literal["compiled", "numpy"]
COMPILED: Path = "compiled"
NUMPY: Path = "numpy"


def on_path(path: Path, make: Callable[[], Work], threads: int = 1) -> Work:
    """Work that is made, and later done, with the kernels called `path`."""
    with kernels.use(path), at_most_threads(threads):
        work = make()

    def done() -> object:
        with kernels.use(path), at_most_threads(threads):
            return work()

    return done
