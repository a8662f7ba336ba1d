"""Every accountant, sampler and relation: refuse in words, or certify an upper bound that behaves like one."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpadmm.errors import CannotCertify, InvalidParameter, SchemeMismatch
from dpadmm.privacy import profiles
from dpadmm.privacy.accountants import ACCOUNTANTS, default_accountant, lattice, make_accountant, pld
from dpadmm.privacy.accountants.gaussian import gaussian_epsilon, gaussian_shift
from dpadmm.privacy.budget import Relation
from dpadmm.privacy.events import Event, GaussianSums
from dpadmm.privacy.ledger.charge import charge, total_epsilon
from dpadmm.privacy.proofs import CITATIONS
from dpadmm.privacy.sampling import SAMPLERS, Everything, Poisson, TruncatedPoisson, WithoutReplacement, make_sampler
from dpadmm.privacy.selection.bounds import GaussianBase

REPLACE, ADD = Relation.REPLACE_ONE, Relation.ADD_REMOVE
N, B, DELTA = 2000, 100, 1e-5

# (accountant, sampler, relation) with a proof; everything else must be refused.
KNOWN = {
    ("gaussian", "full", REPLACE),
    ("gaussian", "full", ADD),
    ("iteration", "full", REPLACE),
    ("iteration", "full", ADD),
    ("iteration-paper", "full", REPLACE),
    ("iteration-paper", "full", ADD),
    ("rdp", "full", REPLACE),
    ("rdp", "full", ADD),
    ("rdp", "poisson", ADD),
    ("rdp", "fixed", REPLACE),
    ("pld", "full", REPLACE),
    ("pld", "full", ADD),
    ("pld", "poisson", REPLACE),
    ("pld", "poisson", ADD),
    ("pld", "fixed", REPLACE),
    ("pld", "truncated-poisson", REPLACE),
}
ALL = [(a, s, r) for a in ACCOUNTANTS for s in SAMPLERS for r in Relation]
CERTIFIED = sorted(KNOWN, key=str)


def event(sampler, z, count=50):
    made = make_sampler(sampler, N, B) if isinstance(sampler, str) else sampler
    return Event((GaussianSums(made, z, count),))


def library_relation(relation):
    import dp_accounting

    names = dp_accounting.NeighboringRelation
    return names.REPLACE_ONE if relation is REPLACE else names.ADD_OR_REMOVE_ONE


def attained_epsilon(sampler, relation, z, count, delta):
    """ε of one explicit pair of tables, estimated from below by dp_accounting."""
    from dp_accounting.pld import privacy_loss_distribution as library

    made = make_sampler(sampler, N, B) if isinstance(sampler, str) else sampler
    # Fixed-size batches attain: all other rows at −C, the record at +C or −C, hence N(0) against a shift of 2C.
    fixed = made.name == "fixed"
    found = library.from_gaussian_mechanism(
        z / 2 if fixed else z,
        sampling_prob=getattr(made, "rate", 1.0),
        pessimistic_estimate=False,
        value_discretization_interval=1e-3,
        neighboring_relation=library_relation(ADD if fixed else relation),
    )
    return found.self_compose(count).get_epsilon_for_delta(delta)


# --- the contract ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("accountant", "sampler", "relation"), ALL)
def test_refuses_or_certifies(accountant, sampler, relation):
    judge, asked = make_accountant(accountant), event(sampler, 3.0)
    if (accountant, sampler, relation) in KNOWN:
        judge.check(asked, relation)
        assert 0 < judge.epsilon(asked, DELTA, relation) < math.inf
        assert set(judge.claims(asked, relation)) <= set(CITATIONS)
        return
    for call in (
        lambda: judge.check(asked, relation),
        lambda: judge.epsilon(asked, DELTA, relation),
        lambda: judge.delta(asked, 1.0, relation),
    ):
        with pytest.raises(SchemeMismatch, match=r"Got .*\. Expected .*\. Use "):
            call()


@pytest.mark.parametrize(("accountant", "sampler", "relation"), CERTIFIED)
def test_more_noise_and_fewer_releases_cost_less(accountant, sampler, relation):
    judge = make_accountant(accountant)
    by_noise = [judge.epsilon(event(sampler, z), DELTA, relation) for z in (0.8, 1.5, 3.0, 10.0, 40.0)]
    by_count = [judge.epsilon(event(sampler, 2.0, count), DELTA, relation) for count in (1, 5, 50, 500)]
    by_delta = [judge.epsilon(event(sampler, 2.0), delta, relation) for delta in (1e-3, 1e-5, 1e-8)]
    assert by_noise == sorted(by_noise, reverse=True)
    assert by_noise[0] > by_noise[-1]
    assert by_count == sorted(by_count)
    assert by_delta == sorted(by_delta)


@pytest.mark.parametrize(("accountant", "sampler", "relation"), CERTIFIED)
@pytest.mark.parametrize("z", [1.0, 4.0])
def test_epsilon_and_delta_are_inverse(accountant, sampler, relation, z):
    judge, asked = make_accountant(accountant), event(sampler, z)
    epsilon = judge.epsilon(asked, DELTA, relation)
    assert judge.delta(asked, epsilon, relation) == pytest.approx(DELTA, rel=0.02 if accountant == "rdp" else 1e-4)


@pytest.mark.parametrize(("accountant", "sampler", "relation"), CERTIFIED)
@pytest.mark.parametrize(("z", "count"), [(1.2, 1), (2.0, 30), (6.0, 300)])
def test_never_below_an_attained_value(accountant, sampler, relation, z, count):
    certified = make_accountant(accountant).epsilon(event(sampler, z, count), DELTA, relation)
    assert certified >= attained_epsilon(sampler, relation, z, count, DELTA) - 1e-9


@pytest.mark.parametrize("accountant", list(ACCOUNTANTS))
def test_malformed_events_are_refused(accountant):
    judge = make_accountant(accountant)
    for bad in (Event(()), event("full", 0.0), event("full", math.nan), event("full", math.inf), event("full", 1.0, 0)):
        with pytest.raises(CannotCertify, match=r"Got .*\. Expected .*\. "):
            judge.epsilon(bad, DELTA, REPLACE)
    for delta in (0.0, 1.0, math.nan):
        with pytest.raises(InvalidParameter):
            judge.epsilon(event("full", 1.0), delta, REPLACE)
    with pytest.raises(InvalidParameter):
        judge.delta(event("full", 1.0), -1.0, REPLACE)


def test_default_accountant():
    assert default_accountant(event("full", 1.0)) == "gaussian"
    assert default_accountant(event("fixed", 1.0)) == "pld"
    with pytest.raises(InvalidParameter, match="'gaussian', 'iteration', 'iteration-paper', 'pld', 'rdp'"):
        make_accountant("moments")


def test_no_heavy_import_at_import_time():
    import subprocess
    import sys

    code = "import sys, dpadmm.privacy.calibration; print({'dp_accounting', 'scipy.stats'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


# --- T1 and T2: identities --------------------------------------------------------------------------------------


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize("z", [0.5, 1.0, 3.0, 30.0])
def test_t2_full_batch_meets_the_analytic_gaussian_at_the_right_distance(relation, z):
    from dp_accounting import gaussian_mechanism

    expected = gaussian_mechanism.get_epsilon_gaussian(z / relation.record_distance, DELTA)
    asked = event("full", z, 1)
    exact, dense, renyi = (make_accountant(a).epsilon(asked, DELTA, relation) for a in ("gaussian", "pld", "rdp"))
    assert exact == pytest.approx(expected, rel=1e-8)
    assert expected * (1 - 1e-9) <= dense <= expected * (1 + 1e-4)
    assert exact * (1 - 1e-9) <= renyi <= 1.15 * exact


def test_t2_the_doubling_trap_of_dp_accounting_is_handled():
    """z = 1: the distance doubles under replace-one whatever the accountant; dp_accounting's own two differ."""
    for name in ACCOUNTANTS:
        one, two = (make_accountant(name).epsilon(event("full", 1.0, 1), DELTA, r) for r in (ADD, REPLACE))
        halved = make_accountant(name).epsilon(event("full", 0.5, 1), DELTA, ADD)
        assert two == pytest.approx(halved, rel=1e-9)
        assert two > 2 * one
    assert make_accountant("gaussian").epsilon(event("full", 1.0, 1), DELTA, REPLACE) == pytest.approx(9.997, abs=2e-3)


