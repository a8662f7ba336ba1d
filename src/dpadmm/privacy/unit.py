"""Whose data a promise protects: one row, one person with all their rows, or one owner with all theirs."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from dpadmm.errors import InvalidParameter, shown


class Unit(StrEnum):
    """What two neighbouring tables differ in.

    | unit | neighbours differ in |
    |---|---|
    | row | one row |
    | person | all rows of one person, however many they are (docs/proofs/persons.md) |
    | owner | all rows of one owner of a part of the table |

    Promises for different units are never added up: what one row costs says nothing of a person with many rows.
    """

    ROW = "row"
    PERSON = "person"
    OWNER = "owner"

    @classmethod
    def parse(cls, value: object) -> Unit:
        """What a user may ask for."""
        if str(value) in list(cls):
            return cls(str(value))
        raise InvalidParameter(f"unit {shown(value)}", "'row', 'person' or 'owner'", "name whose data is protected")

    @property
    def plural(self) -> str:
        """Several of them."""
        return f"{self}s"


@dataclass(frozen=True)
class Protected:
    """Whose data is protected, and the public number of them."""

    kind: str
    number: int

    def __post_init__(self) -> None:
        Unit.parse(self.kind)


def as_stored(unit: Unit) -> dict[str, str]:
    """The field of a stored plan or limit: absent for rows, so that the digests of older plans stay what they were."""
    return {} if unit is Unit.ROW else {"unit": str(unit)}
