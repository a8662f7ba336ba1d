"""Each assumption in words: whole for the statement, and in short for the screen."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from dpadmm.privacy.assumptions import Assumption


class Phrase(NamedTuple):
    """One assumption; `reason` says more in the statement and is left out where space is short."""

    what: str
    reason: str = ""


WORDS: dict[str, Phrase] = {
    "declared-beforehand": Phrase("parameters, bounds and penalties were chosen without looking at these rows"),
    "declared-but-learned": Phrase(
        "parameters, bounds and penalties, but for what these queries learned, were chosen without looking at "
        "these rows"
    ),
    "not-selected": Phrase(
        "this {subject} was not chosen among others by scores on private rows",
        ", as in GridSearchCV: such a selection is not covered, neither here nor by a ledger (DPSearchCV is a search "
        "that is)",
    ),
    "noise-secret": Phrase("the noise and its generator stay secret"),
    "order-secret": Phrase("the order in which rows were visited stays secret"),
    "batches-secret": Phrase("the sampled batches stay secret"),
    "final-state-only": Phrase(
        "nobody saw an earlier state than the last one", ", nor the order of the rows: only the final state is covered"
    ),
    "trials-secret": Phrase(
        "the number of trials stays secret, and so does the time the search took",
        ": together with the model they would reveal more than the model alone",
    ),
    "parts-drawn-blindly": Phrase("which rows train and which score was decided without looking at them"),
    "candidates-listed-beforehand": Phrase("the candidates were listed without looking at these rows"),
    "at-most-twice-the-rows": Phrase(
        "the table has at most twice the declared rows",
        ": a search refuses a longer one, which reveals that it is longer",
    ),
    "classes-declared": Phrase("the classes were declared without looking at these rows"),
    "classes-public": Phrase("the set of class labels was read from the table and is public knowledge"),
    "rows-public": Phrase("the number of rows is public"),
    "rows-at-one-node": Phrase(
        "each row is held by this node alone",
        ": a row that several nodes hold is protected less, by the sum of what they promise",
    ),
    "rows-treated-as-public": Phrase(
        "the number of rows was treated as public",
        ", so that removing a row means replacing it by an empty one; declare n_rows to protect the row count too",
    ),
    "rows-declared": Phrase("the nominal row count n_rows was declared from public knowledge"),
    "at-most-times-the-rows": Phrase(
        "the table has at most {times} times that many rows",
        ": a longer one is refused, which reveals that it is longer",
    ),
    "at-least-one-row": Phrase(
        "the table has at least one row", ": an empty one is refused, which reveals that it is empty"
    ),
    "rows-as-declared": Phrase(
        "every row fits what was declared",
        ": an invalid row would have stopped training, which reveals that one exists",
    ),
    "ids-name-persons": Phrase(
        "each id names one person, and each person has one id",
        ": the rows of somebody who has several ids are protected as those of several persons",
    ),
    "ids-complete": Phrase(
        "every row has an id", ": a row without one would have stopped training, which reveals that one exists"
    ),
    "persons-public": Phrase("the number of persons is public", ", but not how many rows there are"),
    "persons-treated-as-public": Phrase(
        "the number of persons was treated as public",
        ", so that removing a person means replacing their rows by empty ones; declare n_rows to protect that number "
        "too",
    ),
    "persons-declared": Phrase("the nominal number of persons, n_rows, was declared from public knowledge"),
    "at-most-times-the-persons": Phrase(
        "the table has at most {times} times that many persons",
        ": a table with more of them is refused, which reveals that it has more",
    ),
    "at-most-twice-the-persons": Phrase(
        "the table has at most twice the declared persons",
        ": a search refuses a table with more of them, which reveals that it has more",
    ),
    "at-least-one-person": Phrase(
        "the table has at least one person", ": one without any is refused, which reveals that it has none"
    ),
    "weights-public": Phrase("weights are public constants, chosen without looking at these rows"),
    "single-precision": Phrase(
        "the table is of a type of single precision, which was chosen without looking at its cells and is public"
    ),
    "rows-equally-long": Phrase(
        "all rows of the list have as many cells as each other",
        ": a row of another length would have stopped training, which reveals that one exists",
    ),
    "dask-trusted": Phrase(
        "all processes and machines that Dask used, with their logs and files, are trusted with the rows",
        ", and Dask could compute every partition: a failure would have stopped training, which reveals that one "
        "happened",
    ),
    "nothing-else-learned": Phrase(
        "nothing else that learned from these rows beforehand is covered",
        ": a scaler, an imputation or a selection of features that was fitted on them is not private",
    ),
    "network-row-by-row": Phrase(
        "the network and its loss compute the gradient of each row from that row alone",
        ": this was tried on made-up rows before training; digits in which a product of PyTorch differs when other "
        "rows are in the batch are not charged",
    ),
    "starting-weights-public": Phrase("the weights that training began with were found without looking at these rows"),
    "record-continued-once": Phrase(
        "no copy of the file that kept the training was trained on with besides",
        ": each copy would answer the remaining questions once more",
    ),
    "costs-in-addition": Phrase(
        "whatever else is computed from these rows, the rest of a pipeline included, costs in addition"
    ),
    "fixed-in-advance": Phrase(
        "the plans of all parts were fixed in advance",
        ": which parts there are, with which budgets, and when to stop was not decided after looking at what an "
        "earlier part released (this total does not hold otherwise; the limit of a ledger does)",
    ),
    "owners-collude-at-most": Phrase(
        "of the {silos} owners at most {colluding} collude with the coordinator or with each other, and each is a "
        "different person or company",
        ": towards them, and towards the network, the epsilon above holds for the rows of the others, as far as the "
        "cryptography does; if all other owners colluded against one, epsilon for its rows would be {epsilon}",
    ),
    "owners-rows-declared": Phrase("the total number of rows was declared; the number of each owner stays its own"),
    "functions-row-by-row": Phrase("each function in the pipeline maps a row by itself, without looking at others"),
    "as-stored": Phrase("{words}"),
}
"""By key; the words in braces are parameters of the assumption, or the subject of the statement."""


def worded(assumptions: Iterable[Assumption], subject: str) -> tuple[str, ...]:
    """Assumptions as a statement lists them, each once."""
    return tuple(dict.fromkeys(_filled(each, "".join(WORDS[each.key]), subject) for each in assumptions))


def in_short(assumptions: Iterable[Assumption], subject: str) -> tuple[str, ...]:
    """Assumptions without their reasons."""
    return tuple(dict.fromkeys(_filled(each, WORDS[each.key].what, subject) for each in assumptions))


def _filled(assumption: Assumption, words: str, subject: str) -> str:
    return words.format(subject=subject, **dict(assumption.parameters))