@pytest.mark.parametrize("mu", np.geomspace(1e-3, 12, 7))
@pytest.mark.parametrize("delta", [1e-3, 1e-5, 1e-8, 1e-12])
def test_exact_gaussian_over_the_whole_range(mu, delta):
    from dp_accounting import gaussian_mechanism

    epsilon = gaussian_epsilon(mu, delta)
    assert epsilon == pytest.approx(gaussian_mechanism.get_epsilon_gaussian(1 / mu, delta), rel=1e-7, abs=1e-9)
    assert float(profiles.gaussian(mu, epsilon)) <= delta
    if 1e-3 < epsilon < 50:
        assert gaussian_shift(epsilon, delta) == pytest.approx(mu, rel=1e-5)


@pytest.mark.parametrize(("count", "mu", "delta"), [(10, 0.3, 1e-5), (1000, 0.05, 1e-5), (100, 0.2, 1e-12)])
def test_t1_composition_on_the_lattice_meets_the_exact_gaussian(count, mu, delta):
    """Rate one makes Poisson sampling a full batch that the accountant composes numerically."""
    for sampler in (Poisson(1.0), WithoutReplacement(50, 50), TruncatedPoisson(1.0, 50, 50)):
        certified = make_accountant("pld").epsilon(event(sampler, 2 / mu, count), delta, REPLACE)
        exact = gaussian_epsilon(mu * math.sqrt(count), delta)
        assert exact * (1 - 1e-9) <= certified <= exact * (1 + 5e-4)


