"""What a search costs whose alternatives differ, or sample: by the dearest of them, with their slack."""

from __future__ import annotations

import math
from dataclasses import replace
from unittest import mock

import numpy as np
import pytest
from numpy.polynomial.polynomial import polyval
from scipy.integrate import trapezoid
from scipy.special import ndtr

from dpadmm.errors import PromiseBroken
from dpadmm.privacy import profiles
from dpadmm.privacy.budget import Budget, Relation
from dpadmm.privacy.calibration import verify_plan
from dpadmm.privacy.events import Event, GaussianSums
from dpadmm.privacy.ledger.charge import charge
from dpadmm.privacy.sampling import Everything, Poisson
from dpadmm.privacy.selection import Repetitions, verify_any_plan
from dpadmm.privacy.selection.bounds import (
    GaussianBase,
    gaussian_profile,
    library_epsilon,
    log_slope_ratio,
    renyi_certificate,
)
from dpadmm.privacy.selection.search_event import Selection
from dpadmm.privacy.selection.search_plan import _total

from .test_selection import LAWS, exact_profile, search

REPLACE, ADD = Relation.REPLACE_ONE, Relation.ADD_REMOVE
LAW = Repetitions("geometric", 5.0)
SLACK = 1e-3


def full(shift: float) -> Event:
    """A release of all rows that moves by `shift` deviations, under replace-one."""
    return Event((GaussianSums(Everything(), 2.0 / shift, 1),))


def sampled(multiplier: float, count: int = 1) -> Event:
    return Event((GaussianSums(Poisson(0.2), multiplier, count),))


def shift_of(*alternatives: Event, law=LAW, relation=REPLACE, slack=SLACK) -> float:
    found = charge(Selection(alternatives, law), relation, slack)
    assert found.slack == slack
    return found.shift


class TestTheDearestAlternativeCounts:
    """A record may be in the dearest of the runs each time, so cheaper ones beside it change nothing."""

    @pytest.mark.parametrize("law", LAWS, ids=lambda law: law.text)
    def test_of_a_cheap_and_a_dear_one(self, law):
        cheap, dear = full(0.03), full(0.6)
        together = shift_of(cheap, dear, law=law)
        assert together == shift_of(dear, cheap, law=law) == shift_of(dear, law=law)
        assert shift_of(cheap, law=law) < 0.3 * together
        for epsilon in (0.1, 0.5, 1.5, 3.0):
            bound = (1 - SLACK) * float(profiles.gaussian(together, epsilon)) + SLACK
            for dearer_wins in (True, False):
                assert exact_profile(law, 0.6, epsilon, dearer_wins) <= bound + 1e-10

    def test_it_is_not_charged_for_all_runs_together(self):
        """Five runs of the dear one in the mean, and no more than ten of them."""
        assert 0.6 < shift_of(full(0.03), full(0.6)) < math.sqrt(10) * 0.6

    @pytest.mark.parametrize("quiet", [full(0.01), sampled(40.0)], ids=["full data", "mini-batches"])
    def test_of_mini_batches_with_their_slack(self, quiet):
        """An alternative that needs no slack must not hide that another one does."""
        dear = sampled(1.0, 4)
        together = shift_of(dear, quiet)
        assert together == shift_of(quiet, dear) == shift_of(dear)

    @pytest.mark.parametrize("law", LAWS, ids=lambda law: law.text)
    def test_by_renyi_divergences_too(self, law):
        """As dp_accounting has it for the dearest run alone, and not more."""
        cheap, dear, delta = full(0.03), full(0.3), 1e-6
        alone = library_epsilon(0.3, law, delta)
        for events in ([dear], [cheap, dear], [dear, cheap]):
            assert renyi_certificate(events, law, delta, REPLACE) == pytest.approx(alone, rel=1e-3)


def exact_sampled_profile(law: Repetitions, rate: float, shift: float, epsilon: float, dearer_wins: bool, swap: bool):
    """H of the best of K releases of N(0, 1), moved by `shift` with chance `rate`, ordered by the release."""
    chances = law.chances()
    slope = chances[1:] * np.arange(1, len(chances))
    z = np.linspace(-12, 12 + shift, 4001)

    def selected(rate: float):
        density = ((1 - rate) * np.exp(-(z**2) / 2) + rate * np.exp(-((z - shift) ** 2) / 2)) / math.sqrt(2 * math.pi)
        below = (1 - rate) * ndtr(z) + rate * ndtr(z - shift)
        return polyval(below if dearer_wins else 1 - below, slope) * density

    p, q = (selected(0.0), selected(rate)) if swap else (selected(rate), selected(0.0))
    return float(trapezoid(np.maximum(p - math.exp(epsilon) * q, 0.0), z))


