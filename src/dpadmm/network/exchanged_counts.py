"""The mechanism at both ends of a federation: it exchanges the counts of a sum for others instead of adding noise.

A silo's library oracle sees to admission, places, coordinates and the sum; its exchange masks and sends the counts, and
what the oracle then answers is thrown away. The coordinator's exchanges the counts of a made-up row for those of all
silos.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from dpadmm.errors import QueryRefused
from dpadmm.oracles.gate import Gate
from dpadmm.privacy import arithmetic
from dpadmm.privacy.plan import Query
from dpadmm.rows.lattice_sum import LatticeSum, Sum

Exchange = Callable[[LatticeSum, float], NDArray[np.int64]]
"""From a sum, and the deviation of the noise that the plan needs on it, to the counts that go on."""


class ExchangedCounts:
    """A mechanism that charges for exact noise as the library's own does, and leaves the noise to the silos."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange

    def turn(self, condition: float) -> None:
        """Sums of integers do not round."""

    def release(self, total: Sum, query: Query, clip: float, gate: Gate) -> NDArray[np.float64]:
        if not isinstance(total, LatticeSum):
            raise QueryRefused("owners answer together in exact arithmetic alone")
        noise = query.noise_multiplier * clip
        # All shares together are at least this wide: docs/proofs/federated.md, Theorem.
        gate.reserve(arithmetic.variation(arithmetic.exact_deviations(noise, total.units)))
        return np.asarray(self._exchange(total, noise) * (total.units / query.denominator))
