"""Masks that cancel: each two silos share a secret for one session, and one adds what the other subtracts.

| name | what it is |
|---|---|
| session | hash of all hellos and acknowledgements of an epoch |
| pair secret | X25519 of two ephemeral keys, then HKDF over the session and both names |
| label | injective encoding of session, number, question, units, shares of noise and length |
| pad | SHAKE-256 of pair secret and label: one 64-bit number for each entry |

docs/proofs/federated.md says why a sum of masked vectors tells their sum and nothing else.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpadmm.network.encoding import digest, encode

Words = NDArray[np.uint64]
SECRET_BYTES = 32


@dataclass(frozen=True, eq=False)
class Label:
    """What a mask and a share of noise are for. Another question, unit or share has another label, so another mask.

    Parameters
    ----------
    session : bytes
        Which epoch of which run.
    number : int
        Which question of the epoch, from 1.
    question : bytes
        Digest of the kind, the places it is asked at, and the coordinates.
    units : (m,)
        Unit of each entry of the sum.
    deviations : (m,)
        Deviation of the share of noise on each entry, in units.
    """

    session: bytes
    number: int
    question: bytes
    units: NDArray[np.float64]
    deviations: NDArray[np.int64]

    @property
    def size(self) -> int:
        """Entries of the sum."""
        return int(self.units.size)

    @property
    def encoded(self) -> bytes:
        """The label as bytes; two different labels are never the same bytes."""
        lattice = digest(self.units.ravel(), self.deviations.astype("<i8").tobytes())
        return encode("share", self.session, self.number, self.question, lattice, self.size)


def public_half(secret: bytes) -> bytes:
    """The public half of an ephemeral X25519 key."""
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

    return X25519PrivateKey.from_private_bytes(secret).public_key().public_bytes_raw()


def pair_secret(secret: bytes, public: bytes, session: bytes, names: tuple[str, str]) -> bytes:
    """What two silos share for one session; the same whichever of them computes it."""
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey

    shared = X25519PrivateKey.from_private_bytes(secret).exchange(X25519PublicKey.from_public_bytes(public))
    return derived(shared, session, encode("pair", *sorted(names)))


def derived(secret: bytes, salt: bytes, purpose: bytes) -> bytes:
    """HKDF with SHA-256: an independent key for each purpose."""
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    return HKDF(algorithm=SHA256(), length=SECRET_BYTES, salt=salt, info=purpose).derive(secret)


def masked(counts: NDArray[np.int64], own: str, secrets: Mapping[str, bytes], label: bytes) -> Words:
    """Counts modulo 2⁶⁴ with the pad of each pair added by the first of its names and subtracted by the other."""
    total = counts.ravel().view(np.uint64).copy()
    for peer, secret in secrets.items():
        pad = _pad(secret, label, total.size)
        if own < peer:
            total += pad
        else:
            total -= pad
    return total


def unmasked(vectors: list[Words]) -> NDArray[np.int64]:
    """The sum of the masked vectors of all silos, in which the pads cancel."""
    total = np.zeros_like(vectors[0])
    for vector in vectors:
        total += vector
    return total.view(np.int64)


def _pad(secret: bytes, label: bytes, size: int) -> Words:
    # The secret has a fixed length, so that no other secret and label make the same input.
    return np.frombuffer(hashlib.shake_256(secret + label).digest(8 * size), dtype="<u8").astype(np.uint64, copy=False)
