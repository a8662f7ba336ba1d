"""Normals drawn on a device by a cipher: its own generators have short keys and could be continued by who sees enough.

ChaCha20 (RFC 8439) turns a secret key and a counter into words, by additions, exclusive ors and rotations of 32 bits.
They are done on whole tensors of 64-bit integers, so that every device makes the same words. Two words of 64 bits make
two normals by the method of Box and Muller.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

Tensor = Any

CONSTANTS = (0x61707865, 0x3320646E, 0x79622D32, 0x6B206574)
"""The words "expand 32-byte k" that begin every block."""
MASK = 0xFFFFFFFF
DOUBLE_ROUNDS = 10
COLUMNS = ((0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15))
DIAGONALS = ((0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14))
NORMALS_PER_BLOCK = 8
"""Sixteen words of 32 bits are eight of 64."""


class DeviceNormals:
    """Standard normals, never the same twice.

    Parameters
    ----------
    key : (8,) of uint32
        Secret.
    device : torch.device
        Where they are drawn.

    Notes
    -----
    *Formal guarantees.* Each normal is √(−2 ln u)·cos(2πv) or its sine, of u and v among the midpoints of 2⁵² equal
    parts of (0, 1), which are equally likely if the cipher's words are uniform. None is larger than 8.6.
    """

    def __init__(self, key: NDArray[np.uint32], device: Any) -> None:
        self._key, self._device, self._next = [int(word) for word in key], device, 0

    def draw(self, count: int) -> Tensor:
        """So many fresh normals, in float64."""
        import torch

        blocks = max(1, math.ceil(count / NORMALS_PER_BLOCK))
        words = torch.stack(chacha_blocks(self._key, self._next, blocks, self._device))
        self._next += blocks
        uniform = _uniforms(words[0::2], words[1::2])
        radius, angle = torch.sqrt(-2.0 * torch.log(uniform[0::2])), 2.0 * math.pi * uniform[1::2]
        return torch.cat([radius * torch.cos(angle), radius * torch.sin(angle)]).reshape(-1)[:count]


def chacha_blocks(key: list[int], first: int, count: int, device: Any, nonce: tuple[int, int] = (0, 0)) -> list[Tensor]:
    """The sixteen words of each of so many blocks, counters from `first` on (64 bits of them, 64 of the nonce)."""
    import torch

    counters = torch.arange(first, first + count, dtype=torch.int64, device=device)
    start = [*CONSTANTS, *key]
    words = [torch.full_like(counters, word) for word in start]
    words += [counters & MASK, (counters >> 32) & MASK, *(torch.full_like(counters, word) for word in nonce)]
    state = list(words)
    for _ in range(DOUBLE_ROUNDS):
        for places in (*COLUMNS, *DIAGONALS):
            _quarter_round(state, *places)
    return [(mixed + word) & MASK for mixed, word in zip(state, words, strict=True)]


def _quarter_round(state: list[Tensor], a: int, b: int, c: int, d: int) -> None:
    for left, right, mixed, turn in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
        state[left] = (state[left] + state[right]) & MASK
        mingled = state[mixed] ^ state[left]
        state[mixed] = ((mingled << turn) | (mingled >> (32 - turn))) & MASK


def _uniforms(low: Tensor, high: Tensor) -> Tensor:
    """Midpoints of 2⁵² parts of (0, 1), exact in float64, of 20 and 32 bits."""
    import torch

    whole = ((low & 0xFFFFF) << 32) | high
    return (whole.to(torch.float64) + 0.5) * 2.0**-52
