"""The same facts where space is short: a query as the cells of a table, and the promise in a few lines."""

from __future__ import annotations

from dpadmm.privacy.facts import FULL, HIDDEN_PASSES, Facts, QueryFacts
from dpadmm.privacy.wording.assumption_words import in_short
from dpadmm.privacy.wording.rounding import rounded_down, rounded_up
from dpadmm.privacy.wording.sentence import BESIDE_UNITS, UNITS

HEAD = ("query", "times", "rows used", "clip", "noise / clip", "noise")
"""Of the table that `cells` fills for single rows."""
ROWS = {
    FULL: "all {units}",
    "poisson": "Poisson sample, {expected:,.0f} {units} on average",
    "truncated-poisson": "truncated Poisson sample, {expected:,.0f} {units} on average",
    "fixed": "fixed-size random set, {expected:,.0f} {units}",
    "permutation": "each row once, in a secret order",
}
RELEASED = "Noise is the standard deviation on each released mean."
HIDDEN = (
    "Each pass visits every row once, in a secret order, and adds noise of the standard deviation given to one row's "
    "gradient at every visit. Of the passes only the state after the last one left the computation."
)
NOTHING_ELSE = "Nothing else about the rows left the computation; all later steps use only these noisy answers."
IN_A_TRIAL = "This is asked in each of a secret number of trials."
SEEDED = "seeded: NOT private. Trained without a seed it would be "


def head(whose: str) -> tuple[str, ...]:
    """Of the table that `cells` fills for this unit of privacy."""
    return tuple(each.replace("rows", f"{whose}s") for each in HEAD)


def cells(asked: QueryFacts, whose: str = "row", whole: str = ROWS[FULL]) -> tuple[str, ...]:
    """A query in a table; `whole` names all the rows or persons there are for it."""
    words = whole if asked.sampler == FULL else ROWS[asked.sampler]
    rows = words.format(units=f"{whose}s", expected=asked.expected)
    clip, multiplier = rounded_up(asked.clip), rounded_down(asked.multiplier, 4)
    return asked.kind, f"{asked.count:,}", rows, clip, multiplier, rounded_down(asked.noise_on_mean, 4)


def table(facts: Facts) -> tuple[tuple[str, ...], ...]:
    """Every query of a fit or, with the rows it reads, of a search."""
    whose = facts.unit.kind
    if facts.search is None:
        return tuple(cells(asked, whose) for asked in facts.queries)
    fits = [cells(asked, whose, "all training {units}") for fit in facts.search.fits for asked in fit.queries]
    return (*fits, *(cells(asked, whose, "all scoring {units}") for asked in facts.search.score.queries))


def beside_table(facts: Facts) -> str:
    """What the table of queries means."""
    hidden = any(asked.question == HIDDEN_PASSES for asked in facts.asked)
    meaning = HIDDEN if hidden else f"{RELEASED} {NOTHING_ELSE}"
    return meaning if facts.search is None else f"{IN_A_TRIAL} {meaning}"


def promise(facts: Facts) -> str:
    """ε, δ and who certifies them."""
    pair = f"({rounded_up(facts.epsilon)}, {rounded_up(facts.delta)})"
    certified = f"ε = {rounded_up(facts.epsilon_achieved)} certified by the {facts.accountant} accountant"
    return (
        f"{SEEDED if facts.seeded else ''}{pair}-differentially private under {facts.relation} neighbours; {certified}"
    )


def unit(facts: Facts) -> str:
    """Whose data is protected, and what is not covered."""
    return f"{UNITS[facts.unit.kind]}: {BESIDE_UNITS[facts.unit.kind]}"


def assumes(facts: Facts) -> str:
    """Every assumption, without its reasons."""
    return "; ".join(in_short(facts.assumptions, facts.subject))
