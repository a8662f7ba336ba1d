"""Every known attack on federated sums, tried against a silo: each is stopped, and nothing is lost by it.

The view of an attacker is that of the coordinator with at most c silos, and of the network.
"""

from __future__ import annotations

import itertools
import json
from dataclasses import replace

import numpy as np
import pytest

from dpadmm.errors import BudgetExceeded, FileProblem, PromiseBroken
from dpadmm.network.coordinator import SilosMissing, SilosRefused
from dpadmm.network.handshake import gathered_digest
from dpadmm.network.handshake import session_of as session_digest
from dpadmm.network.messages import (
    REFUSED,
    Acknowledgement,
    Answer,
    Ask,
    Close,
    Gathered,
    Hello,
    Invite,
    read_as,
)
from dpadmm.network.owner_budget import OwnerBudget
from dpadmm.network.owner_table import OwnerTable
from dpadmm.network.pads import Label
from dpadmm.network.proposal import Proposal, ProposalRefused
from dpadmm.network.roster import Roster
from dpadmm.network.signing import Signer, opened
from dpadmm.network.silo_state import SECRET, FolderVault, SiloState
from dpadmm.privacy.budget import Budget
from dpadmm.privacy.ledger import Ledger
from dpadmm.privacy.questions import ClippedGradient, SecondMoment
from dpadmm.privacy.sampling import Batch
from dpadmm.problem import Huber, HuberisedHinge, Logistic, Softmax, Squared
from dpadmm.problem.rowmap import RowMap
from dpadmm.rows.lattice_rows import LatticeRows
from dpadmm.rows.packed import PackedRows
from tests.unit.network.parties import FEATURES, ROWS, SIZE, Parties, gradient_at, small_model, split, table

FIRST = "silo-001"


@pytest.fixture
def parties():
    return Parties(3, 1)


def still_answers(parties, number=1):
    """The silo goes on as if nothing had happened."""
    silo = parties.silos[FIRST]
    return silo.answer(parties.seal(gradient_at(silo, number))) != REFUSED


def answered(parties, ask, name=FIRST):
    raw = parties.silos[name].answer(parties.seal(ask))
    return None if raw == REFUSED else read_as(Answer, opened(raw, parties.roster.keys).content)


# -- coordinates and points -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "matrix",
    [
        np.full((SIZE, SIZE), np.nan),
        np.diag([np.inf] * SIZE),
        np.eye(SIZE) * 1e308,
        np.eye(SIZE) * 1e61,
        np.eye(SIZE) * 1e-61,
        np.eye(SIZE) * 1e-320,
        np.zeros((SIZE, SIZE)),
        np.diag([1.0, 1.0, 1.0, 1e-9]),
        np.eye(SIZE + 1),
        np.ones((SIZE, 1)),
        np.array(1.0),
    ],
    ids=["nan", "infinite", "1e308", "1e61", "1e-61", "1e-320", "zero", "oblique", "large", "column", "number"],
)
def test_coordinates_that_could_show_a_row_are_refused_and_end_the_epoch(parties, matrix):
    """P ≈ 1e308 overflowed for rows beyond a half-space only: NaN, −2⁶³, four of four rows seen."""
    parties.opened()
    silo = parties.silos[FIRST]
    assert silo.answer(parties.seal(gradient_at(silo, 1, coordinates=(matrix,)))) == REFUSED
    assert silo.state.epoch.closed
    assert parties.vaults[FIRST].fetch(SECRET) is None
    assert not still_answers(parties)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e31, 1e308], ids=str)
def test_points_that_could_show_a_row_are_refused_and_end_the_epoch(parties, value):
    parties.opened()
    point = np.array([0.0, value, 0.0, 0.0])
    silo = parties.silos[FIRST]
    assert silo.answer(parties.seal(gradient_at(silo, 1, point))) == REFUSED
    assert silo.state.epoch.closed


LOSSES = {"logistic": Logistic(), "hinge": HuberisedHinge(), "squared": Squared(), "huber": Huber(0.5)}
STRETCHED = {
    "largest": np.eye(4) * 1e60,
    "smallest": np.eye(4) * 1e-60,
    "oblique": np.diag([1e60, 1e54, 1e57, 1e55]),
    "dense": np.random.default_rng(0).normal(size=(4, 4)) * 1e59,
}


