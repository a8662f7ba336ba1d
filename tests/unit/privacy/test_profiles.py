"""Profiles: against high precision, against brute force over every subset of tiny tables, and as functions."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from dpadmm.privacy import profiles

ALPHAS = np.exp(np.array([-3.0, -1.0, -0.3, 0.0, 0.02, 0.1, 0.3, 1.0, 2.0, 4.0]))


def test_rounding_takes_no_profile_out_of_its_range():
    """A probability: what a closed form leaves below 0 or above 1 in the last bits is cut off."""

    def rounded(eps):
        return np.where(eps > 1.0, -1e-19, 1.0 + 1e-15)

    found = profiles._mirrored(rounded, rounded, [-3.0, -0.5, 0.0, 0.5, 3.0])
    assert found.min() == 0.0
    assert found.max() == 1.0


# --- closed forms in sixty digits ------------------------------------------------------------------------------


def exact_gaussian(mp, mu, eps):
    mu, eps = mp.mpf(mu), mp.mpf(eps)
    return mp.ncdf(mu / 2 - eps / mu) - mp.exp(eps) * mp.ncdf(-mu / 2 - eps / mu)


def exact_without_replacement(mp, q, mu, eps):
    return q * exact_gaussian(mp, mu, mp.log(1 + mp.expm1(mp.mpf(eps)) / mp.mpf(q)))


def exact_poisson(mp, q, m, eps):
    q, m, alpha = mp.mpf(q), mp.mpf(m), mp.exp(mp.mpf(eps))
    s, b = q * mp.exp(-m * m / 2), (alpha - 1) * (1 - q)
    t = mp.log((b + mp.sqrt(b * b + 4 * alpha * s * s)) / (2 * s)) / m
    return -b * mp.ncdf(-t) + q * mp.ncdf(m - t) - alpha * q * mp.ncdf(-m - t)


def exact_poisson_added(mp, q, m, eps):
    q, alpha = mp.mpf(q), mp.exp(mp.mpf(eps))
    c = 1 - alpha * (1 - q)
    return mp.mpf(0) if c <= 0 else c * exact_gaussian(mp, m, mp.log(alpha * q / c))


@pytest.mark.parametrize("mu", [1e-4, 0.05, 1.0, 5.0, 20.0])
@pytest.mark.parametrize("eps", [0.0, 1e-6, 1e-3, 0.1, 3.0, 50.0, 300.0])
def test_closed_forms_keep_ten_digits(mu, eps):
    mp = pytest.importorskip("mpmath")
    with mp.workdps(60):
        cases = [(profiles.gaussian(mu, eps), exact_gaussian(mp, mu, eps))]
        for q in (1e-5, 0.0045, 0.3, 1.0):
            cases += [
                (profiles.without_replacement(q, mu, eps), exact_without_replacement(mp, q, mu, eps)),
                (profiles.poisson(q, mu, eps), exact_poisson(mp, q, mu, eps)),
                (profiles.poisson_removed(q, mu, eps), exact_without_replacement(mp, q, mu, eps)),
                (profiles.poisson_added(q, mu, eps), exact_poisson_added(mp, q, mu, eps)),
            ]
        for ours, exact in cases:
            assert float(ours) == pytest.approx(float(exact), rel=1e-10, abs=1e-250)


def test_extremes_do_not_warn_or_overflow():
    with np.errstate(all="raise", under="ignore"):
        for eps in (-1e4, -800.0, 800.0, 1e4):
            for value in (
                profiles.gaussian(0.5, eps),
                profiles.without_replacement(0.01, 0.5, eps),
                profiles.poisson(0.01, 0.5, eps),
                profiles.poisson_added(0.01, 0.5, eps),
                profiles.truncated_poisson(0.01, 30, 1000, 0.5, eps),
            ):
                assert float(value) == (1.0 if eps < 0 else 0.0)


def test_direct_integration_of_the_poisson_pair():
    assert float(profiles.poisson(0.01, 1.0, 0.1)) == pytest.approx(9.3318e-05, rel=1e-4)


# --- properties of the profile of a dominating pair ------------------------------------------------------------

EVERY = {
    "gaussian": lambda e: profiles.gaussian(1.3, e),
    "fixed": lambda e: profiles.without_replacement(0.05, 1.3, e),
    "poisson": lambda e: profiles.poisson(0.05, 0.65, e),
    "removed": lambda e: profiles.poisson_removed(0.05, 0.65, e),
    "added": lambda e: profiles.poisson_added(0.05, 0.65, e),
    "truncated": lambda e: profiles.truncated_poisson(0.05, 9, 100, 0.65, e),
    "always truncated": lambda e: profiles.truncated_poisson(1.0, 9, 100, 0.65, e),
}


@pytest.mark.parametrize("name", EVERY)
def test_is_the_profile_of_some_pair(name):
    """Convex and decreasing in α, h(α → 0) = 1, and (1 − α)₊ ≤ h ≤ 1: exactly the profiles of pairs."""
    alpha = np.linspace(1e-6, 6.0, 6001)
    h = EVERY[name](np.log(alpha))
    assert h[0] == pytest.approx(1.0, abs=2e-6)
    assert np.all(np.diff(h) <= 1e-14)
    assert np.all(np.diff(h, 2) >= -1e-14)
    assert np.all(h >= np.maximum(1 - alpha, 0) - 1e-15)
    assert np.all(h <= 1)


@pytest.mark.parametrize("name", ["gaussian", "fixed", "poisson", "truncated"])
def test_replace_one_profiles_are_symmetric(name):
    eps = np.linspace(0.01, 5, 50)
    np.testing.assert_allclose(EVERY[name](-eps), 1 - np.exp(-eps) + np.exp(-eps) * EVERY[name](eps), rtol=1e-13)


def test_limits():
    eps = np.linspace(-2, 3, 41)
    full = profiles.gaussian(1.4, eps)
    np.testing.assert_allclose(profiles.without_replacement(1.0, 1.4, eps), full, rtol=1e-12)
    np.testing.assert_allclose(profiles.poisson(1.0, 0.7, eps), full, rtol=1e-12)
    np.testing.assert_allclose(profiles.truncated_poisson(0.2, 50, 50, 0.7, eps), profiles.poisson(0.2, 0.7, eps))
    # Rate one and a cap below n is sampling without replacement at rate cap/n.
    np.testing.assert_allclose(
        profiles.truncated_poisson(1.0, 10, 50, 0.7, eps), profiles.without_replacement(0.2, 1.4, eps), rtol=1e-9
    )


@pytest.mark.parametrize(("q", "cap", "n"), [(0.3, 2, 4), (0.05, 9, 100), (0.0045, 250, 48842), (1.0, 3, 7)])
def test_overflow_and_inclusion_are_the_sums_they_stand_for(q, cap, n):
    from scipy.stats import binom

    r = np.arange(cap, n)
    weights = binom.pmf(r, n - 1, q)
    overflow, inclusion = profiles.overflow_and_inclusion(q, cap, n)
    assert overflow == pytest.approx(weights.sum(), rel=1e-9)
    assert overflow == pytest.approx(binom.sf(cap - 1, n - 1, q), rel=1e-9)
    assert inclusion == pytest.approx((weights * q * cap / (r + 1)).sum() / weights.sum(), rel=1e-9)


def test_inclusion_must_be_averaged_before_amplification_not_after():
    """h is convex in q, so averaging profiles over the batch size is larger than the profile at the average."""
    q = np.linspace(0.05, 0.6, 23)
    h = np.array([float(profiles.without_replacement(x, 2.0, 0.5)) for x in q])
    assert np.all(np.diff(h, 2) > 0)


# --- brute force: every subset of a tiny table, explicit mixtures of normals -----------------------------------


def subset_law(scheme, n, q, cap):
    """Probability of every batch."""
    rows = range(n)
    subsets = [frozenset(c) for k in range(n + 1) for c in itertools.combinations(rows, k)]
    drawn = {s: q ** len(s) * (1 - q) ** (n - len(s)) for s in subsets}
    if scheme == "poisson":
        return drawn
    if scheme == "fixed":
        return {s: 1 / math.comb(n, cap) for s in subsets if len(s) == cap}
    law = dict.fromkeys(subsets, 0.0)
    for s, weight in drawn.items():
        kept = [s] if len(s) <= cap else [frozenset(c) for c in itertools.combinations(s, cap)]
        for k in kept:
            law[k] += weight / len(kept)
    return law


def cell_masses(law, table, sigma, edges):
    """Exact mass of Σ_{batch} g + N(0, σ²I) in every cell of the product grid, d = 1 or 2."""
    from scipy.special import ndtr

    d = table.shape[1]
    total = np.zeros((edges.size - 1,) * d)
    for batch, weight in law.items():
        if weight:
            centre = table[sorted(batch)].sum(axis=0)
            along = [np.diff(ndtr((edges - c) / sigma)) for c in centre]
            total += weight * (along[0] if d == 1 else np.outer(along[0], along[1]))
    return total


def measured_profile(law, table, other, sigma, alphas):
    """Hockey-stick divergences after rounding to a fine grid: never above the true ones, and close to them."""
    d, n = table.shape[1], table.shape[0]
    reach, number = n + 8 * sigma, (6001 if d == 1 else 201)
    edges = np.concatenate(([-np.inf], np.linspace(-reach, reach, number), [np.inf]))
    p, q = cell_masses(law, table, sigma, edges), cell_masses(law, other, sigma, edges)
    return np.array([np.maximum(p - a * q, 0).sum() for a in alphas])


def neighbours(n, d, rng):
    """Adversarial and random pairs of tables differing in row 0, all rows of norm at most 1."""
    axis = np.zeros(d)
    axis[0] = 1.0
    for first, second, rest in itertools.product((1, -1, 0), (1, -1, 0), (1, -1, 0)):
        if first != second:
            table = np.tile(rest * axis, (n, 1))
            other = table.copy()
            table[0], other[0] = first * axis, second * axis
            yield table, other
    for _ in range(4):
        table = rng.normal(size=(n, d))
        table /= np.maximum(np.linalg.norm(table, axis=1, keepdims=True), rng.uniform(0.5, 1))
        table /= np.maximum(np.linalg.norm(table, axis=1, keepdims=True), 1)
        other = table.copy()
        other[0] = -table[0] if rng.random() < 0.5 else np.roll(table[0], 1) * np.where(np.arange(d) % 2, 1, -1)
        yield table, other


CASES = [(n, cap, q) for n in (2, 3, 4) for cap in range(1, n + 1) for q in (0.15, 0.6)]


def claimed(scheme, n, cap, q, sigma, eps):
    if scheme == "poisson":
        return profiles.poisson(q, 1 / sigma, eps)
    if scheme == "fixed":
        return profiles.without_replacement(cap / n, 2 / sigma, eps)
    return profiles.truncated_poisson(q, cap, n, 1 / sigma, eps)


@pytest.mark.parametrize("d", [1, 2])
@pytest.mark.parametrize("scheme", ["poisson", "fixed", "truncated"])
def test_no_pair_of_tiny_tables_exceeds_the_profile(scheme, d):
    rng = np.random.default_rng(d)
    cases = CASES if d == 1 else CASES[::5]
    for n, cap, q in cases:
        law, sigma = subset_law(scheme, n, q, cap), 0.7 if cap % 2 else 1.6
        bound = claimed(scheme, n, cap, q, sigma, np.log(ALPHAS))
        for table, other in neighbours(n, d, rng):
            assert np.all(measured_profile(law, table, other, sigma, ALPHAS) <= bound + 1e-12)
            assert np.all(measured_profile(law, other, table, sigma, ALPHAS) <= bound + 1e-12)


@pytest.mark.parametrize("scheme", ["poisson", "fixed"])
def test_some_pair_attains_the_profile(scheme):
    n, cap, q, sigma = 4, 2, 0.3, 1.1
    rest = 0.0 if scheme == "poisson" else -1.0
    table, other = np.full((n, 1), rest), np.full((n, 1), rest)
    table[0], other[0] = 1.0, -1.0
    alphas = ALPHAS[ALPHAS >= 1]
    measured = measured_profile(subset_law(scheme, n, q, cap), table, other, sigma, alphas)
    np.testing.assert_allclose(measured, claimed(scheme, n, cap, q, sigma, np.log(alphas)), rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize(
    ("scheme", "mutant"),
    [
        ("fixed", lambda q, m, e: profiles.without_replacement(q, m, e)),  # forgotten doubling
        ("fixed", lambda q, m, e: profiles.poisson(q, m, e)),  # Poisson's figure for fixed-size batches
        ("poisson", lambda q, m, e: profiles.poisson(q, m / 2, e)),  # half the distance
        ("poisson", lambda q, m, e: profiles.poisson_removed(q, m, e)),  # add-remove figure for replace-one
        ("truncated", lambda q, m, e: 0.9 * profiles.poisson(q, m, e)),  # truncation as a free discount
    ],
)
def test_brute_force_has_power(scheme, mutant):
    """Each wrong profile is exceeded by some pair, so the test above would notice it."""
    n, cap, sigma = 4, 2, 1.0
    q = cap / n
    law, worst = subset_law(scheme, n, q, cap), -1.0
    for table, other in neighbours(n, 1, np.random.default_rng(0)):
        measured = measured_profile(law, table, other, sigma, ALPHAS)
        worst = max(worst, float(np.max(measured - mutant(q, 1 / sigma, np.log(ALPHAS)))))
    assert worst > 1e-3


# --- how small a shift may be ------------------------------------------------------------------------------------


def relative_error(mp, mu, sizes):
    """The largest, over ε of so many standard deviations of the loss."""
    ours = profiles.gaussian(mu, np.array([mu * size for size in sizes]))
    exact = [exact_gaussian(mp, mu, mu * size) for size in sizes]
    return max(abs(float(mp.mpf(float(mine)) / true - 1)) for mine, true in zip(ours, exact, strict=True))


def test_the_smallest_shift_is_where_the_margin_of_the_accountants_still_covers_the_lost_digits():
    """A tenth of it is not covered: there the profile is off by more than the 10⁻⁹ that are added."""
    mp = pytest.importorskip("mpmath")
    sizes = np.linspace(0.0, 7.0, 300)
    with mp.workdps(60):
        assert relative_error(mp, profiles.SMALLEST_SHIFT, sizes) < 1e-9
        assert relative_error(mp, profiles.SMALLEST_SHIFT / 10, sizes) > 1e-9
