"""Labels nearly all of which are alike, as the first release shows them.

A cap overstates the margins of classes of like size, and the rules shorten them. Where one class is rare it does the
contrary: the rare rows, whose slopes are the largest, are those it cuts, so a signal that sets them apart comes out too
short, and the rare class is recognised too seldom. Then margins are lengthened instead, those of the signal more than
that of the common direction, if the signal is seen to be strong. And under strong noise the prior, which is then
widened to keep what is seen, stays as it is: what is seen of labels nearly all alike is mostly their mean, and noise.
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
"""Variance of the labels, ±1, along the top direction: up to the first nearly all are alike, from the second on not."""

CLEAR, STRONG = 1.5, 2.0
"""Standard deviation of the signal's margins from which they are lengthened, and from which in full."""

COMMON_LENGTHENED, SIGNAL_LENGTHENED = 1.2, 1.4
"""Factors on the margins of the top direction and of the others (`experiments/rare.py`)."""


def follows_mean_row(coordinates: Coordinates) -> bool:
    """Whether the top direction can be taken for that of the mean row.

    Not if it carries little, nor if it is the public one looked at where noise hides all others.
    """
    top = coordinates.basis[:, -1]
    is_public = np.allclose(np.abs(top), 1 / math.sqrt(len(top)))
    return bool(coordinates.eigenvalues[-1] >= COMMON_MASS) and not is_public


def mean_label(correlation: Array, coordinates: Coordinates) -> float:
    """Of rows of norm one that lie along the top direction."""
    return float(coordinates.basis[:, -1] @ correlation) / math.sqrt(float(coordinates.eigenvalues[-1]))


def likeness(correlation: Array, coordinates: Coordinates) -> float:
    """One where nearly all labels are alike, zero where they are not or it cannot be told."""
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