@pytest.mark.parametrize("loss", [*LOSSES, "softmax"])
@pytest.mark.parametrize("stretch", STRETCHED)
def test_no_row_leaves_its_bound_at_the_ends_of_what_is_taken(loss, stretch):
    """One row alone, wherever it is: its counts are finite, and no longer than the clip."""
    rng = np.random.default_rng(1)
    loss = LOSSES.get(loss) or Softmax(3)
    for norm, size, rows in itertools.product((1e-3, 1.0, 1e3), (1e-6, 1.0, 1e6), (10, 2**22)):
        X = rng.normal(size=(1, 3)) * size
        y = np.array([rng.integers(3)]) if loss.outputs > 1 else np.array([rng.choice([-1.0, 1.0])])
        table = LatticeRows(PackedRows.of(RowMap(norm, True), X), y, loss, norm, rows)
        with np.errstate(all="ignore"):
            seen = table.transformed(STRETCHED[stretch])
            for place, clip in itertools.product((0.0, 5e29, -5e29, 1e-300), (1e-90, 0.5, 1e3)):
                point = np.full(table.space.point_shape, place)
                require_short(seen.ask(ClippedGradient(clip), (point,), Batch(None)), clip)
            require_short(seen.ask(SecondMoment(), (), Batch(None)), 1.0)


def require_short(total, bound):
    contribution = total.counts * total.units
    assert np.isfinite(contribution).all()
    assert np.linalg.norm(contribution) <= bound * (1 + 1e-9)


# -- names that could be taken for others -----------------------------------------------------------------------------


def test_labels_bind_session_number_question_units_and_shares():
    units, deviations = np.full(4, 2.0**-40), np.full(4, 1000)
    base = {"session": b"s" * 32, "number": 1, "question": b"q" * 32, "units": units, "deviations": deviations}
    others = [
        {},
        {"session": b"t" * 32},
        {"number": 2},
        {"question": b"r" * 32},
        {"units": 2 * units},
        {"deviations": deviations + 1},
        {"units": units[:3], "deviations": deviations[:3]},
    ]
    labels = {Label(**{**base, **change}).encoded for change in others}
    assert len(labels) == len(others)


def test_no_name_of_a_run_charges_or_is_free(parties, tmp_path):
    """ "a/1" + "2" and "a" + "12" were one run: four runs, one charge. A run is now the digest of what was approved."""
    ledger = Ledger.create(tmp_path / "ledger.db")
    ledger.set_limit("rows", Budget(10.0, 1e-3), owner="Ada")
    parties.budgets[FIRST] = OwnerBudget(ledger, "rows")
    parties.silos[FIRST] = parties.start(FIRST)
    for _ in range(2):
        parties.proposal = Proposal.of(small_model(), parties.roster, ROWS, FEATURES)
        parties.opened()
        for silo in parties.silos.values():
            silo.close()
    assert len(ledger.account("rows").fits) == 2


def test_an_epoch_that_was_not_approved_does_not_begin_and_charges_nothing(parties, tmp_path):
    ledger = Ledger.create(tmp_path / "ledger.db")
    ledger.set_limit("rows", Budget(10.0, 1e-3), owner="Ada")
    parties.budgets[FIRST] = OwnerBudget(ledger, "rows")
    parties.silos[FIRST] = parties.start(FIRST)
    with pytest.raises(SilosRefused, match="silo-001"):
        parties.coordinator().open()
    parties.approve()
    with pytest.raises(SilosRefused):
        parties.coordinator(epoch=2).open()
    assert ledger.spent("rows") == (0.0, 0.0)


def test_an_approval_is_good_for_one_epoch(parties):
    parties.opened()
    parties.silos[FIRST].close()
    for epoch in (1, 2):
        raw = parties.silos[FIRST].answer(parties.seal(Invite(parties.proposal.digest, epoch)))
        assert raw == REFUSED


# -- the same pad, or the same noise, twice ---------------------------------------------------------------------------


def test_the_same_question_gets_the_same_bytes_and_another_none(parties):
    parties.opened()
    silo = parties.silos[FIRST]
    first = parties.seal(gradient_at(silo, 1))
    answer = silo.answer(first)
    assert silo.answer(first) == answer
    assert silo.answer(parties.seal(gradient_at(silo, 1, 0.25))) == REFUSED
    assert silo.answer(first) == answer
    assert not silo.state.epoch.closed


