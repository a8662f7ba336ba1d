"""A sum of many parts in pairs of pairs, so that its rounding hardly grows with their number."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class TreeSum:
    """Parts added like the digits of a binary counter: 2⁴⁷ of them pass through at most 48 additions each.

    Examples
    --------
    >>> total = TreeSum()
    >>> for part in range(5):
    ...     total.add(np.array([float(part)]))
    >>> total.sum
    array([10.])
    """

    def __init__(self) -> None:
        self._partial: list[Array | None] = []

    def add(self, part: Array) -> None:
        """One part more."""
        for level, held in enumerate(self._partial):
            if held is None:
                self._partial[level] = part
                return
            part, self._partial[level] = held + part, None
        self._partial.append(part)

    @property
    def sum(self) -> Array:
        """Of all parts so far, of which there must be one."""
        held = [part for part in self._partial if part is not None]
        total = held[0]
        for part in held[1:]:
            total = total + part
        return total
