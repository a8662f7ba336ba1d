"""Whether labels depend on the features at all, as far as the first release shows.

Labels without signal correlate with the rows only through their own mean. The released correlation is then the mean
label times the mean row, and the mean row lies along the top direction of the second moment. Along all other directions
there is only noise, and its size is known. If the correlation shows nothing beyond this noise, it is better to predict
the commonest class, and margins along the other directions are shortened. Later gradients, which get most of the
budget, can undo this: if there is a signal, they agree with the first release more than noise does.

If one class is much commoner, margins keep a quarter of their length. That is too little to change a prediction by
noise, and enough to use a signal that was overlooked. If classes are nearly even, every prediction is made by the
signal, so margins keep much less. They are then shortened only if the budget is large enough to show every signal that
predicts better than the commonest class.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpadmm.solvers.auto.coordinates import Coordinates
from dpadmm.solvers.auto.gradient_evidence import Evidence
from dpadmm.solvers.auto.rare_class import follows_mean_row, mean_label

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

EVEN_LATER, EVEN_RAMP = 0.5, 1.0
"""For classes that are nearly even: doubt ends this many standard deviations later, and fades within this many."""

EVEN_REASSURED_LATER = 3.0
"""For nearly even classes the gradients must agree by this much more, because their margins are longer."""

WORTH_SEEING, ALL_SEEN = 2.0, 4.0
"""Standard deviations that a signal as strong as the mean label would show: even classes are doubted from the first on,
in full from the second on."""

STRONGEST_MEAN = 0.02
"""Largest squared mean label in this comparison: beyond it, weaker signals than the mean label are useful too."""

UNGUESSED = 0.3
"""Size of doubted margins, in units of the margins along the top direction, at which they decide almost no row."""


@dataclass(frozen=True)
class Doubt:
    """How much the signal is doubted: from zero, not at all, to one.

    Attributes
    ----------
    uneven, even : float
        The doubt for classes of which one is much commoner, and for classes that are nearly even.
    """

    uneven: float = 0.0
    even: float = 0.0

    def trust(self, agreement: float, common: float, signal: float) -> float:
        """Factor on the margins of all directions but the top one, once gradients were released.

        Parameters
        ----------
        agreement : float
            Of the gradients with the first release.
        common, signal : float
            Root mean square of the margins along the top direction, and along the others.
        """
        uneven = (1 - LEAST_TRUST) * self.uneven * (1 - lifted(agreement))
        left = min(LEAST_TRUST, UNGUESSED * common / max(signal, 1e-30))
        even = (1 - left) * self.even * (1 - lifted(agreement - EVEN_REASSURED_LATER))
        return 1 - max(uneven, even)


NO_DOUBT = Doubt()


def doubted(
    correlation: Array,
    coordinates: Coordinates,
    noise_std: float,
    moment_std: float,
    doubt: float,
    label_noise: float = 0.0,
) -> Doubt:
    """What the first release leaves in doubt.

    Parameters
    ----------
    correlation : (d,)
        Released mean of label · row, for rows of norm one.
    noise_std, moment_std : float
        Noise of the correlation and of the second moment.
    doubt : float
        Standard deviations beyond the noise from which a signal is fully trusted.
    label_noise : float
        One over the number of rows: what their finite number adds to the noise, in units of the labels' variance.
    """
    if not follows_mean_row(coordinates):
        return NO_DOUBT
    values = coordinates.eigenvalues
    top, below = float(values[-1]), values[:-1]
    seen = coordinates.basis.T @ correlation
    tilt = float(seen[-1]) * moment_std / (math.sqrt(2) * top)
    squared_mean = mean_label(correlation, coordinates) ** 2
    unevenness = min(1.0, 4 * squared_mean)
    noise = np.full(len(below), noise_std**2 + tilt**2)
    uneven = unevenness * _share((doubt - beyond_noise(seen[:-1] ** 2, below, noise)) / RAMP)
    # A mean label is seen with its own noise, which is no reason to prefer the commonest class.
    certain = min(max(squared_mean - noise_std**2 / top - label_noise, 0.0), STRONGEST_MEAN)
    noise += label_noise * (1 - min(squared_mean, 1.0)) * below
    worth = _share((_rise(certain * below, below, noise) - WORTH_SEEING) / (ALL_SEEN - WORTH_SEEING))
    unseen = _share((doubt + EVEN_LATER - beyond_noise(seen[:-1] ** 2, below, noise)) / EVEN_RAMP)
    return Doubt(uneven, max(1 - 2 * unevenness, 0.0) * worth * unseen)


def agreement(first: Evidence, later: Evidence, coordinates: Coordinates, chance: Array | float = 0.0) -> float:
    """Correlation of two estimates beyond the top direction, in standard deviations of labels without signal.

    `chance` is the variance that their finite number gives to both estimates alike, a direction.
    """
    weight = np.sqrt(coordinates.eigenvalues[:-1])
    spread = np.sqrt((first.variance + chance) * (later.variance + chance) + np.square(chance))
    product = (first.mean * later.mean - chance) / spread
    return float(weight @ product[:-1]) / math.sqrt(float(weight @ weight))


def beyond_noise(squares: Array, values: Array, noise: Array) -> float:
    """Standard deviations by which squared correlations exceed those of noise: centred at zero without signal."""
    return _rise(squares - noise, values, noise)


def _rise(squares: Array, values: Array, noise: Array) -> float:
    """Weighted sum of squared correlations, in standard deviations of that of squared noise."""
    weight = values**SIGNAL_DECAY
    return float(weight @ (squares / noise)) / math.sqrt(2 * float(weight @ weight))


def lifted(agreement: float) -> float:
    """The share of the doubt that ends if gradients agree with the first release this much."""
    return _share((agreement - REASSURING) / (CONVINCING - REASSURING))


def _share(value: float) -> float:
    return min(max(value, 0.0), 1.0)