def test_a_silo_set_back_by_its_disk_gives_another_question_another_pad_and_other_noise(parties):
    """The first prototype used the pad of k again: the residual was .82σ."""
    parties.opened()
    before = dict(parties.vaults[FIRST]._files)
    one = answered(parties, gradient_at(parties.silos[FIRST], 1))
    others = [answered(parties, gradient_at(parties.silos[name], 1), name) for name in list(parties.silos)[1:]]
    parties.vaults[FIRST]._files = dict(before)
    parties.silos[FIRST] = parties.start(FIRST)
    again = answered(parties, gradient_at(parties.silos[FIRST], 1))
    other = answered(parties, gradient_at(parties.silos[FIRST], 1, 0.25))
    assert again.masked == one.masked
    assert other is None
    parties.vaults[FIRST]._files = dict(before)
    parties.silos[FIRST] = parties.start(FIRST)
    other = answered(parties, gradient_at(parties.silos[FIRST], 1, 0.25))
    words = [np.frombuffer(each.masked, dtype="<u8") for each in (other, *others)]
    # With the pads of the first question this would be a small number; without them it is uniform.
    total = words[0] + words[1] + words[2]
    assert np.abs(total.view(np.int64).astype(float)).min() > 2.0**50


def test_a_state_that_was_set_back_is_found_by_its_peers(parties):
    parties.opened()
    before = dict(parties.vaults[FIRST]._files)
    for silo in parties.silos.values():
        silo.close()
    parties.opened(epoch=2)
    parties.vaults[FIRST]._files = dict(before)
    for name in list(parties.silos)[1:]:
        parties.silos[name].close()
    parties.silos[FIRST] = parties.start(FIRST)
    parties.approve(epoch=3)
    with pytest.raises(SilosRefused, match=FIRST):
        parties.coordinator(epoch=3).open()
    assert any("set back or copied" in step for name, step in parties.steps if name == FIRST)


def test_a_cloned_silo_is_found_by_its_peers(parties):
    """Both copies go on; the second to be met knows nothing of the hello of the first."""
    parties.approve()
    cloned = dict(parties.vaults[FIRST]._files)
    coordinator = parties.coordinator()
    coordinator.open()
    for silo in parties.silos.values():
        silo.close()
    parties.vaults[FIRST]._files = dict(cloned)
    parties.silos[FIRST] = parties.start(FIRST)
    parties.silos[FIRST].approve(parties.proposal, 2)
    for name in list(parties.silos)[1:]:
        parties.silos[name].approve(parties.proposal, 2)
    with pytest.raises(SilosRefused, match=FIRST):
        parties.coordinator(epoch=2).open()


def test_peers_of_another_federation_are_not_spoken_of(parties):
    """A silo that takes part in two federations tells neither of the other."""
    from dpadmm.network.encoding import decode

    parties.opened()
    parties.silos[FIRST].close()
    others = Parties(3, 1)
    others.signers[FIRST], others.vaults[FIRST] = parties.signers[FIRST], parties.vaults[FIRST]
    others.approvals[FIRST] = parties.approvals[FIRST]
    keys = {name: others.signers[name].public for name in others.tables}
    roster = Roster(keys, 1, others.signers["coordinator"].public)
    others.proposal = Proposal.of(small_model(), roster, ROWS, FEATURES)
    others.silos = {name: others.start(name) for name in others.tables}
    others.approve()
    seen: list[bytes] = []
    coordinator = others.coordinator(transport=others.transport(record=lambda sender, receiver, raw: seen.append(raw)))
    coordinator.open()
    assert len(parties.silos[FIRST].state.known) == 2
    assert len(others.silos[FIRST].state.known) == 4
    said = [decode(decode(raw)[1]) for raw in seen]
    assert [each[2] for each in said if each[0] == "acknowledgement"] == [(), (), ()]


def charged_before_states_were_lost(parties, folder):
    """The ledger of the first silo, which was charged for a run that no silo remembers."""
    ledger = Ledger.create(folder / "ledger.db")
    ledger.set_limit("rows", Budget(10.0, 1e-3), owner="Ada")
    parties.budgets[FIRST] = OwnerBudget(ledger, "rows")
    parties.silos[FIRST] = parties.start(FIRST)
    fresh = {name: dict(vault._files) for name, vault in parties.vaults.items()}
    parties.opened()
    for name, files in fresh.items():
        parties.vaults[name]._files = dict(files)
        parties.silos[name] = parties.start(name)
    parties.approve()
    return ledger


