"""Sums of charges that grow by one charge at a time, and are as exact as if all were added at once."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, Self


class Cost(Protocol):
    """What one fit adds: a Gaussian, and an extra probability."""

    @property
    def shift(self) -> float: ...

    @property
    def slack(self) -> float: ...


@dataclass(frozen=True)
class Sums:
    """How many fits there were, and the sums of their squared shifts and of their slacks.

    Each sum is kept as floating-point numbers that together are *exactly* the sum, so that rounding it once gives what
    `math.fsum` gives for all charges, to the last bit.

    Examples
    --------
    >>> from dpadmm.privacy.ledger.charge import Charge
    >>> total = Sums()
    >>> for _ in range(10):
    ...     total = total.plus(Charge(0.1, 0.1))
    >>> total.slack == math.fsum([0.1] * 10)
    True
    """

    fits: int = 0
    sampled: int = 0
    squares: tuple[float, ...] = ()
    slacks: tuple[float, ...] = ()

    @classmethod
    def of(cls, costs: Iterable[Cost]) -> Self:
        total = cls()
        for cost in costs:
            total = total.plus(cost)
        return total

    def plus(self, cost: Cost) -> Self:
        """The sums after one more fit."""
        return type(self)(
            self.fits + 1,
            self.sampled + (cost.slack > 0.0),
            _grown(self.squares, cost.shift * cost.shift),
            _grown(self.slacks, cost.slack) if cost.slack else self.slacks,
        )

    @property
    def shift(self) -> float:
        """The Gaussian that stands for all fits together."""
        return math.sqrt(math.fsum(self.squares))

    @property
    def slack(self) -> float:
        return math.fsum(self.slacks)

    def to_dict(self) -> dict[str, Any]:
        return {
            "fits": self.fits,
            "sampled": self.sampled,
            "squares": list(self.squares),
            "slacks": list(self.slacks),
        }

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Self:
        parts = (tuple(map(float, fields[name])) for name in ("squares", "slacks"))
        return cls(int(fields["fits"]), int(fields["sampled"]), *parts)


def _grown(parts: tuple[float, ...], value: float) -> tuple[float, ...]:
    """Numbers whose exact sum is that of `parts` and `value`, none overlapping another (Shewchuk 1997)."""
    kept = []
    for part in parts:
        large, small = (value, part) if abs(value) >= abs(part) else (part, value)
        value = large + small
        if rest := small - (value - large):
            kept.append(rest)
    # Too large a sum is endless, which every limit refuses.
    return (*kept, value) if math.isfinite(value) else (math.inf,)
