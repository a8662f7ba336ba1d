"""The minimiser of one node's objective by gradient descent, as a distance from a public point.

F(w) = f(w) + (μ/2)‖w − a‖², f the mean clipped loss of the node, a public. Steps start at a and number K, whatever
the rows say. One replaced row moves the result by at most 2C/(mμ), for every K (docs/proofs/decentralised.md, Claim 2):
no step is assumed to have reached the minimum.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from dpadmm.errors import InvalidParameter
from dpadmm.privacy.arithmetic import UNIT_ROUNDOFF

Array = NDArray[np.float64]
MOST_STEPS = 2000
SHORTER = 1.0 - 2.0**-40
"""Steps are this much shorter than 2/(L + 2μ), so that rounding never makes one longer."""
WIDER = 1.0 + 2.0**-20
"""Rows may exceed their declared norm by rounding; the smoothness is taken so much larger."""


def steps_needed(smoothness: float, curvature: float, accuracy: float) -> int:
    """Steps after which the distance to the minimum has shrunk to `accuracy` of what it was, by public numbers.

    Examples
    --------
    >>> steps_needed(0.25, 0.2, 1e-6)
    15
    """
    if not curvature > 0:
        raise InvalidParameter("a local objective without curvature", "rho > 0 and a neighbour", "choose rho > 0")
    shrink = 1.0 - step_length(smoothness, curvature) * curvature
    return min(MOST_STEPS, math.ceil(math.log(accuracy) / math.log(shrink)))


def displacement(
    mean_gradient: Callable[[Array], Array], centre: Array, curvature: float, smoothness: float, accuracy: float
) -> Array:
    """w_K − a after K steps from a, K from public numbers. NOT private by itself: only a barrier may call it."""
    step = step_length(smoothness, curvature)
    moved = np.zeros_like(centre)
    for _ in range(steps_needed(smoothness, curvature, accuracy)):
        moved = (1.0 - step * curvature) * moved - step * mean_gradient(centre + moved)
    return moved


def step_length(smoothness: float, curvature: float) -> float:
    """At most 2/(L + 2μ), L + μ being the smoothness of F: no two points leave farther apart than by 1 − step·μ."""
    return 2.0 * SHORTER / (WIDER * smoothness + 2.0 * curvature)


def rounding_share(
    distance: float, curvature: float, smoothness: float, clip_norm: float, rows: int, features: int
) -> float:
    """Bound on what rounding adds to how far one row moves the answer, as a share of it (Claim 3)."""
    margins = rows * smoothness * (features + 4.0) * (distance + clip_norm / curvature) / clip_norm
    steps = 16.0 * rows * (smoothness + curvature) / curvature
    return 2.0 * UNIT_ROUNDOFF * (margins + steps)
