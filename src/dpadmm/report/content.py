"""What a report shows; all of it is public."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from dpadmm.privacy.plan import Plan
from dpadmm.privacy.selection import SearchPlan
from dpadmm.privacy.statement import PrivacyStatement
from dpadmm.report.coefficients import Coefficients


@dataclass(frozen=True, eq=False)
class Report:
    """The content of one report folder.

    Parameters
    ----------
    title, subtitle : str
        Headings of the page.
    results : sequence of (name, value)
        Numbers that may be published, such as the accuracy on simulated data.
    statement, plan, coefficients
        Of the released model.
    axis_label : str
        What a bar of the picture means.
    score : str
        What the score is, in the words of a sentence: "the log-odds of ill".
    relevant : collection of int, optional
        Features known to matter (simulated data only).
    edges : sequence of (i, j, weight), optional
        A graph of features that was learned within the budget, strongest edges first.
    """

    title: str
    subtitle: str
    results: Sequence[tuple[str, str]]
    statement: PrivacyStatement
    plan: Plan | SearchPlan
    coefficients: Coefficients
    axis_label: str
    score: str = "the score"
    relevant: Collection[int] | None = None
    edges: Sequence[tuple[int, int, float]] | None = None
