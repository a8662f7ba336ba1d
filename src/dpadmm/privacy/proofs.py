"""Where the proofs of a plan are: keys of claims, and the citation that plans store of each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from dpadmm.privacy.accountants.base import make_accountant
from dpadmm.privacy.plan import Plan
from dpadmm.privacy.questions import Question
from dpadmm.privacy.unit import Unit

CITATIONS: dict[str, str] = {
    "gaussian": "proved (Balle & Wang 2018, Thm 8; docs/proofs/gaussian.md)",
    "poisson": "proved here (docs/proofs/poisson.md)",
    "without-replacement": "proved here (docs/proofs/without-replacement.md)",
    "truncated-poisson": "proved here (docs/proofs/truncated-poisson.md)",
    "renyi-gaussian": "proved (Bun & Steinke 2016, Prop. 1.6; docs/proofs/gaussian.md)",
    "renyi-poisson": "proved (Mironov, Talwar & Zhang 2019, Thm 4)",
    "renyi-without-replacement": "proved (Wang, Balle & Kasiviswanathan 2019, Thm 9)",
    "iteration": "proved here (docs/proofs/iteration.md)",
    "iteration-paper": (
        "proved (Chan, Xie & Zhao 2024, Thm 5.1, for the first record; docs/proofs/iteration.md for all of them)"
    ),
    "persons": "the same for persons with any number of rows, proved here (docs/proofs/persons.md)",
    "selection-profile": "proved here (docs/proofs/tuning.md; compare Koskela, Redberg & Wang 2024)",
    "selection-renyi": "proved (Papernot & Steinke 2022, Thms 2 and 6; docs/proofs/tuning.md)",
}
"""Plans store these citations and digests cover them: changing one makes other digests of the same plans."""

SENSITIVITIES = "sensitivities"
"""The claim on how far one row moves what is no clipped gradient; its pages follow from the queries."""


def cited(claims: Iterable[str], questions: Iterable[Question[Any]] = ()) -> tuple[str, ...]:
    """The citations of claims, and the pages on the sensitivities of what is asked."""
    return (*(CITATIONS[claim] for claim in claims), *of_pages(pages_of(questions)))


def pages_of(questions: Iterable[Question[Any]]) -> tuple[str, ...]:
    """The pages that prove how far a row moves an answer; none where contributions are clipped, and no more is used."""
    return tuple(dict.fromkeys(question.proof for question in questions if question.proof is not None))


def of_pages(pages: Iterable[str]) -> tuple[str, ...]:
    """The citation of sensitivities that are proved on these pages; none without a page."""
    named = ", ".join(pages)
    return (f"sensitivities proved here ({named})",) if named else ()


def status(citations: Iterable[str]) -> str:
    """Citations as plans store them: each once, in the order in which they are needed.

    Examples
    --------
    >>> status(["proved (A; B)", "proved (A; B)", "proved here (C)"])
    'proved (A; B); proved here (C)'
    """
    return "; ".join(dict.fromkeys(citations))


def citations_of(plan: Plan) -> tuple[str, ...]:
    """The citations of what certifies a plan of a fit."""
    return cited(accountant_claims(plan), (query.question for query in plan.queries))


def claims_of(plans: Sequence[Plan], more: Iterable[str] = ()) -> tuple[str, ...]:
    """Keys of all claims on which the promise of these plans rests."""
    found = dict.fromkeys((*more, *(claim for plan in plans for claim in accountant_claims(plan))))
    learned = any(query.question.proof is not None for plan in plans for query in plan.queries)
    return (*found, *((SENSITIVITIES,) if learned else ()))


def claims_for(unit: Unit) -> tuple[str, ...]:
    """Keys of what is claimed beside, where more than one row is protected."""
    return () if unit is Unit.ROW else ("persons",)


def accountant_claims(plan: Plan) -> tuple[str, ...]:
    """Keys of the claims by which the accountant of a plan certifies it; refused where there is none."""
    judge, event, relation = make_accountant(plan.accountant), plan.event, plan.budget.relation
    judge.check(event, relation)
    return (*judge.claims(event, relation), *claims_for(plan.unit))
