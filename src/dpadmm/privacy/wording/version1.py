"""The sentences that statements of version 1 stored, word for word: to recognise honest ones, and for nothing else.

Statements of version 1 kept sentences, so that the only way to check one is to say again what was said then. Nothing is
read out of a sentence. This file never changes: new words are for `sentence.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from dpadmm.privacy.budget import Relation
from dpadmm.privacy.facts import (
    CLIPPED,
    DIFFERENCE,
    HIDDEN_PASSES,
    SCORE,
    Facts,
    Outlook,
    QueryFacts,
    RunFacts,
    SearchFacts,
    Share,
)
from dpadmm.privacy.wording.rounding import DIGITS, rounded_down, rounded_up

if TYPE_CHECKING:
    from dpadmm.privacy.version1 import VersionOne

GRANULAR_SUMS = (
    "Each sum is rounded to a public grid before its noise, and the noise to the same grid, so that no digit finer "
    "than the grid depends on a row; the noise is enlarged by what rounding can add to one row's contribution."
)
GRANULAR_STATES = (
    "Each hidden state is rounded to a public grid before the noise of a visit, and the noise to the same grid, so "
    "that no digit finer than the grid depends on a row; the accountant charges what rounding can add at every visit."
)
NORMALS = (
    "The noise itself is drawn in double precision, which approximates the real-valued Gaussian the proof speaks of, "
    "and timing is not protected."
)
EXACT = (
    "Arithmetic: exact. Contributions are whole numbers on a public lattice, summed without rounding, and the noise is "
    "discrete Gaussian, sampled exactly from the operating system's random bits; its distance from the Gaussian of the "
    "proof is charged to delta. Timing is not protected."
)
FLOATING = (
    "Arithmetic: floating. States and noise are computed in double precision and their rounding is not charged; like "
    "every floating-point implementation of the Gaussian mechanism this is an approximation of the real-valued "
    "mechanism the proof speaks of, and timing is not protected."
)


def arithmetic(facts: Facts) -> str:
    """How sums, states and noise are computed."""
    if facts.arithmetic != "granular":
        return EXACT if facts.arithmetic == "exact" else FLOATING
    hidden = [asked.question == HIDDEN_PASSES for asked in facts.asked]
    said = [*([] if all(hidden) else [GRANULAR_SUMS]), *([GRANULAR_STATES] if any(hidden) else []), NORMALS]
    return f"Arithmetic: granular. {' '.join(said)}"


RELATION_WORDS = {
    Relation.REPLACE_ONE: "replacing the data in any one row by any other data",
    Relation.ADD_REMOVE: "adding or removing any one row",
}


def nearest(value: float, digits: int = DIGITS) -> str:
    """As the earliest statements rounded."""
    return f"{value:.{digits}g}"


class Sides(NamedTuple):
    """How the numbers of a sentence are rounded: those that must not be too small, and those that must not be large."""

    up: Callable[..., str]
    down: Callable[..., str]


SAFE = Sides(rounded_up, rounded_down)
EARLIER = Sides(nearest, nearest)

MOST_CANDIDATES = 100_000
"""Of a search: each number is tried, because none is read out of a sentence."""


SAMPLER_WORDS = {
    "full": "all rows",
    "poisson": "rows drawn independently (Poisson sampling)",
    "truncated-poisson": "rows drawn independently and capped in number (truncated Poisson sampling)",
    "fixed": "a fresh fixed-size random set of rows",
    "permutation": "all rows, one after another in a secret random order",
}


STATISTIC_WORDS = {
    "joint-moments": " (sums of label times row and of row times row, rows scaled to length one)",
    "second-moment": " (sum of row times row in coordinates made from earlier releases, rows scaled to length one)",
    "feature-curvature": (
        " (sum of row squared entrywise times the curvature of its loss, at a point and with weights made from earlier "
        "releases, scaled down to length one)"
    ),
    "feature-moment": " (sum of row times row, rows divided by their declared norm)",
    "counts-below": " (for each feature, how many values are at most a threshold made from earlier releases)",
}


def query(asked: QueryFacts, sides: Sides) -> str:
    """One query kind: how often, over which rows, bounded how, and with how much noise."""
    rows, clip = SAMPLER_WORDS[asked.sampler], sides.up(asked.clip)
    if asked.question == HIDDEN_PASSES:
        return (
            f"{asked.count} hidden {'pass' if asked.count == 1 else 'passes'} over {rows}, each row's gradient clipped "
            f"to norm {clip}, Gaussian noise of standard deviation {sides.down(asked.noise_on_mean, 4)} times the step "
            f"added to the coefficients after every row{_rounding(asked, sides)}; only the last state was released"
        )
    if asked.sampler != "full":
        rows += f", {asked.expected:g} expected"
    law = "discrete Gaussian" if asked.discrete else "Gaussian"
    noise = f"{law} noise of standard deviation {sides.down(asked.noise, 4)} on the sum"
    if asked.question == DIFFERENCE:
        bound = f"each row's contribution clipped to a public bound of at most {clip} from earlier releases"
        noise = f"{law} noise of {sides.down(asked.multiplier, 4)} times that bound on the sum"
    elif asked.question in (CLIPPED, SCORE):
        bound = f"each row's contribution clipped to norm {clip}"
    else:
        bound = f"which one row can move by at most {sides.up(asked.moves, 4)}"
    noun, what = "release" if asked.count == 1 else "releases", STATISTIC_WORDS.get(asked.question, "")
    return f"{asked.count} noisy {asked.kind} {noun}{what} over {rows}, {bound}, {noise}"


def _rounding(asked: QueryFacts, sides: Sides) -> str:
    """Of hidden passes on a grid."""
    if not asked.rounding:
        return ""
    return (
        " and, scaled down, to the dual variable after every pass, rounding charged as if it moved the state by "
        f"{sides.down(asked.rounding, 2)} of that at every row"
    )


def mechanisms(facts: Facts, sides: Sides) -> tuple[str, ...]:
    """What was asked; of a search without the law of its trials."""
    if facts.search is None:
        return tuple(query(asked, sides) for asked in facts.queries)
    score = query(facts.search.score.queries[0], sides)
    return (
        *(_fit(run, sides) for run in facts.search.fits),
        f"in a trial a score on {facts.search.score.rows} other rows, centred: {score}",
    )


def laws(search: SearchFacts, sides: Sides) -> Iterator[str]:
    """The law of the trials, for every number of candidates that a search may have had."""
    law = search.repetitions
    each = f"({sides.up(search.epsilon, 4)}, {sides.up(search.delta, 4)})-private by itself"
    none = f"there is none, with probability {law.nothing:.2g}, or " if law.nothing > 0 else ""
    rest = (
        f": a secret number of trials ({law.text}), each with a candidate drawn at random and each {each}; only the "
        f"trial with the best noisy score is released, with that score; where {none}every trial fails, a public "
        "default is released"
    )
    for candidates in range(1, MOST_CANDIDATES + 1):
        yield f"a private search over {candidates} candidate{'s' if candidates > 1 else ''}{rest}"


def _fit(run: RunFacts, sides: Sides) -> str:
    return (
        f"in a trial a fit on {run.rows} training rows: {', and '.join(query(asked, sides) for asked in run.queries)}"
    )


SECRET = (
    "the number of trials stays secret, and so does the time the search took: with them the model would tell more",
    "which rows train and which score was decided without looking at them",
    "the candidates were listed without looking at these rows",
)


def outlook(found: Outlook | None, sides: Sides) -> str:
    """A warning where the budget is too small for the rows to learn anything."""
    if found is None:
        return ""
    return (
        f"The budget is too small for the number of rows to learn from them (n mu = {sides.down(found.signal, 2)}, "
        f"below {found.least:g}): expect accuracy no better than predicting the commonest class or a constant."
    )


def split(shares: Sequence[Share]) -> tuple[str, ...]:
    """What each part of a budget is for."""
    return tuple(f"{100 * each.share:.3g}% for {each.step}" for each in shares)


def assumptions(facts: Facts) -> tuple[str, ...]:
    """What the statement of a model by this plan rests on; their order is no matter."""
    assumes = facts.assumes
    but = ", but for what the queries above learned," if assumes("declared-but-learned") else ""
    declared = f"parameters, bounds and penalties{but} were chosen without looking at these rows"
    selection = (
        "this model was not chosen among others by scores on private rows, as in GridSearchCV: such a selection "
        "is not covered, neither here nor by a ledger (DPSearchCV is a search that is)"
    )
    secret = "the noise and its generator stay secret"
    secret += ", and so does the order of the rows" if assumes("order-secret") else ""
    secret += ", and so do the sampled batches" if assumes("batches-secret") else ""
    last = "only the final state is covered: no earlier state, and not the order of the rows, was seen by anyone"
    chosen = (selection,) if assumes("not-selected") else SECRET
    return (declared, *chosen, secret, *((last,) if assumes("final-state-only") else ()))


def paragraph(said: VersionOne, sides: Sides) -> str:
    """The whole statement."""
    relation, epsilon, delta = Relation.parse(said.relation), sides.up(said.epsilon), sides.up(said.delta)
    lead = (
        "seeded: NOT private. Whoever knows or guesses the seed can subtract the noise. Trained without one, this "
        if said.seeded
        else "This "
    )
    return (
        f"{lead}{said.subject} is ({epsilon}, {delta})-differentially private under {said.relation} "
        f"neighbours: {RELATION_WORDS[relation]} changes the probability of any outcome by a factor of at most "
        f"e^{epsilon}, but for an extra probability of at most {delta}. The unit of privacy is "
        f"{said.unit}; a person with several rows is protected less, and every further fit on these rows costs "
        f"again. {'The solver ' if said.subject == 'model' else ''}{said.solver} touched the data only through: "
        f"{'; '.join(said.mechanisms)}. "
        f"{'Of the budget: ' + '; '.join(said.budget_split) + '. ' if said.budget_split else ''}"
        f"The {said.accountant} accountant certifies "
        f"epsilon = {sides.up(said.epsilon_achieved)} for exactly these queries; {said.proof_status}. "
        f"Assumptions: {'; '.join(said.assumptions)}. {said.arithmetic} "
        f"{said.outlook + ' ' if said.outlook else ''}(dpadmm {said.library_version})"
    )
