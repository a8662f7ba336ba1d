"""The privacy statement: facts, worded as one paragraph a data-protection officer can read, and stored as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from dpadmm.privacy import plan_facts, version1
from dpadmm.privacy.assumptions import Assumption, standing_assumptions
from dpadmm.privacy.facts import WHAT, Facts
from dpadmm.privacy.plan import Plan
from dpadmm.privacy.selection.search_plan import SearchPlan
from dpadmm.privacy.version1 import VersionOne
from dpadmm.privacy.wording.sentence import Words
from dpadmm.stored_json import entries


@dataclass(frozen=True)
class PrivacyStatement:
    """What was promised, to whom, and why it holds.

    Parameters
    ----------
    facts : Facts or VersionOne
        Keys and numbers, from which everything below follows; of a model of an earlier version its stored sentences.
    """

    facts: Facts | VersionOne

    @classmethod
    def of(
        cls,
        plan: Plan | SearchPlan,
        solver: str,
        assumptions: Iterable[str | Assumption],
        seeded: bool,
        subject: str = "model",
        candidates: int = 0,
    ) -> PrivacyStatement:
        """What is promised of a release by this plan; `candidates` are those of a search."""
        return cls(plan_facts.facts_of(plan, solver, assumptions, seeded, subject, candidates))

    @property
    def words(self) -> Words | VersionOne:
        """The facts in words; of version 1 as they were stored."""
        return self.facts if isinstance(self.facts, VersionOne) else Words.of(self.facts)

    @property
    def epsilon(self) -> float:
        """ε promised."""
        return self.facts.epsilon

    @property
    def delta(self) -> float:
        """δ promised."""
        return self.facts.delta

    @property
    def relation(self) -> str:
        """Which tables are neighbours."""
        return self.facts.relation

    @property
    def epsilon_achieved(self) -> float:
        """What the accountant certifies for the queries performed; at most `epsilon`."""
        return self.facts.epsilon_achieved

    @property
    def accountant(self) -> str:
        """Who certifies."""
        return self.facts.accountant

    @property
    def seeded(self) -> bool:
        """True if the noise can be repeated by whoever knows the seed: then nothing is private."""
        return self.facts.seeded

    @property
    def plan_digest(self) -> str:
        """Of the plan that was carried out."""
        return self.facts.plan_digest

    @property
    def library_version(self) -> str:
        """The version that made the statement."""
        return self.facts.library_version

    @property
    def subject(self) -> str:
        """What was released: a "model", a "transformer" or a "composition" of both."""
        return self.facts.subject

    @property
    def arithmetic_name(self) -> str:
        """How sums and noise were computed: "granular", "exact" or "floating"."""
        return self.words.arithmetic_name

    @property
    def solvers(self) -> tuple[str, ...]:
        """What asked the queries, by name: of a composition one for each part."""
        return (self.facts.solver,) if isinstance(self.facts, VersionOne) else self.facts.solvers

    @property
    def solver(self) -> str:
        """What asked the queries."""
        return self.words.solver

    @property
    def unit(self) -> str:
        """Whose data is protected, in words."""
        return self.words.unit

    @property
    def mechanisms(self) -> tuple[str, ...]:
        """Every kind of query, in words."""
        return self.words.mechanisms

    @property
    def proof_status(self) -> str:
        """Where the proofs are."""
        return self.words.proof_status

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What must be true outside the library, in words."""
        return self.words.assumptions

    @property
    def arithmetic(self) -> str:
        """How sums and noise were computed, in words."""
        return self.words.arithmetic

    @property
    def outlook(self) -> str:
        """A warning where the budget is too small for the rows to learn anything, else empty."""
        return self.words.outlook

    @property
    def budget_split(self) -> tuple[str, ...]:
        """What each budgeted step before training costs, and what is left for training; empty without such steps."""
        return self.words.budget_split

    @property
    def text(self) -> str:
        """The whole statement as a paragraph."""
        return self.words.text

    def contradictions(self, plan: Plan | SearchPlan) -> tuple[str, ...]:
        """Names of what the statement of a model says otherwise than its plan; the plan must agree with itself."""
        if isinstance(self.facts, VersionOne):
            return version1.contradictions(self.facts, plan)
        return plan_facts.contradictions(self.facts, plan)

    def further_assumptions(self, plan: Plan) -> tuple[Assumption, ...]:
        """What is assumed beyond what follows from the plan."""
        if isinstance(self.facts, VersionOne):
            return version1.further_assumptions(self.facts, plan)
        standing = standing_assumptions(plan)
        return tuple(each for each in self.facts.assumptions if each not in standing)

    def to_dict(self) -> dict[str, Any]:
        """Facts, and the paragraph for readers of the file."""
        stored = self.facts.to_dict()
        return {**stored, "statement": stored.get("statement", self.text)}

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), indent=2)

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> PrivacyStatement:
        """The statement that `to_dict` wrote; `FileProblem` for anything else. Of its paragraph nothing is read."""
        known = entries(fields, WHAT)
        if "version" not in known:
            return cls(VersionOne.from_dict(known))
        return cls(Facts.from_dict({key: value for key, value in known.items() if key != "statement"}))

    def __str__(self) -> str:
        return self.text
