"""One node: a barrier of its own around its rows. What it answers is noisy, or the node is named as not private."""

from __future__ import annotations

import threading
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dpadmm.errors import QueryRefused
from dpadmm.network.decentralised.minimising_rows import MinimisingRows
from dpadmm.oracles.private import PrivateOracle
from dpadmm.privacy.questions import GRADIENT, LOCAL_MINIMUM
from dpadmm.randomness import NoiseStream

Array = NDArray[np.float64]


class Node(Protocol):
    """What an algorithm may ask of a node.

    Attributes
    ----------
    noise_std : float
        Public: of the noise on each entry of a mean gradient, or of what stands for one; 0 without noise.
    """

    noise_std: float

    def gradient(self, x: Array) -> Array:
        """Mean clipped gradient at `x`."""
        ...

    def minimiser(self, centre: Array, curvature: float) -> Array:
        """argmin f(w) + (curvature/2)‖w − centre‖² over w, f the mean clipped loss."""
        ...


class GradientNode:
    """Answers noisy mean gradients through the oracle of its own plan.

    Notes
    -----
    *Formal guarantees.* Every answer is one of the oracle's, which admits, adds noise, counts, and refuses the rest.
    """

    def __init__(self, oracle: PrivateOracle) -> None:
        self._oracle = oracle
        self.noise_std = oracle.noise_std(GRADIENT)

    def gradient(self, x: Array) -> Array:
        return self._oracle.ask(GRADIENT, x)

    def minimiser(self, centre: Array, curvature: float) -> Array:
        raise QueryRefused("the plan of this node has gradients, and no local minimum")


class MinimumNode:
    """Answers noisy local minima through the oracle of its own plan (primal variable perturbation).

    Notes
    -----
    *Formal guarantees.* As for `GradientNode`: a minimum is the public centre plus an answer over a public number.
    """

    def __init__(self, oracle: PrivateOracle) -> None:
        self._oracle = oracle
        self.noise_std = oracle.noise_std(LOCAL_MINIMUM)

    def gradient(self, x: Array) -> Array:
        raise QueryRefused("the plan of this node has local minima, and no gradient")

    def minimiser(self, centre: Array, curvature: float) -> Array:
        return centre + self._oracle.ask(LOCAL_MINIMUM, centre, curvature) / curvature


class PerturbedNode:
    """Answers exact-looking minima of an objective with a random linear term (dual variable perturbation).

    Its ε is heuristic: the proof that goes with it assumes that minima are exact and real numbers
    (docs/proofs/decentralised.md, Claim 4). No statement of the library is made of it, and no ledger pays for it.
    """

    def __init__(self, rows: MinimisingRows, noise_std: float, clip_norm: float, most: int, noise: NoiseStream) -> None:
        self._rows, self._clip, self._noise = rows, clip_norm, noise
        self._left, self._lock = most, threading.Lock()
        self.noise_std = noise_std

    def gradient(self, x: Array) -> Array:
        raise QueryRefused("this node answers perturbed minima, and no gradient")

    def minimiser(self, centre: Array, curvature: float) -> Array:
        with self._lock, np.errstate(all="ignore"):
            if self._left < 1:
                raise QueryRefused("all planned minima of this node have been answered")
            self._left -= 1
            drawn = self.noise_std * self._noise.standard_normal(centre.shape)
            shifted = centre - drawn / curvature
            return shifted + self._rows.moved(shifted, curvature, self._clip)


class ExactNode:
    """Answers without noise, any number of times. Nothing it returns may be called private."""

    noise_std = 0.0

    def __init__(self, rows: MinimisingRows, clip_norm: float) -> None:
        self._rows, self._clip = rows, clip_norm

    def gradient(self, x: Array) -> Array:
        return self._rows.mean_gradient(x, self._clip)

    def minimiser(self, centre: Array, curvature: float) -> Array:
        return centre + self._rows.moved(centre, curvature, self._clip)
