"""A warning names the line of the user's program that called this library, not a line inside it."""

from __future__ import annotations

import sys


def callers_line() -> int:
    """The `stacklevel` with which the caller of this function warns at the line that entered the library."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("dpadmm."):
        frame, level = frame.f_back, level + 1
    return level
