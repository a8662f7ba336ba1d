"""What fits cost together: exact for full data, dominated for mini-batches, as dp_accounting composes them."""

from __future__ import annotations

import math
from dataclasses import replace

import dp_accounting
import numpy as np
import pytest
from dp_accounting.pld import PLDAccountant

from dpadmm import Budget, Ledger
from dpadmm.errors import BudgetExceeded, CannotCertify
from dpadmm.privacy import profiles
from dpadmm.privacy.accountants.gaussian import gaussian_epsilon, gaussian_shift
from dpadmm.privacy.accountants.pld import PldAccountant
from dpadmm.privacy.budget import Relation
from dpadmm.privacy.ledger.charge import (
    SLACK_SHARE,
    Charge,
    _dominates,
    charge,
    judged_epsilon,
    next_slack,
    total_epsilon,
)
from dpadmm.privacy.plan import Plan
from dpadmm.privacy.sampling import Poisson, TruncatedPoisson, WithoutReplacement

from .ledger_places import plan

LIMIT = Budget(3.0, 1e-5)
RELATIONS = {
    "replace-one": dp_accounting.NeighboringRelation.REPLACE_ONE,
    "add-remove": dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE,
}
SAMPLED = [
    ("replace-one", Poisson(0.05), 300),
    ("add-remove", Poisson(0.05), 300),
    ("replace-one", Poisson(0.1), 30),
    ("replace-one", WithoutReplacement(32, 1000), 200),
    ("replace-one", TruncatedPoisson(0.032, 72, 1000), 300),
]


@pytest.fixture
def ledger(tmp_path):
    made = Ledger.create(tmp_path / "ledger.db")
    made.set_limit("census", LIMIT, owner="Ada")
    made.set_limit("visits", Budget(3.0, 1e-5, "add-remove"), owner="Ada")
    return made


def composed(plans: list[Plan], delta: float) -> float:
    """ε by dp_accounting alone, whose noise multiplier refers to one record under both relations."""
    accountant = PLDAccountant(RELATIONS[str(plans[0].budget.relation)])
    for single in plans:
        for part in single.event.parts:
            release = dp_accounting.GaussianDpEvent(part.noise_multiplier)
            if isinstance(part.sampler, Poisson):
                release = dp_accounting.PoissonSampledDpEvent(part.sampler.rate, release)
            accountant.compose(release, part.count)
    return accountant.get_epsilon(delta)


@pytest.mark.parametrize(("dataset", "relation"), [("census", "replace-one"), ("visits", "add-remove")])
def test_twenty_fits_cost_what_dp_accounting_says(ledger, dataset, relation):
    single = plan(0.1, delta=1e-6, relation=relation)
    for _ in range(20):
        ledger.reserve(dataset, single)
    epsilon, delta = ledger.spent(dataset)
    assert delta == 1e-5
    assert epsilon < 0.25 * 20 * 0.1
    assert epsilon == pytest.approx(composed([single] * 20, 1e-5), rel=1e-3)
    z = single.event.parts[0].noise_multiplier / Relation.parse(relation).record_distance / math.sqrt(20 * 10)
    assert epsilon == pytest.approx(dp_accounting.gaussian_mechanism.get_epsilon_gaussian(z, 1e-5), rel=1e-6)


@pytest.mark.parametrize(("dataset", "relation"), [("census", "replace-one"), ("visits", "add-remove")])
def test_twenty_mini_batch_fits_cost_hardly_more_than_dp_accounting_says(ledger, dataset, relation):
    single = plan(0.1, Poisson(0.05), 1e-6, relation, steps=300)
    for _ in range(20):
        ledger.reserve(dataset, single)
    epsilon = ledger.spent(dataset)[0]
    reference = composed([single] * 20, 1e-5)
    assert epsilon < 0.25 * 20 * 0.1
    assert reference <= epsilon * (1 + 1e-3)
    assert epsilon <= 1.01 * reference


def test_mixed_fits_cost_hardly_more_than_dp_accounting_says(ledger):
    singles = [plan(0.3, Poisson(0.05), steps=300), plan(0.2), plan(0.4, Poisson(0.1), steps=100)]
    for single in singles:
        ledger.reserve("census", single)
    assert 1 - 1e-3 <= ledger.spent("census")[0] / composed(singles, 1e-5) <= 1.02