@pytest.mark.parametrize("sampler", ["fixed", "poisson", "truncated-poisson"])
@pytest.mark.parametrize("epsilon", [0.0, 0.05, 0.3, 1.0])
def test_t1_one_release_costs_its_profile(sampler, epsilon):
    z = 1.7
    made = make_sampler(sampler, N, B)
    exact = {
        "fixed": lambda: profiles.without_replacement(B / N, 2 / z, epsilon),
        "poisson": lambda: profiles.poisson(B / N, 1 / z, epsilon),
        "truncated-poisson": lambda: profiles.truncated_poisson(B / N, made.cap, N, 1 / z, epsilon),
    }[sampler]()
    certified = make_accountant("pld").delta(event(made, z, 1), epsilon, REPLACE)
    assert float(exact) <= certified <= float(exact) * (1 + 2e-3) + 1e-12


@pytest.mark.parametrize(("z", "count"), [(2.0, 40), (4.0, 400)])
def test_t1_explicit_pair_below_pld_below_rdp(z, count):
    asked = event("fixed", z, count)
    tight = make_accountant("pld").epsilon(asked, DELTA, REPLACE)
    assert attained_epsilon("fixed", REPLACE, z, count, DELTA) <= tight
    assert tight <= make_accountant("rdp").epsilon(asked, DELTA, REPLACE)


# --- T13: independent recomputation -----------------------------------------------------------------------------


def library_pld(part, relation, interval):
    """The part's loss distribution made by dp_accounting's own code."""
    from dp_accounting.pld import pld_pmf
    from dp_accounting.pld import privacy_loss_distribution as library

    sampler, z = part.sampler, part.noise_multiplier
    if sampler.name in ("full", "poisson"):
        one = library.from_gaussian_mechanism(
            z,
            sampling_prob=getattr(sampler, "rate", 1.0),
            value_discretization_interval=interval,
            neighboring_relation=library_relation(relation),
        )
        return one.self_compose(part.count)
    k = 4000
    grid = interval * np.arange(-k, k + 1)
    if sampler.name == "fixed":
        h = profiles.without_replacement(sampler.rate, 2 / z, grid)
    else:
        h = profiles.truncated_poisson(sampler.rate, sampler.cap, sampler.n_rows, 1 / z, grid)
    pmf = pld_pmf.create_pmf_pessimistic_connect_dots_fixed_gap(interval, -k, k, h)
    return library.PrivacyLossDistribution(pmf).self_compose(part.count)


