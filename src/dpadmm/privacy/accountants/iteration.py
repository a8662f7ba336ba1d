"""Amplification by iteration: Rényi accounting of hidden passes, whose later steps hide the earlier ones."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dpadmm.privacy.accountants.base import (
    ACCOUNTANTS,
    mismatch,
    require_nonnegative,
    require_probability,
    require_wellformed,
)
from dpadmm.privacy.budget import Relation
from dpadmm.privacy.events import Event, HiddenPasses, Part
from dpadmm.privacy.passage import Passage

Floats = NDArray[np.float64]

ORDERS: Floats = 1.0 + np.geomspace(1e-2, 1e4, 480)
"""Leaving orders out is always sound; between two of these an ε is lower by less than a thousandth."""

ONE_BY_ONE = 2000
GROUPING = 1.01
"""Pairs of later iterations beyond ONE_BY_ONE are taken in groups this wide, each at the cost of its dearest."""

LARGEST_EXPONENT = 700.0


@ACCOUNTANTS.register("iteration")
class IterationAccountant:
    """Rényi divergence of hidden passes at every order, added up and converted to (ε, δ).

    Formal guarantees
    -----------------
    A record with k later iterations in a pass costs α·ρ_k at order α, ρ_k = min(1, Λ/Σ_{i<⌊k/2⌋} c^(−4i))·(Δ/zC)²/2
    (docs/proofs/iteration.md, Claims 1 to 5), and more by what rounding adds to every visit (Claim 8). Its position is
    uniform and secret, so that a pass costs log(mean_k exp((α − 1)α·ρ_k))/(α − 1) (Claim 6). Passes and full-data
    releases add up. Replace-one only.
    """

    name: ClassVar[str] = "iteration"

    def blow_up(self, passage: Passage) -> float:
        return passage.blow_up

    def contraction(self, passage: Passage) -> float:
        return passage.contraction

    def check(self, event: Event, relation: Relation) -> None:
        require_wellformed(event)
        for part in event.parts:
            self._require_known(part, relation)

    def epsilon(self, event: Event, delta: float, relation: Relation) -> float:
        self.check(event, relation)
        require_probability(delta)
        spent = self.divergence(event, relation)
        found = spent + np.log1p(-1.0 / ORDERS) - (math.log(delta) + np.log(ORDERS)) / (ORDERS - 1.0)
        return max(0.0, float(found.min()))

    def certify(self, event: Event, delta: float, relation: Relation) -> float:
        return self.epsilon(event, delta, relation)

    def delta(self, event: Event, epsilon: float, relation: Relation) -> float:
        self.check(event, relation)
        require_nonnegative(epsilon)
        exponents = (ORDERS - 1.0) * (self.divergence(event, relation) - epsilon + np.log1p(-1.0 / ORDERS))
        return min(1.0, float(np.exp(np.minimum(exponents - np.log(ORDERS), 0.0)).min()))

    def claims(self, event: Event, relation: Relation) -> tuple[str, ...]:
        return (self.name,)

    def divergence(self, event: Event, relation: Relation) -> Floats:
        """Rényi divergence of the event at each of `ORDERS`."""
        total = np.zeros_like(ORDERS)
        for part in event.parts:
            distance = relation.record_distance / part.noise_multiplier
            once = self._of_pass(part, distance) if isinstance(part, HiddenPasses) else ORDERS * distance**2 / 2.0
            total += part.count * once
        return total

    def _of_pass(self, part: HiddenPasses, distance: float) -> Floats:
        """Of a record whose own visit moves the state by so many σ."""
        passage, z = part.passage, part.noise_multiplier
        blow_up = self.blow_up(passage)
        shares, weights = positions(passage.n_rows, blow_up, self.contraction(passage))
        # Positions are listed from the last visit backwards, so that no record of a group has more pairs after it.
        pairs = np.cumsum(weights) * (passage.n_rows / 2.0)
        costs = with_rounding(shares, blow_up * pairs, distance, passage.rounding_of(z), passage.leftover_of(z))
        return log_mean_exp(costs, weights)

    def _require_known(self, part: Part, relation: Relation) -> None:
        kind = part.sampler.name
        if isinstance(part, HiddenPasses) and relation is not Relation.REPLACE_ONE:
            why = "a pass over another number of rows is another pass; only replacing a row is proved"
            raise mismatch(self.name, part, relation, why, "use relation='replace-one'")
        if not isinstance(part, HiddenPasses) and kind != "full":
            why = "it certifies hidden passes and full-data releases only"
            raise mismatch(self.name, part, relation, why, "use accountant='pld'")


@ACCOUNTANTS.register("iteration-paper")
class PrintedIterationAccountant(IterationAccountant):
    """The constants of Chan, Xie & Zhao 2024, Theorem 5.1: weaker than `IterationAccountant`, for comparison.

    Formal guarantees
    -----------------
    Never below `IterationAccountant` (docs/proofs/iteration.md, Claim 7), which makes it an upper bound too.
    """

    name: ClassVar[str] = "iteration-paper"

    def blow_up(self, passage: Passage) -> float:
        return passage.printed_blow_up

    def contraction(self, passage: Passage) -> float:
        return 1.0


def with_rounding(shares: Floats, spread: Floats, distance: float, rounding: float, leftover: float) -> Floats:
    """ρ of records that move a state by `distance`, where each visit is `rounding` from the proved one; all over σ.

    `spread` is Λ times the number of pairs of later iterations. docs/proofs/iteration.md, Claim 8; without rounding
    it is share·distance²/2.
    """
    local = (distance + 2.0 * rounding) ** 2
    amplified = (np.sqrt(shares) * (distance + 4.0 * rounding) + 10.0 * rounding * np.sqrt(spread)) ** 2 + leftover**2
    return np.minimum(local, amplified) / 2.0


def log_mean_exp(costs: Floats, weights: Floats) -> Floats:
    """log Σ weight·exp((α − 1)α·cost)/(α − 1) at each order: the divergence of a mixture over secret positions."""
    exponents = np.multiply.outer((ORDERS - 1.0) * ORDERS, costs)
    peak = exponents.max(axis=1, keepdims=True)
    return np.asarray((peak[:, 0] + np.log(np.exp(exponents - peak) @ weights)) / (ORDERS - 1.0))


@lru_cache(maxsize=64)
def positions(n_rows: int, blow_up: float, contraction: float) -> tuple[Floats, Floats]:
    """(share of the local cost, probability) for a record at a uniform position; equal or grouped positions once.

    With k later iterations the share is min(1, Λ/Σ_{i<K} c^(−4i)), K = ⌊k/2⌋; the sum is K for c = 1.
    """
    last = (n_rows - 1) // 2
    first = np.arange(min(last + 1, ONE_BY_ONE), dtype=np.float64)
    edges = [first]
    if last >= ONE_BY_ONE:
        grown = math.ceil(math.log(last / ONE_BY_ONE) / math.log(GROUPING)) + 1
        edges.append(np.unique(np.floor(ONE_BY_ONE * GROUPING ** np.arange(grown))))
    starts = np.concatenate(edges)
    starts = starts[starts <= last]
    # Positions k = 2K and 2K + 1, where both exist; a group begins at its smallest K, hence at its largest share.
    counts = np.minimum(2.0 * np.append(starts[1:], last + 1.0), n_rows) - 2.0 * starts
    return np.minimum(1.0, blow_up / np.maximum(_geometric_sum(starts, contraction), 1e-300)), counts / n_rows


def _geometric_sum(terms: Floats, contraction: float) -> Floats:
    """Σ_{i<terms} c^(−4i), rounded down where it is astronomically large."""
    growth = -2.0 * math.log(contraction) if contraction > 0.0 else math.inf
    if growth == 0.0:
        return terms
    growth = min(growth, LARGEST_EXPONENT)
    return np.asarray(np.expm1(np.minimum(growth * terms, LARGEST_EXPONENT)) / math.expm1(growth))