class TestDomination:
    @pytest.mark.parametrize(("relation", "sampler", "steps"), SAMPLED)
    def test_the_gaussian_lies_above_the_profile(self, relation, sampler, steps):
        slack = 1e-8
        event = plan(0.5, sampler, relation=relation, steps=steps).event
        neighbours = Relation.parse(relation)
        cost = charge(event, neighbours, slack)
        judge = PldAccountant()
        top = judge.epsilon(event, 1e-9, neighbours)
        for epsilon in np.random.default_rng(1).uniform(0, 1.2 * top, 40):
            bound = (1 - slack) * float(profiles.gaussian(cost.shift, epsilon)) + slack
            assert judge.delta(event, float(epsilon), neighbours) <= bound

    @pytest.mark.parametrize(("relation", "sampler", "steps"), SAMPLED)
    def test_a_smaller_one_does_not(self, relation, sampler, steps):
        slack = 1e-8
        event = plan(0.5, sampler, relation=relation, steps=steps).event
        neighbours = Relation.parse(relation)
        cost = charge(event, neighbours, slack)
        judge = PldAccountant()
        grid = np.linspace(0, judge.epsilon(event, slack, neighbours), 60)
        upper = np.array([judge.delta(event, float(epsilon), neighbours) for epsilon in grid])
        assert (upper > (1 - slack) * profiles.gaussian(0.99 * cost.shift, grid) + slack).any()

    def test_between_its_points_the_profile_may_be_as_large_as_its_chord(self):
        """A Gaussian through the ends of a chord lies below it in between, and dominates nothing that fills it."""
        grid = np.array([0.0, 1.0])
        chord = profiles.gaussian(0.5, grid)
        assert not _dominates(0.5, grid, chord)
        assert not _dominates(0.55, grid, chord)
        assert _dominates(1.5, grid, chord)

    def test_full_data_is_exact(self):
        event = plan(0.5).event
        cost = charge(event, Relation.REPLACE_ONE, 1e-8)
        assert cost == Charge(math.sqrt(10) * 2.0 / event.parts[0].noise_multiplier, 0.0)

    def test_too_little_slack_is_refused(self):
        with pytest.raises(CannotCertify, match="full-data solver"):
            charge(plan(0.5, Poisson(0.1)).event, Relation.REPLACE_ONE, 1e-30)


class TestFilter:
    """The two budgets of docs/proofs/ledger.md, Claim 1: Σµ² and Σs, each bounded in advance, never traded."""

    def test_the_share_for_slacks_is_never_spent_on_shifts(self):
        shift = gaussian_shift(1.0, 1e-5)
        assert total_epsilon([Charge(shift)], 1e-5) == pytest.approx(1.0, rel=1e-4)
        assert judged_epsilon([Charge(shift)], Budget(1.0, 1e-5)) > 1.0
        assert judged_epsilon([Charge(shift)], Budget(1.0, 1e-5)) == gaussian_epsilon(shift, (1 - SLACK_SHARE) * 1e-5)

    def test_shifts_never_pay_for_slacks(self):
        assert judged_epsilon([Charge(1e-3, 0.06 * 1e-5)], Budget(100.0, 1e-5)) == math.inf

    def test_slacks_of_any_number_of_fits_stay_inside_the_share(self):
        for count in (1, 2, 3, 10, 1023, 5000):
            assert math.fsum(next_slack(LIMIT, k) for k in range(count)) < SLACK_SHARE * LIMIT.delta

    def test_a_first_mini_batch_fit_may_spend_the_whole_limit_and_is_then_alone(self, tmp_path):
        ledger = Ledger.create(tmp_path / "ledger.db")
        whole = plan(1.0, Poisson(0.1), 1e-5, steps=100)
        ledger.set_limit("census", whole.budget, owner="Ada")
        assert judged_epsilon([charge(whole.event, Relation.REPLACE_ONE, 1e-8)], whole.budget) > 1.0
        ledger.reserve("census", whole)
        assert ledger.spent("census") == (whole.epsilon_achieved, 1e-5)
        for further in (plan(0.001), plan(0.001, Poisson(0.1))):
            with pytest.raises(BudgetExceeded):
                ledger.reserve("census", further)

    def test_a_plan_that_understates_itself_gains_nothing(self, tmp_path):
        ledger = Ledger.create(tmp_path / "ledger.db")
        ledger.set_limit("census", Budget(1.0, 1e-5), owner="Ada")
        for sampler in (None, Poisson(0.05)):
            honest = plan(3.0, sampler, 1e-6, steps=30)
            forged = replace(honest, budget=Budget(0.5, 1e-6), epsilon_achieved=0.4)
            with pytest.raises(BudgetExceeded):
                ledger.reserve("census", forged)

    def test_many_fits_chosen_greedily_never_pass_the_limit(self, tmp_path):
        ledger = Ledger.create(tmp_path / "ledger.db")
        ledger.set_limit("census", Budget(1.0, 1e-5), owner="Ada")
        epsilon, refused = 0.6, 0
        while refused < 12:
            try:
                ledger.reserve("census", plan(epsilon))
            except BudgetExceeded:
                epsilon, refused = 0.6 * epsilon, refused + 1
        assert 0.95 < ledger.spent("census")[0] <= 1.0