def test_a_lost_state_is_found_by_the_ledger(parties, tmp_path):
    ledger = charged_before_states_were_lost(parties, tmp_path)
    with pytest.raises(SilosRefused, match=FIRST):
        parties.coordinator().open()
    assert len(ledger.account("rows").fits) == 1


def test_a_second_process_on_one_state_is_refused(tmp_path):
    held = FolderVault(tmp_path)
    with pytest.raises(FileProblem, match="another process holds"):
        FolderVault(tmp_path)
    held.release()
    FolderVault(tmp_path).release()


def test_secrets_of_an_epoch_are_gone_when_it_ends(parties, tmp_path):
    vault = FolderVault(tmp_path)
    vault.keep(SECRET, b"x" * 64)
    vault.forget(SECRET)
    assert vault.fetch(SECRET) is None
    coordinator = parties.opened()
    held = parties.vaults[FIRST].fetch(SECRET)
    assert len(held) == 64
    coordinator.close()
    assert not any(held[:32] in content or held[32:] in content for content in parties.vaults[FIRST]._files.values())


def test_the_state_file_holds_no_secret(parties):
    parties.opened()
    silo = parties.silos[FIRST]
    held, state = parties.vaults[FIRST].fetch(SECRET), silo.state.to_bytes()
    assert held[:32].hex().encode() not in state
    assert held[32:].hex().encode() not in state
    assert SiloState.from_bytes(state).to_bytes() == state


# -- who takes part ---------------------------------------------------------------------------------------------------


def test_a_larger_roster_or_fewer_colluders_are_another_proposal(parties):
    """Each shrinks the share; the owner has to see it and approve it."""
    parties.approve()
    extra = Signer.generate()
    larger = Roster({**parties.roster.silos, "extra": extra.public}, 1, parties.roster.coordinator)
    for roster in (larger, replace(parties.roster, colluding=2)):
        other = replace(parties.proposal, roster=roster, planned_silos=roster.size)
        assert parties.silos[FIRST].answer(parties.seal(Invite(other.digest, 1))) == REFUSED
    assert parties.silos[FIRST].answer(parties.seal(Invite(parties.proposal.digest, 1))) != REFUSED


def test_a_run_goes_on_with_fewer_silos_only_with_more_noise_and_an_approval():
    parties = Parties(4, 1, spares=1)
    coordinator = parties.opened()
    coordinator.ask("gradient", (np.zeros(SIZE),), (), SIZE)
    fewer = parties.proposal.continued(without={"silo-004"})
    assert fewer.run == parties.proposal.run
    assert fewer.roster.honest == 2
    assert fewer.plan == parties.proposal.plan
    parties.approve(epoch=2, proposal=fewer)
    again = parties.coordinator(epoch=2, proposal=fewer)
    again.open()
    again.ask("gradient", (np.zeros(SIZE),), (), SIZE)
    silo = parties.silos[FIRST]
    assert silo.state.runs[fewer.run].gate["queries"]["gradient"] == [2, 2]
    with pytest.raises(SilosRefused):
        parties.coordinator(epoch=1).open()


@pytest.mark.parametrize(
    "change",
    [
        lambda p, extra: replace(p, roster=Roster({**p.roster.silos, "extra": extra}, 1, p.roster.coordinator)),
        lambda p, extra: replace(p, roster=replace(p.roster, colluding=2)),
        lambda p, extra: replace(p, n_rows=p.n_rows - 1),
        lambda p, extra: replace(p, spares=3),
        lambda p, extra: replace(p, planned_silos=5),
        lambda p, extra: replace(p, parameters=p.parameters.replace("1.0", "2.0", 1)),
    ],
    ids=["member", "colluding", "rows", "spares", "silos", "parameters"],
)
def test_a_continued_run_changes_nothing_else(change):
    parties = Parties(4, 1, spares=1)
    parties.opened()
    fewer = parties.proposal.continued(without={"silo-004"})
    with pytest.raises(ProposalRefused):
        parties.silos[FIRST].approve(change(fewer, Signer.generate().public), 2)


def test_a_continued_run_of_strangers_is_refused(parties):
    parties.opened()
    stranger = replace(parties.proposal, continues="ab" * 32)
    with pytest.raises(ProposalRefused, match="took no part"):
        parties.silos[FIRST].approve(stranger, 1)


# -- different words to different silos -------------------------------------------------------------------------------


