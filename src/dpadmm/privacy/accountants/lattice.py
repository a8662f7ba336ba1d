"""Privacy-loss distributions on a lattice: discretised upwards, convolved by FFT under an exponential tilt.

Every approximation here errs on the private side, and each error is added to δ rather than neglected:

| source | what is done | where |
|---|---|---|
| rounding of the profile | multiplied by 1 + 10⁻⁹ | `connect_dots` |
| discretisation | piecewise linear upper bound in α = e^ε (connect the dots) | `connect_dots` |
| losses above the lattice | counted as infinite | `LossPmf.infinity` |
| losses above the FFT window | Chernoff's bound, added to δ | `Composition._window` |
| losses below the FFT window | wrap around to larger losses | `Composition._convolve` |
| rounding of the FFT | its componentwise bound, added to every mass | `Composition._convolve` |
| rounding of the sums | δ multiplied by 1 + 10⁻⁶ | `Composition.epsilon`, `Composition.delta` |

docs/proofs/composition.md has the proofs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dpadmm.errors import CannotCertify

Floats = NDArray[np.float64]

MAX_POINTS = 2**22
_PADDING = 1e-9
_SUMMATION = 1e-6
_ROUNDING = 16.0 * float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False)
class LossPmf:
    """Mass exp(log_mass[i]) at loss (first + i)·interval, and `infinity` at +∞."""

    interval: float
    first: int
    log_mass: Floats
    infinity: float

    @cached_property
    def losses(self) -> Floats:
        return np.asarray(self.interval * (self.first + np.arange(self.log_mass.size)), dtype=np.float64)


def connect_dots(forward: Floats, backward: Floats, interval: float) -> LossPmf:
    """The smallest pair of distributions on the lattice that dominates a profile given at ε = 0, d, 2d, ….

    Parameters
    ----------
    forward, backward : ndarray
        Upper bounds on H_α(P‖Q) and H_α(Q‖P) at α = e^{i·interval}, i = 0, …, n.
    interval : float
        Lattice spacing.

    Formal guarantees
    -----------------
    The hockey-stick divergence of the result is at least the given profile at every α ≥ 0: at lattice points by
    construction, between them because profiles are convex in α, above the last because the rest of the mass is
    infinite, below the first by symmetry. A profile that rounding made concave is first raised to a convex one.
    """
    up, down = _half_masses(forward, interval), _half_masses(backward, interval)
    losses = interval * np.arange(up.size + 1)
    below = np.exp(-losses[1:]) * down
    infinity = float(min(1.0, forward[-1] * (1.0 + _PADDING)))
    centre = 1.0 - infinity - float(up.sum()) - float(below.sum())
    mass = np.concatenate((below[::-1], [max(0.0, centre)], up))
    excess = float(mass.sum()) + infinity - 1.0
    if excess > 1e-6:
        raise CannotCertify(
            f"Got a privacy-loss lattice of spacing {interval:.3g} whose mass exceeds one by {excess:.2g}. Expected "
            "less than 1e-6. Use more noise, fewer steps or a larger batch."
        )
    with np.errstate(divide="ignore"):
        return LossPmf(interval, -up.size, np.log(mass), infinity)


def _half_masses(profile: Floats, interval: float) -> Floats:
    """P-masses at d, 2d, …, nd: e^{ε_i} times the drop of the slope of the convex hull of h in α."""
    h = np.minimum(profile * (1.0 + _PADDING), 1.0)
    alpha = np.exp(interval * np.arange(h.size))
    slope = (h[:-1] - h[1:]) / (alpha[:-1] * math.expm1(interval))
    slope = np.maximum.accumulate(np.maximum(slope, 0.0)[::-1])[::-1]
    return np.asarray(alpha[1:] * (slope - np.append(slope[1:], 0.0)))


class Composition:
    """The sum of independent privacy losses: `count` copies of each lattice distribution.

    Formal guarantees
    -----------------
    `epsilon` and `delta` are upper bounds for every adaptive composition of mechanisms dominated by the parts.
    """

    def __init__(self, parts: list[tuple[LossPmf, int]]) -> None:
        self.parts = parts
        self.interval = parts[0][0].interval
        self.infinity = min(1.0, sum(count * pmf.infinity for pmf, count in parts))
        self.count = sum(count for _, count in parts)

    def epsilon(self, delta: float) -> float:
        """Smallest certified ε ≥ 0 at this δ; infinite when δ is below the mass at infinity."""
        tilt, bound = self._best_tilt_for_delta(delta)
        if bound <= 0:
            return 0.0
        first, mass, beyond = self._convolve(tilt, math.log(delta))
        rest = delta * (1.0 - _SUMMATION) - self.infinity - beyond
        if rest <= 0:
            return math.inf
        # Beyond 600 below the top, e^loss leaves the floating-point range; an ε there is of no use to anyone.
        skip = max(0, mass.size - int(600.0 / self.interval))
        mass, losses = mass[skip:], self.interval * (first + np.arange(skip, mass.size))
        upper = np.cumsum(mass[::-1])[::-1]
        lower = np.cumsum((mass * np.exp(losses[0] - losses))[::-1])[::-1]
        # δ at the loss of point i, from the points above it; `lower` carries a factor e^{losses[0]}.
        at_points = np.append(upper[1:] - np.exp(losses[:-1] - losses[0]) * lower[1:], 0.0)
        above = np.flatnonzero(at_points > rest)
        if above.size == 0:
            return max(0.0, float(losses[0]))
        i = int(above[-1]) + 1
        return max(0.0, float(losses[0] + math.log((upper[i] - rest) / lower[i])))

    def delta(self, epsilon: float) -> float:
        """Smallest certified δ at this ε."""
        tilt, log_bound = self._best_tilt_for_epsilon(epsilon)
        first, mass, beyond = self._convolve(tilt, log_bound, epsilon)
        losses = self.interval * (first + np.arange(mass.size))
        on = losses > epsilon
        inside = float(np.dot(mass[on], -np.expm1(epsilon - losses[on])))
        return min(1.0, (inside + beyond + self.infinity) * (1.0 + _SUMMATION))

    def _cumulant(self, tilt: float) -> float:
        """log E[e^{tilt·L}; L < ∞] of the sum."""
        return sum(count * _log_sum_exp(pmf.log_mass + tilt * pmf.losses) for pmf, count in self.parts)

    def _deviation(self, tilt: float) -> float:
        """Standard deviation of the sum under the tilt."""
        variance = 0.0
        for pmf, count in self.parts:
            weights = _normalised(pmf.log_mass + tilt * pmf.losses)
            mean = float(weights @ pmf.losses)
            variance += count * float(weights @ (pmf.losses - mean) ** 2)
        return math.sqrt(max(variance, self.interval**2))

    def _best_tilt_for_delta(self, delta: float) -> tuple[float, float]:
        """Tilt λ and Chernoff bound on ε: δ ≤ e^{K(λ) − λε}·λ^λ/(1+λ)^{1+λ} solved for ε and minimised."""
        rest = delta - self.infinity
        if rest <= 0:
            return 1.0, math.inf
        start = math.sqrt(2.0 * max(math.log(1.0 / rest), 0.1)) / self._deviation(0.0)
        return _minimise(lambda t: (self._cumulant(t) + _entropy(t) - math.log(rest)) / t, start)

    def _best_tilt_for_epsilon(self, epsilon: float) -> tuple[float, float]:
        deviation = self._deviation(0.0)
        start = max(epsilon / deviation, 0.5) / deviation
        return _minimise(lambda t: self._cumulant(t) + _entropy(t) - t * epsilon, start)

    def _window(self, tilt: float, log_delta: float, keep: float) -> tuple[int, int, float]:
        """First and last lattice index to keep, and a bound on the probability above the last."""
        cumulant, step, wide = self._cumulant(tilt), 1.0 / self._deviation(tilt), 1.0 / self._deviation(0.0)
        tail = min(log_delta, 0.0) - 20.0
        # Chernoff's bound holds for every exponent; these cover light tails (in deviations) and heavy ones (in tilts).
        above = [(s, self._cumulant(tilt + s)) for s in (step, 3 * step, 7 * step, tilt / 2, tilt, 2 * tilt)]
        below = [(s, self._cumulant(tilt - s)) for s in (step, 3 * step, 7 * step, 3 * wide, 7 * wide)]
        rare = min((k - tail) / (tilt + s) for s, k in above)
        # Tilted mass outside the window wraps around, which is sound but wasteful: keep all but e^-25 of it.
        top = min((k - cumulant + 25.0) / s for s, k in above)
        bottom = max((cumulant - k - 25.0) / s for s, k in below)
        last = math.ceil(max(rare, top) / self.interval)
        first = math.floor(min(bottom, keep) / self.interval) - 1
        if last - first + 1 > MAX_POINTS:
            raise CannotCertify(
                f"Got a composition that needs {last - first + 1} lattice points. Expected at most {MAX_POINTS}. "
                "Use fewer steps, more noise or a larger batch."
            )
        return first, max(last, first + 8), math.exp(tail)

    def _convolve(self, tilt: float, log_delta: float, keep: float = math.inf) -> tuple[int, Floats, float]:
        """Masses of the sum on a window around the tilted mean, never too small, and the mass bound above it."""
        from scipy import fft

        first, last, beyond = self._window(tilt, log_delta, keep)
        size = fft.next_fast_len(last - first + 1, real=True)
        spectra, origin, shift = [], 0, 0.0
        for pmf, count in self.parts:
            logs = pmf.log_mass + tilt * pmf.losses
            spectra.append(fft.rfft(_folded(_normalised(logs), size)))
            origin += count * pmf.first
            shift += count * _log_sum_exp(logs)
        counts = [count for _, count in self.parts]
        spectrum = np.prod([_power(s, c) for s, c in zip(spectra, counts, strict=True)], axis=0)
        rounding = _ROUNDING * math.log2(size + 2) * _sensitivity(spectra, counts)
        tilted = np.maximum(np.roll(fft.irfft(spectrum, size), (origin - first) % size), 0.0) + rounding
        exponent = shift - tilt * self.interval * (first + np.arange(size))
        return first, tilted * np.exp(np.minimum(exponent, 600.0)), beyond


def _power(spectrum: NDArray[np.complex128], count: int) -> NDArray[np.complex128]:
    """spectrum^count by repeated squaring: complex logarithms would take ten times as long."""
    found = spectrum if count % 2 else np.ones_like(spectrum)
    while count := count // 2:
        spectrum = np.square(spectrum)
        if count % 2:
            found = found * spectrum
    return found


def _sensitivity(spectra: list[NDArray[np.complex128]], counts: list[int]) -> float:
    """Largest change of one convolved mass per unit of error in every Fourier coefficient: the product rule."""
    logs = [np.log(np.maximum(np.abs(s), 1e-300)) for s in spectra]
    total = np.sum([c * log for c, log in zip(counts, logs, strict=True)], axis=0)
    return 1e-300 + sum(c * float(np.exp(total - log).mean()) for c, log in zip(counts, logs, strict=True))


def _entropy(tilt: float) -> float:
    """log of λ^λ/(1+λ)^{1+λ}, the largest value of e^{−λx}(1 − e^{−x}) over x > 0."""
    return tilt * math.log(tilt) - (1.0 + tilt) * math.log1p(tilt)


def _minimise(objective: Callable[[float], float], start: float) -> tuple[float, float]:
    """Half the best tilt, and the bound at the best. The objective is quasi-convex; any tilt is sound."""
    from scipy.optimize import minimize_scalar

    # Rare large losses call for far smaller tilts than the normal approximation behind `start`.
    bounds = (math.log(min(start, 1.0)) - 3.0, math.log(max(start, 1.0)) + 2.0)
    found = minimize_scalar(lambda s: objective(math.exp(s)), bounds=bounds, method="bounded", options={"xatol": 0.03})
    # At the full tilt rare large losses would dominate the tilted law and widen the window.
    return 0.5 * math.exp(float(found.x)), float(found.fun)


def _log_sum_exp(values: Floats) -> float:
    top = float(values.max())
    return top + math.log(float(np.exp(values - top).sum()))


def _normalised(logs: Floats) -> Floats:
    weights = np.exp(logs - logs.max())
    return np.asarray(weights / weights.sum())


def _folded(values: Floats, size: int) -> Floats:
    """Sum the entries whose positions agree modulo `size`."""
    if values.size <= size:
        return np.pad(values, (0, size - values.size))
    blocks = -(-values.size // size)
    return np.asarray(np.pad(values, (0, blocks * size - values.size)).reshape(blocks, size).sum(axis=0))
