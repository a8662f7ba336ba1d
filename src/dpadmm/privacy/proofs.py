"""Where the proofs of a plan are: each page once, in the order in which they are needed."""

from __future__ import annotations

import re
from collections.abc import Iterable

from dpadmm.privacy.statistics import Statistic

# A claim ends with a parenthesis; the semicolons within one separate sources.
_BETWEEN_CLAIMS = re.compile(r"(?<=\)); ")


def of_statistics(statistics: Iterable[Statistic | None]) -> tuple[str, ...]:
    """The claim on the sensitivities of what is summed; none where these are clipped gradients."""
    pages = dict.fromkeys(statistic.proof for statistic in statistics if statistic is not None)
    return (f"sensitivities proved here ({', '.join(pages)})",) if pages else ()


def said_once(statuses: Iterable[str]) -> str:
    """Several proof statuses as one, without what an earlier one said.

    Examples
    --------
    >>> said_once(["proved (A; B)", "proved (A; B); proved here (C)"])
    'proved (A; B); proved here (C)'
    """
    return "; ".join(dict.fromkeys(claim for status in statuses for claim in _BETWEEN_CLAIMS.split(status)))
