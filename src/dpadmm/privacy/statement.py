"""The privacy statement: one paragraph a data-protection officer can read, and the same as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol

from dpadmm._version import __version__
from dpadmm.privacy.arithmetic import Arithmetic
from dpadmm.privacy.budget import Budget, Relation
from dpadmm.privacy.outlook import outlook
from dpadmm.privacy.passage import Passage
from dpadmm.privacy.plan import Plan, Query
from dpadmm.privacy.questions import CentredScore, ClippedGradient, GradientDifference, HiddenWalk
from dpadmm.privacy.split import STEPS, split_of
from dpadmm.privacy.wording import SAFE, Sides
from dpadmm.stored import entries, reading, record, texts

_GRANULAR_SUMS = (
    "Each sum is rounded to a public grid before its noise, and the noise to the same grid, so that no digit finer "
    "than the grid depends on a row; the noise is enlarged by what rounding can add to one row's contribution."
)
_GRANULAR_STATES = (
    "Each hidden state is rounded to a public grid before the noise of a visit, and the noise to the same grid, so "
    "that no digit finer than the grid depends on a row; the accountant charges what rounding can add at every visit."
)
_NORMALS = (
    "The noise itself is drawn in double precision, which approximates the real-valued Gaussian the proof speaks of, "
    "and timing is not protected."
)
_EXACT = (
    "Arithmetic: exact. Contributions are whole numbers on a public lattice, summed without rounding, and the noise is "
    "discrete Gaussian, sampled exactly from the operating system's random bits; its distance from the Gaussian of the "
    "proof is charged to delta. Timing is not protected."
)
_FLOATING = (
    "Arithmetic: floating. States and noise are computed in double precision and their rounding is not charged; like "
    "every floating-point implementation of the Gaussian mechanism this is an approximation of the real-valued "
    "mechanism the proof speaks of, and timing is not protected."
)


def arithmetic_words(arithmetic: Arithmetic, queries: Sequence[Query]) -> str:
    """How sums, states and noise of these queries are computed."""
    if arithmetic is not Arithmetic.GRANULAR:
        return _EXACT if arithmetic is Arithmetic.EXACT else _FLOATING
    states = any(isinstance(query.question, HiddenWalk) for query in queries)
    sums = not all(isinstance(query.question, HiddenWalk) for query in queries)
    said = [*([_GRANULAR_SUMS] if sums else []), *([_GRANULAR_STATES] if states else []), _NORMALS]
    return f"Arithmetic: granular. {' '.join(said)}"


_RELATION_WORDS = {
    Relation.REPLACE_ONE: "replacing the data in any one row by any other data",
    Relation.ADD_REMOVE: "adding or removing any one row",
}


@dataclass(frozen=True)
class PrivacyStatement:
    """What was promised, to whom, and why it holds.

    Attributes
    ----------
    epsilon, delta, relation
        The promise.
    epsilon_achieved
        What the accountant certifies for the queries performed; at most `epsilon`.
    unit
        Whose data is protected: one row of the table.
    mechanisms
        Every kind of query, in words.
    accountant, proof_status
        Who certifies, and on what proof.
    assumptions
        What must be true outside the library.
    seeded
        True if the noise can be repeated by whoever knows the seed: then nothing is private.
    arithmetic, arithmetic_name
        How sums and noise were computed, in words and as "granular", "exact" or "floating".
    outlook
        A warning where the budget is too small for the rows to learn anything, else empty (`dpadmm.privacy.outlook`).
    budget_split
        What each budgeted step before training costs, and what is left for training; empty without such steps.
    subject
        What was released: a "model", a "transformer" or a "composition" of both.
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
    arithmetic: str = _FLOATING
    library_version: str = __version__
    outlook: str = ""
    budget_split: tuple[str, ...] = ()
    arithmetic_name: str = str(Arithmetic.FLOATING)
    subject: str = "model"

    @classmethod
    def of(
        cls,
        plan: Plan,
        solver: str,
        assumptions: tuple[str, ...],
        seeded: bool,
        subject: str = "model",
        sides: Sides = SAFE,
    ) -> PrivacyStatement:
        return cls(
            epsilon=plan.budget.epsilon,
            delta=plan.budget.delta,
            relation=str(plan.budget.relation),
            epsilon_achieved=plan.epsilon_achieved,
            unit="one row of the table",
            mechanisms=tuple(
                describe(query, plan.budget.relation.record_distance, plan.arithmetic, sides) for query in plan.queries
            ),
            accountant=plan.accountant,
            proof_status=plan.proof_status,
            assumptions=standing_assumptions(plan, subject) + assumptions,
            seeded=seeded,
            solver=solver,
            plan_digest=plan.digest,
            arithmetic=arithmetic_words(plan.arithmetic, plan.queries),
            arithmetic_name=str(plan.arithmetic),
            outlook=outlook(plan.budget, plan.n_rows, sides),
            budget_split=tuple(str(part) for part in split_of(plan)),
            subject=subject,
        )

    @property
    def text(self) -> str:
        return self.worded()

    def worded(self, sides: Sides = SAFE) -> str:
        """The statement as a paragraph; with `EARLIER` sides in the digits of earlier versions."""
        relation, epsilon, delta = Relation.parse(self.relation), sides.up(self.epsilon), sides.up(self.delta)
        lead = (
            "seeded: NOT private. Whoever knows or guesses the seed can subtract the noise. Trained without one, this "
            if (self.seeded)
            else "This "
        )
        return (
            f"{lead}{self.subject} is ({epsilon}, {delta})-differentially private under {self.relation} "
            f"neighbours: {_RELATION_WORDS[relation]} changes the probability of any outcome by a factor of at most "
            f"e^{epsilon}, but for an extra probability of at most {delta}. The unit of privacy is "
            f"{self.unit}; a person with several rows is protected less, and every further fit on these rows costs "
            f"again. {'The solver ' if self.subject == 'model' else ''}{self.solver} touched the data only through: "
            f"{'; '.join(self.mechanisms)}. "
            f"{'Of the budget: ' + '; '.join(self.budget_split) + '. ' if self.budget_split else ''}"
            f"The {self.accountant} accountant certifies "
            f"epsilon = {sides.up(self.epsilon_achieved)} for exactly these queries; {self.proof_status}. "
            f"Assumptions: {'; '.join(self.assumptions)}. {self.arithmetic} "
            f"{self.outlook + ' ' if self.outlook else ''}(dpadmm {self.library_version})"
        )

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "statement": self.text}

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), indent=2)

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> PrivacyStatement:
        """The statement that `to_dict` wrote; `FileProblem` for anything else."""
        rest = {key: value for key, value in entries(fields, "a statement").items() if key != "statement"}
        rest["budget_split"] = rest.get("budget_split", ())
        for name in ("mechanisms", "assumptions", "budget_split"):
            rest[name] = texts(rest.get(name), f"{name} of a statement")
        made = record(cls, rest, "a statement")
        with reading("a statement"):
            Budget(made.epsilon, made.delta, Relation.parse(made.relation))
        return made

    def __str__(self) -> str:
        return self.text


