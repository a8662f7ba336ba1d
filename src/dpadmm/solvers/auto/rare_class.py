"""What `auto` does about a rare class, as far as the first release shows one.

If classes are about equally common, the cap on gradients makes margins too long, and the rules shorten them. If one
class is rare, the cap does the opposite. It cuts the gradients of the rare rows most, because their slopes are the
largest. The signal that sets these rows apart then comes out too short, and the rare class is predicted too seldom. So
margins are lengthened if the signal is seen to be strong: along the common direction a little, along the others more.

Under strong noise the rules usually widen the prior, to keep what little is seen. If nearly all labels are alike, they
do not: what is seen then is mostly the mean label and noise.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dpadmm.solvers.auto.coordinates import Coordinates

Array = NDArray[np.float64]

COMMON_MASS = 0.1
"""Share of the rows' squared length that the top direction must carry to be taken for that of the mean row."""

ALIKE, MIXED = 0.2, 0.3
"""Variance of the ±1 labels along the top direction. Below the first nearly all are alike; above the second, not."""

CLEAR, STRONG = 1.5, 2.0
"""Standard deviation of the signal's margins: they are lengthened from the first on, in full from the second on."""

COMMON_LENGTHENED, SIGNAL_LENGTHENED = 1.2, 1.4
"""Factors on the margins of the top direction and of the others (`experiments/rare.py`)."""


def follows_mean_row(coordinates: Coordinates) -> bool:
    """Whether the top direction can be taken for that of the mean row.

    It cannot if it carries little, or if it is the public direction that is used where noise hides all others.
    """
    top = coordinates.basis[:, -1]
    is_public = np.allclose(np.abs(top), 1 / math.sqrt(len(top)))
    return bool(coordinates.eigenvalues[-1] >= COMMON_MASS) and not is_public


def mean_label(correlation: Array, coordinates: Coordinates) -> float:
    """Of rows of norm one that lie along the top direction."""
    return float(coordinates.basis[:, -1] @ correlation) / math.sqrt(float(coordinates.eigenvalues[-1]))


def likeness(correlation: Array, coordinates: Coordinates) -> float:
    """One if nearly all labels are alike, zero if they are not or if this cannot be seen."""
    if not follows_mean_row(coordinates):
        return 0.0
    return _rising(1 - mean_label(correlation, coordinates) ** 2, MIXED, ALIKE)


def usual_prior(prior_scale: float, alike_prior_scale: float, likeness: float) -> float:
    """The variance of the margins under the prior, beyond `alike_prior_scale` only as far as labels are not alike."""
    return prior_scale - likeness * max(prior_scale - alike_prior_scale, 0.0)


def lengthening(likeness: float, z: Array, coordinates: Coordinates) -> Array:
    """Factors on the coordinates of a model z of labels so much alike."""
    signal = math.sqrt(float(coordinates.energy[:-1] @ z[:-1] ** 2))
    share = likeness * _rising(signal, CLEAR, STRONG)
    factors = np.full(len(z), 1 + share * (SIGNAL_LENGTHENED - 1))
    factors[-1] = 1 + share * (COMMON_LENGTHENED - 1)
    return factors


def _rising(value: float, start: float, end: float) -> float:
    """From zero at `start` to one at `end`, on whichever side that lies."""
    return min(max((value - start) / (end - start), 0.0), 1.0)
