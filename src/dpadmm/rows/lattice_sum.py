"""A sum over rows that is exact: whole numbers of public units."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeGuard

import numpy as np
from numpy.typing import NDArray

from dpadmm.errors import QueryRefused

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class LatticeSum:
    """Σ = counts · unit, without rounding. `unit` is public, one number or one for each entry."""

    counts: NDArray[np.int64]
    unit: float | Array

    @property
    def shape(self) -> tuple[int, ...]:
        return self.counts.shape

    @property
    def size(self) -> int:
        return self.counts.size

    @property
    def units(self) -> Array:
        """The unit of each entry."""
        return np.broadcast_to(np.asarray(self.unit, dtype=np.float64), self.counts.shape)


Sum = Array | LatticeSum


def as_numbers(total: Sum) -> Array:
    """In double precision; for whoever may see a sum without noise."""
    return total.counts * total.units if isinstance(total, LatticeSum) else total


def joined(parts: Sequence[Sum]) -> Sum:
    """One flat sum of several."""
    if _all_lattice(parts):
        counts = np.concatenate([part.counts.ravel() for part in parts])
        return LatticeSum(counts, np.concatenate([part.units.ravel() for part in parts]))
    if any(isinstance(part, LatticeSum) for part in parts):
        raise QueryRefused("exact and rounded sums are never released together")
    return np.concatenate([part.ravel() for part in parts if not isinstance(part, LatticeSum)])


def _all_lattice(parts: Sequence[Sum]) -> TypeGuard[Sequence[LatticeSum]]:
    return all(isinstance(part, LatticeSum) for part in parts)
