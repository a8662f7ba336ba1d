"""The public number that stands for how many examples there are."""

from __future__ import annotations

from dpadmm.errors import InvalidData, InvalidParameter
from dpadmm.privacy.arithmetic import NOMINAL_MARGIN, most_rows
from dpadmm.privacy.assumptions import Assumption, assumed
from dpadmm.privacy.budget import Relation
from dpadmm.problem.checks import count


def public_count(declared: int | None, there: int, relation: Relation) -> tuple[int, tuple[str | Assumption, ...]]:
    """The number to plan for, and what has to be assumed about it."""
    if there == 0:
        raise InvalidData("a dataset without rows", "at least one row", "pass the rows to train on")
    if declared is None:
        return there, ("rows-public" if relation is Relation.REPLACE_ONE else "rows-treated-as-public",)
    if relation is Relation.REPLACE_ONE and declared != there:
        raise InvalidParameter(
            "an n_rows that differs from the dataset under replace-one",
            "n_rows=None, or the number of rows",
            "drop n_rows; only under relation='add-remove' may it differ from the dataset",
        )
    nominal = count("n_rows", declared, minimum=1)
    if there > most_rows(nominal, relation):
        raise InvalidParameter(
            "a dataset of far more rows than n_rows",
            f"at most {NOMINAL_MARGIN} times n_rows",
            "declare a public number nearer to the rows",
        )
    longest = assumed("at-most-times-the-rows", times=NOMINAL_MARGIN)
    return nominal, ("rows-declared", longest, "at-least-one-row")
