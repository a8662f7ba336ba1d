"""What a benchmark says: a case, a measure, a number, and the target it is held to."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from rich.console import Console
from rich.table import Table

Sense = Literal["at least", "at most"]


@dataclass(frozen=True)
class Row:
    """One line of the table.

    Parameters
    ----------
    part, case, measure : str
        Which benchmark, on what, and what was measured.
    value : float or None
        None where the case could not be run; `note` then says why.
    unit : str
        "×" for ratios, "%", "s", "ns", ...
    target : float or None
        Bound to reach ("at least") or to keep ("at most").
    raw : dict
        The seconds or bytes that `value` was computed from.
    """

    part: str
    case: str
    measure: str
    value: float | None
    unit: str = "×"
    target: float | None = None
    sense: Sense = "at least"
    note: str = ""
    raw: dict[str, Any] = field(default_factory=dict)

    @property
    def met(self) -> bool | None:
        if self.value is None or self.target is None:
            return None
        return self.value >= self.target if self.sense == "at least" else self.value <= self.target

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def number(value: float | None, unit: str) -> str:
    if value is None:
        return "–"
    return f"{value:.3g} {unit}" if abs(value) < 1000 else f"{value:.0f} {unit}"


def verdict(row: Row) -> str:
    return {None: "", True: "met", False: "missed"}[row.met]


def bound(row: Row) -> str:
    sign = "≥" if row.sense == "at least" else "≤"
    return "" if row.target is None else f"{sign} {row.target:g} {row.unit}"


def print_rows(rows: list[Row]) -> None:
    table = Table("part", "case", "measure", "value", "target", "", "note")
    for row in rows:
        table.add_row(
            row.part, row.case, row.measure, number(row.value, row.unit), bound(row), verdict(row), row.note, style=None
        )
    Console(width=160).print(table)
