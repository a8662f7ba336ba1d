"""Granular noise on a device: sum and noise stay there, and the law is that of `Granular`, number for number."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpadmm.errors import QueryRefused
from dpadmm.oracles.gate import Gate
from dpadmm.oracles.mechanisms.device_normals import DeviceNormals
from dpadmm.privacy import arithmetic
from dpadmm.privacy.plan import Plan, Query
from dpadmm.randomness import NoiseStream
from dpadmm.rows.torch_table import require_double_precision

Tensor = Any


class TorchNoise:
    """Sum and noise each rounded to one grid, as `Granular` does, by operations on the device of the sum.

    Parameters
    ----------
    plan : Plan
        Public number of rows and relation, which bound the rounding.
    features : int
        Entries of a row: of the products behind a sum in changed coordinates. One where coordinates never change.
    noise : NoiseStream
        Where the key of the device's generator comes from.
    device : torch.device
        Where normals are drawn.

    Notes
    -----
    *Formal guarantees.* docs/proofs/float.md, Theorem 1, with normals of the generator that `DeviceNormals` describes.
    A sum that is not in double precision is refused: the rounding of a sum in single precision is not charged.
    """

    def __init__(self, plan: Plan, features: int, noise: NoiseStream, device: Any) -> None:
        require_double_precision(device)
        self._most_rows, self._features = arithmetic.most_rows(plan.n_rows, plan.budget.relation), features
        self._normals, self._device = DeviceNormals(noise.key(), device), device
        self.turn(1.0)

    def turn(self, condition: float) -> None:
        self._rounding = arithmetic.summation_error(self._most_rows, self._features, condition)

    def release(self, total: Any, query: Query, clip: float, gate: Gate) -> Any:
        """A tensor for a tensor, an array for an array."""
        if isinstance(total, np.ndarray):
            answer: Any = self._released(self._here(total), query, clip).cpu().numpy()
            return answer
        return self._released(total, query, clip)

    def _released(self, total: Tensor, query: Query, clip: float) -> Tensor:
        import torch

        if total.dtype != torch.float64 or total.device != self._device:
            raise QueryRefused(
                "Got a sum in another precision or on another device. Expected float64 where the noise is."
            )
        entries = total.numel()
        grid, deviation = arithmetic.granularity(clip, query.noise_multiplier, self._most_rows, self._rounding, entries)
        noise = torch.round(self._normals.draw(entries).reshape(total.shape) * (deviation / grid))
        # A zero is released without its sign, which would be that of what was rounded to zero.
        return (noise + torch.round(total / grid) + 0.0) * (grid / query.denominator)

    def _here(self, total: Any) -> Tensor:
        import torch

        return torch.as_tensor(total, device=self._device)
