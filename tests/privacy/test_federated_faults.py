"""Silos are killed at five points, and the network loses, delays and repeats: one charge, one answer, one model."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from dpadmm.network import Weather
from dpadmm.network.encoding import decode
from dpadmm.network.federated_oracle import FederatedOracle
from dpadmm.network.journal import FolderJournal
from dpadmm.network.messages import REFUSED
from dpadmm.network.owner_budget import OwnerBudget
from dpadmm.network.silo_state import FolderVault
from dpadmm.privacy.budget import Budget
from dpadmm.privacy.ledger import Ledger
from dpadmm.solvers.base import run
from tests.unit.network.parties import Parties

POINTS = {
    "before charge": "charging",
    "after charge": "charged",
    "after draw": "drawn",
    "after checkpoint": "kept",
    "after send": "sent",
}


class Killed(BaseException):
    """A process that is gone."""


class Fragile(Parties):
    """Silos that die once at a step, and are started again when the next message comes."""

    def __init__(self, point: str, which: int, ledger: Ledger | None = None, **chosen) -> None:
        self.point, self.left = POINTS[point], which
        self.killed, self.answers = 0, Counter()
        budgets = {} if ledger is None else {"silo-001": OwnerBudget(ledger, "rows")}
        super().__init__(seed=7, budgets=budgets, **chosen)
        self.silos["silo-001"] = self.start("silo-001", self.watch)

    def watch(self, step: str) -> None:
        if step == self.point:
            self.left -= 1
            if self.left == 0:
                self.killed += 1
                raise Killed

    def transport(self, weather=None, **extra):
        ways = super().transport(weather, record=self.count)
        ways._silos = {**ways._silos, "silo-001": self.deliver}
        return ways

    def deliver(self, raw: bytes) -> bytes:
        try:
            return self.silos["silo-001"].answer(raw)
        except Killed:
            self.silos["silo-001"] = self.start("silo-001", self.watch)
            return b""

    def count(self, sender: str, receiver: str, content: bytes) -> None:
        if sender == "silo-001" and content != REFUSED:
            said = decode(decode(content)[1])
            if said[0] == "answer":
                self.answers[said[2], said[4]] += 1


def trained(parties: Parties, **chosen) -> np.ndarray:
    recipe = parties.proposal.recipe
    parties.approve()
    coordinator = parties.coordinator(patience=1e6, **chosen)
    oracle = FederatedOracle(parties.proposal, coordinator)
    found = run(recipe.solver, recipe.problem, oracle).coefficients
    oracle.require_promise_kept()
    coordinator.close()
    return found


def a_ledger(folder) -> Ledger:
    ledger = Ledger.create(folder / "ledger.db")
    ledger.set_limit("rows", Budget(2.0, 1e-3), owner="Ada", test=True)
    return ledger


def survives(folder, point: str, which: int, weather: Weather | None = None) -> None:
    ledger = a_ledger(folder)
    parties = Fragile(point, which, ledger)
    found = trained(parties, weather=weather)
    assert parties.killed == 1
    assert len(ledger.account("rows").fits) == 1
    numbers = Counter(number for number, _ in parties.answers)
    assert set(numbers.values()) == {1}
    assert np.array_equal(found, trained(Parties(seed=7)))


@pytest.mark.parametrize("point", POINTS)
def test_a_silo_that_is_killed_is_charged_once_and_answers_once(point, tmp_path):
    survives(tmp_path, point, 1)


@pytest.mark.parametrize("point", ["after draw", "after checkpoint", "after send"])
def test_a_silo_that_is_killed_in_bad_weather(point, tmp_path):
    survives(tmp_path, point, 3, Weather(delay=0.5, dropped=0.2, repeated=0.3, seed=1))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1000))
def test_a_thousand_deaths(seed, tmp_path):
    rng = np.random.default_rng(seed)
    point = list(POINTS)[seed % 5]
    which = 1 if point in ("before charge", "after charge") else int(rng.integers(1, 5))
    survives(tmp_path, point, which, Weather(rng.uniform(0, 1), rng.uniform(0, 0.4), rng.uniform(0, 0.4), seed=seed))


def test_a_silo_on_a_disk_goes_on_where_it_was(tmp_path):
    """As above, with real files and a real lock."""
    parties = Parties(seed=7)
    vault = FolderVault(tmp_path)
    parties.vaults["silo-001"] = vault
    parties.silos["silo-001"] = parties.start("silo-001")
    parties.approve()
    coordinator = parties.coordinator()
    coordinator.open()
    one = coordinator.ask("gradient", (np.zeros(4),), (), 4)
    vault.release()
    parties.vaults["silo-001"] = FolderVault(tmp_path)
    parties.silos["silo-001"] = parties.start("silo-001")
    two = coordinator.ask("gradient", (np.ones(4),), (), 4)
    again = Parties(seed=7)
    again.approve()
    other = again.coordinator()
    assert np.array_equal(one, other.ask("gradient", (np.zeros(4),), (), 4))
    assert np.array_equal(two, other.ask("gradient", (np.ones(4),), (), 4))


@pytest.mark.parametrize("stops", [0, 1, 3, 5])
def test_a_coordinator_that_is_killed_resumes_from_its_journal(stops, tmp_path):
    parties = Parties(seed=7)
    recipe = parties.proposal.recipe
    parties.approve()

    class Dying(FolderJournal):
        left = stops

        def answered(self, number, total):
            super().answered(number, total)
            Dying.left -= 1
            if Dying.left == 0:
                raise Killed

    for _ in range(2):
        coordinator = parties.coordinator(journal=Dying(tmp_path, 1))
        try:
            found = run(recipe.solver, recipe.problem, FederatedOracle(parties.proposal, coordinator)).coefficients
        except Killed:
            continue
    assert np.array_equal(found, trained(Parties(seed=7)))


def test_after_a_failed_question_only_that_one_is_asked_again(tmp_path):
    parties = Parties(seed=7, spares=1)
    recipe = parties.proposal.recipe
    parties.approve()

    class Cut(FolderJournal):
        def asked(self, question):
            if question.number == 4:
                for silo in list(parties.silos.values())[1:]:
                    silo.close()
            return super().asked(question)

    from dpadmm.network.coordinator import SilosRefused

    oracle = FederatedOracle(parties.proposal, parties.coordinator(journal=Cut(tmp_path, 1)))
    with pytest.raises(SilosRefused, match="silo-002"):
        run(recipe.solver, recipe.problem, oracle)
    parties.approve(epoch=2)
    journal = FolderJournal(tmp_path, 2)
    assert journal.skipped == 3
    coordinator = parties.coordinator(epoch=2, journal=journal)
    oracle = FederatedOracle(parties.proposal, coordinator)
    found = run(recipe.solver, recipe.problem, oracle).coefficients
    oracle.require_promise_kept()
    assert np.isfinite(found).all()
    counts = {name: silo.state.runs[parties.proposal.run].gate["queries"] for name, silo in parties.silos.items()}
    asked = {kind: count for kind, (count, _) in counts["silo-001"].items()}
    needed = {query.kind: query.count for query in parties.proposal.asked_plan.queries}
    assert sum(asked.values()) == sum(needed.values()) + 1
    assert {kind: count for kind, (count, _) in counts["silo-002"].items()} == needed
