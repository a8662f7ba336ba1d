"""Statements of version 1, which stored sentences: read, quoted and compared with what was said then, never parsed."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from dpadmm.privacy.arithmetic import Arithmetic
from dpadmm.privacy.assumptions import Assumption, assumed
from dpadmm.privacy.budget import Budget, Relation
from dpadmm.privacy.facts import Facts
from dpadmm.privacy.plan import Plan
from dpadmm.privacy.plan_facts import facts_of
from dpadmm.privacy.selection.search_plan import SearchPlan
from dpadmm.privacy.wording import version1_words as words
from dpadmm.privacy.wording.version1_words import EARLIER, SAFE, Sides
from dpadmm.stored_json import entries, reading, record, texts

WORDED_BY = "0.1.0"
"""The version whose whole paragraphs are known; those of others are read, and not repeated."""


@dataclass(frozen=True)
class VersionOne:
    """A statement as version 1 stored it; `statement` is its paragraph, where it was stored.

    Formal guarantees
    -----------------
    None: a sentence may say anything. What is loaded is compared with its plan (`contradictions`).
    """

    epsilon: float
    delta: float
    relation: str
    epsilon_achieved: float
    unit: str
    mechanisms: tuple[str, ...]
    accountant: str
    proof_status: str
    assumptions: tuple[str, ...]
    seeded: bool
    solver: str
    plan_digest: str
    arithmetic: str = words.FLOATING
    library_version: str = WORDED_BY
    outlook: str = ""
    budget_split: tuple[str, ...] = ()
    arithmetic_name: str = str(Arithmetic.FLOATING)
    subject: str = "model"
    statement: str = ""

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> VersionOne:
        """The statement that version 1 wrote; `FileProblem` for anything else."""
        rest = {"budget_split": (), **entries(fields, "a statement")}
        for name in ("mechanisms", "assumptions", "budget_split"):
            rest[name] = texts(rest.get(name), f"{name} of a statement")
        made = record(cls, rest, "a statement")
        with reading("a statement"):
            Budget(made.epsilon, made.delta, Relation.parse(made.relation))
        return made

    def to_dict(self) -> dict[str, Any]:
        """As version 1 stored it; a paragraph in words that are not known is said again."""
        known = self.statement in self.paragraphs
        return {**asdict(self), "statement": self.statement if known else self.text}

    @property
    def text(self) -> str:
        """The paragraph, of the sentences as they were stored."""
        return self.paragraphs[0]

    @property
    def paragraphs(self) -> tuple[str, ...]:
        """The paragraphs that version 1 may have stored, in the digits of either side."""
        return words.paragraph(self, SAFE), words.paragraph(self, EARLIER)


def contradictions(stated: VersionOne, plan: Plan | SearchPlan) -> tuple[str, ...]:
    """Names of what the statement of a model says otherwise than version 1 would have said of its plan.

    Assumptions may be more than follow from the plan, not fewer.
    """
    implied = facts_of(plan, stated.solver)
    wrong = [name for name, said in _said(implied, plan).items() if getattr(stated, name) not in said]
    if not any(_asked(stated, implied, sides) for sides in (SAFE, EARLIER)):
        wrong.append("mechanisms")
    if not set(words.assumptions(implied)) <= set(stated.assumptions):
        wrong.append("assumptions")
    if stated.library_version == WORDED_BY and stated.statement not in ("", *stated.paragraphs):
        wrong.append("statement")
    return tuple(wrong)


def further_assumptions(stated: VersionOne, plan: Plan) -> tuple[Assumption, ...]:
    """What a statement assumes beyond what follows from its plan, quoted."""
    standing = words.assumptions(facts_of(plan, stated.solver))
    return tuple(assumed("as-stored", words=each) for each in stated.assumptions if each not in standing)


def _said(implied: Facts, plan: Plan | SearchPlan) -> dict[str, tuple[Any, ...]]:
    """Everything but the queries, in the digits of either side."""
    same = ("epsilon", "delta", "relation", "epsilon_achieved", "accountant", "plan_digest", "subject")
    return {
        **{name: (getattr(implied, name),) for name in same},
        "unit": ("one row of the table",),
        "proof_status": (plan.proof_status,),
        "arithmetic": (words.arithmetic(implied),),
        "arithmetic_name": (implied.arithmetic,),
        "outlook": tuple(words.outlook(implied.outlook, sides) for sides in (SAFE, EARLIER)),
        "budget_split": (words.split(implied.split),),
    }


def _asked(stated: VersionOne, implied: Facts, sides: Sides) -> bool:
    """Whether the queries are those of the plan, in the digits of one side."""
    queries = words.mechanisms(implied, sides)
    if implied.search is None:
        return stated.mechanisms == queries
    return stated.mechanisms[1:] == queries and stated.mechanisms[0] in words.laws(implied.search, sides)
