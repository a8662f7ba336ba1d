"""The scale of a typical row, known without any row: what turns a coefficient into an effect."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class TypicalRow:
    """Rows longer than a declared norm are scaled down to it, so that a coefficient counts by the scale of its row.

    Parameters
    ----------
    scale : float
        Of a row that is made from declarations alone.
    words : str
        Which row that is.
    row_norm : float
        The declared norm.
    intercept : bool
        Whether the 1 of an intercept counts in the norm.
    units : sequence of str
        What the effect of one unit of each feature compares.
    unit_sizes : sequence of float
        Raw units that move each feature by one.
    columns : sequence of int
        The number of each feature's raw column: the categories of one column share it.
    encoded : bool
        Whether features are made by a schema: numbers scaled to 0 … 1, categories 0 or 1.
    """

    scale: float
    words: str
    row_norm: float
    intercept: bool
    units: Sequence[str]
    unit_sizes: Sequence[float]
    columns: Sequence[int]
    encoded: bool

    @property
    def reach(self) -> str:
        """How far a feature moves for one effect, for axes."""
        if not self.encoded:
            return "of one unit of a feature"
        return "from a feature's lowest to its highest value, or of a category against the mean of its column"
