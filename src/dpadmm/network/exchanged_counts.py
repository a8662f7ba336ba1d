"""The mechanism at both ends of a federation: it exchanges the counts of a sum for others instead of adding noise.

A silo's library oracle sees to admission, places, coordinates and the sum; its exchange masks and sends the counts, and
what the oracle then answers is thrown away. The coordinator's exchanges the counts of a made-up row for those of all
silos.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from dpadmm.errors import QueryRefused
from dpadmm.network.noise_shares import share_deviations
from dpadmm.network.proposal import Proposal
from dpadmm.oracles.gate import Gate
from dpadmm.privacy import arithmetic
from dpadmm.privacy.plan import Query
from dpadmm.rows.lattice_sum import LatticeSum, Sum

Deviations = NDArray[np.int64]
Exchange = Callable[[LatticeSum, Deviations], NDArray[np.int64]]
"""From a sum, and the deviation of one share of the noise on each entry, to the counts that go on."""


class ExchangedCounts:
    """A mechanism that charges for exact noise as the library's own does, and leaves the noise to the silos.

    Parameters
    ----------
    proposal : Proposal
        What was approved: S, c and the plan.
    exchange : callable
        What becomes of the counts.
    """

    def __init__(self, proposal: Proposal, exchange: Exchange) -> None:
        self._honest, self._dearness = proposal.roster.honest, dearness(proposal)
        self._exchange = exchange

    def turn(self, condition: float) -> None:
        """Sums of integers do not round."""

    def release(self, total: Sum, query: Query, clip: float, gate: Gate) -> NDArray[np.float64]:
        if not isinstance(total, LatticeSum):
            raise QueryRefused("owners answer together in exact arithmetic alone")
        deviations = share_deviations(query.noise_multiplier * clip, self._honest, total.units)
        gate.reserve(arithmetic.variation(deviations) * self._dearness)
        return np.asarray(self._exchange(total, deviations) * (total.units / query.denominator))


def dearness(proposal: Proposal) -> float:
    """By what to multiply the distance of one share from the rounded Gaussian, so that both stated ε are covered.

    S − c shares together are S − c times closer, at the first ε; one share alone counts at the second, of which the
    gate knows nothing (docs/proofs/federated.md, Corollary).
    """
    first, second = proposal.plan.budget.epsilon, proposal.epsilon_if_all_collude
    return max(1.0 / proposal.roster.honest, (1.0 + math.exp(second)) / (1.0 + math.exp(first)))
