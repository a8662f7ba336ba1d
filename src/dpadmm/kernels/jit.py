"""The one way a kernel is compiled: on first call, without the lock of the interpreter, kept on disk where possible."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

from numba import njit

from dpadmm.kernels.source_digest import DIGEST

Function = TypeVar("Function", bound=Callable[..., Any])


def kernel(*flags: str, inline: bool = False, borrows: bool = False) -> Callable[[Function], Function]:
    """Compile a function; `flags` are the fast-math flags it can bear; `inline` makes it part of its callers;
    `borrows` that neither it nor what it calls counts who holds an array: it cannot make any, and loses no time.

    No kernel bears flags that assume finite numbers ("fast", "nnan", "ninf"): a row of NaN must count as zero. Where
    nothing can be written, machine code is kept in memory only. A change in any file here has all compiled anew.
    """

    def compile_(function: Function) -> Function:
        options: dict[str, Any] = {"nogil": True, "error_model": "numpy", "fastmath": set(flags), "forceinline": inline}
        if borrows:
            options["_nrt"] = False
        if DIGEST is None:
            return njit(**options)(function)  # type: ignore[no-any-return]
        try:
            return _dispensable(_tied_to_sources(njit(cache=True, **options)(function)))  # type: ignore[no-any-return]
        except (RuntimeError, AttributeError):  # no folder for the cache, or a Numba that keeps it another way
            return njit(**options)(function)  # type: ignore[no-any-return]

    return compile_


def _tied_to_sources(compiled: Function) -> Function:
    """Stored machine code counts only while every source of this package is what it was.

    Numba compares the file of the outer function alone, but a kernel inlines those of other files, the clip among
    them: after an upgrade an old clip could go on running. It also numbers the files of machine code from one for each
    version, and writes the index that names a file before the file: if the disk is full or the process ends in
    between, the index of a new version would name the code of an old one; and of two processes that compile at once
    one could name the code of the other. So every file has a name of its own.
    """
    # Numba has no public way to either.
    stored = compiled._cache._cache_file  # type: ignore[attr-defined]  # noqa: SLF001
    stored._source_stamp = (stored._source_stamp, DIGEST)  # noqa: SLF001
    numbered = stored._data_name  # noqa: SLF001
    stored._data_name = lambda number: f"{secrets.token_hex(8)}-{numbered(number)}"  # noqa: SLF001
    return compiled


def _dispensable(compiled: Function) -> Function:
    """A disk that is full, or files that are lost or broken, cost time but no fit: its budget is charged.

    A broken index can fail in any way that unpickling can.
    """
    cache = compiled._cache  # type: ignore[attr-defined]  # noqa: SLF001
    load, save = cache.load_overload, cache.save_overload

    def load_if_possible(*where: Any) -> Any:
        with suppress(Exception):
            return load(*where)
        return None

    def save_if_possible(*what: Any) -> None:
        with suppress(Exception):
            save(*what)

    cache.load_overload, cache.save_overload = load_if_possible, save_if_possible
    return compiled
