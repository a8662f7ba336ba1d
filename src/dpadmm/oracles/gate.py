"""What may still be asked: the plan is charged here before a row is read. No row, no array and no noise is held."""

from __future__ import annotations

import math
import os
import threading
from dataclasses import replace
from typing import Any

from dpadmm.errors import PromiseBroken, QueryRefused
from dpadmm.privacy import arithmetic
from dpadmm.privacy.arithmetic import Arithmetic
from dpadmm.privacy.events import Event
from dpadmm.privacy.plan import Plan, Query
from dpadmm.privacy.sampling import Permutation
from dpadmm.stored_json import exactly, reading, real, text, unreadable, whole

VERSION = 1
LONGER_THAN_REACH = math.sqrt(2.0) * (1.0 + 1e-9)
"""How many times longer than its reach a contribution may be: more is not covered by the rounding that is charged."""


class Line:
    """One planned query: what it asks, how often it was charged, and how often it was answered."""

    __slots__ = ("answered", "asked", "is_sound", "kind", "query", "question")

    def __init__(self, query: Query) -> None:
        self.query, self.kind, self.question = query, query.kind, query.question
        self.asked = self.answered = 0
        self.is_sound = False


class Gate:
    """Admits the queries of one plan, each as often as planned, and refuses every other.

    One gate belongs to one execution of a plan. Its state is a few public numbers: `to_dict` and `restored` take it to
    disk and back. Whoever stores a state must see to it that no state is restored twice, as each copy would admit what
    is left.

    Notes
    -----
    *Formal guarantees.* A query is charged before it is drawn: however an answer fails, it is never asked again.
    Threads and forks of the process cannot ask one query twice. `require_kept` passes only if exactly the planned event
    was performed (docs/proofs/sensitivity.md, Claim 1).
    """

    def __init__(self, plan: Plan) -> None:
        if plan.arithmetic is Arithmetic.FLOATING:
            raise QueryRefused("a plan of an earlier version is not carried out; calibrate again")
        self.plan = plan
        self._lines = {query.kind: Line(query) for query in reversed(plan.queries)}
        self._variation = 0.0
        self._lock, self._process = threading.Lock(), os.getpid()

    def line(self, kind: str) -> Line:
        """The planned query of this kind."""
        if os.getpid() != self._process:
            raise QueryRefused("an oracle answers only in the process that made it; make a new plan in each process")
        line = self._lines.get(kind)
        if line is None:
            raise QueryRefused(f"the plan contains no {kind!r} query")
        return line

    def admit(self, line: Line, times: int = 1) -> None:
        """Charge a query, before anything is drawn for it."""
        if not line.is_sound:
            require_sound(line.query, self.plan)
            line.is_sound = True
        with self._lock:
            if line.asked + times > line.query.count:
                raise QueryRefused(f"all {line.query.count} planned {line.kind!r} queries have been answered")
            line.asked += times

    def reserve(self, variation: float) -> None:
        """Charge what exact noise costs of δ, before it is drawn (docs/proofs/float.md, Theorem 2)."""
        budget = self.plan.budget
        with self._lock:
            self._variation += variation
            if not self._variation * (1.0 + math.exp(budget.epsilon)) <= arithmetic.RESERVED_SHARE * budget.delta:
                raise QueryRefused(
                    "so many exact releases that their distance from the Gaussian exceeds what is reserved"
                )

    def record(self, line: Line, times: int = 1) -> None:
        """Count an answer. Only a line of this gate can be performed; anything else leaves the promise unkept."""
        with self._lock:
            if self._lines.get(line.kind) is line:
                line.answered += times

    @property
    def spent(self) -> Event:
        """What was performed so far, in the order of the plan."""
        return Event(tuple(replace(query.part, count=self._answered(query)) for query in self.plan.queries))

    def require_kept(self) -> None:
        """Raise unless exactly the planned event was performed."""
        if self.spent != self.plan.event:
            raise PromiseBroken("the queries performed differ from the queries planned, so nothing is released")

    def to_dict(self) -> dict[str, Any]:
        """The whole state, public numbers alone."""
        counts = {kind: [line.asked, line.answered] for kind, line in self._lines.items()}
        return {"version": VERSION, "plan": self.plan.digest, "queries": counts, "variation": self._variation}

    @classmethod
    def restored(cls, plan: Plan, fields: dict[str, Any]) -> Gate:
        """A gate of the plan that admits what the stored one would still have; `FileProblem` for anything else."""
        gate = cls(plan)
        with reading("the state of a gate"):
            exactly(fields, "the state of a gate", ("version", "plan", "queries", "variation"))
            if whole(fields["version"], "the version of a gate") != VERSION:
                raise unreadable("the state of a gate", "of another version")
            if (
                text(fields["plan"], "the plan of a gate") != plan.digest
                or fields["queries"].keys() != gate._lines.keys()
            ):
                raise unreadable("the state of a gate", "of another plan")
            for kind, counts in fields["queries"].items():
                gate._restore(gate._lines[kind], counts)
            gate._variation = real(fields["variation"], "what exact noise has cost")
            if not 0.0 <= gate._variation < math.inf:
                raise unreadable("the state of a gate", "whose exact noise cost less than nothing")
        return gate

    def _restore(self, line: Line, counts: list[Any]) -> None:
        asked, answered = (whole(each, "how often a query was asked", least=0) for each in counts)
        if not 0 <= answered <= asked <= line.query.count:
            raise unreadable(
                "the state of a gate", "that counts more answers than questions, or more than were planned"
            )
        line.asked, line.answered = asked, answered

    def _answered(self, query: Query) -> int:
        """Of several queries of one kind only the first can be asked."""
        line = self._lines[query.kind]
        return line.answered if query is line.query else 0

    def __reduce__(self) -> Any:
        raise TypeError("a copied gate would admit everything twice; use to_dict and Gate.restored")

    def __repr__(self) -> str:
        return f"Gate({', '.join(f'{kind}: {line.asked}/{line.query.count}' for kind, line in self._lines.items())})"


def require_sound(query: Query, plan: Plan) -> None:
    """What a query must be whenever it is asked. Queries never change, so one look is enough."""
    question = query.question
    if not (math.isfinite(query.noise_multiplier) and query.noise_multiplier > 0):
        raise QueryRefused("a query without noise is never answered")
    if not query.clip_norm >= question.reach(plan.budget.relation):
        raise QueryRefused("the plan declares a question to move less than it can")
    if not question.size <= LONGER_THAN_REACH * query.clip_norm:
        raise QueryRefused("contributions so much longer than what one record moves that their rounding is not covered")
    if question.walks != isinstance(query.sampler, Permutation):
        raise QueryRefused("a secret order of all rows belongs to a hidden pass, and only to one")
    if type(question.sampler(query.sampler)) is not type(query.sampler):
        raise QueryRefused(f"{question.name!r} reads every row, and the plan counts on a sample")
