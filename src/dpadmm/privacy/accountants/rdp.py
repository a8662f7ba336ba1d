"""Rényi accounting through dp_accounting, with its conventions for the noise multiplier handled here."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar

from dpadmm.privacy.accountants.base import (
    ACCOUNTANTS,
    mismatch,
    require_nonnegative,
    require_probability,
    require_wellformed,
)
from dpadmm.privacy.budget import Relation
from dpadmm.privacy.events import Event, Part
from dpadmm.privacy.sampling import Poisson, WithoutReplacement

# Orders by rising cost. The next group is tried only while the best order is the last of its group; leaving orders
# out is always sound. Above 256 dp_accounting has a looser bound for sampling without replacement.
ORDERS: tuple[tuple[float, ...], ...] = (
    (1.25, 1.5, 1.75, 2, 2.5, 3, 3.5, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 16),
    (16, 18, 20, 22, 24, 26, 28, 30, 32, 35, 38, 41, 44, 48, 52, 56, 60, 64),
    (64, 70, 76, 84, 92, 100, 112, 128, 144, 160, 184, 208, 232, 256),
    (256, 320, 384, 448, 512, 640, 768, 1024, 1536, 2048, 4096),
)


@ACCOUNTANTS.register("rdp")
class RdpAccountant:
    """Rényi differential privacy of every part, added up and converted to (ε, δ).

    Formal guarantees
    -----------------
    `dp_accounting.RdpAccountant` does not double the distance of a Gaussian event under replace-one, so the
    multiplier passed on is the noise over the *actual* sensitivity of the relation, z / `record_distance`. Poisson
    sampling is certified under add-remove only, fixed-size sampling under replace-one only.
    """

    name: ClassVar[str] = "rdp"

    def check(self, event: Event, relation: Relation) -> None:
        require_wellformed(event)
        for part in event.parts:
            _require_known(part, relation)

    def epsilon(self, event: Event, delta: float, relation: Relation) -> float:
        self.check(event, relation)
        require_probability(delta)
        return max(0.0, _best(event, relation, lambda backend: backend.get_epsilon_and_optimal_order(delta)))

    def certify(self, event: Event, delta: float, relation: Relation) -> float:
        return self.epsilon(event, delta, relation)

    def delta(self, event: Event, epsilon: float, relation: Relation) -> float:
        self.check(event, relation)
        require_nonnegative(epsilon)
        return min(1.0, _best(event, relation, lambda backend: backend.get_delta_and_optimal_order(epsilon)))

    def claims(self, event: Event, relation: Relation) -> tuple[str, ...]:
        proofs = {"full": "renyi-gaussian", "poisson": "renyi-poisson", "fixed": "renyi-without-replacement"}
        return tuple(dict.fromkeys(proofs[part.sampler.name] for part in event.parts))


def _require_known(part: Part, relation: Relation) -> None:
    kind, do = part.sampler.name, "use accountant='pld'"
    if kind == "truncated-poisson":
        raise mismatch("rdp", part, relation, "no Rényi bound for truncated Poisson sampling is implemented", do)
    if kind == "poisson" and relation is Relation.REPLACE_ONE:
        raise mismatch("rdp", part, relation, "its Poisson bound is for add-remove", do)
    if kind == "fixed" and relation is Relation.ADD_REMOVE:
        why = "a batch of fixed size needs a public number of rows, hence replace-one"
        raise mismatch("rdp", part, relation, why, "use relation='replace-one', or sampler='poisson'")
    if kind not in ("full", "poisson", "fixed"):
        raise mismatch(
            "rdp", part, relation, "it knows no such sampling", "leave the accountant out: one that does is then chosen"
        )


def _best(event: Event, relation: Relation, convert: Callable[[Any], tuple[float, float]]) -> float:
    """Smallest conversion over the groups of orders."""
    best = math.inf
    for orders in ORDERS:
        value, order = convert(composed(event, relation, orders))
        best = min(best, float(value))
        if order != orders[-1]:
            break
    return best


def composed(event: Event, relation: Relation, orders: tuple[float, ...]) -> Any:
    """dp_accounting's accountant with every part of the event in it."""
    import dp_accounting
    from dp_accounting.rdp import RdpAccountant as Backend

    names = dp_accounting.NeighboringRelation
    known = {Relation.REPLACE_ONE: names.REPLACE_ONE, Relation.ADD_REMOVE: names.ADD_OR_REMOVE_ONE}
    accountant = Backend(list(orders), known[relation])
    for part in event.parts:
        accountant.compose(_backend_event(part, relation), part.count)
    return accountant


def _backend_event(part: Part, relation: Relation) -> Any:
    import dp_accounting

    release = dp_accounting.GaussianDpEvent(part.noise_multiplier / relation.record_distance)
    sampler = part.sampler
    if isinstance(sampler, Poisson):
        return dp_accounting.PoissonSampledDpEvent(sampler.rate, release)
    if isinstance(sampler, WithoutReplacement) and sampler.batch_size < sampler.n_rows:
        return dp_accounting.SampledWithoutReplacementDpEvent(sampler.n_rows, sampler.batch_size, release)
    return release
