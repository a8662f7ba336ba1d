"""Silos together answer what one owner of all rows would: the same sums to the last bit, and noise of the right law."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpadmm import DPLogisticRegression
from dpadmm.errors import QueryRefused
from dpadmm.exact_samplers.discrete_gaussian import discrete_gaussian
from dpadmm.network import Federation
from dpadmm.network.encoding import digest
from dpadmm.network.epoch_work import EpochWork
from dpadmm.network.federated_oracle import made_up_row
from dpadmm.network.messages import Answer, Ask, read_as
from dpadmm.network.noise_shares import _KeyStream, share_deviations, share_of_noise
from dpadmm.network.owner_table import OwnerTable
from dpadmm.network.pads import masked, pair_secret, public_half, unmasked
from dpadmm.network.signing import opened
from dpadmm.privacy.questions import ClippedGradient, FeatureCurvature, SecondMoment
from dpadmm.privacy.sampling import Batch
from tests.unit.network.parties import SIZE, Parties, gradient_at, session_of, small_model, split, table

from .alarms import require

ALL = Batch(None)


def questions(proposal):
    """Every kind of question that solvers ask of rows in exact arithmetic, with places."""
    rng = np.random.default_rng(5)
    x, weights = rng.normal(size=SIZE), rng.uniform(0, 2, SIZE)
    moments = proposal.plan.query("moments").question
    yield moments, ()
    yield ClippedGradient(0.5), (x,)
    yield ClippedGradient(0.5), (1e6 * x,)
    yield SecondMoment(), ()
    yield FeatureCurvature(), (x, weights)


@pytest.mark.parametrize("parts", [1, 2, 3, 7, 33, 100])
@pytest.mark.parametrize("order", ["as it came", "by label", "by size"])
def test_sums_of_silos_are_the_pooled_sum_to_the_last_bit(parts, order):
    X, y = table(400)
    place = {"as it came": np.arange(400), "by label": np.argsort(y, kind="stable"), "by size": np.argsort(X[:, 1])}
    X, y = X[place[order]], y[place[order]]
    parties = Parties(tables=split(X, y, max(2, parts)), silos=2)
    proposal = parties.proposal
    pooled = OwnerTable(X, y).rows(proposal)
    silos = [OwnerTable(X[k::parts], y[k::parts]).rows(proposal) for k in range(parts)]
    for question, at in questions(proposal):
        expected = pooled.ask(question, at, ALL)
        found = sum(silo.ask(question, at, ALL).counts for silo in silos)
        assert np.array_equal(found, expected.counts)
        assert np.array_equal(made_up_row(proposal).ask(question, at, ALL).units, expected.units)


@given(st.integers(2, 9), st.integers(1, 200), st.integers(0, 2**32))
@settings(max_examples=30, deadline=None)
def test_masks_cancel_in_the_sum_of_all_and_in_no_other(parties, size, seed):
    rng = np.random.default_rng(seed)
    names = [f"silo-{k}" for k in range(parties)]
    private = {name: rng.bytes(32) for name in names}
    counts = {name: rng.integers(-(2**62), 2**62, size) for name in names}
    secrets = {
        name: {
            peer: pair_secret(private[name], public_half(private[peer]), b"session", (name, peer))
            for peer in names
            if peer != name
        }
        for name in names
    }
    vectors = [masked(counts[name], name, secrets[name], b"label") for name in names]
    with np.errstate(over="ignore"):
        assert np.array_equal(unmasked(vectors), sum(counts.values(), np.zeros(size, dtype=np.int64)))
        partial = unmasked(vectors[1:]) - sum((counts[name] for name in names[1:]), np.zeros(size, dtype=np.int64))
    assert partial.all() or size > 64
    assert not np.array_equal(vectors[0].view(np.int64), counts[names[0]])


@pytest.mark.parametrize(("sigma", "shares"), [(1, 2), (1, 5), (2, 3)])
def test_the_sum_of_shares_has_the_exact_law(sigma, shares):
    """Against the convolution of the laws, entry by entry; the threshold is a tail bound."""
    draws = 200_000
    total = sum(
        discrete_gaussian(np.full(draws, sigma), _KeyStream(bytes([share] * 32)).words) for share in range(shares)
    )
    reach = 12 * sigma
    numbers = np.arange(-reach, reach + 1)
    law = np.exp(-(numbers**2) / (2 * sigma**2))
    law /= law.sum()
    expected = law
    for _ in range(shares - 1):
        expected = np.convolve(expected, law)
    seen = np.bincount(total + shares * reach, minlength=expected.size) / draws
    # Hoeffding for each of the numbers, together below one in a million.
    bound = np.sqrt(np.log(2 * expected.size / 1e-6) / (2 * draws))
    require(bool(np.abs(seen - expected).max() <= bound), "shares do not have the law of the proof")


def test_shares_together_are_as_wide_as_the_plan_needs():
    units = np.array([2.0**-40, 3e-9])
    for honest in (1, 3, 67):
        deviations = share_deviations(0.37, honest, units)
        assert np.all(np.sqrt(honest) * deviations * units >= 0.37)
        assert np.all(np.sqrt(honest) * (deviations - 1) * units < 0.37 * (1 + 1e-6))


@pytest.mark.parametrize(("noise", "taken"), [(6.9, False), (7.9, True), (2.0**54, False), (2.0**53, True)])
def test_shares_are_of_a_size_that_the_proof_and_the_sampler_take(noise, taken):
    """Deviations are rounded up to whole units: 6.9 is 7, and 7.9 is 8."""
    try:
        assert share_deviations(noise, 1, np.ones(1)) >= 8
    except QueryRefused:
        assert not taken
    else:
        assert taken


@pytest.mark.parametrize("odd", [1e3, 1e-14])
def test_one_entry_with_a_share_of_another_size_is_refused_too(odd):
    """Among entries of units 1 and shares of 1000, one of 1 unit and one of more than the sampler takes."""
    with pytest.raises(QueryRefused, match=r"Expected 8 to 2\*\*54"):
        share_deviations(1000.0, 1, np.array([1.0, odd, 1.0]))


def test_noise_is_a_function_of_secret_and_label():
    deviations = np.full(50, 1000)
    one = share_of_noise(b"a" * 32, b"label", deviations)
    assert np.array_equal(one, share_of_noise(b"a" * 32, b"label", deviations))
    assert not np.array_equal(one, share_of_noise(b"a" * 32, b"other", deviations))
    assert not np.array_equal(one, share_of_noise(b"b" * 32, b"label", deviations))


@pytest.mark.parametrize(("silos", "colluding"), [(2, 1), (3, 1), (4, 2), (4, 3)])
def test_one_question_is_answered_by_the_pooled_sum_and_all_shares(silos, colluding):
    """The noise of each silo is computed again from its secrets, and what is left is the exact sum."""
    parties = Parties(silos, colluding)
    coordinator = parties.opened()
    x = np.array([0.3, -1.0, 2.0, 0.1])
    ask = gradient_at(parties.silos["silo-001"], 1, x)
    total = coordinator.ask("gradient", (x,), (), SIZE)
    noise = np.zeros(SIZE, dtype=np.int64)
    for name, silo in parties.silos.items():
        work: EpochWork = silo._work
        sent = work._sent
        assert sent == []
        noise += _noise_of(parties, name, ask)
    X, y = (np.concatenate(parts) for parts in zip(*parties.tables.values(), strict=True))
    question = parties.proposal.plan.query("gradient").question
    expected = OwnerTable(X, y).rows(parties.proposal).ask(question, (x,), ALL)
    assert np.array_equal(total - noise, expected.counts)


def _noise_of(parties, name, ask: Ask):
    from dpadmm.network.pads import Label

    work = parties.silos[name]._work
    query = parties.proposal.plan.query("gradient")
    sample = made_up_row(parties.proposal).ask(query.question, ask.at, ALL)
    deviations = share_deviations(
        query.noise_multiplier * query.clip_norm, parties.roster.honest, np.broadcast_to(sample.units, (SIZE,))
    )
    label = Label(session_of(parties.silos[name]), ask.number, ask.question, sample.units, deviations)
    own = OwnerTable(*parties.tables[name]).rows(parties.proposal).ask(query.question, ask.at, ALL)
    return share_of_noise(work._noise_key, label.encoded + digest(own.counts.astype("<i8").tobytes()), deviations)


def test_the_same_seed_gives_the_same_model_whatever_the_network_does():
    from dpadmm.network import Weather

    tables = split(*table(), 3)
    models = []
    for weather in (None, Weather(delay=0.3, dropped=0.2, repeated=0.3, seed=4), Weather(cut=(("silo-002", 0, 50),))):
        federation = Federation.embedded(tables, 1, seed=3, weather=weather)
        models.append(small_model().fit(federation).weights_)
    assert np.array_equal(models[0], models[1])
    assert np.array_equal(models[0], models[2])


@pytest.mark.parametrize(
    "chosen",
    [
        {"solver": "full-admm", "penalty": "l1"},
        {"solver": "dp-gd"},
        {"penalty": "elasticnet"},
        {"penalty": "fused", "alpha": 1e-3},
        {"classes": [0, 1, 2], "steps": 3},
        {"relation": "add-remove"},
    ],
    ids=str,
)
def test_solvers_losses_and_penalties_work_without_a_line_of_their_own(chosen):
    model = small_model(**chosen).fit(Federation.embedded(split(*table(), 3), 1))
    assert np.isfinite(model.coef_).all()
    assert model.plan_.arithmetic == "exact"
    assert "of the 3 owners at most 1 collude" in str(model.privacy_)


def test_a_federated_model_is_as_good_as_a_pooled_one():
    """On rows sorted by label, where every silo alone would learn nothing."""
    X, y = table(6000, seed=1)
    place = np.argsort(y, kind="stable")
    tables = split(X[place], y[place], 4)
    model = DPLogisticRegression(1.0, 1e-5, classes=[0, 1], row_norm=1.0)
    assert model.fit(Federation.embedded(tables, 1)).score(X, y) > 0.93


def test_noise_is_told_to_solvers_as_it_is():
    parties = Parties(4, 1)
    from dpadmm.network.federated_oracle import FederatedOracle

    oracle = FederatedOracle(parties.proposal, parties.coordinator())
    for query in parties.proposal.plan.queries:
        assert oracle.noise_std(query.kind) == pytest.approx(query.noise_std * np.sqrt(4 / 3))


def test_an_answer_tells_nothing_but_its_question_and_its_numbers():
    parties = Parties()
    parties.opened()
    silo = parties.silos["silo-001"]
    raw = silo.answer(parties.seal(gradient_at(silo, 1)))
    answer = read_as(Answer, opened(raw, parties.roster.keys).content)
    assert len(answer.masked) == 8 * SIZE
    assert len(raw) == len(parties.silos["silo-002"].answer(parties.seal(gradient_at(silo, 1))))