def hellos_and_acknowledgements(parties):
    digest = parties.proposal.digest
    hellos = tuple(parties.silos[name].answer(parties.seal(Invite(digest, 1))) for name in parties.roster.names)
    gathered = parties.seal(Gathered(digest, 1, Hello.name, hellos))
    return hellos, tuple(parties.silos[name].answer(gathered) for name in parties.roster.names)


def test_other_hellos_are_not_acknowledged_twice(parties):
    """With two sets of hellos two groups of silos could believe in one session."""
    parties.approve()
    hellos, _ = hellos_and_acknowledgements(parties)
    silo = parties.silos[FIRST]
    second = parties.silos["silo-002"]
    secret = Signer.generate()
    forged = (hellos[0], secret.seal("silo-002", opened(hellos[1], parties.roster.keys).content), hellos[2])
    assert silo.answer(parties.seal(Gathered(parties.proposal.digest, 1, Hello.name, forged))) == REFUSED
    other = Hello(parties.proposal.digest, 1, b"n" * 32, b"e" * 32, b"h" * 32)
    lying = (hellos[0], parties.signers["silo-002"].seal("silo-002", other.content), hellos[2])
    assert silo.answer(parties.seal(Gathered(parties.proposal.digest, 1, Hello.name, lying))) == REFUSED
    assert second.state.epoch is not None


@pytest.mark.parametrize("which", ["missing", "twice", "order", "own", "epoch", "ephemeral"])
def test_hellos_of_other_parties_are_refused(parties, which):
    parties.approve()
    digest = parties.proposal.digest
    hellos = [parties.silos[name].answer(parties.seal(Invite(digest, 1))) for name in parties.roster.names]

    def said(name, epoch=1, ephemeral=b"e" * 32):
        return parties.signers[name].seal(name, Hello(digest, epoch, b"n" * 32, ephemeral, b"h" * 32).content)

    ephemeral = read_as(Hello, opened(hellos[0], parties.roster.keys).content).ephemeral
    changed = {
        "missing": hellos[:2],
        "twice": [hellos[0], hellos[1], hellos[1]],
        "order": [hellos[0], hellos[2], hellos[1]],
        "own": [said(FIRST), *hellos[1:]],
        "epoch": [*hellos[:2], said("silo-003", epoch=2)],
        "ephemeral": [*hellos[:2], said("silo-003", ephemeral=ephemeral)],
    }[which]
    message = Gathered(digest, 1, Hello.name, tuple(changed))
    assert parties.silos[FIRST].answer(parties.seal(message)) == REFUSED
    assert parties.silos[FIRST].answer(parties.seal(Gathered(digest, 1, Hello.name, tuple(hellos)))) != REFUSED


def test_an_acknowledgement_of_other_hellos_opens_no_session(parties):
    parties.approve()
    hellos, acknowledgements = hellos_and_acknowledgements(parties)
    lying = Acknowledgement(gathered_digest(hellos[:2]), ())
    changed = (*acknowledgements[:2], parties.signers["silo-003"].seal("silo-003", lying.content))
    message = Gathered(parties.proposal.digest, 1, Acknowledgement.name, changed)
    assert parties.silos[FIRST].answer(parties.seal(message)) == REFUSED
    assert parties.silos[FIRST].state.epoch.session == b""
    assert session_digest(hellos, acknowledgements) != session_digest(hellos, changed)


def totals_of(parties, asks):
    """What the coordinator adds when each silo was asked its own question."""
    vectors = [answered(parties, ask, name) for name, ask in zip(parties.silos, asks, strict=True)]
    return sum((np.frombuffer(each.masked, dtype="<u8") for each in vectors), np.zeros(SIZE, dtype=np.uint64))


@pytest.mark.parametrize("what", ["point", "kind", "coordinates", "subset"])
def test_questions_that_differ_between_silos_give_totals_that_tell_nothing(what):
    """Each entry is then uniform over 64 bits: the smallest of many, and their spread, are those of chance."""
    entries = []
    for _ in range(12):
        parties = Parties(3, 1)
        parties.opened()
        asks = [gradient_at(silo, 1) for silo in parties.silos.values()]
        if what == "point":
            asks[0] = gradient_at(parties.silos[FIRST], 1, 1e-300)
        if what == "kind":
            asks[0] = replace(asks[0], kind="gradient", coordinates=(np.eye(SIZE),))
        if what == "coordinates":
            asks = [replace(ask, coordinates=(np.eye(SIZE) * (1 + k),)) for k, ask in enumerate(asks)]
        if what == "subset":
            vectors = [answered(parties, ask, name) for name, ask in list(zip(parties.silos, asks, strict=True))[:2]]
            total = sum((np.frombuffer(v.masked, dtype="<u8") for v in vectors), np.zeros(SIZE, dtype=np.uint64))
        else:
            total = totals_of(parties, asks)
        entries.append(total.view(np.int64))
    found = np.abs(np.concatenate(entries).astype(float))
    # An honest total is below 2⁵⁰ here; of 48 uniform ones the smallest is so with probability 48·2⁻¹³, and most never.
    assert np.mean(found > 2.0**56) > 0.9


