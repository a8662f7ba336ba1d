"""The one way a kernel is compiled: on first call, without the lock of the interpreter, kept on disk where possible."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from numba import njit

Function = TypeVar("Function", bound=Callable[..., Any])


def kernel(*flags: str, inline: bool = False, borrows: bool = False) -> Callable[[Function], Function]:
    """Compile a function; `flags` are the fast-math flags it can bear; `inline` makes it part of its callers;
    `borrows` that neither it nor what it calls counts who holds an array: it cannot make any, and loses no time.

    No kernel bears flags that assume finite numbers ("fast", "nnan", "ninf"): a row of NaN must count as zero. Where no
    folder can be written to, machine code is kept in memory only.
    """

    def compile_(function: Function) -> Function:
        options: dict[str, Any] = {"nogil": True, "error_model": "numpy", "fastmath": set(flags), "forceinline": inline}
        if borrows:
            options["_nrt"] = False
        try:
            compiled: Function = njit(cache=True, **options)(function)
        except RuntimeError:  # Numba: no locator available, that is no folder for the cache
            compiled = njit(**options)(function)
        return compiled

    return compile_