HETEROGENEOUS = {
    "variance reduction": (("full", 40.0, 4), ("fixed", 3.0, 200)),
    "snapshot and truncated": (("full", 30.0, 3), ("truncated-poisson", 3.0, 100)),
    "two rates": (("poisson", 3.0, 50), ("poisson", 6.0, 150)),
}


@pytest.mark.parametrize(
    ("name", "relation"),
    [*((name, REPLACE) for name in HETEROGENEOUS), ("two rates", ADD)],
)
def test_t13_heterogeneous_total_recomputed_by_another_library(name, relation):
    parts = tuple(GaussianSums(make_sampler(s, N, B), z, c) for s, z, c in HETEROGENEOUS[name])
    ours = make_accountant("pld").epsilon(Event(parts), DELTA, relation)
    composed = [library_pld(part, relation, 1e-3) for part in parts]
    theirs = composed[0].compose(composed[1]).get_epsilon_for_delta(DELTA)
    assert ours == pytest.approx(theirs, rel=3e-3)
    assert ours > max(make_accountant("pld").epsilon(Event((part,)), DELTA, relation) for part in parts)


def test_order_and_splitting_of_parts_do_not_matter():
    judge = make_accountant("pld")
    fixed, full = make_sampler("fixed", N, B), Everything()
    whole = Event((GaussianSums(fixed, 3.0, 100), GaussianSums(full, 50.0, 4)))
    pieces = [(full, 50.0, 1), (fixed, 3.0, 40), (full, 50.0, 3), (fixed, 3.0, 60)]
    split = Event(tuple(GaussianSums(*piece) for piece in pieces))
    assert judge.epsilon(whole, DELTA, REPLACE) == pytest.approx(judge.epsilon(split, DELTA, REPLACE), rel=1e-6)


def test_add_remove_compares_the_tables_in_both_directions():
    one = event("poisson", 1.5, 10)
    there, back = pld._compositions(one, ADD)
    assert there.delta(0.3) != pytest.approx(back.delta(0.3), rel=1e-3)
    assert make_accountant("pld").delta(one, 0.3, ADD) == max(there.delta(0.3), back.delta(0.3))
    assert len(pld._compositions(one, REPLACE)) == 1


# --- T3 mutants: the figures a mismatch would give are unsafe ---------------------------------------------------


def test_t3_poisson_figure_for_fixed_batches_would_be_unsafe():
    z, count = 1.2, 400
    wrong = make_accountant("pld").epsilon(event("poisson", z, count), DELTA, REPLACE)
    assert attained_epsilon("fixed", REPLACE, z, count, DELTA) > 1.5 * wrong


def test_t3_add_remove_figure_for_replace_one_would_be_unsafe():
    wrong = make_accountant("pld").epsilon(event("poisson", 2.0, 100), DELTA, ADD)
    assert attained_epsilon("poisson", REPLACE, 2.0, 100, DELTA) > 1.5 * wrong


# --- the lattice ------------------------------------------------------------------------------------------------


def test_connect_dots_agrees_with_dp_accounting():
    from dp_accounting.pld import pld_pmf

    interval, k = 0.01, 400
    grid = interval * np.arange(-k, k + 1)
    h = profiles.without_replacement(0.1, 1.0, grid)
    theirs = pld_pmf.create_pmf_pessimistic_connect_dots_fixed_gap(interval, -k, k, h).to_dense_pmf()
    ours = lattice.connect_dots(h[k:], h[k:], interval)
    np.testing.assert_allclose(np.exp(ours.log_mass), theirs._probs, atol=1e-9)
    assert ours.infinity == pytest.approx(theirs._infinity_mass, rel=1e-6)


@pytest.mark.parametrize("direction", ["removed", "added"])
def test_the_lattice_pair_dominates_at_every_order(direction):
    """Between points, beyond the last and below the first, in both directions."""
    forward, backward = profiles.poisson_removed, profiles.poisson_added
    if direction == "added":
        forward, backward = backward, forward
    interval, k = 0.05, 40
    grid = interval * np.arange(k + 1)
    pmf = lattice.connect_dots(forward(0.2, 1.0, grid), backward(0.2, 1.0, grid), interval)
    mass = np.exp(pmf.log_mass)
    for eps in np.linspace(-4.0, 4.0, 333):
        got = pmf.infinity + float(np.sum(mass * np.maximum(-np.expm1(eps - pmf.losses), 0.0)))
        assert got >= float(forward(0.2, 1.0, eps)) - 1e-13
    assert mass.sum() + pmf.infinity == pytest.approx(1.0, abs=1e-12)
    # The mass left beyond the last point is never dropped.
    assert pmf.infinity >= float(forward(0.2, 1.0, grid[-1]))


