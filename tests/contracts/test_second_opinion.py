"""What a plan states is confirmed by dp_accounting's own composition of the same event."""

from __future__ import annotations

import pytest

from dpadmm.errors import CannotCertify, PromiseBroken
from dpadmm.privacy.accountants import pld
from dpadmm.privacy.accountants.pld import PldAccountant
from dpadmm.privacy.budget import Budget, Relation
from dpadmm.privacy.calibration import calibrate, verify_plan
from dpadmm.privacy.events import Event, GaussianSums
from dpadmm.privacy.plan import Request
from dpadmm.privacy.questions import ClippedGradient
from dpadmm.privacy.sampling import Everything, Poisson, make_sampler

N_ROWS, BATCH = 20_000, 150


def events():
    for name in ("fixed", "poisson", "truncated-poisson"):
        for noise in (1.5, 4.0, 12.0):
            yield Event((GaussianSums(make_sampler(name, N_ROWS, BATCH), noise, 500),)), Relation.REPLACE_ONE
    yield Event((GaussianSums(Poisson(0.01), 1.0, 300),)), Relation.ADD_REMOVE
    mixed = (GaussianSums(Everything(), 40.0, 5), GaussianSums(make_sampler("fixed", N_ROWS, BATCH), 3.0, 400))
    yield Event(mixed), Relation.REPLACE_ONE


@pytest.mark.parametrize(("event", "relation"), list(events()))
def test_two_computations_agree(event, relation):
    accountant = PldAccountant()
    ours = accountant.epsilon(event, 1e-6, relation)
    library = pld._second_opinion(event, 1e-6, relation)
    assert library == pytest.approx(ours, rel=2e-3)
    assert accountant.certify(event, 1e-6, relation) == max(ours, library)


@pytest.mark.parametrize(("event", "relation"), list(events()))
def test_a_search_asks_a_bound_that_is_little_looser(event, relation):
    accountant = PldAccountant()
    exact, quick = (ask(event, 1e-6, relation) for ask in (accountant.epsilon, accountant.estimate))
    assert exact * (1 - 1e-6) <= quick <= exact * 1.001


def test_a_plan_is_certified_on_the_fine_lattice(monkeypatch):
    """Whatever the search was told, the plan states what the fine lattice and the library say."""
    sampler = make_sampler("fixed", N_ROWS, BATCH)
    monkeypatch.setattr(PldAccountant, "estimate", lambda accountant, event, delta, relation: 0.499)
    with pytest.raises(CannotCertify, match="disagree"):
        calibrate(Budget(0.5, 1e-6), [Request("gradient", 3000, ClippedGradient(1.0))], sampler, N_ROWS, cache=False)


def test_a_plan_states_the_larger_of_the_two(monkeypatch):
    monkeypatch.setattr(pld, "_second_opinion", lambda *event: 0.5005)
    with pytest.raises(CannotCertify, match="disagree"):
        calibrate(
            Budget(0.5, 1e-6),
            [Request("gradient", 300, ClippedGradient(1.0))],
            make_sampler("fixed", N_ROWS, BATCH),
            N_ROWS,
            cache=False,
        )


def test_verify_plan_asks_both(monkeypatch):
    sampler = make_sampler("fixed", N_ROWS, BATCH)
    plan = calibrate(Budget(0.5, 1e-6), [Request("gradient", 300, ClippedGradient(1.0))], sampler, N_ROWS, cache=False)
    assert verify_plan(plan) <= 0.5
    monkeypatch.setattr(pld, "_second_opinion", lambda *event: 0.6)
    with pytest.raises(PromiseBroken):
        verify_plan(plan)
