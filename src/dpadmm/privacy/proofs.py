"""Where the proofs of a plan are: each page once, in the order in which they are needed."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from dpadmm.privacy.questions import Question

# A claim ends with a parenthesis; the semicolons within one separate sources.
_BETWEEN_CLAIMS = re.compile(r"(?<=\)); ")


def of_questions(questions: Iterable[Question[Any]]) -> tuple[str, ...]:
    """The claim on the sensitivities of what is summed; none where contributions are clipped and nothing else."""
    pages = dict.fromkeys(question.proof for question in questions if question.proof is not None)
    return (f"sensitivities proved here ({', '.join(pages)})",) if pages else ()


def said_once(statuses: Iterable[str]) -> str:
    """Several proof statuses as one, without what an earlier one said.

    Examples
    --------
    >>> said_once(["proved (A; B)", "proved (A; B); proved here (C)"])
    'proved (A; B); proved here (C)'
    """
    return "; ".join(dict.fromkeys(claim for status in statuses for claim in _BETWEEN_CLAIMS.split(status)))
