"""What an accountant is: a stateless judge that certifies the events it has a proof for and refuses all others."""

from __future__ import annotations

import math
from typing import ClassVar, Protocol, runtime_checkable

from dpadmm.errors import CannotCertify, InvalidParameter, SchemeMismatch, three_sentences
from dpadmm.privacy.budget import Relation
from dpadmm.privacy.events import Event, Part
from dpadmm.registry import Registry


class Accountant(Protocol):
    """Turns an event into ε at a given δ, or refuses.

    Formal guarantees
    -----------------
    For every adaptive mechanism described by `event` and every pair of tables related by `relation`, the output laws
    P, Q satisfy H_{exp(ε)}(P‖Q) ≤ δ whenever `epsilon(event, δ, relation)` ≤ ε, and likewise for `delta`.
    """

    name: ClassVar[str]

    def check(self, event: Event, relation: Relation) -> None:
        """Refuse, in words, what this accountant has no proof for. Costs nothing."""
        ...

    def epsilon(self, event: Event, delta: float, relation: Relation) -> float:
        """Certified ε ≥ 0 at `delta`; `math.inf` when no finite ε can be certified."""
        ...

    def delta(self, event: Event, epsilon: float, relation: Relation) -> float:
        """Certified δ at `epsilon`."""
        ...

    def certify(self, event: Event, delta: float, relation: Relation) -> float:
        """ε for the record: like `epsilon`, and confirmed by a second computation where the first is numerical."""
        ...

    def claims(self, event: Event, relation: Relation) -> tuple[str, ...]:
        """Keys of the proofs on which the certificate rests (`dpadmm.privacy.proofs.CITATIONS`)."""
        ...


@runtime_checkable
class Estimating(Protocol):
    """An accountant with a faster bound for searches, which ask often and have their result certified."""

    def estimate(self, event: Event, delta: float, relation: Relation) -> float:
        """An upper bound on ε, looser than `epsilon` by less than a thousandth of it."""
        ...


ACCOUNTANTS: Registry[type[Accountant]] = Registry(
    "accountant",
    homes={
        "gaussian": "dpadmm.privacy.accountants.gaussian",
        "iteration": "dpadmm.privacy.accountants.iteration",
        "iteration-paper": "dpadmm.privacy.accountants.iteration",
        "pld": "dpadmm.privacy.accountants.pld",
        "rdp": "dpadmm.privacy.accountants.rdp",
    },
)


def make_accountant(name: str) -> Accountant:
    """The accountant called `name`."""
    return ACCOUNTANTS[name]()


def default_accountant(event: Event) -> str:
    """Full data have an exact accountant, hidden passes their own; the rest goes to privacy-loss distributions."""
    if event.hidden:
        return "iteration"
    return "gaussian" if event.full_batch else "pld"


def require_wellformed(event: Event) -> None:
    """An event with no part, no noise or no release is a programming error, never a private mechanism."""
    if not event.parts:
        raise CannotCertify("Got an event without parts. Expected at least one release. Plan at least one query.")
    for part in event.parts:
        if not (math.isfinite(part.noise_multiplier) and part.noise_multiplier > 0):
            raise CannotCertify(
                f"Got a noise multiplier of {part.noise_multiplier}. Expected a finite positive number. "
                "A release without noise has no finite epsilon."
            )
        if part.count < 1:
            raise CannotCertify(f"Got {part.count} releases. Expected at least one. Drop the empty query.")


def require_probability(delta: float) -> float:
    if not 0.0 < delta < 1.0:
        raise InvalidParameter(f"delta={delta}", "0 < delta < 1", "use about 1e-5, and less than 1/n")
    return float(delta)


def require_nonnegative(epsilon: float) -> float:
    if not (math.isfinite(epsilon) and epsilon >= 0.0):
        raise InvalidParameter(f"epsilon={epsilon}", "a finite epsilon >= 0", "choose epsilon, for instance 1.0")
    return float(epsilon)


def mismatch(accountant: str, part: Part, relation: Relation, why: str, do: str) -> SchemeMismatch:
    """The refusal every accountant uses for a sampler it has no proof for."""
    return SchemeMismatch(
        three_sentences(
            f"sampler {part.sampler.name!r} with accountant {accountant!r} under relation {str(relation)!r}",
            f"a combination with a proof: {why}",
            do,
        )
    )


def full_data_shift(event: Event, relation: Relation) -> float:
    """µ of the single Gaussian that the full-data parts compose to: µ² = Σ count·(distance/z)².

    Formal guarantees
    -----------------
    Exact: a product of Gaussian pairs has the trade-off of one Gaussian pair at the root of the sum of squares
    (Dong, Roth & Su 2022, Cor. 3.3; docs/proofs/gaussian.md).
    """
    distance = relation.record_distance
    return math.sqrt(
        math.fsum(p.count * (distance / p.noise_multiplier) ** 2 for p in event.parts if p.sampler.name == "full")
    )
