"""Laplacian smoothing on a ring, Q = I + ν·(ring Laplacian), in O(d) by two recursions or in O(d log d) by FFT."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from scipy import fft

from dpadmm import kernels
from dpadmm.errors import InvalidParameter, shown
from dpadmm.problem.checks import Array, count, number
from dpadmm.problem.smoothers.base import SMOOTHERS, mean_with_free, on_leading, smoothed_size

RECURSION_FROM = 10_000


@SMOOTHERS.register("ring")
@dataclass(frozen=True)
class RingLaplacian:
    """S = Q⁻¹ with Qq = q + ν(2q_i − q_{i−1} − q_{i+1}), indices modulo d.

    Q = (ν/w)(1 − wR)(1 − wR⁻¹) with R the cyclic shift and w = e^{−θ}, sinh(θ/2) = 1/(2√ν), so that S is one forward
    and one backward first-order recursion. A ring of two nodes has a double edge; a ring of one node is left alone.

    Parameters
    ----------
    nu : float
        Strength of smoothing, at least 0; 0 is the identity.
    method : {"auto", "recursion", "fft"}
        "auto" takes the FFT for short arrays, where it is faster, and the recursion for long ones.
    free : int
        Trailing coordinates left untouched.

    Examples
    --------
    >>> import numpy as np
    >>> RingLaplacian(1.0)(np.array([1.0, 0.0])).round(12).tolist()
    [0.6, 0.4]
    """

    nu: float
    method: Literal["auto", "recursion", "fft"] = "auto"
    free: int = 0
    name: ClassVar[str] = "ring"

    def __post_init__(self) -> None:
        object.__setattr__(self, "nu", number("nu", self.nu))
        object.__setattr__(self, "free", count("free", self.free))
        if self.method not in ("auto", "recursion", "fft"):
            raise InvalidParameter(
                f"method={shown(self.method)}", "'auto', 'recursion' or 'fft'", "choose a known method"
            )

    def __call__(self, g: Array) -> Array:
        if self.nu == 0.0:
            return g.copy()
        long = smoothed_size(g.shape[0], self.free) >= RECURSION_FROM
        by_recursion = self.method == "recursion" or (self.method == "auto" and long)
        return on_leading(self._by_recursion if by_recursion else self._by_fft, g, self.free)

    def tau(self, d: int) -> float:
        return mean_with_free(_ring_tau(self.nu, smoothed_size(d, self.free)), d, self.free)

    def tau2(self, d: int) -> float:
        return mean_with_free(_ring_tau2(self.nu, smoothed_size(d, self.free)), d, self.free)

    def norm_inverse(self, d: int) -> float:
        size = smoothed_size(d, self.free)
        return 1 + 4 * self.nu * math.sin(math.pi * (size // 2) / size) ** 2

    def _by_fft(self, g: Array) -> Array:
        d = g.shape[0]
        spectrum = fft.rfft(g, axis=0) / _as_column(ring_eigenvalues(self.nu, d), g)
        smoothed: Array = fft.irfft(spectrum, n=d, axis=0)
        return smoothed

    def _by_recursion(self, g: Array) -> Array:
        smoothed = np.empty(g.shape)
        kernels.active().ring(np.ascontiguousarray(g, dtype=np.float64), self.decay, self.gain, smoothed)
        return smoothed

    @property
    def decay(self) -> float:
        """θ with w = e^{−θ}."""
        return _decay(self.nu)

    @property
    def gain(self) -> float:
        """w/ν, the factor before the two recursions."""
        return 2 / (2 * self.nu + 1 + math.sqrt(4 * self.nu + 1))


def ring_eigenvalues(nu: float, d: int) -> Array:
    """Eigenvalues of Q at the frequencies k = 0, …, ⌊d/2⌋ of a real Fourier transform."""
    eigenvalues: Array = 1 + 4 * nu * np.sin(np.pi * np.arange(d // 2 + 1) / d) ** 2
    return eigenvalues


def ring_response(nu: float, d: int) -> Array:
    """Return the impulse response (w^k + w^{d−k}) / ((1 − w^d)√(1 + 4ν)), k = 0, …, d − 1: the first column of S.

    Examples
    --------
    >>> ring_response(1.0, 2).round(12).tolist()
    [0.6, 0.4]
    """
    nu, d = number("nu", nu), count("d", d, minimum=1)
    if nu == 0.0:
        impulse: Array = np.eye(1, d)[0]
        return impulse
    decay, k = _decay(nu), np.arange(d)
    scale = -math.expm1(-decay * d) * math.sqrt(1 + 4 * nu)
    response: Array = (np.exp(-decay * k) + np.exp(-decay * (d - k))) / scale
    return response


def optimal_nu(rho1: float, d: int) -> float:
    """Return the ν that minimises the bound factor τ(ν)(1 + ν·2(1 − rho1)).

    Parameters
    ----------
    rho1 : float
        Lag-1 autocorrelation, around the ring, of the coefficients sought. It must come from public knowledge.
    d : int
        Number of coordinates.

    Examples
    --------
    >>> round(optimal_nu(0.9, d=1000), 9)
    4.5
    """
    rho1, d = number("rho1", rho1, minimum=-1.0), count("d", d, minimum=1)
    if rho1 >= 1:
        raise InvalidParameter(f"rho1={shown(rho1)}", "-1 <= rho1 < 1", "give an autocorrelation below 1")
    if rho1 <= 0 or d == 1:
        return 0.0
    on_a_long_ring = rho1 / (2 * (1 - rho1))
    if d >= 10 * math.sqrt(on_a_long_ring):
        return on_a_long_ring

    from scipy.optimize import minimize_scalar

    def bound(log_nu: float) -> float:
        return _ring_tau(math.exp(log_nu), d) * (1 + 2 * (1 - rho1) * math.exp(log_nu))

    found = minimize_scalar(bound, bounds=(math.log(1e-6), math.log(1e4)), method="bounded", options={"xatol": 1e-9})
    return math.exp(float(found.x)) if found.fun < 1 else 0.0


def _decay(nu: float) -> float:
    """θ with w = e^{−θ}; infinite for ν = 0."""
    return 2 * math.asinh(1 / (2 * math.sqrt(nu))) if nu > 0 else math.inf


def _ring_tau(nu: float, d: int) -> float:
    turn = _decay(nu) * d
    return (1 + math.exp(-turn)) / (-math.expm1(-turn) * math.sqrt(1 + 4 * nu))


def _ring_tau2(nu: float, d: int) -> float:
    """−∂/∂a at a = 1 of mean_k 1/(a + 4ν sin²(πk/d)), whose closed form has positive terms only."""
    turn, square = _decay(nu) * d, 1 + 4 * nu
    closing = 2 * d * math.exp(-turn) / (math.expm1(-turn) ** 2 * square)
    return _ring_tau(nu, d) * (1 + 2 * nu) / square + closing


def _as_column(per_row: Array, like: Array) -> Array:
    return per_row.reshape(-1, *[1] * (like.ndim - 1))
