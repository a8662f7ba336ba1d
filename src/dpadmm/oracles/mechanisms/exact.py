"""Exact noise: integers plus discrete Gaussian integers, and only then numbers of a computer."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpadmm.oracles.gate import Gate
from dpadmm.oracles.mechanisms.base import other_arithmetic
from dpadmm.privacy import arithmetic
from dpadmm.privacy.plan import Query
from dpadmm.randomness import NoiseStream
from dpadmm.rows.lattice_sum import LatticeSum, Sum

Array = NDArray[np.float64]


class Exact:
    """Discrete Gaussian noise on the lattice of the sum.

    Notes
    -----
    *Formal guarantees.* docs/proofs/float.md, Theorem 2. What distinguishes this noise from rounded Gaussians is
    reserved at the gate before it is drawn.
    """

    def __init__(self, noise: NoiseStream) -> None:
        self._noise = noise

    def turn(self, condition: float) -> None:
        """Sums of integers do not round."""

    def release(self, total: Sum, query: Query, clip: float, gate: Gate) -> Array:
        if not isinstance(total, LatticeSum):
            raise other_arithmetic()
        deviations = arithmetic.exact_deviations(query.noise_multiplier * clip, total.units)
        gate.reserve(arithmetic.variation(deviations))
        noisy = total.counts + self._noise.discrete_gaussian(deviations)
        return np.asarray(noisy * (total.units / query.denominator))
