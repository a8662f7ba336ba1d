"""What a party tells the others of itself: name, keys and address, in one public file."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from dpadmm.errors import FileProblem, InvalidParameter
from dpadmm.files import replacing, why
from dpadmm.network.roster import key_of
from dpadmm.stored_json import exactly, parse, read_words, text

WHAT = "a card"
SOCKET = "unix:"


@dataclass(frozen=True)
class Card:
    """A party as others know it.

    Parameters
    ----------
    name : str
        As in the roster.
    key : str
        Its public signing key, 64 hexadecimal digits. Compare it with its owner over the telephone.
    certificate : str
        Of its TLS, as PEM.
    address : str
        HOST:PORT, or unix:PATH on one machine; empty for who is not called.
    """

    name: str
    key: str
    certificate: str
    address: str = ""

    @property
    def public(self) -> bytes:
        """The signing key."""
        return key_of(self.key)

    def write(self, place: Path) -> None:
        """As JSON."""
        with replacing(place) as stream:
            stream.write(json.dumps(asdict(self), indent=2).encode())

    @classmethod
    def read(cls, place: Path) -> Card:
        """The card in a file."""
        try:
            return cls.from_dict(parse(read_words(place), WHAT))
        except OSError as problem:
            raise FileProblem(
                f"the card {place}, which cannot be read ({why(problem)})",
                "a card.json, made by `dpadmm silo init` or `dpadmm network plan --out`",
                "correct the path",
            ) from None

    @classmethod
    def from_dict(cls, value: Any) -> Card:
        """The card of its JSON."""
        fields = exactly(value, WHAT, ("name", "key", "certificate", "address"))
        found = cls(*(text(fields[name], WHAT) for name in ("name", "key", "certificate", "address")))
        _ = found.public
        return found


def parsed_address(address: str) -> tuple[str, int] | str:
    """Host and port, or the path of a Unix socket."""
    if address.startswith(SOCKET):
        return address.removeprefix(SOCKET)
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal() or not 0 <= int(port) < 2**16:
        raise InvalidParameter(
            f"the address {address[:100]!r}", "HOST:PORT, or unix:PATH", "give host and port, as hospital.example:8443"
        )
    return host, int(port)
