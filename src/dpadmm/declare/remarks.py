"""Warnings before a budget is charged: what public numbers alone say against a fit.

A remark depends on declarations, the budget and the public number of rows, never on a cell. So neither a remark nor its
absence tells anything about the rows. A remark is about a likely mistake; what breaks a promise is refused elsewhere.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from dpadmm.declare.callers import callers_line
from dpadmm.declare.penalties import uses
from dpadmm.errors import (
    PublicWarning,
    TooLargeRowNorm,
    TooSmallBudget,
    UndeclaredBounds,
    UndeclaredTargetBounds,
    UnusedSetting,
)
from dpadmm.privacy.budget import Budget
from dpadmm.privacy.outlook import LEAST_SIGNAL, outlook, signal
from dpadmm.privacy.unit import Unit
from dpadmm.privacy.wording import rounded_up, sentence
from dpadmm.solvers.base import SOLVERS

WORDS: Mapping[type[PublicWarning], str] = {
    UndeclaredBounds: (
        "Neither bounds nor row_norm were declared. Rows longer than 1 are scaled down to norm 1, and a feature with "
        "large numbers then hides all others. Declare bounds=(lower, upper) from public knowledge, or let "
        "bounds=PrivateQuantileClipper(...) find them with a share of the budget. If all features are on one scale "
        "already, declare the largest norm of a row, for instance row_norm=1.0."
    ),
    UndeclaredTargetBounds: (
        "No target_bounds were declared. Targets are clipped to the range from -1 to 1, which ruins a model of any "
        "other range. Declare target_bounds=(lower, upper) from public knowledge, for instance target_bounds=(0, 100); "
        "if the range is -1 to 1, declare (-1, 1)."
    ),
    UnusedSetting: "{given} does nothing {beside}. {do}.",
    TooLargeRowNorm: (
        "row_norm={row_norm:g} is larger than any row: within the declared bounds no row is longer than {longest}. "
        "The noise is as large as rows of norm {row_norm:g} need, so it hides more than necessary. "
        "Declare row_norm={longest} or less."
    ),
    TooSmallBudget: (
        "{outlook} Do not spend the budget on this fit. At this epsilon and delta it takes about {rows:,} {units}. "
        "With the {units} you have it takes a larger epsilon."
    ),
}
ONLY_EPSILON = (
    "{outlook} Do not spend the budget on this fit. It takes a larger epsilon; more {units} do not help at this delta."
)
"""Used where delta would be at least one over the number of rows needed."""

DEFAULT_ALPHA = 1e-4
"""Of the estimators. A user who gave another value wanted a penalty."""
MARGIN = 1.01
"""How much longer than any row a declared norm may be, because people round."""

_UNANNOUNCED: ContextVar[bool] = ContextVar("unannounced", default=False)


@dataclass(frozen=True)
class Remark:
    """One thing to say, as facts; `text` words it."""

    category: type[PublicWarning]
    facts: Mapping[str, Any]

    @property
    def text(self) -> str:
        if self.category is TooSmallBudget and self.facts["rows"] is None:
            return ONLY_EPSILON.format(**self.facts)
        return WORDS[self.category].format(**self.facts)


def remarks_on(
    budget: Budget,
    n_rows: int,
    settings: Iterable[Mapping[str, Any]] = (),
    share: float = 1.0,
    features: int | None = None,
    unit: Unit = Unit.ROW,
) -> tuple[Remark, ...]:
    """What there is to say about fits on this budget and number of rows.

    Parameters
    ----------
    budget : Budget
        Of one fit.
    n_rows : int
        Public number of rows that one fit reads.
    settings : iterable of dict
        Parameters of the models that may be fitted, if they are known.
    share : float
        What part of the table those rows are.
    features : int, optional
        Of a mapped row, the intercept among them, if it is known.
    unit : Unit
        Whose data is protected: of persons `n_rows` is their number.

    Examples
    --------
    >>> [remark.category.__name__ for remark in remarks_on(Budget(0.1, 1e-6), 50, [{"bounds": None, "row_norm": None}])]
    ['UndeclaredBounds', 'TooSmallBudget']
    >>> remarks_on(Budget(1.0, 1e-6), 1000, [{"bounds": (0, 1), "row_norm": None}])
    ()
    """
    tried = list(settings)
    said = []
    if any(one["bounds"] is None and one["row_norm"] is None for one in tried):
        said.append(Remark(UndeclaredBounds, {}))
    if any("target_bounds" in one and one["target_bounds"] is None for one in tried):
        said.append(Remark(UndeclaredTargetBounds, {}))
    said += _unused(tried)
    # Bounds map every feature to [0, 1].
    if features is not None and (norms := _too_large_norms(tried, longest := math.sqrt(features))):
        said.append(Remark(TooLargeRowNorm, {"row_norm": min(norms), "longest": rounded_up(longest)}))
    if hopeless := outlook(budget, n_rows):
        words = sentence.outlook(hopeless, unit)
        rows = math.ceil(LEAST_SIGNAL * n_rows / signal(budget, n_rows) / share)
        reachable = rows if budget.delta * rows < 1 else None
        said.append(Remark(TooSmallBudget, {"outlook": words, "rows": reachable, "units": unit.plural}))
    return tuple(said)


def _unused(tried: list[Mapping[str, Any]]) -> Iterator[Remark]:
    """Settings that do nothing in any of the models that may be fitted."""
    if tried and all(
        one.get("alpha", DEFAULT_ALPHA) != DEFAULT_ALPHA and not uses(one["penalty"], "alpha") for one in tried
    ):
        do = "Choose a penalty, for instance l1, or drop alpha"
        yield Remark(UnusedSetting, {"given": "alpha", "beside": "without a penalty", "do": do})
    if tried and all(one.get("batch_size") is not None and not SOLVERS[one["solver"]].samples for one in tried):
        do = "Drop batch_size, or choose a mini-batch solver such as dp-sadmm"
        beside = f"with solver {tried[0]['solver']}, which reads all rows at each step"
        yield Remark(UnusedSetting, {"given": "batch_size", "beside": beside, "do": do})


def _too_large_norms(settings: list[Mapping[str, Any]], longest: float) -> list[float]:
    """Norms declared beside bounds, if all of them are beyond the longest row that the bounds allow."""
    norms = [one["row_norm"] for one in settings if one["bounds"] is not None and one["row_norm"] is not None]
    return norms if len(norms) == len(settings) and all(norm > MARGIN * longest for norm in norms) else []


def announce(remarks: Iterable[Remark]) -> None:
    """Give each remark as a warning, at the line that called this library."""
    for remark in () if _UNANNOUNCED.get() else remarks:
        warnings.warn(remark.category(remark.text), stacklevel=callers_line())


@contextmanager
def unannounced() -> Iterator[None]:
    """No warnings in the trials of a search: one from each would show how many trials there are, which is secret."""
    before = _UNANNOUNCED.set(True)
    try:
        yield
    finally:
        _UNANNOUNCED.reset(before)