def test_the_same_question_to_all_gives_a_total_that_tells_the_sum():
    """The control of the test above."""
    parties = Parties(3, 1)
    parties.opened()
    total = totals_of(parties, [gradient_at(silo, 1) for silo in parties.silos.values()])
    assert np.abs(total.view(np.int64).astype(float)).max() < 2.0**50


# -- messages that are not what they should be ------------------------------------------------------------------------


def odd_messages(parties):
    silo = parties.silos[FIRST]
    good = gradient_at(silo, 1)
    stranger = Signer.generate()
    raw = parties.seal(good)
    yield "empty", b""
    yield "noise", np.random.default_rng(0).bytes(500)
    yield "tampered", raw[:-1] + bytes([raw[-1] ^ 1])
    yield "cut", raw[:-5]
    yield "unregistered key", stranger.seal("coordinator", good.content)
    yield "a silo as coordinator", parties.signers["silo-002"].seal("silo-002", good.content)
    yield "another session", parties.seal(replace(good, session=b"x" * 32))
    yield "ahead", parties.seal(replace(good, number=2))
    yield "zero", parties.seal(replace(good, number=0))
    yield "negative", parties.seal(replace(good, number=-1))
    yield "another proposal", parties.seal(Invite(b"p" * 32, 1))
    yield "another epoch", parties.seal(Invite(parties.proposal.digest, 2))
    yield "hello to a silo", parties.seal(Hello(parties.proposal.digest, 1, b"", b"", b""))
    yield "late hellos", parties.seal(Gathered(parties.proposal.digest, 1, Hello.name, (b"x",)))
    yield "a field too many", parties.signers["coordinator"].seal("coordinator", (*good.content, 1))
    yield "a field of another type", parties.signers["coordinator"].seal("coordinator", ("ask", good.session, "1"))
    yield "close of another session", parties.seal(Close(b"y" * 32))


@pytest.mark.parametrize("which", range(17))
def test_messages_that_are_not_admitted_change_nothing(parties, which):
    parties.opened()
    silo = parties.silos[FIRST]
    odd = list(odd_messages(parties))
    assert len(odd) == 17
    before = silo.state.to_bytes()
    assert silo.answer(odd[which][1]) == REFUSED, odd[which][0]
    assert silo.state.to_bytes() == before
    assert still_answers(parties)


def test_an_answer_of_an_epoch_that_is_over_is_never_given_again(parties):
    coordinator = parties.opened()
    silo = parties.silos[FIRST]
    raw = parties.seal(gradient_at(silo, 1))
    assert silo.answer(raw) != REFUSED
    coordinator.close()
    assert silo.answer(raw) == REFUSED
    assert not any(name.startswith("answer-") for name in parties.vaults[FIRST]._files)


@pytest.mark.parametrize(
    "ask",
    [
        {"kind": "score"},
        {"kind": "nothing"},
        {"at": ()},
        {"at": (np.zeros(SIZE), np.zeros(SIZE))},
        {"at": (np.zeros(SIZE + 1),)},
        {"at": ("x",)},
        {"coordinates": (np.eye(SIZE), np.eye(SIZE))},
        {"coordinates": (1.0,)},
    ],
    ids=str,
)
def test_a_failing_question_is_no_free_probe(parties, ask):
    parties.opened()
    silo = parties.silos[FIRST]
    assert silo.answer(parties.seal(gradient_at(silo, 1, **ask))) == REFUSED
    assert silo.state.epoch.closed


def test_no_more_is_answered_than_was_planned_over_all_epochs():
    parties = Parties(3, 1)
    planned = parties.proposal.plan.query("gradient").count
    coordinator = parties.opened()
    for k in range(planned - 1):
        coordinator.ask("gradient", (np.full(SIZE, float(k)),), (), SIZE)
    for silo in parties.silos.values():
        silo.close()
    again = parties.opened(epoch=2)
    again.ask("gradient", (np.zeros(SIZE),), (), SIZE)
    with pytest.raises(SilosRefused):
        again.ask("gradient", (np.ones(SIZE),), (), SIZE)
    assert all(silo.state.epoch.closed for silo in parties.silos.values())


