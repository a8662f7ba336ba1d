"""What is approved is pinned to the last number, and everyone computes the same plan from it."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from dpadmm import DPLinearRegression, DPLogisticRegression
from dpadmm.errors import FileProblem, InvalidParameter, UnsupportedProblem
from dpadmm.network.proposal import Proposal, ProposalRefused
from dpadmm.network.roster import Roster
from tests.unit.network.parties import FEATURES, ROWS, Parties, small_model

KEYS = {name: bytes([place + 1] * 32) for place, name in enumerate(["north", "south", "east", "west"])}
ASKER = bytes([9] * 32)


def roster(colluding=1, silos=KEYS):
    return Roster(silos, colluding, ASKER)


def proposal(**changes):
    made = Proposal.of(small_model(), roster(), ROWS, FEATURES)
    return replace(made, **changes)


def test_a_proposal_survives_its_file():
    made = proposal()
    read = Proposal.from_dict(json.loads(json.dumps(made.to_dict())))
    assert read.digest == made.digest
    assert read.plan == made.plan


@pytest.mark.parametrize(
    "changes",
    [
        {"n_rows": ROWS + 1},
        {"n_features": FEATURES + 1},
        {"spares": 1},
        {"seeded": True},
        {"nonce": "1" * 32},
        {"roster": roster(2)},
        {"roster": roster(1, {**KEYS, "fifth": bytes([7] * 32)}), "planned_silos": 5},
        {"roster": roster(1, {**KEYS, "north": bytes([8] * 32)})},
        {"roster": Roster(KEYS, 1, bytes([6] * 32))},
        {"planned_silos": 5, "continues": "ab" * 32},
    ],
    ids=lambda changes: ",".join(changes),
)
def test_whatever_changes_changes_the_digest(changes):
    assert replace(proposal(nonce="0" * 32), **changes).digest != proposal(nonce="0" * 32).digest


def test_a_plan_that_differs_is_refused():
    fields = proposal().to_dict()
    with pytest.raises(ProposalRefused, match="plan is not the one computed here"):
        Proposal.from_dict({**fields, "plan_digest": "0" * 64})
    with pytest.raises(ProposalRefused, match="another version"):
        Proposal.from_dict({**fields, "version": "0.0.1"})
    with pytest.raises(FileProblem):
        Proposal.from_dict({**fields, "rows": 3})


@pytest.mark.parametrize(
    "changes", [{"planned_silos": 3}, {"planned_silos": 5}, {"planned_silos": 2, "continues": "ab" * 32}]
)
def test_owners_are_never_shown_the_second_epsilon_of_another_number_of_silos(changes):
    with pytest.raises(InvalidParameter, match="Make the proposal anew"):
        proposal(**changes)


def test_a_run_that_lost_silos_keeps_its_second_epsilon():
    """Questions that were answered before had the smaller shares of the larger roster."""
    first = proposal()
    later = first.continued(without={"north", "south"})
    assert later.roster.size == 2
    assert later.epsilon_if_all_collude == first.epsilon_if_all_collude


def test_no_silo_may_be_counted_as_honest_if_none_could_collude():
    with pytest.raises(InvalidParameter, match="every silo knows its own share"):
        roster(0)
    with pytest.raises(InvalidParameter, match="1 to 3"):
        roster(4)
    with pytest.raises(InvalidParameter, match="one key for 'north' and 'south'"):
        Roster({"north": KEYS["north"], "south": KEYS["north"]}, 1, ASKER)
    with pytest.raises(InvalidParameter, match="two parties of one name"):
        Roster({"north": KEYS["north"], "North": KEYS["south"]}, 1, ASKER)
    with pytest.raises(InvalidParameter, match="letters, digits and hyphens"):
        Roster({"north/1": KEYS["north"], "south": KEYS["south"]}, 1, ASKER)


def test_mini_batches_private_steps_and_observed_classes_are_refused():
    from dpadmm import PrivateQuantileClipper

    with pytest.raises(UnsupportedProblem, match="mini-batches"):
        _ = Proposal.of(small_model(solver="dp-sadmm"), roster(), ROWS, FEATURES).plan
    with pytest.raises(InvalidParameter, match="Declare the classes"):
        _ = Proposal.of(small_model(classes=None), roster(), ROWS, FEATURES).plan
    clipper = PrivateQuantileClipper((np.zeros(3), np.ones(3)), share=0.2)
    with pytest.raises(UnsupportedProblem, match="cannot be written down"):
        Proposal.of(small_model(bounds=clipper), roster(), ROWS, FEATURES)
    with pytest.raises(InvalidParameter, match="each owner keeps its ledger"):
        Proposal.of(small_model(random_state=1), roster(), ROWS, FEATURES)


def test_spares_are_planned_for_what_is_asked_more_than_once():
    plain, spared = proposal(), replace(proposal(), spares=2)
    for before, after, asked in zip(plain.plan.queries, spared.plan.queries, spared.asked_plan.queries, strict=True):
        assert after.count == before.count + (2 if before.count > 1 else 0)
        assert asked.count == before.count
        assert after.noise_multiplier > before.noise_multiplier
    assert spared.plan.epsilon_achieved <= 1.0


@pytest.mark.parametrize(("silos", "colluding", "expected"), [(4, 1, 1.84), (10, 3, 2.96), (100, 33, 11.22)])
def test_epsilon_if_all_others_collude(silos, colluding, expected):
    """The figures of Adult at ε = 1, δ = 1e-5, computed once by hand from μ√(S − c)."""
    keys = {f"silo-{k}": k.to_bytes(32, "big") for k in range(1, silos + 1)}
    made = Proposal.of(
        DPLogisticRegression(1.0, 1e-5, classes=[0, 1], row_norm=1.0), Roster(keys, colluding, ASKER), 30162, 104
    )
    assert made.epsilon_if_all_collude == pytest.approx(expected, abs=0.01)


def test_every_full_data_model_has_a_federated_plan():
    for model in (
        small_model(solver="full-admm", penalty="l1"),
        small_model(penalty="fused", alpha=1e-3),
        small_model(penalty="graph", graph=[[0, 1], [1, 2]]),
        small_model(classes=["a", "b", "c"]),
        DPLinearRegression(1.0, 1e-4, target_bounds=(0.0, 5.0), row_norm=1.0, loss="huber"),
        small_model(bounds=(np.zeros(3), np.ones(3))),
    ):
        made = Proposal.of(model, roster(), ROWS, FEATURES)
        assert Proposal.from_dict(made.to_dict()).digest == made.digest


def test_a_silo_refuses_a_proposal_it_is_no_part_of():
    parties = Parties()
    stranger = Parties().proposal
    silo = next(iter(parties.silos.values()))
    with pytest.raises(ProposalRefused, match="without silo"):
        silo.approve(stranger)
