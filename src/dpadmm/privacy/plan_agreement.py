"""Whether the numbers of a plan agree with each other: each number that follows from others is computed again.

An accountant certifies an event and does not know the table. It would certify a sampler that draws from 2⁶³ rows at no
cost, whatever the table holds. So the sampler's rows must be those of the plan, and likewise for every other number.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any

from dpadmm.errors import DpadmmError, PromiseBroken, UnsupportedProblem
from dpadmm.kernels.clipping import SMALLEST_CLIP
from dpadmm.privacy.accountants.base import ACCOUNTANTS
from dpadmm.privacy.arithmetic import LARGEST_EXACT_MULTIPLIER, Arithmetic
from dpadmm.privacy.passage import NOISY_PASS
from dpadmm.privacy.plan import Plan, Query
from dpadmm.privacy.questions import HiddenWalk, Question
from dpadmm.privacy.questions import stored as stored_questions
from dpadmm.privacy.sampling import Permutation, Sampler, sampler_from_dict, sampler_to_dict
from dpadmm.privacy.unit import Unit
from dpadmm.privacy.wording import rounded_down, rounded_up
from dpadmm.stored_json import LARGEST_WHOLE

MOST_RELEASES = 1_000_000_000
"""Of one kind, in one plan. No fit so long ends in reasonable time, and no accountant either."""
CLOSE = 1e-12
"""What two ways of computing one number may differ by, relatively."""
OVERSTATED = 0.9
"""A plan costs at least this share of what it states: one that costs less was changed after it was calibrated.
Accountants of earlier versions were looser by less than that."""


def require_agreement(plan: Plan) -> None:
    """Refuse a plan of which one number contradicts another.

    Formal guarantees
    -----------------
    Raises `PromiseBroken` unless all queries are of the table of `n_rows` rows, bounded and counted, their noise on a
    mean follows from that on a sum, each question is charged for all it can move, and no more than the budget is said
    to be spent.
    """
    _require(_whole(plan.n_rows, LARGEST_WHOLE), "whose number of rows is not a whole number from 1 to 2**53")
    _require(plan.budget.delta * plan.n_rows < 1, "whose delta is not below one over its number of rows")
    within = 0 < plan.epsilon_achieved <= plan.budget.epsilon * (1 + CLOSE)
    _require(within, "that says it spends nothing, or more than its budget")
    _require(len(plan.queries) > 0, "without queries")
    _require(plan.accountant in ACCOUNTANTS, "without an accountant that there is")
    for query in plan.queries:
        for holds, otherwise in _claims(plan, query):
            _require(holds, f"whose {query.kind!r} {otherwise}")


def is_proved(unit: Unit, question: Question[Any], arithmetic: Arithmetic) -> bool:
    """Whether the bound on what one row contributes is proved to bound what a whole unit does."""
    return unit is Unit.ROW or (question.persons and arithmetic is not Arithmetic.EXACT)


def require_proved(unit: Unit, questions: Iterable[Question[Any]], arithmetic: Arithmetic) -> None:
    """Refuse what docs/proofs/persons.md has no proof for, before anything is certified."""
    if unit is not Unit.ROW and arithmetic is Arithmetic.EXACT:
        raise UnsupportedProblem(
            f"arithmetic='exact' for a promise to {unit.plural}",
            "arithmetic='granular'",
            "leave arithmetic out: a mean over the rows of a person is no whole number",
        )
    for question in questions:
        if not is_proved(unit, question, arithmetic):
            raise UnsupportedProblem(
                f"the question {question.name!r} for a promise to {unit.plural}",
                "questions of which it is proved (docs/proofs/persons.md)",
                "choose solver='auto' or another one that only sums, or promise privacy to single rows",
            )


def require_cost(stated: float, epsilon: float) -> None:
    """Refuse a stated ε that is not what the queries cost."""
    if not OVERSTATED * stated <= epsilon <= stated:
        raise PromiseBroken(
            f"Got a plan that states epsilon {rounded_down(stated)}, but its queries cost {rounded_up(epsilon)}. "
            "Expected no more than stated, and not much less. Discard the plan and calibrate again."
        )


def _claims(plan: Plan, query: Query) -> Iterator[tuple[bool, str]]:
    """What must hold for a query, and what is wrong where it does not; later ones rest on earlier ones."""
    yield _whole(query.count, MOST_RELEASES), f"is not asked from 1 to {MOST_RELEASES:,} times"
    yield SMALLEST_CLIP <= query.clip_norm < math.inf, "has no usable bound on what a row contributes"
    yield 0 < query.noise_multiplier < math.inf, "has no noise, or more than there is"
    yield _is_as_declared(query), "has a sampler or a question that cannot be"
    yield getattr(query.sampler, "n_rows", plan.n_rows) == plan.n_rows, "draws from another number of rows"
    usual = query.sampler.denominator(plan.n_rows)
    yield math.isclose(query.denominator, usual, rel_tol=CLOSE), "is divided by another number than its batches have"
    yield 0 < query.noise_std < math.inf, "has noise on the mean that is no number"
    question = query.question
    hidden = isinstance(question, HiddenWalk)
    yield hidden == isinstance(query.sampler, Permutation) == (query.kind == NOISY_PASS), "hides no states"
    if isinstance(question, HiddenWalk):
        yield question.passage.n_rows == plan.n_rows, "visits another number of rows"
        charged = question.passage.rounding > 0 or plan.arithmetic is Arithmetic.FLOATING
        yield charged and plan.arithmetic is not Arithmetic.EXACT, "charges no rounding"
    yield query.clip_norm >= question.reach(plan.budget.relation), "can move further than it states"
    yield question.sampler(query.sampler) == query.sampler, "is sampled, but reads every row"
    yield is_proved(plan.unit, question, plan.arithmetic), f"has no proof for {plan.unit.plural}"
    if plan.arithmetic is Arithmetic.EXACT:
        yield query.noise_multiplier <= LARGEST_EXACT_MULTIPLIER, "has more noise than exact arithmetic can draw"


def _is_as_declared(query: Query) -> bool:
    """Whether sampler and question are such as a plan can be stored with: their own checks, and their types."""
    try:
        sampler = query.sampler == sampler_from_dict(sampler_to_dict(query.sampler))
        written = stored_questions.written(query.kind, query.clip_norm, query.question)
        question = query.question == stored_questions.read(query.kind, query.clip_norm, written)
    except DpadmmError:
        return False
    return sampler and question and _rate(query.sampler) > 0


def _rate(sampler: Sampler) -> float:
    return float(getattr(sampler, "rate", 1.0))


def _whole(value: object, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= most


def _require(holds: bool, otherwise: str) -> None:
    if not holds:
        raise PromiseBroken(f"Got a plan {otherwise}. Expected numbers that agree. Discard it and calibrate again.")
