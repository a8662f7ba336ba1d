"""Checks of public numbers, written once for every part of a problem."""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpadmm.errors import InvalidParameter, shown

#: A float32 or float64 array; every function of ``problem`` returns the dtype it was given.
Array: TypeAlias = NDArray[Any]


LARGEST_COUNT = 2**53
"""Nothing that is counted is more, and larger integers are not all floating-point numbers."""


def number(name: str, value: Any, minimum: float = 0.0, *, strict: bool = False, finite: bool = True) -> float:
    """Return `value` as a float, or say why it cannot be used.

    Parameters
    ----------
    name : str
        The parameter's name, for the message.
    value : Any
        What the caller gave.
    minimum : float
        The smallest acceptable number.
    strict : bool
        Whether `minimum` itself is refused.
    finite : bool
        Whether infinity is refused.

    Examples
    --------
    >>> number("strength", "0.5")
    0.5
    """
    try:
        result = float(value)
    except (TypeError, ValueError, OverflowError):
        result = math.nan
    large_enough = result > minimum if strict else result >= minimum
    if not large_enough or (finite and math.isinf(result)):
        kind = "a finite number" if finite else "a number"
        raise InvalidParameter(
            f"{name}={shown(value)}", f"{kind} {'>' if strict else '>='} {minimum:g}", f"choose another {name}"
        )
    return result


def count(name: str, value: Any, minimum: int = 0) -> int:
    """Return `value` as an int that is at least `minimum`, or say why it cannot be used.

    Examples
    --------
    >>> count("free", 1)
    1
    """
    whole = isinstance(value, int) or (hasattr(value, "__index__") and np.ndim(value) == 0)
    if not whole or isinstance(value, (bool, np.bool_)) or not minimum <= int(value) <= LARGEST_COUNT:
        raise InvalidParameter(
            f"{name}={shown(value)}", f"an integer >= {minimum}, and at most 2**53", f"choose another {name}"
        )
    return int(value)


def leading_axis(name: str, array: Array, expected: int) -> None:
    """Refuse an array that is not of shape (expected,) or (expected, K)."""
    if array.ndim not in (1, 2) or array.shape[0] != expected:
        raise InvalidParameter(
            f"{name} of shape {array.shape}",
            f"shape ({expected},) or ({expected}, K)",
            f"make the first axis of {name} agree with the problem",
        )
