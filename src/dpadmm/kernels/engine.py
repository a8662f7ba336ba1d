"""Which kernels run: NumPy for short fits, compiled ones where they save more time than they take to load."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Literal

from dpadmm.errors import InvalidParameter
from dpadmm.kernels import reference

Name = Literal["numpy", "compiled"]

HOMES: dict[str, str] = {"numpy": "dpadmm.kernels.reference", "compiled": "dpadmm.kernels.compiled"}
SWITCH = "DPADMM_KERNELS"
CALL_ENTRIES = 1 << 14
"""What a query costs in NumPy whatever its size, in entries of a table read instead."""
WORTH_COMPILING = 200_000_000
"""Entries read by one fit from which compiled kernels are loaded: a second or so of NumPy."""
WORTH_WAITING = 7 * WORTH_COMPILING
"""Entries read by all fits of a process after which waiting for a compiler, once, costs no more than was spent."""

_read_so_far = 0.0
_active: ContextVar[ModuleType | None] = ContextVar("kernels", default=None)


@dataclass(frozen=True)
class Work:
    """The public size of a fit.

    Parameters
    ----------
    queries : int
        How often rows are read.
    rows : float
        Rows of one query: all of them, or the expected batch.
    features : int
        Features of a row.
    """

    queries: int
    rows: float
    features: int

    @property
    def entries(self) -> float:
        return self.queries * (self.rows * self.features + CALL_ENTRIES)


def choose(*work: Work) -> Name:
    """The rule, on public numbers alone: how often, how many rows, how many features. Never on what is in them.

    One long fit is compiled for at once. Short fits add up over the life of the process: to as much where machine
    code is stored and has only to be loaded, else to what compiling takes. The environment variable DPADMM_KERNELS
    ("numpy" or "compiled") overrides it. Inside a `use` its kernels stay, and nothing is counted: how many fits a
    search makes is secret, so that the search is counted once, by how many it may expect.
    """
    if _active.get() is not None:
        return active_name()
    asked = os.environ.get(SWITCH, "auto")
    if asked == "numpy":
        return "numpy"
    if asked == "compiled":
        return "compiled"
    if asked != "auto":
        raise InvalidParameter(f"{SWITCH}={asked!r}", "'numpy', 'compiled' or 'auto'", "correct the environment")
    return "compiled" if _worth(sum(part.entries for part in work)) else "numpy"


def _worth(entries: float) -> bool:
    global _read_so_far
    _read_so_far += entries
    if entries >= WORTH_COMPILING:
        return True
    return _read_so_far >= (WORTH_COMPILING if _machine_code_is_stored() else WORTH_WAITING)


def _machine_code_is_stored() -> bool:
    """Whether an earlier process left it beside the package, where Numba writes it if it may."""
    return any(Path(__file__).parent.glob("__pycache__/gradients.dense_sum-*.nbi"))


def active() -> ModuleType:
    """The kernels in use: those of the innermost `use`, else NumPy's unless the environment says otherwise."""
    chosen = _active.get()
    if chosen is not None:
        return chosen
    return import_module(HOMES[choose()]) if SWITCH in os.environ else reference


def active_name() -> Name:
    """What `use` takes to run with the same kernels elsewhere."""
    return "numpy" if active() is reference else "compiled"


@contextmanager
def use(name: Name) -> Iterator[ModuleType]:
    """Run with these kernels."""
    kernels = import_module(HOMES[name])
    token = _active.set(kernels)
    try:
        yield kernels
    finally:
        _active.reset(token)
