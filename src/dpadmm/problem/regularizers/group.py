"""The group lasso: whole groups of coefficients enter or leave the model together."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from dpadmm.errors import InvalidParameter
from dpadmm.problem.checks import Array, count, number
from dpadmm.problem.regularizers.base import REGULARIZERS


@REGULARIZERS.register("group")
@dataclass(frozen=True)
class GroupL2:
    """strength · Σ_g √(rows in g) · ‖y_g‖₂.

    The weight √(rows in g) is the usual one, which makes large and small groups equally hard to enter. For a matrix y a
    group is those rows over all columns (and the weight still counts rows). Rows in no group are not penalised.

    Parameters
    ----------
    strength : float
        At least 0.
    groups : tuple of tuples of int
        Row indices of each group; no index twice.

    Examples
    --------
    >>> import numpy as np
    >>> GroupL2(1.0, ((0,), (1, 2))).prox(np.array([3.0, 0.5, 0.5]), step=1.0).tolist()
    [2.0, 0.0, 0.0]
    """

    strength: float
    groups: tuple[tuple[int, ...], ...]
    name: ClassVar[str] = "group"
    convex: ClassVar[bool] = True
    separable: ClassVar[bool] = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "strength", number("strength", self.strength))
        groups = tuple(tuple(count("group index", i) for i in group) for group in self.groups)
        object.__setattr__(self, "groups", groups)
        if not all(groups):
            raise InvalidParameter("an empty group", "at least one row in every group", "drop the empty group")
        if len(set(self._members.tolist())) != self._members.size:
            raise InvalidParameter("overlapping groups", "every row in at most one group", "give each row one group")

    @property
    def rows_needed(self) -> int:
        """The smallest number of rows y must have."""
        return int(self._members.max(initial=-1)) + 1

    def value(self, y: Array) -> float:
        return self.strength * float(self._norms(y) @ self._weights)

    def prox(self, v: Array, step: float) -> Array:
        threshold = float(step) * self.strength * self._weights
        norms = self._norms(v)
        kept = np.maximum(norms - threshold, 0) / np.where(norms > 0, norms, 1)
        shrunk = v.copy()
        shrunk[self._members] *= _as_column(kept[self._owner], v).astype(v.dtype)
        return shrunk

    def _norms(self, y: Array) -> Array:
        energy = np.square(y[self._members], dtype=np.float64).sum(axis=tuple(range(1, y.ndim)))
        return np.sqrt(np.bincount(self._owner, weights=energy, minlength=len(self.groups)))

    @cached_property
    def _members(self) -> Array:
        return np.array([row for group in self.groups for row in group], dtype=np.intp)

    @cached_property
    def _owner(self) -> Array:
        return np.repeat(np.arange(len(self.groups)), [len(group) for group in self.groups])

    @cached_property
    def _weights(self) -> Array:
        return np.sqrt([float(len(group)) for group in self.groups])


def _as_column(per_row: Array, like: Array) -> Array:
    return per_row.reshape(-1, *[1] * (like.ndim - 1))
