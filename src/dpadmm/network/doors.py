"""The library's own oracle at both ends: a silo's, which adds a share of noise and masks, and the coordinator's.

Both take the same questions at the same places by the same rules. What a silo's oracle would release, a noisy mean, is
thrown away: its masked vector is all that leaves. The coordinator's oracle stands before one made-up row, from which it
learns the lattice of each sum; the numbers come from the silos.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from dpadmm.errors import QueryRefused
from dpadmm.oracles.base import PrivateOracle
from dpadmm.privacy import arithmetic
from dpadmm.privacy.plan import Plan, Query
from dpadmm.randomness import make_streams
from dpadmm.rows.lattice_sum import LatticeSum
from dpadmm.rows.protocol import Rows

Array = NDArray[np.float64]
Exchange = Callable[[LatticeSum, float], NDArray[np.int64]]
"""From a sum and the deviation of the planned noise, to the counts that go on."""

METHODS: dict[str, str] = {"moments": "moments", "second moment": "second_moment", "curvature": "feature_curvature"}


class ExchangingOracle(PrivateOracle):
    """An oracle whose exact noise is someone else's business: `exchange` says what becomes of a sum."""

    exchange: Exchange

    def _exactly(self, query: Query, clip_norm: float, total: LatticeSum) -> Array:
        noise = query.noise_multiplier * clip_norm
        self._reserve(arithmetic.variation(arithmetic.exact_deviations(noise, total.units)))
        counts = self.exchange(total, noise)
        return np.asarray(counts * (total.units / query.denominator))

    def _reserve(self, variation: float) -> None:
        import math

        self._variation += variation
        budget = self._plan.budget
        if not self._variation * (1.0 + math.exp(budget.epsilon)) <= arithmetic.RESERVED_SHARE * budget.delta:
            raise QueryRefused("so many exact releases that their distance from the Gaussian exceeds what is reserved")

    def ask(self, kind: str, *at: Any) -> Any:
        name = METHODS.get(kind)
        if name is not None:
            return getattr(self, name)(*at)
        if len(at) == 3:
            return self.difference(*at, kind)
        return self.gradient(*at, kind)

    @property
    def counts(self) -> dict[str, Any]:
        """What was asked so far, to be stored."""
        return {"asked": dict(self._asked), "performed": dict(self._performed), "variation": self._variation}

    @classmethod
    def restored(cls, rows: Rows, plan: Plan, counts: Mapping[str, Any]) -> Self:
        """The oracle of a plan of which some was asked before."""
        made = cls(rows, plan, make_streams())
        if counts:
            made._asked.update(counts["asked"])
            made._performed.update(counts["performed"])
            made._variation = counts["variation"]
        return made
