"""A query, a search and a whole statement as sentences, from facts alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from dpadmm.privacy.facts import (
    CLIPPED,
    DIFFERENCE,
    FULL,
    HIDDEN_PASSES,
    SCORE,
    Facts,
    Outlook,
    QueryFacts,
    RunFacts,
    SearchFacts,
    Share,
)
from dpadmm.privacy.proofs import CITATIONS, SENSITIVITIES, of_pages
from dpadmm.privacy.questions import QUESTIONS
from dpadmm.privacy.wording.assumption_words import worded
from dpadmm.privacy.wording.rounding import rounded_down, rounded_up

ARITHMETIC = {
    "sums": (
        "Each sum is rounded to a public grid before its noise, and the noise to the same grid, so that no digit finer "
        "than the grid depends on a {unit}; the noise is enlarged by what rounding can add to one {unit}'s "
        "contribution."
    ),
    "states": (
        "Each hidden state is rounded to a public grid before the noise of a visit, and the noise to the same grid, so "
        "that no digit finer than the grid depends on a row; the accountant charges what rounding can add at every "
        "visit."
    ),
    "granular": (
        "The noise itself is drawn in double precision, which approximates the real-valued Gaussian the proof speaks "
        "of, and timing is not protected."
    ),
    "exact": (
        "Contributions are whole numbers on a public lattice, summed without rounding, and the noise is discrete "
        "Gaussian, sampled exactly from the operating system's random bits; its distance from the Gaussian of the "
        "proof is charged to delta. Timing is not protected."
    ),
    "floating": (
        "States and noise are computed in double precision and their rounding is not charged; like every "
        "floating-point implementation of the Gaussian mechanism this is an approximation of the real-valued mechanism "
        "the proof speaks of, and timing is not protected."
    ),
}
NEIGHBOURS = {
    ("row", "replace-one"): "replacing the data in any one row by any other data",
    ("row", "add-remove"): "adding or removing any one row",
    ("person", "replace-one"): "replacing all rows of any one person by any number of other rows",
    ("person", "add-remove"): "adding or removing any one person with all their rows",
    ("owner", "replace-one"): "replacing all rows of any one owner by any number of other rows",
    ("owner", "add-remove"): "adding or removing any one owner with all their rows",
}
UNITS = {
    "row": "one row of the table",
    "person": "one person with all their rows",
    "owner": "one owner of a part of the table with all the rows of that part",
}
BESIDE_UNITS = {
    "row": "a person with several rows is protected less, and every further fit on these rows costs again",
    "person": "how many rows a person has is protected too, and every further fit on these persons costs again",
    "owner": "every further fit on the rows of these owners costs again",
}
ROWS = {
    FULL: "all {units}",
    "poisson": "{units} drawn independently (Poisson sampling)",
    "truncated-poisson": "{units} drawn independently and capped in number (truncated Poisson sampling)",
    "fixed": "a fresh fixed-size random set of {units}",
    "permutation": "all rows, one after another in a secret random order",
}
SEEDED = "seeded: NOT private. Whoever knows or guesses the seed can subtract the noise. Trained without one, this"


class Words(NamedTuple):
    """Everything a statement says, in words; the names are those of `PrivacyStatement`."""

    solver: str
    unit: str
    mechanisms: tuple[str, ...]
    proof_status: str
    assumptions: tuple[str, ...]
    arithmetic_name: str
    arithmetic: str
    outlook: str
    budget_split: tuple[str, ...]
    text: str

    @classmethod
    def of(cls, facts: Facts) -> Words:
        return cls(
            solver(facts),
            unit(facts),
            mechanisms(facts),
            proofs(facts),
            worded(facts.assumptions, facts.subject),
            facts.arithmetic,
            arithmetic(facts),
            outlook(facts.outlook, facts.unit.kind),
            split(facts.split),
            statement(facts),
        )


def statement(facts: Facts) -> str:
    """The whole statement as a paragraph."""
    epsilon, delta = rounded_up(facts.epsilon), rounded_up(facts.delta)
    spent, warning = split(facts.split), outlook(facts.outlook, facts.unit.kind)
    return (
        f"{SEEDED if facts.seeded else 'This'} {facts.subject} is ({epsilon}, {delta})-differentially private under "
        f"{facts.relation} neighbours: {NEIGHBOURS[facts.unit.kind, facts.relation]} changes the probability of any "
        f"outcome by a factor of at most e^{epsilon}, but for an extra probability of at most {delta}. The unit of "
        f"privacy is {unit(facts)}; {BESIDE_UNITS[facts.unit.kind]}. "
        f"{'The solver ' if facts.subject == 'model' else ''}{solver(facts)} touched the data only through: "
        f"{'; '.join(mechanisms(facts))}. "
        f"{'Of the budget: ' + '; '.join(spent) + '. ' if spent else ''}"
        f"The {facts.accountant} accountant certifies epsilon = {rounded_up(facts.epsilon_achieved)} for exactly these "
        f"queries; {proofs(facts)}. Assumptions: {'; '.join(worded(facts.assumptions, facts.subject))}. "
        f"{arithmetic(facts)} {f'{warning} ' if warning else ''}(dpadmm {facts.library_version})"
    )


def unit(facts: Facts) -> str:
    """Whose data is protected."""
    return UNITS[facts.unit.kind]


def solver(facts: Facts) -> str:
    """What computed the release."""
    return " and then ".join(facts.solvers)


def mechanisms(facts: Facts) -> tuple[str, ...]:
    """Every kind of query; of a search, first the law of its trials."""
    whose = facts.unit.kind
    asked = tuple(query(each, whose) for each in facts.queries)
    return asked if facts.search is None else (*asked, *_search(facts.search, whose))


def query(asked: QueryFacts, whose: str = "row") -> str:
    """One kind of query: how often, over which rows or persons, bounded how, and with how much noise."""
    if asked.question == HIDDEN_PASSES:
        return _passes(asked)
    return (
        f"{asked.count} noisy {asked.kind} {'release' if asked.count == 1 else 'releases'}{_summed(asked.question)} "
        f"over {_rows(asked, whose)}, {_bound(asked, whose)}, {_noise(asked)}"
    )


def proofs(facts: Facts) -> str:
    """Where the proofs are."""
    found = dict.fromkeys(QUESTIONS[asked.question].proof for asked in facts.asked)
    pages = of_pages(page for page in found if page is not None)
    claims = [CITATIONS[claim] for claim in facts.proofs if claim != SENSITIVITIES]
    return "; ".join((*claims, *(pages if SENSITIVITIES in facts.proofs else ())))


def arithmetic(facts: Facts) -> str:
    """How sums, states and noise are computed."""
    hidden = [asked.question == HIDDEN_PASSES for asked in facts.asked]
    granular = facts.arithmetic == "granular"
    said = {"sums": granular and not all(hidden), "states": granular and any(hidden), facts.arithmetic: True}
    words = " ".join(ARITHMETIC[key].format(unit=facts.unit.kind) for key, true in said.items() if true)
    return f"Arithmetic: {facts.arithmetic}. {words}"


def split(shares: Sequence[Share]) -> tuple[str, ...]:
    """What each part of a budget is for."""
    return tuple(f"{100 * each.share:.3g}% for {each.step}" for each in shares)


def outlook(found: Outlook | None, whose: str = "row") -> str:
    """A warning where the budget is too small for the rows or persons to learn from, else nothing."""
    if found is None:
        return ""
    return (
        f"The budget is too small for the number of {whose}s to learn from them "
        f"(n mu = {rounded_down(found.signal, 2)}, below {found.least:g}): expect accuracy no better than predicting "
        "the commonest class or a constant."
    )


def _rows(asked: QueryFacts, whose: str) -> str:
    return ROWS[asked.sampler].format(units=f"{whose}s") + (
        "" if asked.sampler == FULL else f", {asked.expected:g} expected"
    )


def _summed(question: str) -> str:
    words = QUESTIONS[question].words
    return f" ({words})" if words else ""


def _bound(asked: QueryFacts, whose: str) -> str:
    clip = rounded_up(asked.clip)
    what = "contribution" if whose == "row" else "mean contribution"
    if asked.question == DIFFERENCE:
        return f"each {whose}'s {what} clipped to a public bound of at most {clip} from earlier releases"
    if asked.question in (CLIPPED, SCORE):
        return f"each {whose}'s {what} clipped to norm {clip}"
    mean = "" if whose == "row" else f"of the means over the rows of each {whose}, "
    return f"{mean}which one {whose} can move by at most {rounded_up(asked.moves, 4)}"


def _noise(asked: QueryFacts) -> str:
    law = "discrete Gaussian" if asked.discrete else "Gaussian"
    if asked.question == DIFFERENCE:
        return f"{law} noise of {rounded_down(asked.multiplier, 4)} times that bound on the sum"
    return f"{law} noise of standard deviation {rounded_down(asked.noise, 4)} on the sum"


def _passes(asked: QueryFacts) -> str:
    rounding = (
        " and, scaled down, to the dual variable after every pass, rounding charged as if it moved the state by "
        f"{rounded_down(asked.rounding, 2)} of that at every row"
        if asked.rounding
        else ""
    )
    return (
        f"{asked.count} hidden {'pass' if asked.count == 1 else 'passes'} over {ROWS[asked.sampler]}, each row's "
        f"gradient clipped to norm {rounded_up(asked.clip)}, Gaussian noise of standard deviation "
        f"{rounded_down(asked.noise_on_mean, 4)} times the step added to the coefficients after every row{rounding}; "
        "only the last state was released"
    )


def _search(search: SearchFacts, whose: str) -> tuple[str, ...]:
    score = f"in a trial a score on {search.score.rows} other {whose}s, centred: {_asked(search.score, whose)}"
    fits = (f"in a trial a fit on {fit.rows} training {whose}s: {_asked(fit, whose)}" for fit in search.fits)
    return (_law(search), *fits, score)


def _asked(run: RunFacts, whose: str) -> str:
    return ", and ".join(query(each, whose) for each in run.queries)


def _law(search: SearchFacts) -> str:
    law, many = search.repetitions, "s" if search.candidates > 1 else ""
    epsilon, delta = rounded_up(search.epsilon, 4), rounded_up(search.delta, 4)
    none = f"there is none, with probability {law.nothing:.2g}, or " if law.nothing > 0 else ""
    return (
        f"a private search over {search.candidates} candidate{many}: a secret number of trials ({law.text}), each with "
        f"a candidate drawn at random and each ({epsilon}, {delta})-private by itself; only the trial with the best "
        f"noisy score is released, with that score; where {none}every trial fails, a public default is released"
    )
