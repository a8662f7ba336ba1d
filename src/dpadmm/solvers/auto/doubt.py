"""Whether labels depend on the features at all, as far as the first release can tell.

Labels without signal correlate with the rows through their own mean alone: the correlation is then that mean times the
mean row, which the top direction of the second moment follows. Whatever lies beyond this direction is noise of known
size: that of the correlation, and that of the direction. Where nothing more is seen, the commonest class is the
better guess, and directions beyond the top one are mistrusted. Gradients, which have most of the budget, may lift the
doubt again: a signal that one release cannot tell from noise makes them agree with it more than noise does.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dpadmm.solvers.auto.alike import follows_mean_row, mean_label
from dpadmm.solvers.auto.coordinates import Coordinates
from dpadmm.solvers.auto.fusion import Evidence

Array = NDArray[np.float64]

SIGNAL_DECAY = 1.5
"""Squared correlation along a direction of eigenvalue λ is expected to be proportional to λ^1.5."""

RAMP = 1.5
"""Trust rises from least to full within this many standard deviations."""

LEAST_TRUST = 0.25
"""Enough to keep labels without signal from being guessed, little enough that an overlooked signal is still used."""

REASSURING, CONVINCING = 7.0, 10.0
"""Agreement of the gradients with the first release from which doubt fades, and at which none is left.

The noise of the first release comes back through the model wherever its curvature exceeds the true one, so labels
without signal agree as well, mostly by less than seven (`experiments/imbalance.py`).
"""


def trust(correlation: Array, coordinates: Coordinates, noise_std: float, moment_std: float, doubt: float) -> float:
    """Factor on the margins of all directions but the top one.

    Parameters
    ----------
    correlation : (d,)
        Released mean of label · row, for rows of norm one.
    noise_std, moment_std : float
        Noise of the correlation and of the second moment.
    doubt : float
        Standard deviations beyond the noise from which a signal is fully trusted.
    """
    if not follows_mean_row(coordinates):
        return 1.0
    values = coordinates.eigenvalues
    seen = coordinates.basis.T @ correlation
    tilt = float(seen[-1]) * moment_std / (math.sqrt(2) * float(values[-1]))
    excess = beyond_noise(seen[:-1], values[:-1], math.hypot(noise_std, tilt))
    mistrust = (1 - LEAST_TRUST) * min(max((doubt - excess) / RAMP, 0.0), 1.0)
    return 1 - mistrust * min(1.0, 4 * mean_label(correlation, coordinates) ** 2)


def reassured(trust: float, agreement: float) -> float:
    """The trust that is left to the first release's doubt once the gradients were heard."""
    lifted = min(max((agreement - REASSURING) / (CONVINCING - REASSURING), 0.0), 1.0)
    return trust + lifted * (1 - trust)


def agreement(first: Evidence, later: Evidence, coordinates: Coordinates) -> float:
    """Correlation of two estimates beyond the top direction, in standard deviations of independent noise."""
    weight = np.sqrt(coordinates.eigenvalues[:-1])
    product = first.mean * later.mean / np.sqrt(first.variance * later.variance)
    return float(weight @ product[:-1]) / math.sqrt(float(weight @ weight))


def beyond_noise(seen: Array, values: Array, noise_std: float) -> float:
    """Standard deviations by which squared correlations exceed those of noise: centred at zero without signal."""
    weight = values**SIGNAL_DECAY
    excess = (seen / noise_std) ** 2 - 1
    return float(weight @ excess) / math.sqrt(2 * float(weight @ weight))
