"""A sum of many parts in pairs of pairs, so that its rounding hardly grows with their number."""

from __future__ import annotations

from typing import Any


class TreeSum:
    """Parts added like the digits of a binary counter: 2⁴⁷ of them pass through at most 48 additions each.

    Parts are arrays, or whatever else `+` adds.

    Examples
    --------
    >>> total = TreeSum()
    >>> for part in range(5):
    ...     total.add(part)
    >>> total.sum
    10
    """

    def __init__(self) -> None:
        self._partial: list[Any] = []

    def add(self, part: Any) -> None:
        """One part more."""
        for level, held in enumerate(self._partial):
            if held is None:
                self._partial[level] = part
                return
            part, self._partial[level] = held + part, None
        self._partial.append(part)

    @property
    def sum(self) -> Any:
        """Of all parts so far, of which there must be one."""
        held = [part for part in self._partial if part is not None]
        total = held[0]
        for part in held[1:]:
            total = total + part
        return total
