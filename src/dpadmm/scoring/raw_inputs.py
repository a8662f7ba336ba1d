"""The kinds of raw column a model reads: what each is in `score.py`, in SQL, and in a row of middle values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpadmm.scoring import sql

Label: TypeAlias = str | int | float | bool

LARGEST_PLAIN = 1e150
"""Beyond it the square of a number leaves the range of double precision, in which databases compute."""


class Input(Protocol):
    """One raw column: a cell becomes one or more features, or has no reading, and then its row has no score."""

    @property
    def name(self) -> str:
        """Of the column in the raw table."""
        ...

    @property
    def width(self) -> int:
        """How many features a cell becomes."""
        ...

    @property
    def middle_square(self) -> float | None:
        """What the column adds to the squared norm of a row of middle values; None where none is declared."""
        ...

    @property
    def middle(self) -> str:
        """What such a row holds in columns of this kind, in words."""
        ...

    @property
    def unit(self) -> str:
        """What an effect of one unit compares, in words."""
        ...

    @property
    def unit_size(self) -> float:
        """Raw units that move a feature by one."""
        ...

    def python(self) -> dict[str, Any]:
        """What the functions of `score.py` get: the name of the kind and its declared constants."""
        ...

    def sql_cell(self, cell: str) -> str:
        """SQL of a cell as a number, NULL where it has no reading."""
        ...

    def sql_term(self, x: str, weights: NDArray[np.float64]) -> str | None:
        """SQL of the weighted features of the number `x` that `sql_cell` made; None where all weights are zero."""
        ...

    def sql_square(self, x: str) -> str:
        """SQL of the squared features; NULL where `x` is."""
        ...


@dataclass(frozen=True)
class Number:
    """A number taken as it is: nothing is declared about its range."""

    name: str
    width = 1
    middle_square = None
    middle = "any numbers"
    unit = "one unit more"
    unit_size = 1.0

    def python(self) -> dict[str, Any]:
        return {"kind": "number", "name": self.name}

    def sql_cell(self, cell: str) -> str:
        return f"CASE WHEN {sql.is_number(cell, LARGEST_PLAIN)} THEN {sql.as_double(cell)} END"

    def sql_term(self, x: str, weights: NDArray[np.float64]) -> str | None:
        return _product(x, weights)

    def sql_square(self, x: str) -> str:
        return f"{x} * {x}"


@dataclass(frozen=True)
class Ranged:
    """A number, clipped to the declared range and mapped onto [0, 1]; a missing cell counts as `fill`, if declared."""

    name: str
    lower: float
    upper: float
    fill: float | None = None
    width = 1
    middle_square = 0.25
    middle = "every number in the middle of its range"

    @property
    def unit(self) -> str:
        return f"one unit more ({self.lower:g} to {self.upper:g})"

    @property
    def unit_size(self) -> float:
        return self.upper - self.lower

    def python(self) -> dict[str, Any]:
        return {"kind": "ranged", "name": self.name, "lower": self.lower, "upper": self.upper, **_filled(self.fill)}

    def sql_cell(self, cell: str) -> str:
        number, lower = sql.as_double(cell), sql.number(self.lower)
        inside = f"({number} - {lower}) / {sql.number(self.upper - self.lower)}"
        missing = "NULL" if self.fill is None else sql.number((self.fill - self.lower) / (self.upper - self.lower))
        return (
            f"CASE {_when_missing(cell, missing)}WHEN NOT ({sql.is_number(cell)}) THEN NULL "
            f"WHEN {number} <= {lower} THEN 0.0E0 WHEN {number} >= {sql.number(self.upper)} THEN 1.0E0 "
            f"ELSE {inside} END"
        )

    def sql_term(self, x: str, weights: NDArray[np.float64]) -> str | None:
        return _product(x, weights)

    def sql_square(self, x: str) -> str:
        return f"{x} * {x}"


@dataclass(frozen=True)
class YesNo:
    """true/false, yes/no, t/f, y/n or 1/0: one feature, 1 or 0; a missing cell counts as `fill`, if declared."""

    name: str
    fill: bool | None = None
    width = 1
    middle_square = 0.25
    middle = "every yes/no column halfway between the two"
    unit = "yes instead of no"
    unit_size = 1.0

    def python(self) -> dict[str, Any]:
        return {"kind": "yes_no", "name": self.name, **_filled(self.fill)}

    def sql_cell(self, cell: str) -> str:
        missing = "NULL" if self.fill is None else sql.number(self.fill)
        return sql.truth(cell, "1.0E0", "0.0E0", _or_missing(cell, missing, "NULL"))

    def sql_term(self, x: str, weights: NDArray[np.float64]) -> str | None:
        return _product(x, weights)

    def sql_square(self, x: str) -> str:
        return f"{x} * {x}"


@dataclass(frozen=True)
class Category:
    """One of the declared values: a feature each, 1 for the value of the cell and 0 for the others.

    Any other value makes all of them 0, or leaves the row without a score if `strict`. A missing cell counts as `fill`,
    one of the values, if that is declared.
    """

    name: str
    values: tuple[Label, ...]
    strict: bool = False
    fill: Label | None = None
    middle_square = 1.0
    middle = "one category in every categorical column"
    unit = "this category instead of none"
    unit_size = 1.0

    @property
    def width(self) -> int:
        return len(self.values)

    def python(self) -> dict[str, Any]:
        declared = {"kind": "category", "name": self.name, "values": list(self.values), "strict": self.strict}
        return {**declared, **_filled(self.fill)}

    def sql_cell(self, cell: str) -> str:
        """The place of the value, from 1; 0 for another value."""
        other = "NULL" if self.strict else "0"
        if self.fill is not None:
            other = _or_missing(cell, str(self.values.index(self.fill) + 1), other)
        if isinstance(self.values[0], bool):
            places = {value: str(place) for place, value in enumerate(self.values, 1)}
            return sql.truth(cell, places.get(True, other), places.get(False, other), other)
        if isinstance(self.values[0], str):
            return self._found(sql.as_text(cell), [sql.text(str(value)) for value in self.values], other)
        found = self._found(sql.as_double(cell), [_as_double_is(value) for value in self.values], other)
        return f"CASE WHEN {sql.is_number(cell)} THEN {found} ELSE {other} END"

    def _found(self, read: str, said: Sequence[str | None], other: str) -> str:
        """The place of what was read among what was declared."""
        whens = " ".join(f"WHEN {each} THEN {place}" for place, each in enumerate(said, 1) if each is not None)
        return f"CASE {read} {whens} ELSE {other} END" if whens else other

    def sql_term(self, x: str, weights: NDArray[np.float64]) -> str | None:
        whens = [f"WHEN {place} THEN {sql.number(weight)}" for place, weight in enumerate(weights, 1) if weight]
        return f"CASE {x} {' '.join(whens)} ELSE 0.0E0 END" if whens else None

    def sql_square(self, x: str) -> str:
        return f"CASE WHEN {x} > 0 THEN 1.0E0 WHEN {x} = 0 THEN 0.0E0 END"


def plain_inputs(
    names: Sequence[str], lower: Sequence[float] | None, upper: Sequence[float] | None
) -> tuple[Input, ...]:
    """The columns of a table of numbers, with the declared bounds of a model where it has any."""
    if lower is None or upper is None:
        return tuple(Number(name) for name in names)
    return tuple(Ranged(*each) for each in zip(names, lower, upper, strict=True))


def _filled(fill: Label | None) -> dict[str, Label]:
    return {} if fill is None else {"fill": fill}


def _when_missing(cell: str, value: str) -> str:
    """The beginning of a CASE, empty where a missing cell has no value."""
    return "" if value == "NULL" else f"WHEN {sql.is_missing(cell)} THEN {value} "


def _or_missing(cell: str, value: str, other: str) -> str:
    """What a cell without a reading is: the value of a missing one, or `other`."""
    return other if value == "NULL" else f"CASE {_when_missing(cell, value)}ELSE {other} END"


def _product(x: str, weights: NDArray[np.float64]) -> str | None:
    return f"{sql.number(weights[0])} * {x}" if weights[0] else None


def _as_double_is(value: Label) -> str | None:
    """SQL of a declared number; None for one that no double equals, and which hence no cell is read as."""
    return sql.number(float(value)) if float(value) == value else None
