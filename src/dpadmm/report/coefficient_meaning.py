"""What a coefficient means, in words and numbers of one model."""

from __future__ import annotations

from dpadmm.report.coefficients import Coefficients
from dpadmm.report.typical_row import TypicalRow

_FEATURES = (
    "A feature is a number scaled to 0 … 1 over its declared range, 1 for yes and 0 for no, and for a category 1 where "
    "the row is of it and 0 elsewhere. "
)
_ENCODED = (
    "what a feature adds at the top of its range compared with the bottom, or a category compared with none, while the "
    "scale stays the same. The effect of one unit is that of one more year, hour or whatever the raw column counts. "
    "Compare categories with each other, not with none: the effect against the mean category does so."
)
_PLAIN = "what one more unit of a feature adds, while the scale stays the same."


def meaning(table: Coefficients, score: str) -> str:
    """How a score is made of coefficients, and what an effect is."""
    typical = table.typical
    if typical is None:
        return ""
    middle = "" if table.middle is None else f" + {table.middle:g} (the middle of the declared range of the target)"
    return (
        f"{score[:1].upper()}{score[1:]} is s × (intercept + the sum of coefficient × feature){middle}. "
        f"{_FEATURES if typical.encoded else ''}"
        f"The factor s is the row's own scale: a row longer than the declared norm {typical.row_norm:g} is scaled down "
        f"to it, so s = min(1, {typical.row_norm:g} / length), where the length is the root of the sum of the squared "
        f"features{', with 1 more for the intercept' if typical.intercept else ''}. {_effect(typical)} score.py and "
        "score.sql, unless the model is too large for them, work out the scale of each row and give the model's "
        "predictions."
    )


def _effect(typical: TypicalRow) -> str:
    return (
        f"An effect is a coefficient times {typical.scale:.4g}, the scale of {typical.words}: that row follows from "
        f"declarations, and no row of the table was looked at. It is {_ENCODED if typical.encoded else _PLAIN}"
    )
