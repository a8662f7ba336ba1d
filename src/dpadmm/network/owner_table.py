"""The rows of one owner, mapped by what was approved; every failure here is for the owner's eyes alone."""

from __future__ import annotations

from typing import Any

from dpadmm.errors import InvalidData
from dpadmm.estimators.fit_table import in_memory, private_rows
from dpadmm.network.proposal import Proposal
from dpadmm.privacy.arithmetic import most_rows
from dpadmm.rows.lattice_rows import LatticeRows
from dpadmm.rows.protocol import Rows


class OwnerTable:
    """X and y of one owner.

    Parameters
    ----------
    X, y
        As an estimator takes them, in memory.
    """

    def __init__(self, X: Any, y: Any) -> None:
        self._X, self._y = X, y
        self._mapped: tuple[bytes, Rows] | None = None

    def rows(self, proposal: Proposal) -> Rows:
        """Mapped rows on the lattice of the approved plan; refused where the table does not fit what was declared."""
        wanted = bytes.fromhex(proposal.plan.digest)
        if self._mapped is None or self._mapped[0] != wanted:
            self._mapped = wanted, self._rows(proposal)
        return self._mapped[1]

    def _rows(self, proposal: Proposal) -> Rows:
        estimator, plan = proposal.estimator, proposal.plan
        given = in_memory(self._X, self._y, estimator.invalid_rows, estimator)
        if given.n_features != proposal.n_features:
            raise InvalidData(
                f"a table of {given.n_features} features for a proposal of {proposal.n_features}",
                "the features of the proposal, in its order",
                "compare the schema of this table with that of the others; nothing was approved",
            )
        if not 1 <= given.n_rows <= most_rows(plan.n_rows, plan.budget.relation):
            raise InvalidData(
                "a table without rows, or with more rows than all tables are declared to have together",
                "some of the declared total of rows",
                "correct the declared total; nothing was approved",
            )
        rowmap, target = proposal.declaration.rowmap, proposal.target
        mapped = private_rows(given, rowmap, target, None, plan, estimator.invalid_rows)
        assert isinstance(mapped, LatticeRows)
        return mapped
