"""Hockey-stick profiles h(ε) of one release, in closed form: what a single noisy sum costs at every ε.

| symbol | meaning |
|---|---|
| ε, α = e^ε | argument of the profile, any real number |
| h(ε) | bound on H_α(P‖Q) = sup_S P(S) − αQ(S) over all neighbouring tables |
| q | probability that the record takes part |
| m, `mu_one` | C/σ: distance one record can move the sum when it appears, in noise standard deviations |
| `mu` | 2C/σ = 2m: distance when it is replaced |
| M(t) | Mills ratio Φ(−t)/φ(t) |

Every function is vectorised over ε, never cancels two nearly equal probabilities, and underflows to 0 rather than
to garbage. Proofs: docs/proofs/.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Profile = Callable[[ArrayLike], Floats]

SMALLEST_SHIFT = 1e-5
"""Below so few standard deviations the Gaussian profile loses more digits than the accountants' margin of 10⁻⁹ covers:
they count a smaller shift as this one, which is more than it costs (docs/proofs/gaussian.md, Numerics)."""

# Below this argument Φ(−t) is 1 to six digits and nothing cancels, while the Mills ratio would grow like e^{t²/2}.
_FAR_LEFT = -5.0


def gaussian(mu: float, eps: ArrayLike) -> Floats:
    """N(µ, 1) against N(0, 1).

    Formal guarantees
    -----------------
    Exact for a Gaussian release whose L2 sensitivity is `mu` noise standard deviations (Balle & Wang 2018, Thm 8;
    docs/proofs/gaussian.md): h(ε) = Φ(µ/2 − ε/µ) − e^ε Φ(−µ/2 − ε/µ).
    """
    return _mirrored(lambda e: _gaussian(mu, e), lambda e: _gaussian(mu, e), eps)


def without_replacement(q: float, mu: float, eps: ArrayLike) -> Floats:
    """A uniform subset containing the record with probability `q`, under replace-one.

    Formal guarantees
    -----------------
    h(ε) = q·δ₀(log(1 + (e^ε − 1)/q)) for ε ≥ 0, δ₀ the Gaussian profile at `mu` = 2C/σ, bounds every pair of tables
    differing in one record, in both directions, provided *every* record is clipped to C
    (docs/proofs/without-replacement.md, Theorem 1).
    """
    return _mirrored(lambda e: _amplified(q, mu, e), lambda e: _amplified(q, mu, e), eps)


def poisson(q: float, mu_one: float, eps: ArrayLike) -> Floats:
    """Independent coin flips of probability `q`, under replace-one.

    Formal guarantees
    -----------------
    Exact: the profile of (1−q)N(0)+qN(m) against (1−q)N(0)+qN(−m), m = `mu_one`, which dominates every pair of
    tables differing in one record, in any dimension (docs/proofs/poisson.md).
    """
    return _mirrored(lambda e: _poisson(q, mu_one, e), lambda e: _poisson(q, mu_one, e), eps)


def poisson_removed(q: float, mu_one: float, eps: ArrayLike) -> Floats:
    """Poisson sampling under add-remove, table with the record against the table without it.

    Formal guarantees
    -----------------
    Exact: (1−q)N(0)+qN(m) against N(0) (docs/proofs/poisson.md).
    """
    return _mirrored(lambda e: _amplified(q, mu_one, e), lambda e: _poisson_added(q, mu_one, e), eps)


def poisson_added(q: float, mu_one: float, eps: ArrayLike) -> Floats:
    """Poisson sampling under add-remove, table without the record against the table with it.

    Formal guarantees
    -----------------
    Exact: N(0) against (1−q)N(0)+qN(m) (docs/proofs/poisson.md).
    """
    return _mirrored(lambda e: _poisson_added(q, mu_one, e), lambda e: _amplified(q, mu_one, e), eps)


def truncated_poisson(q: float, cap: int, n_rows: int, mu_one: float, eps: ArrayLike) -> Floats:
    """Poisson sampling cut to a uniform subset of `cap` rows when more were drawn, under replace-one.

    Formal guarantees
    -----------------
    h = (1−p)·poisson(q) + p·without_replacement(q̄), p the probability that at least `cap` of the other rows are
    drawn and q̄ the probability that the record survives given that they are
    (docs/proofs/truncated-poisson.md, Theorem 1).
    """
    overflow, inclusion = overflow_and_inclusion(q, cap, n_rows)
    usual = poisson(q, mu_one, eps)
    if overflow == 0.0 or inclusion == 0.0:
        # Without overflow the law is Poisson's; a p too small for a float still counts, at its largest possible cost.
        return np.asarray(np.minimum(usual + overflow, 1.0))
    return np.asarray((1.0 - overflow) * usual + overflow * without_replacement(inclusion, 2.0 * mu_one, eps))


def overflow_and_inclusion(q: float, cap: int, n_rows: int) -> tuple[float, float]:
    """(p, q̄): P[Bin(n−1, q) ≥ cap], and the mean of q·cap/(R+1) over R ~ Bin(n−1, q) given R ≥ cap.

    Σ_r P[R=r]·q/(r+1) over r ≥ cap is P[Bin(n, q) ≥ cap+1]/n, so q̄ = (cap/n)·P[Bin(n, q) > cap]/p.
    """
    overflow = _binomial_at_least(cap, n_rows - 1, q)
    if overflow <= 0.0:
        return 0.0, 0.0
    mean = cap / n_rows * _binomial_at_least(cap + 1, n_rows, q) / overflow
    # q·cap/(cap+1) bounds every term of the mean; rounding must not carry it above.
    return overflow, min(mean * (1.0 + 1e-12), q * cap / (cap + 1.0))


def _binomial_at_least(k: int, n: int, q: float) -> float:
    from scipy.special import betainc

    if k <= 0:
        return 1.0
    if k > n:
        return 0.0
    return float(betainc(k, n - k + 1, q))


def _mirrored(forward: Profile, backward: Profile, eps: ArrayLike) -> Floats:
    """h for every real ε from both directions at ε ≥ 0: H_α(P‖Q) = 1 − α + α·H_{1/α}(Q‖P)."""
    e = np.asarray(eps, dtype=np.float64)
    out = np.empty(e.shape)
    left = e < 0
    out[~left] = forward(e[~left])
    out[left] = -np.expm1(e[left]) + np.exp(e[left]) * backward(-e[left])
    return np.asarray(np.clip(out, 0.0, 1.0))


def _mills(t: Floats) -> Floats:
    from scipy.special import erfcx

    return np.asarray(math.sqrt(math.pi / 2.0) * erfcx(t / math.sqrt(2.0)), dtype=np.float64)


def _log_density(t: Floats) -> Floats:
    return -0.5 * t * t - 0.5 * math.log(2.0 * math.pi)


def _gaussian(mu: float, eps: ArrayLike) -> Floats:
    """Φ(−a) − e^ε Φ(−b) with a, b = ε/µ ∓ µ/2; since φ(a) = e^ε φ(b) it is φ(a)(M(a) − M(b))."""
    from scipy.special import log_ndtr, ndtr

    e = np.asarray(eps, dtype=np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        a, b = e / mu - mu / 2.0, e / mu + mu / 2.0
        near = a > _FAR_LEFT
        out = ndtr(-a) - np.exp(e + log_ndtr(-b))
        out[near] = np.exp(_log_density(a[near])) * (_mills(a[near]) - _mills(b[near]))
    return np.asarray(np.nan_to_num(np.clip(out, 0.0, 1.0)))


def _amplified(q: float, mu: float, eps: ArrayLike) -> Floats:
    """q·δ₀(log(1 + (e^ε − 1)/q)), the logarithm computed without overflow."""
    e = np.asarray(eps, dtype=np.float64)
    base = np.where(e < 30.0, np.log1p(np.expm1(np.minimum(e, 30.0)) / q), e - math.log(q) + np.exp(-e) * (q - 1.0))
    return q * _gaussian(mu, base)


def _poisson_added(q: float, mu: float, eps: ArrayLike) -> Floats:
    """N(0) − α((1−q)N(0) + qN(m)) = c·(N(0) − (αq/c)N(m)) with c = q − (α−1)(1−q); zero once c ≤ 0."""
    e = np.asarray(eps, dtype=np.float64)
    out = np.zeros(e.shape)
    c = q - np.expm1(np.minimum(e, 700.0)) * (1.0 - q)
    on = c > 0
    out[on] = c[on] * _gaussian(mu, e[on] + np.log(q / c[on]))
    return out


def _poisson(q: float, m: float, eps: ArrayLike) -> Floats:
    """The best event is {x > t}; at t the densities satisfy w₁ = w₀ + w₂, which removes the cancellation.

    w₀ = (α−1)(1−q), w₁ = q e^{mt−m²/2}, w₂ = αq e^{−mt−m²/2}, and
    h = φ(t)·[w₀(M(t−m) − M(t)) + w₂(M(t−m) − M(t+m))].
    """
    from scipy.special import log_ndtr, ndtr

    e = np.asarray(eps, dtype=np.float64)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        log_s = math.log(q) - m * m / 2.0
        log_w0 = e + np.log(-np.expm1(-e)) + (math.log1p(-q) if q < 1.0 else -math.inf)
        root = 0.5 * np.logaddexp(2.0 * log_w0, math.log(4.0) + e + 2.0 * log_s)
        t = np.maximum((np.logaddexp(log_w0, root) - math.log(2.0) - log_s) / m, 0.0)
        log_w2 = log_s + e - m * t
        out = q * ndtr(m - t) - np.exp(log_w0 + log_ndtr(-t)) - np.exp(log_w2 + m * t + m * m / 2.0 + log_ndtr(-m - t))
        near = t - m > _FAR_LEFT
        tn, density = t[near], _log_density(t[near])
        left = _mills(tn - m)
        out[near] = np.exp(density + log_w0[near]) * (left - _mills(tn)) + np.exp(density + log_w2[near]) * (
            left - _mills(tn + m)
        )
    return np.asarray(np.nan_to_num(np.clip(out, 0.0, 1.0)))
