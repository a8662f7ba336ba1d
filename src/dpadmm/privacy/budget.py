"""The promise to be kept: (ε, δ) under a stated neighbouring relation."""

from __future__ import annotations

import math
import numbers
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from dpadmm.errors import InvalidParameter, shown
from dpadmm.privacy.unit import Unit
from dpadmm.privacy.wording import rounded_up
from dpadmm.stored_json import LARGEST_WHOLE


class Relation(StrEnum):
    """Which two tables count as neighbours."""

    REPLACE_ONE = "replace-one"
    ADD_REMOVE = "add-remove"

    @classmethod
    def parse(cls, value: object) -> Relation:
        try:
            return cls(str(value))
        except ValueError:
            names = " or ".join(repr(str(r)) for r in cls)
            raise InvalidParameter(f"relation {shown(value)}", names, "name the relation you promise") from None

    @property
    def record_distance(self) -> float:
        """Largest change of a sum of contributions of norm ≤ 1 when the table moves to a neighbour.

        Replacing g by g' moves the sum by ‖g − g'‖ ≤ 2; adding or removing g moves it by ‖g‖ ≤ 1.
        """
        return 2.0 if self is Relation.REPLACE_ONE else 1.0


@dataclass(frozen=True)
class Budget:
    """(ε, δ)-differential privacy under one relation.

    Examples
    --------
    >>> Budget(1.0, 1e-5).relation
    <Relation.REPLACE_ONE: 'replace-one'>
    """

    epsilon: float
    delta: float
    relation: Relation = Relation.REPLACE_ONE

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", _positive("epsilon", self.epsilon))
        object.__setattr__(self, "delta", _positive("delta", self.delta))
        object.__setattr__(self, "relation", Relation.parse(self.relation))
        if self.delta >= 1:
            raise InvalidParameter(
                f"delta={rounded_up(self.delta)}", "0 < delta < 1", "use about 1e-5, and less than 1/n"
            )

    def require_meaningful(self, number: int, unit: Unit = Unit.ROW) -> None:
        """Refuse δ ≥ 1/n, which publishing one whole unit at random would satisfy, and more units than there can be."""
        many = unit.plural
        if number > LARGEST_WHOLE:
            raise InvalidParameter(
                f"n_rows={shown(int(number))}", f"at most 2**53 {many}", f"correct the number of {many}"
            )
        if self.delta * number >= 1:
            raise InvalidParameter(
                f"delta={rounded_up(self.delta)}, at least one over the number of {many}",
                "delta < 1/n",
                f"choose delta well below one over the number of {many}, for instance 1/n**2",
            )


def _positive(name: str, value: Any) -> float:
    try:
        number = float(value) if isinstance(value, numbers.Real) and not isinstance(value, bool) else math.nan
    except OverflowError:  # of an integer beyond the floats
        number = math.inf
    if not (math.isfinite(number) and number > 0):
        usual = {"epsilon": "between 0.1 and 3", "delta": "below one over the number of rows"}[name]
        raise InvalidParameter(
            f"{name}={shown(value)}", f"a finite number {name} > 0", f"choose {name}, usually {usual}"
        )
    return number
