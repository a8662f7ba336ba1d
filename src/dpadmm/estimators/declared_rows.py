"""What a user declares about the rows of a table: their public number, and what to do with invalid ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpadmm.errors import InvalidData, InvalidParameter, shown
from dpadmm.privacy.arithmetic import NOMINAL_MARGIN
from dpadmm.privacy.assumptions import Assumption, assumed
from dpadmm.privacy.budget import Relation
from dpadmm.privacy.unit import Unit
from dpadmm.rows.norms import finite_rows

COUNTED = {
    Unit.ROW: ("rows-public", "rows-treated-as-public", "rows-declared", "at-most-times-the-rows", "at-least-one-row"),
    Unit.PERSON: (
        "persons-public",
        "persons-treated-as-public",
        "persons-declared",
        "at-most-times-the-persons",
        "at-least-one-person",
    ),
}
"""Assumptions about the number of what is protected: public, treated as public, or declared with its two limits."""


def nominal_rows(
    n_rows: int | None, actual: int, relation: Relation, unit: Unit = Unit.ROW
) -> tuple[int, tuple[str | Assumption, ...]]:
    """The public number of rows, or of persons, and what has to be assumed about it."""
    public, treated, declared, longest, least = COUNTED[unit]
    if n_rows is None:
        if relation is Relation.REPLACE_ONE:
            return actual, (public,)
        return actual, (treated,)
    if relation is Relation.REPLACE_ONE and n_rows != actual:
        raise InvalidParameter(
            "an n_rows that differs from the table under replace-one",
            f"n_rows=None, or the number of {unit.plural}",
            "drop n_rows; only under relation='add-remove' may it differ from the table",
        )
    if isinstance(n_rows, bool) or not isinstance(n_rows, (int, np.integer)) or n_rows < 1:
        raise InvalidParameter(
            f"n_rows={shown(n_rows)}", "a whole number >= 1", f"declare a public number of {unit.plural}"
        )
    return int(n_rows), (declared, assumed(longest, times=NOMINAL_MARGIN), least)


def fit_unit(unit: str) -> Unit:
    """Whose data a fit may protect: rows, or persons."""
    if str(unit) not in COUNTED:
        raise InvalidParameter(f"unit {shown(unit)} of a fit", "'row' or 'person'", "choose one of these")
    return Unit(str(unit))


def require_policy(invalid_rows: str) -> None:
    """Refuse an unknown answer to what becomes of invalid rows."""
    if invalid_rows not in ("error", "zero"):
        raise InvalidParameter(f"invalid_rows={shown(invalid_rows)}", "'error' or 'zero'", "choose one of these")


def require_finite(X: Any) -> None:
    """Refuse a table with a NaN or an infinity in it."""
    require_valid(finite=bool(finite_rows(X).all()))


def require_valid(finite: bool = True, labelled: bool = True) -> None:
    """Refuse a table of which not all rows are finite, or not all labels as declared."""
    if not finite:
        raise InvalidData(
            "X with NaN or infinity (inf) in it", "finite numbers", "clean the table, or invalid_rows='zero'"
        )
    if not labelled:
        raise InvalidData(
            "y with NaN, infinity (inf), a masked cell or a label outside `classes`",
            "declared labels or finite targets",
            "declare all classes, clean the labels, or use invalid_rows='zero'",
        )


def require_scorable(X: Any) -> None:
    """Refuse to score a table with a NaN or an infinity in it: a model has no rule for a missing number."""
    if not finite_rows(X).all():
        raise InvalidData(
            "X with NaN or infinity (inf) in it, which cannot be scored",
            "finite numbers",
            "drop these rows or fill their gaps with public values, as before training; `dpadmm predict "
            "--invalid-rows blank` leaves their predictions empty",
        )


def on_invalid_rows(policy: str) -> tuple[str, ...]:
    """What has to be assumed where invalid rows are refused."""
    if policy == "zero":
        return ()
    return ("rows-as-declared",)
