"""A federation as solvers see it: an oracle like any other, whose numbers come from many silos."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpadmm.network.coordinator import Coordinator
from dpadmm.network.exchanged_counts import ExchangedCounts
from dpadmm.network.proposal import Proposal
from dpadmm.oracles.gate import Gate
from dpadmm.oracles.private import PrivateOracle
from dpadmm.privacy.arithmetic import most_rows
from dpadmm.privacy.questions import At, Kind
from dpadmm.problem.spiked_map import SpikedMap
from dpadmm.randomness import make_streams
from dpadmm.rows.lattice_rows import LatticeRows
from dpadmm.rows.lattice_sum import LatticeSum
from dpadmm.rows.packed import PackedRows

Array = NDArray[np.float64]
A = TypeVar("A")


class FederatedOracle(PrivateOracle):
    """Asks all silos whatever a solver asks.

    It stands before one made-up row of zeros, from which it learns the shape and the lattice of each sum: they depend
    on public numbers alone. A question that any silo would refuse is refused here first.

    Parameters
    ----------
    proposal : Proposal
        What the owners approved.
    coordinator : Coordinator
        Who asks them.
    """

    def __init__(self, proposal: Proposal, coordinator: Coordinator) -> None:
        exchange = ExchangedCounts(proposal, self._from_silos)
        super().__init__(made_up_row(proposal), Gate(proposal.asked_plan), make_streams(), exchange)
        self._coordinator, self._surplus = coordinator, proposal.roster.surplus
        self._asked: tuple[str, At] = ("", ())
        self._coordinates: tuple[Array, ...] = ()

    def ask(self, kind: Kind[A], *at: Any) -> A:
        self._asked = str(kind), at
        return super().ask(kind, *at)

    def change_coordinates(self, matrix: Array | SpikedMap) -> None:
        super().change_coordinates(matrix)
        self._coordinates = (np.asarray(matrix, dtype=np.float64),)

    def noise_std(self, kind: str) -> float:
        """Of all shares together: √(S/(S − c)) times what the plan needs."""
        return self._surplus * super().noise_std(kind)

    def _from_silos(self, total: LatticeSum, deviations: NDArray[np.int64]) -> NDArray[np.int64]:
        kind, at = self._asked
        return self._coordinator.ask(kind, at, self._coordinates, total.size).reshape(total.shape)


def made_up_row(proposal: Proposal) -> LatticeRows:
    """One row of zeros on the lattice of the plan."""
    plan, declared = proposal.plan, proposal.declaration
    table = PackedRows.of(declared.rowmap, np.zeros((1, proposal.n_features)), None)
    label = np.zeros(1, dtype=np.intp) if declared.loss.outputs > 1 else np.ones(1)
    limit = most_rows(plan.n_rows, plan.budget.relation)
    return LatticeRows(table, label, declared.loss, declared.rowmap.row_norm, limit)
