"""Who takes part, by name and key, and how many of them may collude: pinned by one digest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from dpadmm.errors import InvalidParameter
from dpadmm.network.encoding import digest
from dpadmm.network.signing import KEY_BYTES
from dpadmm.stored_json import entries, exactly, reading, text, unreadable, whole

MOST_SILOS = 1000
LONGEST_NAME = 64


@dataclass(frozen=True)
class Roster:
    """The parties of a federation.

    Parameters
    ----------
    silos : mapping of str to bytes
        Name and public Ed25519 key of each silo.
    colluding : int
        c: how many silos may collude, with the coordinator or with each other, before the first ε no longer holds.
        Each silo adds noise of variance σ²/(S − c). c = S − 1 trusts nobody: each silo adds all the noise, and there
        are no masks.
    coordinator : bytes
        Public key of the party that asks.
    coordinator_name : str
        Its name.

    Examples
    --------
    >>> keys = {name: bytes([place] * 32) for place, name in enumerate("abcd")}
    >>> roster = Roster(keys, 1, bytes(32 * [9]))
    >>> roster.honest, round(roster.surplus, 3), len(roster.digest)
    (3, 1.155, 32)
    """

    silos: Mapping[str, bytes]
    colluding: int
    coordinator: bytes
    coordinator_name: str = "coordinator"

    def __post_init__(self) -> None:
        names = [*self.silos, self.coordinator_name]
        keys = [*self.silos.values(), self.coordinator]
        require_names(names)
        if any(len(key) != KEY_BYTES for key in keys):
            raise InvalidParameter("a key that has not 32 bytes", "Ed25519 keys", "take them from `dpadmm silo status`")
        if len(set(keys)) < len(keys):
            twins = sorted(name for name, key in zip(names, keys, strict=True) if keys.count(key) > 1)
            raise InvalidParameter(
                f"one key for {' and '.join(map(repr, twins))}",
                "a key of its own for each party",
                "let each owner make its own with `dpadmm silo init`; one owner is one silo",
            )
        _require_trust(len(self.silos), self.colluding)

    @property
    def names(self) -> tuple[str, ...]:
        """The silos, in the order of the alphabet."""
        return tuple(sorted(self.silos))

    @property
    def size(self) -> int:
        """S."""
        return len(self.silos)

    @property
    def honest(self) -> int:
        """S − c: so many shares of noise are enough."""
        return self.size - self.colluding

    @property
    def masked(self) -> bool:
        """Whether masks are needed: with c = S − 1 each silo's answer is private by itself."""
        return self.honest > 1

    @property
    def surplus(self) -> float:
        """√(S/(S − c)): by how much the noise of all shares exceeds what is needed."""
        return float((self.size / self.honest) ** 0.5)

    @cached_property
    def keys(self) -> dict[str, bytes]:
        """Of all parties, the coordinator included."""
        return {**self.silos, self.coordinator_name: self.coordinator}

    @property
    def digest(self) -> bytes:
        """What owners compare over another channel before they approve."""
        silos = tuple((name, self.silos[name]) for name in self.names)
        return digest("roster", silos, self.colluding, self.coordinator_name, self.coordinator)

    def without(self, names: set[str]) -> Roster:
        """The same federation after some silos have left for good."""
        kept = {name: key for name, key in self.silos.items() if name not in names}
        return Roster(kept, self.colluding, self.coordinator, self.coordinator_name)

    def to_dict(self) -> dict[str, Any]:
        return {
            "silos": {name: self.silos[name].hex() for name in self.names},
            "colluding": self.colluding,
            "coordinator": self.coordinator.hex(),
            "coordinator_name": self.coordinator_name,
        }

    @classmethod
    def from_dict(cls, fields: Any) -> Roster:
        """The roster that `to_dict` wrote; `FileProblem` for anything else."""
        exactly(fields, "a roster", ("silos", "colluding", "coordinator", "coordinator_name"))
        with reading("a roster"):
            return cls(
                {name: key_of(key) for name, key in entries(fields["silos"], "the silos of a roster").items()},
                whole(fields["colluding"], "the colluding silos of a roster"),
                key_of(fields["coordinator"]),
                text(fields["coordinator_name"], "the coordinator of a roster"),
            )


def key_of(words: Any) -> bytes:
    """A public key from its 64 hexadecimal digits."""
    try:
        key = bytes.fromhex(text(words, "a key"))
    except ValueError:
        key = b""
    if len(key) != KEY_BYTES:
        raise unreadable("a key", "that has not 64 hexadecimal digits")
    return key


def require_names(names: Sequence[str]) -> None:
    """Refuse names that are not plain, or that two parties share."""
    for name in names:
        if not (0 < len(name) <= LONGEST_NAME and name.isascii() and name.replace("-", "").isalnum()):
            raise InvalidParameter(
                f"{name[:LONGEST_NAME]!r} as the name of a party",
                f"1 to {LONGEST_NAME} letters, digits and hyphens",
                "choose another name",
            )
    folded = [name.lower() for name in names]
    if len(set(folded)) < len(folded):
        raise InvalidParameter("two parties of one name", "different names", "rename one of them")


def _require_trust(silos: int, colluding: int) -> None:
    if not 2 <= silos <= MOST_SILOS:
        raise InvalidParameter(f"{silos} silos", f"2 to {MOST_SILOS}", "fit as usual where all rows have one owner")
    if isinstance(colluding, bool) or not isinstance(colluding, int) or not 0 <= colluding < silos:
        raise InvalidParameter(
            f"colluding={colluding} of {silos} silos", f"1 to {silos - 1}", f"choose {silos - 1} to trust nobody"
        )
    if colluding == 0:
        raise InvalidParameter(
            "colluding=0",
            f"1 to {silos - 1}: every silo knows its own share of the noise and can subtract it, so that with 0 the "
            "other silos would see the model with less noise than is promised",
            "choose 1, the least that is true",
        )
