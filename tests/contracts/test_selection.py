"""What the best of a random number of runs costs: published figures, dp_accounting, brute force, and mutants."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from numpy.polynomial.polynomial import polyval
from scipy.integrate import trapezoid
from scipy.special import ndtr, ndtri

from dpadmm.errors import InvalidParameter, PromiseBroken, SchemeMismatch
from dpadmm.privacy import profiles
from dpadmm.privacy.accountants.gaussian import gaussian_epsilon, gaussian_shift
from dpadmm.privacy.budget import Budget, Relation
from dpadmm.privacy.calibration import calibrate, verify_plan
from dpadmm.privacy.ledger.charge import charge, total_epsilon
from dpadmm.privacy.plan import Plan, Request
from dpadmm.privacy.questions import ClippedGradient
from dpadmm.privacy.sampling import Everything, Poisson, TruncatedPoisson, WithoutReplacement
from dpadmm.privacy.selection import (
    Repetitions,
    SearchPlan,
    calibrate_search,
    plan_from_dict,
    require_any_agreement,
    verify_any_plan,
)
from dpadmm.privacy.selection.bounds import (
    FINE_ORDERS,
    GaussianBase,
    gaussian_profile,
    library_epsilon,
    log_slope_ratio,
    profile_epsilon,
    renyi_epsilon,
    repeated_curve,
)
from dpadmm.randomness import make_selection_stream

LAWS = [
    Repetitions("geometric", 10.0),
    Repetitions("logarithmic", 10.0),
    Repetitions("poisson", 10.0),
    Repetitions("negative-binomial", 6.0, 0.5),
    Repetitions("geometric", 2.0),
]
PUBLISHED = [
    (0.5, "geometric", 1.22),
    (0.5, "logarithmic", 1.00),
    (0.5, "poisson", 1.30),
    (1.0, "geometric", 2.31),
    (1.0, "logarithmic", 1.92),
    (1.0, "poisson", 2.53),
]


def bases(sampler=None, steps=20, rows=8000, accountant=None):
    def made(single: Budget) -> tuple[Plan, ...]:
        return (
            calibrate(
                single, [Request("gradient", steps, ClippedGradient(1.0))], sampler or Everything(), rows, accountant
            ),
        )

    return made


def search(budget=None, law=LAWS[0], made=None, accountant=None) -> SearchPlan:
    return calibrate_search(budget or Budget(1.0, 1e-6), law, made or bases(), 10_000, 2000, accountant)


class TestFigures:
    @pytest.mark.parametrize(("base", "law", "total"), PUBLISHED)
    def test_renyi_bound_is_the_published_one_and_that_of_dp_accounting(self, base, law, total):
        shift, law = gaussian_shift(base, 1e-5), Repetitions(law, 10.0)
        ours = renyi_epsilon(FINE_ORDERS, FINE_ORDERS * shift**2 / 2, law, 1e-5)
        assert ours == pytest.approx(total, abs=0.006)
        assert ours == pytest.approx(library_epsilon(shift, law, 1e-5), rel=1e-4)

    @pytest.mark.parametrize(("base", "law", "total"), PUBLISHED)
    def test_profile_bound_is_tighter(self, base, law, total):
        shift = gaussian_shift(base, 1e-5)
        found = profile_epsilon(GaussianBase(shift), Repetitions(law, 10.0), 1e-5)
        assert base < found < 0.93 * total

    @pytest.mark.parametrize("law", LAWS, ids=lambda law: law.text)
    def test_figures_are_above_one_run(self, law):
        curve = FINE_ORDERS * 0.1**2 / 2
        assert np.all(repeated_curve(FINE_ORDERS, curve, law) > curve)


def exact_profile(law: Repetitions, shift: float, epsilon: float, dearer_wins: bool) -> float:
    """H of the best of K draws from N(shift, 1) against N(0, 1), ordered by the draw itself or by its negative.

    The selection has density f'(F)·φ, with f' summed from the chances of K; H is integrated on a grid.
    """
    chances = law.chances()
    slope = chances[1:] * np.arange(1, len(chances))
    z = np.linspace(-12, 12 + shift, 6001)
    with_record, without = (ndtr(z - shift), ndtr(z)) if dearer_wins else (ndtr(shift - z), ndtr(-z))
    p = polyval(with_record, slope) * np.exp(-((z - shift) ** 2) / 2)
    q = polyval(without, slope) * np.exp(-(z**2) / 2)
    return float(trapezoid(np.maximum(p - math.exp(epsilon) * q, 0.0), z)) / math.sqrt(2 * math.pi)


class TestTruth:
    """A base mechanism whose selection can be integrated: no bound may fall below it."""

    @pytest.mark.parametrize("dearer_wins", [True, False])
    @pytest.mark.parametrize("law", LAWS, ids=lambda law: law.text)
    def test_no_bound_is_below_the_exact_divergence(self, law, dearer_wins):
        shift = 0.6
        ratio = log_slope_ratio(GaussianBase(shift), law)
        assert ratio > 0
        grid = np.array([0.05, 0.5, 1.5])
        upper = gaussian_profile(shift, 0.0, law, grid)
        for epsilon, bound in zip(grid, upper, strict=True):
            exact = exact_profile(law, shift, float(epsilon), dearer_wins)
            assert exact <= bound + 1e-9
            if exact > 1e-9:
                curve = FINE_ORDERS * shift**2 / 2
                assert renyi_epsilon(FINE_ORDERS, curve, law, exact * 0.999) >= epsilon
                assert profile_epsilon(GaussianBase(shift), law, exact * 0.999) >= epsilon

    @pytest.mark.parametrize("law", LAWS, ids=lambda law: law.text)
    def test_the_exact_divergence_exceeds_one_run(self, law):
        """Were the search charged as a single run, it would be charged too little."""
        one_run = float(profiles.gaussian(0.6, 1.5))
        assert exact_profile(law, 0.6, 1.5, True) > 1.5 * one_run

    def test_slopes_have_the_bound_that_is_used(self):
        """Claim 2 by brute force over chances that a Gaussian of shift µ allows."""
        shift = 0.8
        for law in LAWS:
            chances = law.chances()
            slope, q = chances[1:] * np.arange(1, len(chances)), np.linspace(0.001, 0.999, 60)
            found = max(
                float(np.log(polyval(q, slope) / polyval(other, slope)).max())
                for other in (ndtr(ndtri(q) - shift), ndtr(ndtri(q) + shift))
            )
            assert found <= log_slope_ratio(GaussianBase(shift), law) + 1e-9


class Catastrophe:
    """A run that gives its record away with this chance, with the best score of all, and is silent otherwise."""

    def __init__(self, chance: float) -> None:
        self.chance = chance

    def epsilon(self, delta: float) -> float:
        return 0.0 if delta >= self.chance else math.inf

    def delta(self, epsilons: np.ndarray) -> np.ndarray:
        return np.full(epsilons.shape, self.chance)


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.text)
def test_a_rare_catastrophe_happens_as_often_as_there_are_trials(law):
    """The search gives the record away with chance 1 − f(1 − p) ≈ E[K]·p: no smaller δ may be certified."""
    chance = 1e-4
    leaked = 1 - polyval(1 - chance, law.chances())
    assert leaked == pytest.approx(law.mean * chance, rel=0.05)
    assert profile_epsilon(Catastrophe(chance), law, 0.999 * leaked) == math.inf
    assert profile_epsilon(Catastrophe(chance), law, 1.001 * law.mean * chance) < 0.1


class TestNumberOfTrials:
    @pytest.mark.parametrize("law", LAWS, ids=lambda law: law.text)
    def test_chances_sum_to_one_and_have_the_mean(self, law):
        chances = law.chances()
        assert chances.sum() == pytest.approx(1.0, abs=1e-12)
        assert chances @ np.arange(len(chances)) == pytest.approx(law.mean, rel=1e-9)
        assert chances[0] == pytest.approx(law.nothing)

    @pytest.mark.parametrize("law", LAWS, ids=lambda law: law.text)
    def test_draws_follow_the_law(self, law):
        stream, size = make_selection_stream(3), 5000
        drawn = np.bincount([law.draw(stream) for _ in range(size)], minlength=8)[:8] / size
        # Five standard errors, each way.
        assert np.all(np.abs(drawn - law.chances()[:8]) <= 5 * np.sqrt(law.chances()[:8] / size) + 1e-4)

    @pytest.mark.parametrize(
        ("law", "mean", "shape"),
        [
            ("fixed", 10, None),
            ("geometric", 1.0, None),
            ("geometric", math.inf, None),
            ("geometric", True, None),
            ("geometric", 5000, None),
            ("geometric", 10, 1.0),
            ("negative-binomial", 10, None),
            ("negative-binomial", 10, 0.0),
            ("poisson", "ten", None),
        ],
    )
    def test_other_laws_are_refused(self, law, mean, shape):
        with pytest.raises(InvalidParameter):
            Repetitions(law, mean, shape)


class TestPlan:
    @pytest.mark.parametrize(("accountant", "relation"), [("profile", "replace-one"), ("rdp", "add-remove")])
    @pytest.mark.parametrize("law", LAWS, ids=lambda law: law.text)
    def test_the_total_uses_the_budget_and_keeps_to_it(self, law, relation, accountant):
        plan = search(Budget(1.0, 1e-6, Relation.parse(relation)), law, accountant=accountant)
        assert 0.99 <= plan.epsilon_achieved <= 1.0
        assert plan.base_budget.epsilon < 0.95
        assert verify_any_plan(plan) == pytest.approx(plan.epsilon_achieved)
        assert plan_from_dict(json.loads(json.dumps(plan.to_dict()))) == plan

    def test_the_tighter_accountant_leaves_a_trial_more(self):
        assert search().base_budget.epsilon > 1.08 * search(accountant="rdp").base_budget.epsilon

    def test_the_score_is_free(self):
        """The two parts are disjoint: the score has the whole base budget too, and raises the total by nothing."""
        plan = search()
        assert plan.score.budget == plan.bases[0].budget
        without = profile_epsilon(GaussianBase(_shift(plan.bases[0].event)), plan.repetitions, 1e-6)
        assert without == pytest.approx(plan.epsilon_achieved, rel=2e-3)

    def test_old_plans_are_still_plans(self):
        plan = bases()(Budget(1.0, 1e-6))[0]
        assert plan_from_dict(plan.to_dict()) == plan
        assert verify_any_plan(plan) == plan.epsilon_achieved

    @pytest.mark.parametrize(
        "forge",
        [
            lambda plan: replace(plan, epsilon_achieved=0.5),
            lambda plan: replace(plan, budget=Budget(0.5, 1e-6)),
            lambda plan: replace(plan, repetitions=Repetitions("geometric", 20.0)),
            lambda plan: replace(plan, score=_quieter(plan.score)),
            lambda plan: replace(plan, bases=tuple(map(_quieter, plan.bases))),
            lambda plan: replace(plan, bases=()),
            lambda plan: replace(
                plan, score=replace(plan.score, queries=(replace(plan.score.queries[0], clip_norm=0.25),))
            ),
        ],
        ids=["total", "budget", "more trials", "score un-noised", "fit un-noised", "no fit", "score clip"],
    )
    def test_a_plan_that_understates_itself_is_refused(self, forge):
        forged = forge(search())
        for verify in (verify_any_plan, verify_plan):
            with pytest.raises(PromiseBroken):
                verify(forged)

    def test_a_sum_may_exceed_its_budget_by_rounding_and_by_no_more(self):
        plan = search()
        require_any_agreement(replace(plan, epsilon_achieved=plan.budget.epsilon * (1 + 1e-13)))
        with pytest.raises(PromiseBroken):
            require_any_agreement(replace(plan, epsilon_achieved=plan.budget.epsilon * (1 + 1e-11)))

    def test_one_name_verifies_every_plan(self):
        plan = search()
        assert verify_plan(plan) == verify_any_plan(plan) == pytest.approx(plan.epsilon_achieved)

    def test_a_sum_in_place_of_the_bound_would_be_too_small_or_too_large(self):
        """Mutants of the total: one run, and the mean number of runs composed."""
        plan = search()
        shift = max(_shift(run.event) for run in plan.runs)
        assert gaussian_epsilon(shift, 1e-6) < 0.7 * plan.epsilon_achieved
        assert gaussian_epsilon(math.sqrt(10) * shift, 1e-6) > 1.3 * plan.epsilon_achieved

    @pytest.mark.parametrize("sampler", [TruncatedPoisson(0.05, 500, 8000), Poisson(0.05)])
    def test_rdp_refuses_solvers_without_a_renyi_bound(self, sampler):
        with pytest.raises(SchemeMismatch):
            search(made=bases(sampler), accountant="rdp")

    @pytest.mark.slow
    def test_mini_batches(self):
        tight = search(made=bases(TruncatedPoisson(0.05, 500, 8000)))
        assert 0.99 <= tight.epsilon_achieved <= 1.0
        renyi = search(made=bases(WithoutReplacement(400, 8000), accountant="rdp"), accountant="rdp")
        assert 0.99 <= renyi.epsilon_achieved <= 1.0
        assert verify_any_plan(renyi) <= 1.0

    def test_unknown_accountants_are_refused(self):
        with pytest.raises(InvalidParameter, match="'profile' or 'rdp'"):
            search(accountant="pld")

    def test_a_delta_that_promises_nothing_is_refused(self):
        with pytest.raises(InvalidParameter, match="delta < 1/n"):
            search(Budget(1.0, 1e-3))


class TestCharge:
    """docs/proofs/tuning.md, Claim 6: the Gaussian that a ledger adds up."""

    @pytest.mark.parametrize("law", LAWS, ids=lambda law: law.text)
    def test_the_gaussian_lies_above_the_exact_divergence(self, law):
        plan, slack = search(Budget(3.0, 1e-6), law), 1e-8
        cost = charge(plan.event, Relation.REPLACE_ONE, slack)
        shift = max(_shift(run.event) for run in plan.runs)
        assert cost.slack == slack
        for epsilon in (0.02, 1.0, 3.0):
            bound = (1 - slack) * float(profiles.gaussian(cost.shift, epsilon)) + slack
            for dearer_wins in (True, False):
                assert exact_profile(law, shift, epsilon, dearer_wins) <= bound + 1e-10

    def test_it_costs_more_than_its_promise_alone_and_less_than_all_runs(self):
        plan = search()
        cost = charge(plan.event, Relation.REPLACE_ONE, 1e-8)
        assert cost.shift > gaussian_shift(plan.epsilon_achieved, 1e-6)
        assert total_epsilon([cost], 1e-5) < 2.0

    @pytest.mark.slow
    def test_mini_batch_runs(self):
        plan = search(made=bases(TruncatedPoisson(0.05, 500, 8000)))
        assert charge(plan.event, Relation.REPLACE_ONE, 1e-8).shift > gaussian_shift(plan.epsilon_achieved, 1e-6)


def _shift(event) -> float:
    return math.sqrt(sum(p.count * (2.0 / p.noise_multiplier) ** 2 for p in event.parts))


def _quieter(plan: Plan) -> Plan:
    queries = tuple(replace(query, noise_multiplier=query.noise_multiplier / 2) for query in plan.queries)
    return replace(plan, queries=queries)