def test_a_budget_that_ends_in_one_silo_is_named_there_and_charges_no_other_twice(tmp_path):
    ledger = Ledger.create(tmp_path / "ledger.db")
    ledger.set_limit("rows", Budget(0.5, 1e-3), owner="Ada")
    parties = Parties(3, 1, budgets={FIRST: OwnerBudget(ledger, "rows")})
    with pytest.raises(BudgetExceeded, match="'rows'"):
        parties.approve()
    assert ledger.spent("rows") == (0.0, 0.0)


def test_a_silo_that_never_answers_pauses_the_run_and_is_named(parties):
    parties.approve()
    from dpadmm.network import Weather

    away = parties.coordinator(weather=Weather(cut=(("silo-002", 0, 1e9),)), patience=10.0)
    with pytest.raises(SilosMissing, match=r"silo-002 within 10 seconds.*Run again when they are back"):
        away.open()
    parties.coordinator().open()


def test_a_silo_without_rows_or_with_other_features_is_told_so_at_home():
    X, y = table()
    for X_odd, y_odd, words in ((X[:0], y[:0], "at least one row"), (X[:, :2], y, "2 features"), (X, y + 5, "classes")):
        tables = {**split(X, y, 2), "silo-003": (X_odd, y_odd)}
        parties = Parties(tables=tables)
        proposal = replace(parties.proposal, n_rows=2 * ROWS)
        parties.silos[FIRST].approve(proposal)
        with pytest.raises((ValueError, PromiseBroken)) as refusal:
            parties.silos["silo-003"].approve(proposal)
        assert words in str(refusal.value)


def test_refusals_are_equal_bytes_whatever_the_reason(parties):
    parties.opened()
    silo = parties.silos[FIRST]
    replies = {silo.answer(raw) for _, raw in odd_messages(parties)}
    replies.add(silo.answer(parties.seal(gradient_at(silo, 1, np.full(SIZE, np.nan)))))
    assert replies == {REFUSED}


# -- the wire ---------------------------------------------------------------------------------------------------------


def test_nothing_of_the_rows_but_masked_sums_is_on_the_wire(tmp_path):
    """A row, the name of a column and the text of an error that hold a canary: found in no message and in no file."""
    canary = 0.123456789012345
    X, y = table()
    tables = split(X, y, 3)
    tables[FIRST][0][0, :] = canary
    parties = Parties(tables=tables)
    seen: list[bytes] = []
    parties.approve()
    ways = parties.transport(record=lambda sender, receiver, content: seen.append(content))
    coordinator = parties.coordinator(transport=ways)
    coordinator.open()
    coordinator.ask("gradient", (np.zeros(SIZE),), (), SIZE)
    with pytest.raises(SilosRefused):
        coordinator.ask("nothing", (), (), SIZE)
    needles = [np.float64(canary).tobytes(), np.float64(canary).tobytes()[::-1], b"0.1234567", b"nothing of"]
    on_disk = [content for vault in parties.vaults.values() for content in vault._files.values()]
    for content in (*seen, *on_disk):
        assert not any(needle in content for needle in needles)
        assert b"planned" not in content or content.startswith(b"{")
    assert b"the plan contains no" not in b"".join(seen)


def test_only_fields_of_the_schema_are_on_the_wire(parties):
    from dpadmm.network.encoding import decode

    seen: list[tuple[str, bytes]] = []
    parties.approve()
    ways = parties.transport(record=lambda sender, receiver, content: seen.append((sender, content)))
    coordinator = parties.coordinator(transport=ways)
    coordinator.open()
    coordinator.ask("gradient", (np.zeros(SIZE),), (), SIZE)
    coordinator.close()
    fields = {"hello": 6, "acknowledgement": 3, "ready": 2, "answer": 5, "close": 2}
    for sender, content in seen:
        if sender != "coordinator":
            _, body, _ = decode(content)
            said = decode(body)
            assert len(said) == fields[said[0]]


def traffic_of(parties):
    seen: list[tuple[str, str, int]] = []
    parties.approve()
    ways = parties.transport(record=lambda sender, receiver, content: seen.append((sender, receiver, len(content))))
    coordinator = parties.coordinator(transport=ways)
    coordinator.open()
    coordinator.ask("gradient", (np.zeros(SIZE),), (), SIZE)
    return seen