class TestMiniBatches:
    """One Poisson sample and one release a run, under add-remove: a search that can be integrated."""

    @pytest.mark.parametrize("law", [LAW, Repetitions("poisson", 8.0)], ids=lambda law: law.text)
    @pytest.mark.parametrize("slack", [1e-3, 1e-6])
    def test_the_gaussian_lies_above_the_exact_divergence_and_not_far_above(self, law, slack):
        multiplier = 1.25
        shift, grid = shift_of(sampled(multiplier), law=law, relation=ADD, slack=slack), np.linspace(0.0, 2.5, 9)
        exact = np.max(
            [
                [exact_sampled_profile(law, 0.2, 1 / multiplier, float(e), *case) for e in grid]
                for case in ((True, False), (True, True), (False, False), (False, True))
            ],
            axis=0,
        )
        assert np.all(exact <= (1 - slack) * profiles.gaussian(shift, grid) + slack + 1e-10)
        # The bounds of docs/proofs/tuning.md are not tight, but a third of the shift would be too small.
        assert np.any(exact > (1 - slack) * profiles.gaussian(shift / 3, grid) + slack)

    def test_less_slack_costs_more(self):
        shifts = [shift_of(sampled(1.25), relation=ADD, slack=slack) for slack in (1e-3, 1e-4, 1e-6)]
        assert shifts == sorted(shifts)
        assert shifts[0] < 0.9 * shifts[-1]


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.text)
@pytest.mark.parametrize("slack", [1e-6, 1e-4])
class TestSlack:
    """A run that gives its record away with chance s: a search does so with chance 1 − f(1 − s), at every ε."""

    def test_it_counts_once_for_each_run_to_be_expected(self, law, slack):
        leaked = 1 - float(polyval(1 - slack, law.chances()))
        (found,) = gaussian_profile(0.05, slack, law, np.array([30.0]))
        assert leaked <= found <= 1.001 * law.mean * slack

    def test_it_counts_beside_the_gaussian_at_small_epsilons_too(self, law, slack):
        """Where the composition of all runs is the smaller bound: Σ P[K = k]·G(√k·µ) + E[K]·s + 2·10⁻¹⁵."""
        shift, epsilon = 0.05, 0.02
        assert epsilon < log_slope_ratio(GaussianBase(shift, slack), law)
        (found,) = gaussian_profile(shift, slack, law, np.array([epsilon]))
        assert found == pytest.approx(all_runs(law, shift, epsilon) + law.mean * slack + 2e-15, rel=1e-7, abs=0)


def gaussian_delta(shift: float, epsilon: float) -> float:
    """Φ(µ/2 − ε/µ) − e^ε Φ(−µ/2 − ε/µ)."""
    return float(ndtr(shift / 2 - epsilon / shift) - math.exp(epsilon) * ndtr(-shift / 2 - epsilon / shift))


def all_runs(law: Repetitions, shift: float, epsilon: float) -> float:
    """Σ P[K = k]·G(√k·µ): what all runs cost together."""
    return math.fsum(
        chance * gaussian_delta(math.sqrt(k) * shift, epsilon) for k, chance in enumerate(law.chances()) if k and chance
    )


def test_a_search_is_charged_for_the_slack_of_its_runs():
    """Half of the slack is theirs: both bounds of docs/proofs/tuning.md hold E[K] times what one run may slip.

    Between two points of the code's own grid a bound may pass the chord, which the profile itself, convex, does not:
    hence a tolerance of a thousandth. Without the slack of the runs up to seven hundredths would be missing.
    """
    law, slack, grid = Repetitions("poisson", 8.0), 5e-3, np.linspace(0.0, 8.0, 81)
    run = charge(sampled(4.0, 10), REPLACE, slack / (2 * law.mean))
    shift, slips = shift_of(sampled(4.0, 10), law=law, slack=slack), law.mean * run.slack
    ratio = log_slope_ratio(GaussianBase(run.shift, run.slack), law)
    bounds = []
    for epsilon in grid:
        by_ratio = law.mean * gaussian_delta(run.shift, epsilon - ratio) + slips if epsilon > ratio else 1.0
        bounds.append(min(by_ratio, all_runs(law, run.shift, float(epsilon)) + slips, 1.0))
    charged, less = ((1 - slack) * profiles.gaussian(factor * shift, grid) + slack for factor in (1.0, 0.99))
    assert slips == pytest.approx(slack / 2)
    assert np.all(bounds <= charged * (1 + 1e-3))
    assert np.any(bounds > less)


def test_more_runs_than_are_listed_are_counted():
    """Were no number of runs listed at all, the chance left for those that are not would remain: 2·10⁻¹⁵."""
    with mock.patch.object(Repetitions, "chances", return_value=np.array([1.0])):
        (found,) = gaussian_profile(0.5, 0.0, LAW, np.array([0.1]))
    assert found == pytest.approx(2e-15, rel=1e-6, abs=0)
    for law in LAWS:
        assert 1.0 - math.fsum(law.chances()) < 2e-15


def test_runs_of_another_relation_are_refused():
    """Quieter for it, so that every sum adds up; but the promise of one is not the promise of the other."""
    ours, theirs = search(Budget(1.0, 1e-6, ADD)), search(Budget(1.0, 1e-6, REPLACE))
    assert verify_any_plan(ours) == pytest.approx(ours.epsilon_achieved)
    for forged in (replace(ours, score=theirs.score), replace(ours, bases=theirs.bases)):
        for run in forged.runs:
            verify_plan(run)
        with pytest.raises(PromiseBroken):
            verify_any_plan(forged)


def test_a_total_of_another_relation_than_its_runs_is_refused():
    """All runs agree with each other, and the accountant grants the total: only the two relations differ."""
    plan = search(Budget(1.0, 1e-6, REPLACE))
    forged = replace(plan, budget=replace(plan.budget, relation=ADD))
    assert len({run.budget.relation for run in forged.runs}) == 1
    assert _total(forged.runs, forged.repetitions, forged.budget, forged.accountant) <= forged.epsilon_achieved
    with pytest.raises(PromiseBroken, match="promise different things"):
        verify_any_plan(forged)
