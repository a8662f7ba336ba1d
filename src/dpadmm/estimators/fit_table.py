"""The table of a fit, wherever it is held: what is public about it, and how it becomes rows of an oracle."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from dpadmm.cells.feature_tables import public_form, require_usable_names
from dpadmm.cells.holders import held_by, named, on_accelerator
from dpadmm.cells.person_ids import PersonNumbers, numbered, require_complete
from dpadmm.cells.target_columns import has_public_type
from dpadmm.declare.declaration import Declaration
from dpadmm.declare.target import Target
from dpadmm.errors import InvalidData, InvalidParameter, UnsupportedProblem
from dpadmm.estimators.declared_rows import require_finite, require_policy, require_valid
from dpadmm.estimators.sklearn_input import feature_table, label_column
from dpadmm.privacy.arithmetic import Arithmetic, most_rows
from dpadmm.privacy.passage import NOISY_PASS
from dpadmm.privacy.plan import Plan
from dpadmm.problem.rowmap import RowMap
from dpadmm.rows.local import LocalRows
from dpadmm.rows.packed import PackedRows
from dpadmm.rows.person_rows import PersonRows
from dpadmm.rows.protocol import Rows


class FitTable(Protocol):
    """X and y; their sizes are public under replace-one and never shown."""

    n_rows: int
    n_features: int
    is_sparse: bool
    assumptions: tuple[str, ...]

    def labels(self, needed: bool) -> NDArray[Any]:
        """Labels among which each that occurs is found, if they are needed to know the classes."""
        ...


class RemoteTable(FitTable, Protocol):
    """Rows that stay where they are, and are summed there."""

    place: str

    def rows(self, rowmap: RowMap, target: Target, weights: NDArray[np.float64] | None, strict: bool) -> Rows:
        """Rows by the public rules; if `strict`, invalid ones are refused."""
        ...


@runtime_checkable
class OwnersTable(FitTable, Protocol):
    """Rows of many owners: they are never here, and their owners answer together."""

    def adapted(self, declared: Declaration) -> Declaration:
        """The same choices for sums that many owners form."""
        ...

    def rows(self, plan: Plan) -> Rows:
        """What stands in their place, and brings an oracle that asks the owners."""
        ...


@runtime_checkable
class OwnedByMany(Protocol):
    """What a user passes in place of X and y."""

    def for_model(self, estimator: Any, y: Any) -> OwnersTable: ...


@dataclass(frozen=True, eq=False)
class MemoryTable:
    """An array or CSR matrix, and an array, which came as one of a fixed type or not."""

    X: Any
    y: NDArray[Any]
    assumptions: tuple[str, ...] = ()
    typed: bool = True

    @property
    def n_rows(self) -> int:
        return int(self.X.shape[0])

    @property
    def n_features(self) -> int:
        return int(self.X.shape[1])

    @property
    def is_sparse(self) -> bool:
        return bool(sparse.issparse(self.X))

    def labels(self, needed: bool) -> NDArray[Any]:
        return self.y if self.typed or not needed else self.y.astype(object)


def in_memory(table: Any, y: Any, invalid_rows: str, estimator: Any) -> MemoryTable:
    """A table that is, or can be, in memory, checked for shape and type; `estimator` is named where it is refused."""
    tolerant = invalid_rows == "zero"
    if y is None:
        raise InvalidData("y=None; this estimator requires y to be passed, but the target y is None", "y", "pass y")
    X = feature_table(table, tolerant, estimator)
    column = label_column(y)
    if len(column) != X.shape[0]:
        raise InvalidData("X and y of inconsistent lengths", "one label a row", "pass matching X and y")
    return MemoryTable(X, column, public_form(table, X, refuses=not tolerant), has_public_type(y))


def private_rows(
    given: MemoryTable | RemoteTable | OwnersTable,
    rowmap: RowMap,
    target: Target,
    weights: NDArray[np.float64] | None,
    plan: Plan,
    invalid_rows: str,
    persons: PersonNumbers | None = None,
) -> Rows:
    """Map the rows by the public rule; rows that break the declaration are refused or count as zero."""
    if isinstance(given, OwnersTable):
        return given.rows(plan)
    if not isinstance(given, MemoryTable):
        require_policy(invalid_rows)
        require_single_rows(given.place, persons)
        require_summed_only(given.place, plan)
        return given.rows(rowmap, target, weights, strict=invalid_rows == "error")
    encoded, valid = encoded_targets(given, target, invalid_rows)
    if plan.arithmetic is Arithmetic.EXACT:
        from dpadmm.rows.lattice_rows import LatticeRows

        limit = most_rows(plan.n_rows, plan.budget.relation)
        return LatticeRows(PackedRows.of(rowmap, given.X, valid), encoded, target.loss, rowmap.row_norm, limit)
    if target.weigh is not None:
        weights = target.weigh(encoded) * (1.0 if weights is None else weights)
    table = PackedRows.of(rowmap, given.X, valid)
    if persons is not None:
        return PersonRows(table, encoded, target.loss, rowmap.row_norm, persons, weights)
    return LocalRows(table, encoded, target.loss, rowmap.row_norm, weights)


def persons_of(ids: Any, n_rows: int, public_weight: Any, invalid_rows: str) -> PersonNumbers | None:
    """Whose row each row is; None without ids, where each row is protected by itself."""
    if ids is None:
        return None
    if public_weight is not None:
        raise InvalidParameter(
            "public_weight with ids of persons",
            "one of the two",
            "drop public_weight: whoever has the row of the largest weight would change what all others count for. "
            "class_weight may be given",
        )
    persons = numbered(ids, n_rows)
    if invalid_rows == "error":
        require_complete(persons)
    return persons


def assumed_of_persons(invalid_rows: str) -> tuple[str, ...]:
    """What has to be assumed about ids of persons."""
    return ("ids-name-persons", *(("ids-complete",) if invalid_rows == "error" else ()))


def require_single_rows(place: str, persons: PersonNumbers | None) -> None:
    """Refuse ids of persons where rows are summed elsewhere, before anything is charged."""
    if persons is not None:
        raise UnsupportedProblem(
            f"ids of persons for a table {place}",
            "a table in memory",
            "pass an array: the rows of a person may lie in several parts of a table, and must be averaged before "
            "any part is added up",
        )


def encoded_targets(
    given: MemoryTable, target: Target, invalid_rows: str
) -> tuple[NDArray[Any], NDArray[np.bool_] | None]:
    """Targets as the loss wants them and which are valid, or None: invalid rows are refused, if so declared."""
    require_policy(invalid_rows)
    encoded, valid = target.encode(given.y)
    if invalid_rows != "error":
        return encoded, valid
    if target.range is not None and given.y.dtype.kind in "OSU" and not valid.all():
        raise InvalidData(
            "y with text or objects that are no numbers, for a regression",
            "a number for every row",
            "use DPLogisticRegression if y holds classes; else convert y, for instance with y.astype(float)",
        )
    require_finite(given.X)
    require_valid(labelled=bool(valid.all()))
    return encoded, None


def held_elsewhere(X: Any, y: Any, tolerant: bool) -> RemoteTable | None:
    """A table of Dask, or on a device of torch; None for what is, or can be, in memory."""
    if held_by(X, "dask"):
        from dpadmm.estimators.dask_table import DaskTable

        require_usable_names(named(X))
        return DaskTable(X, y, tolerant)
    if on_accelerator(X):
        from dpadmm.estimators.device_table import DeviceTable

        return DeviceTable(X, y)
    return None


def require_summed_only(place: str, plan: Plan) -> None:
    """Refuse by the plan what only rows in memory can do, before anything is charged."""
    if plan.arithmetic is Arithmetic.EXACT:
        asked, remedy = "arithmetic='exact'", "use arithmetic='granular'"
    elif plan.query(NOISY_PASS) is not None:
        asked, remedy = "solver='noisy-admm', which visits row after row", "use solver='auto'"
    else:
        return
    raise UnsupportedProblem(f"{asked}, for a table {place}", "a table in memory", f"{remedy}, or pass an array")
