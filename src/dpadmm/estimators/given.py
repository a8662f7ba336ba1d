"""The table of a fit, wherever it is held: what is public about it, and how it becomes rows of an oracle."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from dpadmm.cells.feature_tables import require_usable_names
from dpadmm.cells.holders import held_by, named, on_accelerator
from dpadmm.errors import UnsupportedProblem
from dpadmm.privacy.arithmetic import Arithmetic
from dpadmm.privacy.passage import NOISY_PASS
from dpadmm.privacy.plan import Plan
from dpadmm.problem.rowmap import RowMap
from dpadmm.rows.protocol import Rows

if TYPE_CHECKING:
    from dpadmm.estimators.base import Target


class Given(Protocol):
    """X and y; their sizes are public under replace-one and never shown."""

    n_rows: int
    n_features: int
    is_sparse: bool
    assumptions: tuple[str, ...]

    def labels(self, needed: bool) -> NDArray[Any]:
        """Labels among which each that occurs is found, if they are needed to know the classes."""
        ...


class Elsewhere(Given, Protocol):
    """Rows that stay where they are, and are summed there."""

    place: str

    def rows(self, rowmap: RowMap, target: Target, weights: NDArray[np.float64] | None, strict: bool) -> Rows:
        """Rows by the public rules; if `strict`, invalid ones are refused."""
        ...


@dataclass(frozen=True, eq=False)
class InMemory:
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


def held_elsewhere(X: Any, y: Any, tolerant: bool) -> Elsewhere | None:
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
