"""What a mechanism is: it takes a raw sum and gives the noisy mean."""

from __future__ import annotations

from typing import Any, Protocol

from dpadmm.errors import QueryRefused
from dpadmm.oracles.gate import Gate
from dpadmm.privacy.plan import Query


class Mechanism(Protocol):
    """Noise in one arithmetic, drawn where the sums are.

    *Formal guarantees.* `release` gives the sum plus Gaussian noise of standard deviation at least
    `query.noise_multiplier · clip`, divided by the public denominator, and charges what its own rounding can add to
    what one record moves.
    """

    def turn(self, condition: float) -> None:
        """Sums are formed before a change of coordinates of this condition number from now on."""
        ...

    def release(self, total: Any, query: Query, clip: float, gate: Gate) -> Any:
        """The noisy mean. `clip` bounds one record's contribution; δ that noise costs by itself is reserved first."""
        ...


def other_arithmetic() -> QueryRefused:
    return QueryRefused("the rows compute in another arithmetic than the plan promises")
