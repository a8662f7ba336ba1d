"""Who said what: Ed25519 keys, and messages sealed with them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dpadmm.errors import PrivacyError
from dpadmm.network.encoding import decode, encode

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

KEY_BYTES = 32
CONTEXT = "dpadmm network message, version 1"
"""Part of everything that is signed: no signature of another program, or of another version, is one of this."""


class NotAuthentic(PrivacyError):
    """A message that was not signed by the party it names, or not for this federation."""


@dataclass(frozen=True)
class Sealed:
    """An authentic message: its sender, its content, and the bytes it arrived in."""

    sender: str
    content: tuple[object, ...]
    raw: bytes


class Signer:
    """The private key of one party. It is never shown, copied or sent.

    Examples
    --------
    >>> signer = Signer.generate()
    >>> sealed = signer.seal("north", ("hello", 1))
    >>> opened(sealed, {"north": signer.public}).content
    ('hello', 1)
    """

    def __init__(self, secret: bytes) -> None:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        self._key: Ed25519PrivateKey = Ed25519PrivateKey.from_private_bytes(secret)

    @classmethod
    def generate(cls) -> Signer:
        """A fresh key from the operating system."""
        import secrets

        return cls(secrets.token_bytes(KEY_BYTES))

    @property
    def public(self) -> bytes:
        """The public key, 32 bytes."""
        return self._key.public_key().public_bytes_raw()

    @property
    def secret(self) -> bytes:
        """The private key, for the one file of its owner that holds it."""
        return self._key.private_bytes_raw()

    def seal(self, sender: str, content: tuple[object, ...]) -> bytes:
        """A signed message."""
        body = encode(*content)  # type: ignore[arg-type]
        return encode(sender, body, self._key.sign(encode(CONTEXT, sender, body)))

    def __reduce__(self) -> tuple[object, ...]:
        raise TypeError("a private key is never copied or stored with anything else")

    def __repr__(self) -> str:
        return "Signer()"


def opened(raw: bytes, keys: dict[str, bytes]) -> Sealed:
    """The content of a sealed message, if the party it names signed it; `NotAuthentic` for anything else."""
    try:
        sender, body, signature = decode(raw)
        if not _signed(keys[sender], signature, encode(CONTEXT, sender, body)):
            raise NotAuthentic("a message whose signature is not that of its sender")
        return Sealed(sender, decode(body), raw)
    except (LookupError, TypeError, ValueError) as problem:
        raise NotAuthentic("a message that no party of this federation wrote") from problem


def _signed(key: bytes, signature: bytes, content: bytes) -> bool:
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        Ed25519PublicKey.from_public_bytes(key).verify(signature, content)
    except InvalidSignature:
        return False
    return True
