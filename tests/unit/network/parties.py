"""Small federations for tests: parties that can be asked question by question, killed, and started again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from dpadmm import DPLogisticRegression
from dpadmm.network.approvals import MemoryApprovals
from dpadmm.network.coordinator import Coordinator
from dpadmm.network.encoding import digest
from dpadmm.network.messages import Ask
from dpadmm.network.owner_budget import OwnerBudget
from dpadmm.network.owner_table import OwnerTable
from dpadmm.network.proposal import Proposal
from dpadmm.network.roster import Roster
from dpadmm.network.signing import Signer
from dpadmm.network.silo import Silo
from dpadmm.network.silo_state import MemoryVault
from dpadmm.network.transports.embedded import EmbeddedTransport, Weather

FEATURES = 3
ROWS = 120
SIZE = FEATURES + 1
"""Features of a mapped row, with the intercept."""


def small_model(**chosen: Any) -> DPLogisticRegression:
    """Few questions on few rows."""
    return DPLogisticRegression(
        **{"epsilon": 1.0, "delta": 1e-4, "classes": [0, 1], "row_norm": 1.0, "steps": 6, **chosen}
    )


def table(rows: int = ROWS, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.uniform(-0.6, 0.6, (rows, FEATURES))
    return X, (X[:, 0] + 0.1 * rng.normal(size=rows) > 0).astype(int)


def split(X: np.ndarray, y: np.ndarray, parts: int) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Parts of different sizes, by name."""
    ends = np.cumsum(1 + np.arange(parts)) * len(y) // (parts * (parts + 1) // 2)
    places = np.split(np.arange(len(y)), ends[:-1])
    return {f"silo-{k + 1:03d}": (X[place], y[place]) for k, place in enumerate(places)}


class Parties:
    """All parties of one federation, with their keys and their disks."""

    def __init__(
        self,
        silos: int = 3,
        colluding: int = 1,
        model: Any = None,
        tables: dict[str, Any] | None = None,
        budgets: dict[str, OwnerBudget] | None = None,
        spares: int = 0,
        seed: int | None = None,
    ) -> None:
        self.tables = split(*table(), silos) if tables is None else tables
        self.budgets = {} if budgets is None else budgets
        self.seed = seed
        names = (*self.tables, "coordinator")
        self.signers = {name: Signer.generate() if seed is None else Signer(digest(seed, name)) for name in names}
        keys = {name: self.signers[name].public for name in self.tables}
        self.roster = Roster(keys, colluding, self.signers["coordinator"].public)
        total = sum(len(y) for _, y in self.tables.values())
        estimator = small_model() if model is None else model
        self.proposal = Proposal.of(estimator, self.roster, total, FEATURES, spares, seed is not None)
        self.vaults = {name: MemoryVault() for name in self.tables}
        self.approvals = {name: MemoryApprovals() for name in self.tables}
        self.steps: list[tuple[str, str]] = []
        self.silos = {name: self.start(name) for name in self.tables}

    def start(self, name: str, observe: Callable[[str], None] | None = None) -> Silo:
        """A silo as its process starts, with what is on its disk."""
        X, y = self.tables[name]
        heard = (lambda step: self.steps.append((name, step))) if observe is None else observe
        return Silo(
            name,
            self.signers[name],
            OwnerTable(X, y),
            self.vaults[name],
            self.budgets.get(name),
            self.approvals[name],
            self.seed,
            heard,
        )

    def approve(self, epoch: int = 1, proposal: Proposal | None = None) -> None:
        wanted = self.proposal if proposal is None else proposal
        for name in wanted.roster.names:
            self.silos[name].approve(wanted, epoch)

    def transport(self, weather: Weather | None = None, **extra: Any) -> EmbeddedTransport:
        # A silo is looked up when a message arrives: it may have been started again since.
        ways = {name: (lambda raw, name=name: self.silos[name].answer(raw)) for name in self.tables}
        return EmbeddedTransport(ways, weather, **extra)

    def coordinator(self, epoch: int = 1, weather: Weather | None = None, **extra: Any) -> Coordinator:
        proposal = extra.pop("proposal", self.proposal)
        signer, ways = self.signers["coordinator"], extra.pop("transport", None) or self.transport(weather)
        return Coordinator(proposal, signer, ways, epoch, **extra)

    def opened(self, epoch: int = 1) -> Coordinator:
        self.approve(epoch)
        coordinator = self.coordinator(epoch)
        coordinator.open()
        return coordinator

    def seal(self, message: Any) -> bytes:
        """What the coordinator would send."""
        return self.signers["coordinator"].seal("coordinator", message.content)


def session_of(silo: Silo) -> bytes:
    epoch = silo.state.epoch
    assert epoch is not None
    return epoch.session


def gradient_at(silo: Silo, number: int, x: np.ndarray | float = 0.0, **changes: Any) -> Ask:
    """A gradient as the next question of the open session."""
    point = np.full(SIZE, x) if isinstance(x, float) else x
    return replace(Ask(session_of(silo), number, "gradient", (point,), ()), **changes)
