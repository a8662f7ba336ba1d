"""A warning names the line of the user's program that called this library, not a line inside it."""

from __future__ import annotations

from inspect import currentframe


def callers_line() -> int:
    """The `stacklevel` with which the caller of this function warns at the line that entered the library."""
    inside = currentframe()
    frame, level = None if inside is None else inside.f_back, 1
    while frame is not None and frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("dpadmm."):
        frame, level = frame.f_back, level + 1
    return level
