"""The rows of one owner, mapped by what was approved; every failure here is for the owner's eyes alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

import numpy as np

from dpadmm.errors import FileProblem, InvalidData
from dpadmm.estimators.fit_table import in_memory, private_rows
from dpadmm.files import why
from dpadmm.network.proposal import Proposal
from dpadmm.privacy.arithmetic import most_rows
from dpadmm.rows.lattice_rows import LatticeRows
from dpadmm.rows.protocol import Rows


class OwnedTable(Protocol):
    """Where a silo finds its rows."""

    def rows(self, proposal: Proposal) -> Rows:
        """Mapped rows on the lattice of the plan; refused where the table does not fit what was declared."""
        ...


class OwnerTable:
    """X and y of one owner, as an estimator takes them, in memory."""

    def __init__(self, X: Any, y: Any) -> None:
        self._X, self._y = X, y
        self._mapped: tuple[bytes, Rows] | None = None

    def rows(self, proposal: Proposal) -> Rows:
        if self._mapped is None or self._mapped[0] != proposal.digest:
            self._mapped = proposal.digest, mapped_rows(self._X, self._y, proposal)
        return self._mapped[1]


class OwnerFile:
    """A CSV or Parquet file of one owner, read by the schema of the proposal; or an npz file of X and y."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._mapped: tuple[bytes, Rows] | None = None

    def rows(self, proposal: Proposal) -> Rows:
        if self._mapped is None or self._mapped[0] != proposal.digest:
            self._mapped = proposal.digest, mapped_rows(*self._read(proposal), proposal)
        return self._mapped[1]

    def _read(self, proposal: Proposal) -> tuple[Any, Any]:
        if self._path.suffix == ".npz":
            return _arrays(self._path)
        from dpadmm.tables import encode, read_table

        encoded = encode(read_table(self._path), proposal.table_schema, with_target=True, invalid_rows=proposal.policy)
        return encoded.X, encoded.y


def mapped_rows(X: Any, y: Any, proposal: Proposal) -> LatticeRows:
    """The rows of one owner on the lattice of the plan that all owners share."""
    estimator, plan = proposal.estimator, proposal.plan
    given = in_memory(X, y, estimator.invalid_rows, estimator)
    if given.n_features != proposal.n_features:
        raise InvalidData(
            f"a table of {given.n_features} features for a proposal of {proposal.n_features}",
            "the features of the proposal, in its order",
            "compare the schema of this table with that of the others; nothing was approved",
        )
    if given.n_rows > most_rows(plan.n_rows, plan.budget.relation):
        raise InvalidData(
            "a table with more rows than all tables are declared to have together",
            "some of the declared total of rows",
            "correct the declared total; nothing was approved",
        )
    rowmap, target = proposal.declaration.rowmap, proposal.target
    mapped = private_rows(given, rowmap, target, None, plan, estimator.invalid_rows)
    assert isinstance(mapped, LatticeRows)
    return mapped


def _arrays(path: Path) -> tuple[Any, Any]:
    try:
        with np.load(path, allow_pickle=False) as held:
            return held["X"], held["y"]
    except (OSError, ValueError, KeyError, EOFError) as problem:
        reason = why(problem) if isinstance(problem, OSError) else "not arrays X and y"
        raise FileProblem(
            f"{path}, which cannot be read ({reason})", "an npz file with X and y", "correct the file"
        ) from None