def test_two_tables_of_one_silo_give_traffic_of_equal_size_and_order():
    """Only the numbers in the answers differ: they are uniform."""
    shapes = []
    for seed in (0, 1):
        X, y = table(seed=seed)
        parties = Parties(tables=split(X, y, 3), model=small_model())
        shapes.append(traffic_of(parties))
    assert shapes[0] == shapes[1]


def test_what_is_stored_is_read_with_care(parties):
    parties.opened()
    state = json.loads(parties.silos[FIRST].state.to_bytes())
    for change in ({"extra": 1}, {"history": [1]}, {"runs": {"zz": {}}}, {"epoch": {}}, {"opened": {"00": -1}}):
        with pytest.raises(FileProblem):
            SiloState.from_bytes(json.dumps({**state, **change}).encode())
    parties.vaults[FIRST]._files["state.json"] = b"{}"
    with pytest.raises(FileProblem):
        parties.start(FIRST)


def test_an_ask_is_the_same_message_read_back():
    ask = Ask(b"s" * 32, 1, "gradient", (np.zeros(3),), ())
    assert ask.question == read_as(Ask, ask.content).question


# -- crashes and lost states ------------------------------------------------------------------------------------------


def test_a_secret_that_was_half_erased_is_never_used(parties):
    """A power cut between the zeros and the end of the file left keys that everybody knows: the exact sum was shown."""
    parties.opened()
    for erased in (bytes(64), parties.vaults[FIRST].fetch(SECRET)[:32] + bytes(32), bytes(32) + b"x" * 32):
        before = dict(parties.vaults[FIRST]._files)
        parties.vaults[FIRST]._files[SECRET] = erased
        parties.silos[FIRST] = parties.start(FIRST)
        assert not still_answers(parties)
        parties.vaults[FIRST]._files = before


def test_an_epoch_is_closed_before_its_secret_is_overwritten(parties, monkeypatch):
    coordinator = parties.opened()
    silo, vault = parties.silos[FIRST], parties.vaults[FIRST]
    closed = []
    forget = vault.forget
    monkeypatch.setattr(vault, "forget", lambda name: (closed.append(silo.state.epoch.closed), forget(name)))
    coordinator.close()
    assert closed
    assert all(closed)


def test_a_charge_that_the_ledger_refused_does_not_pass_at_the_second_try(parties, tmp_path):
    """A state that was lost, or a second silo on one data set, would answer the whole plan anew for one charge."""
    ledger = charged_before_states_were_lost(parties, tmp_path)
    coordinator = parties.coordinator()
    for _ in range(3):
        with pytest.raises(SilosRefused, match=FIRST):
            coordinator.open()
    assert len(ledger.account("rows").fits) == 1


def test_only_its_owner_may_read_the_folder_of_a_silo(tmp_path):
    (tmp_path / "state").mkdir(mode=0o755)
    held = FolderVault(tmp_path / "state")
    assert (tmp_path / "state").stat().st_mode & 0o077 == 0
    held.release()


def test_a_state_set_back_beside_a_changed_table_shows_no_difference(parties):
    """Noise that did not depend on the counts would be the same for both tables, and their difference exact."""
    parties.opened()
    before = dict(parties.vaults[FIRST]._files)
    one = answered(parties, gradient_at(parties.silos[FIRST], 1))
    parties.vaults[FIRST]._files = dict(before)
    X, y = parties.tables[FIRST]
    parties.tables[FIRST] = (np.vstack([X[:1] / 2, X[1:]]), y)
    parties.silos[FIRST] = parties.start(FIRST)
    other = answered(parties, gradient_at(parties.silos[FIRST], 1))
    moved = (np.frombuffer(other.masked, dtype="<u8") - np.frombuffer(one.masked, dtype="<u8")).view(np.int64)
    alike = exact_counts(X, y) - exact_counts(*parties.tables[FIRST])
    assert not np.array_equal(np.abs(moved), np.abs(alike))
    assert np.abs(moved).max() > 4 * np.abs(alike).max()


def exact_counts(X, y):
    """The counts of the gradient at zero, without noise or masks."""
    proposal = Parties(3, 1).proposal
    rows = OwnerTable(X, y).rows(proposal)
    query = proposal.plan.query("gradient")
    return rows.ask(query.question, (np.zeros(SIZE),), Batch(None)).counts
