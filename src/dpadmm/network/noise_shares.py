"""A silo's share of the noise: discrete Gaussian, of variance σ²/(S − c), a function of a secret and a label.

So a question that is answered again, after a crash say, gets the same noise to the last bit, and no other question ever
does: whoever sees both answers to one question learns nothing more than from one.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dpadmm.errors import QueryRefused
from dpadmm.exact_samplers.discrete_gaussian import LARGEST_SIGMA, discrete_gaussian
from dpadmm.network.pads import derived
from dpadmm.privacy import arithmetic

SMALLEST_SHARE = 8
"""Deviation of a share in lattice units from which a sum of shares is a discrete Gaussian but for e⁻⁶³⁰
(docs/proofs/federated.md, Lemma 1)."""
BLOCK_WORDS = 1 << 12


def share_deviations(noise: float, honest: int, units: NDArray[np.float64]) -> NDArray[np.int64]:
    """Whole deviations of one share, so that `honest` shares have at least the deviation `noise` together."""
    deviations = arithmetic.exact_deviations(noise / math.sqrt(honest), units)
    if deviations.size and not SMALLEST_SHARE <= deviations.min() <= deviations.max() <= LARGEST_SIGMA:
        raise QueryRefused(
            f"Got shares of noise from {deviations.min()} to {deviations.max()} lattice units. Expected "
            f"{SMALLEST_SHARE} to 2**54: the noise is too small, or too large, for this number of rows. Use a smaller "
            "epsilon, or fewer colluding silos."
        )
    return deviations


def share_of_noise(secret: bytes, label: bytes, deviations: NDArray[np.int64]) -> NDArray[np.int64]:
    """Exact discrete Gaussians whose bits are a key stream of the secret and the label."""
    stream = _KeyStream(derived(secret, b"", b"noise" + label))
    return discrete_gaussian(deviations, stream.words)


class _KeyStream:
    """ChaCha20 as a source of uniform 64-bit numbers."""

    def __init__(self, key: bytes) -> None:
        from cryptography.hazmat.primitives.ciphers import Cipher
        from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20

        self._cipher = Cipher(ChaCha20(key, bytes(16)), mode=None).encryptor()
        self._waiting: NDArray[np.uint64] = np.empty(0, dtype=np.uint64)

    def words(self, count: int) -> NDArray[np.uint64]:
        if count > self._waiting.size:
            fresh = self._cipher.update(bytes(8 * max(BLOCK_WORDS, count)))
            self._waiting = np.concatenate([self._waiting, np.frombuffer(fresh, dtype="<u8")])
        drawn, self._waiting = self._waiting[:count], self._waiting[count:]
        return drawn
