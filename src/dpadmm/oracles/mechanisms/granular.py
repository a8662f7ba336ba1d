"""Granular noise: sum and noise in double precision, each rounded to one public grid."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpadmm import kernels
from dpadmm.oracles.gate import Gate
from dpadmm.oracles.mechanisms.base import other_arithmetic
from dpadmm.privacy import arithmetic
from dpadmm.privacy.plan import Plan, Query
from dpadmm.randomness import NoiseStream
from dpadmm.rows.lattice_sum import LatticeSum, Sum

Array = NDArray[np.float64]


class Granular:
    """Sum and noise each rounded to one grid, the noise enlarged by what rounding may add to the sum.

    Parameters
    ----------
    plan : Plan
        Public number of rows and relation, which bound the rounding.
    features : int
        Entries of a row: of the products behind a sum in changed coordinates.
    noise : NoiseStream
        Where normals come from.

    Notes
    -----
    *Formal guarantees.* docs/proofs/float.md, Theorem 1.
    """

    def __init__(self, plan: Plan, features: int, noise: NoiseStream) -> None:
        self._most_rows, self._features = arithmetic.most_rows(plan.n_rows, plan.budget.relation), features
        self._noise = noise
        self.turn(1.0)

    def turn(self, condition: float) -> None:
        self._rounding = arithmetic.summation_error(self._most_rows, self._features, condition)

    def release(self, total: Sum, query: Query, clip: float, gate: Gate) -> Array:
        if isinstance(total, LatticeSum):
            raise other_arithmetic()
        grid, deviation = arithmetic.granularity(
            clip, query.noise_multiplier, self._most_rows, self._rounding, total.size
        )
        noise, answer = self._noise.standard_normal(total.shape), np.empty(total.shape)
        kernels.active().granular(total, noise, grid, deviation, query.denominator, answer)
        return answer