_SAMPLER_WORDS = {
    "full": "all rows",
    "poisson": "rows drawn independently (Poisson sampling)",
    "truncated-poisson": "rows drawn independently and capped in number (truncated Poisson sampling)",
    "fixed": "a fresh fixed-size random set of rows",
    "permutation": "all rows, one after another in a secret random order",
}


def describe(
    query: Query, record_distance: float = 2.0, arithmetic: Arithmetic = Arithmetic.GRANULAR, sides: Sides = SAFE
) -> str:
    """One query kind in words: how often, over which rows, bounded how, and with how much noise."""
    rows, clip = _SAMPLER_WORDS[query.sampler.name], sides.up(query.clip_norm)
    if isinstance(query.question, HiddenWalk):
        rounding = _rounding_words(query.question.passage, query.noise_multiplier, sides)
        return (
            f"{query.count} hidden {'pass' if query.count == 1 else 'passes'} over {rows}, each row's gradient clipped "
            f"to norm {clip}, Gaussian noise of standard deviation {sides.down(query.noise_std, 4)} times the step "
            f"added to the coefficients after every row{rounding}; "
            "only the last state was released"
        )
    if query.sampler.name != "full":
        rows += f", {query.denominator:g} expected"
    law = "discrete Gaussian" if arithmetic is Arithmetic.EXACT else "Gaussian"
    noise = f"{law} noise of standard deviation {sides.down(query.noise_multiplier * query.clip_norm, 4)} on the sum"
    if isinstance(query.question, GradientDifference):
        bound = f"each row's contribution clipped to a public bound of at most {clip} from earlier releases"
        noise = f"{law} noise of {sides.down(query.noise_multiplier, 4)} times that bound on the sum"
    elif not isinstance(query.question, (ClippedGradient, CentredScore)):
        bound = f"which one row can move by at most {sides.up(record_distance * query.clip_norm, 4)}"
    else:
        bound = f"each row's contribution clipped to norm {clip}"
    noun = "release" if query.count == 1 else "releases"
    what = f" ({query.question.words})" if query.question.words else ""
    return f"{query.count} noisy {query.kind} {noun}{what} over {rows}, {bound}, {noise}"


def _rounding_words(passage: Passage, noise_multiplier: float, sides: Sides) -> str:
    """Of hidden passes on a grid."""
    if not passage.rounding:
        return ""
    share = passage.rounding_of(noise_multiplier)
    return (
        " and, scaled down, to the dual variable after every pass, rounding charged as if it moved the state by "
        f"{sides.down(share, 2)} of that at every row"
    )


class Planned(Protocol):
    """Any plan, of a fit or of a search."""

    @property
    def queries(self) -> tuple[Query, ...]: ...


def standing_assumptions(plan: Planned, subject: str = "model") -> tuple[str, ...]:
    """What every statement rests on."""
    learned = any(isinstance(query.question, (CentredScore, *STEPS)) for query in plan.queries)
    but = ", but for what the queries above learned," if learned else ""
    declared = f"parameters, bounds and penalties{but} were chosen without looking at these rows"
    selection = (
        f"this {subject} was not chosen among others by scores on private rows, as in GridSearchCV: such a selection "
        "is not covered, neither here nor by a ledger (DPSearchCV is a search that is)"
    )
    secret = "the noise and its generator stay secret"
    hidden = any(isinstance(query.question, HiddenWalk) for query in plan.queries)
    if hidden:
        secret += ", and so does the order of the rows"
    if any(not isinstance(query.question, HiddenWalk) and query.sampler.name != "full" for query in plan.queries):
        secret += ", and so do the sampled batches"
    last = "only the final state is covered: no earlier state, and not the order of the rows, was seen by anyone"
    searched = any(isinstance(query.question, CentredScore) for query in plan.queries)
    return (declared, *(() if searched else (selection,)), secret, *((last,) if hidden else ()))