def test_connect_dots_repairs_rounding_upwards():
    interval = 0.01
    grid = interval * np.arange(200)
    h = profiles.gaussian(0.3, grid)
    noisy = np.clip(h + 1e-9 * np.random.default_rng(0).normal(size=h.size), 0, 1)
    pmf = lattice.connect_dots(noisy, noisy, interval)
    mass = np.exp(pmf.log_mass)
    for i in (0, 3, 50, 199):
        got = pmf.infinity + float(np.sum(mass * np.maximum(-np.expm1(grid[i] - pmf.losses), 0.0)))
        assert got >= noisy[i] * (1 - 1e-12)


def test_mass_guard():
    interval = 0.01
    grid = interval * np.arange(200)
    with pytest.raises(CannotCertify, match="mass exceeds one"):
        lattice.connect_dots(np.exp(-grid), np.exp(-grid), interval)


def test_infinite_epsilon_where_delta_is_below_the_tail():
    pmf = lattice.connect_dots(np.array([0.3, 0.2]), np.array([0.3, 0.2]), 0.5)
    assert lattice.Composition([(pmf, 1)]).epsilon(0.1) == math.inf


# --- T18: refused before memory is touched -----------------------------------------------------------------------


@pytest.mark.parametrize(("relation", "z"), [(REPLACE, 0.39), (ADD, 0.19)])
def test_t18_too_little_noise_for_many_steps_is_refused_at_once(relation, z, monkeypatch):
    monkeypatch.setattr(pld, "connect_dots", lambda *_: pytest.fail("allocated a lattice"))
    with pytest.raises(CannotCertify, match=r"0\.2 times.*fewer steps or a larger batch"):
        make_accountant("pld").epsilon(event(Poisson(0.01), z, 20_000), DELTA, relation)


def test_t18_lattices_beyond_the_limit_are_refused_before_allocation(monkeypatch):
    monkeypatch.setattr(pld, "connect_dots", lambda *_: pytest.fail("allocated a lattice"))
    with pytest.raises(CannotCertify, match="fewer steps"):
        make_accountant("pld").epsilon(event(Poisson(0.01), 5.0, 10**13), DELTA, REPLACE)


@pytest.mark.parametrize("count", [1, 2, 3, 590, 11_351])
def test_powers_of_a_spectrum(count):
    """Within the rounding that docs/proofs/composition.md allows a power."""
    rng = np.random.default_rng(0)
    spectrum = np.fft.rfft(rng.dirichlet(np.ones(4096) * 0.01))
    spectrum /= np.abs(spectrum).max()
    moduli, angles = np.abs(spectrum).astype(np.longdouble), np.angle(spectrum).astype(np.longdouble)
    expected = moduli**count * np.exp(1j * (angles * count))
    error = np.abs(lattice._power(spectrum, count) - expected)
    assert (error <= (8 * count + 8 * count) * np.finfo(float).eps * moduli**count + 1e-300).all()


@pytest.mark.parametrize("relation", [REPLACE, ADD])
def test_shifts_too_small_for_the_profile_count_as_the_smallest_one_everywhere(relation):
    """One constant for exact accounting, privacy-loss lattices, ledgers and searches."""
    noise = relation.record_distance / (0.2 * profiles.SMALLEST_SHIFT)
    tiny, delta = Event((GaussianSums(Everything(), noise, 1),)), 1e-9
    counted = gaussian_epsilon(profiles.SMALLEST_SHIFT, delta)
    assert make_accountant("gaussian").epsilon(tiny, delta, relation) == counted
    assert make_accountant("pld").epsilon(tiny, delta, relation) >= counted
    assert total_epsilon([charge(tiny, relation, 0.0)], delta) == counted
    assert GaussianBase(0.2 * profiles.SMALLEST_SHIFT).epsilon(delta) == counted
