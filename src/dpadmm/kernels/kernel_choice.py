"""Which kernels run: NumPy for short fits, compiled ones where they save more time than they take to load."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Literal

from dpadmm.errors import InvalidParameter
from dpadmm.kernels import numpy_kernels, threads
from dpadmm.kernels.source_digest import DIGEST

Name = Literal["numpy", "compiled"]
Loop = Literal["dense", "sparse", "row_visits", "persons"]
"""The file in `compiled` with the kernel that reads the rows: Numba names machine code after it."""

HOMES: dict[str, str] = {"numpy": "dpadmm.kernels.numpy_kernels", "compiled": "dpadmm.kernels.compiled"}
SWITCH = "DPADMM_KERNELS"
CALL_ENTRIES = 1 << 14
"""What a query costs in NumPy whatever its size, in entries of a table read instead."""
WORTH_LOADING = 200_000_000
"""Entries read, by all fits of a process, from which stored kernels are loaded: a second or so of NumPy."""
WORTH_COMPILING = 20 * WORTH_LOADING
"""The same where they have to be compiled first, which takes ten seconds or more, once for each machine."""

LOGGER = logging.getLogger("dpadmm")
COMPILING = "compiling kernels, once for this machine: this takes about twenty seconds"

_announced: set[str] = set()
_read_so_far = 0.0
_active: ContextVar[ModuleType | None] = ContextVar("kernels", default=None)


@dataclass(frozen=True)
class FitSize:
    """The public size of a fit.

    Parameters
    ----------
    queries : int
        How often rows are read.
    rows : float
        Rows of one query: all of them, or the expected batch.
    features : int
        Features of a row.
    loop : Loop
        Which kernel reads them.
    """

    queries: int
    rows: float
    features: int
    loop: Loop = "dense"

    @property
    def entries(self) -> float:
        return self.queries * (self.rows * self.features + CALL_ENTRIES)


def choose(*work: FitSize) -> Name:
    """The rule, on public numbers alone: how often, how many rows, how many features. Never on what is in them.

    Fits add up over the life of the process: to a second of NumPy where machine code is stored and has only to be
    loaded, else to about what compiling takes. The environment variable DPADMM_KERNELS ("numpy" or "compiled")
    overrides it. Inside a `use` its kernels stay, and nothing is counted: how many fits a search makes is secret, so
    that the search is counted once, by how many it may expect.
    """
    threads.allowed()  # refuses a limit that is none, before anything is charged
    if _active.get() is not None:
        return active_name()
    asked = os.environ.get(SWITCH, "auto")
    if asked == "numpy":
        return "numpy"
    if asked == "compiled":
        return "compiled"
    if asked != "auto":
        raise InvalidParameter(f"{SWITCH}={asked!r}", "'numpy', 'compiled' or 'auto'", "correct the environment")
    return "compiled" if _worth(work) else "numpy"


def announce(engine: Name, *work: FitSize) -> None:
    """Say so before kernels are compiled for the first time.

    Python shows the warnings of a logger that nobody set up, so that a first fit is not taken for one that hangs.
    """
    if engine != "compiled":
        return
    missing = {loop for loop in _loops(work) - _announced if not _machine_code_is_stored(loop)}
    _announced.update(_loops(work))
    if missing:
        LOGGER.warning(COMPILING)


def _worth(work: tuple[FitSize, ...]) -> bool:
    global _read_so_far
    _read_so_far += sum(part.entries for part in work)
    if _read_so_far < WORTH_LOADING:
        return False
    return _read_so_far >= WORTH_COMPILING or all(map(_machine_code_is_stored, _loops(work)))


def _loops(work: tuple[FitSize, ...]) -> set[Loop]:
    return {part.loop for part in work} or {"dense"}


def _machine_code_is_stored(loop: Loop) -> bool:
    """Whether an earlier process left machine code of such a loop, of these very sources, where Numba keeps it."""
    mark = (DIGEST or "none").encode()
    indexes = (index for folder in _folders() for index in folder.rglob(f"{loop}.*.nbi"))
    return any(mark in _content(index) for index in indexes)


def _content(index: Path) -> bytes:
    with suppress(OSError):
        return index.read_bytes()
    return b""


def _folders() -> list[Path]:
    given = os.environ.get("NUMBA_CACHE_DIR")
    # Numba goes on to the next place where it cannot write.
    if given and (not Path(given).exists() or (Path(given).is_dir() and os.access(given, os.W_OK))):
        return [Path(given)]
    # Beside the package or, where that cannot be written, in the user's cache.
    caches = [os.environ.get("XDG_CACHE_HOME", "~/.cache"), os.environ.get("LOCALAPPDATA", "~/Library/Caches")]
    return [Path(__file__).parent / "__pycache__", *(Path(cache).expanduser() / "numba" for cache in caches)]


def active() -> ModuleType:
    """The kernels in use: those of the innermost `use`, else NumPy's unless the environment says otherwise."""
    chosen = _active.get()
    if chosen is not None:
        return chosen
    return import_module(HOMES[choose()]) if SWITCH in os.environ else numpy_kernels


def active_name() -> Name:
    """What `use` takes to run with the same kernels elsewhere."""
    return "numpy" if active() is numpy_kernels else "compiled"


@contextmanager
def use(name: Name) -> Iterator[ModuleType]:
    """Run with these kernels."""
    kernels = import_module(HOMES[name])
    token = _active.set(kernels)
    try:
        yield kernels
    finally:
        _active.reset(token)
