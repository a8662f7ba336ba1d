"""The exception tree. Every message says what was given, what was expected and what to do, and never a data value."""

from __future__ import annotations

import re

SPENT = "It ended early: nothing was released, and the reserved budget counts as spent."
"""Noted with whatever ends a fit between its charge and its release."""
LONGEST = 600
"""Letters of each part of a message: what a caller passed may be of any length."""
FIRST_WORD = re.compile(r"^[a-z]+(?=[ ,;:.]|$)")
"""A word that can begin a sentence; the name of a parameter or of a command in quotes stays as it is."""


def shown(value: object) -> str:
    """A parameter as a message names it: numbers and short texts as they are, all else by its type.

    Examples
    --------
    >>> shown(0.5), shown("l1"), shown(10**400), shown([1.0, 2.0])
    ('0.5', "'l1'", 'an integer of 1329 bits', 'a list')
    """
    if isinstance(value, int) and value.bit_length() > 64:
        return f"an integer of {value.bit_length()} bits"
    if isinstance(value, str):
        return repr(value if len(value) <= 80 else value[:80] + "…")
    if value is None or isinstance(value, (bool, int, float)):
        return repr(value)
    kind = type(value).__name__
    return f"{'an' if kind[0] in 'aeiouAEIOU' else 'a'} {kind}"


def three_sentences(given: str, expected: str, do: str) -> str:
    """What was given, what would have been accepted, and the next step.

    Examples
    --------
    >>> three_sentences("no --out", "--out DIR, the folder to make", "add --out")
    'Got no --out. Expected --out DIR, the folder to make. Add --out.'
    """
    parts = (f"Got {given}", f"Expected {expected}", FIRST_WORD.sub(lambda word: word[0].capitalize(), do, count=1))
    return " ".join(part if part.endswith((".", "?")) else f"{part}." for part in parts)


class DpadmmError(Exception):
    """Root of everything this library raises on purpose."""


class InputError(DpadmmError, ValueError):
    """Something the caller passed is not usable.

    Parameters
    ----------
    given : str
        What was received, described without quoting private data.
    expected : str
        What would have been accepted.
    do : str
        The next step for the caller.
    """

    def __init__(self, given: str, expected: str, do: str) -> None:
        self.given, self.expected, self.do = map(_shortened, (given, expected, do))
        super().__init__(three_sentences(self.given, self.expected, self.do))

    def __reduce__(self) -> tuple[type[InputError], tuple[str, str, str]]:
        return type(self), (self.given, self.expected, self.do)


def _shortened(part: str) -> str:
    return part if len(part) <= LONGEST else part[:LONGEST] + "…"


class InvalidParameter(InputError):
    """A public parameter (a budget, a name, a shape, a step size) is unusable."""


class UnknownParameter(InvalidParameter, TypeError):
    """An argument that does not exist."""


class InvalidData(InputError):
    """The table breaks what was declared about it. The message never names a row or a value."""


class InvalidDataType(InvalidData, TypeError):
    """A cell holds an object that is no number at all."""


class InvalidSchema(InputError):
    """A schema file is malformed or does not fit its table."""


class UnsupportedProblem(InputError):
    """The solver cannot take this loss, penalty, constraint or input format."""


class FileProblem(InputError):
    """A model, plan or report file cannot be read or written."""


class DamagedRecord(FileProblem):
    """The record of a ledger is not as this library wrote it."""


class UncertainCharge(FileProblem):
    """A ledger failed while it recorded a step: whether the step is recorded is not known."""


class DownloadFailed(DpadmmError):
    """A data set could not be fetched or failed its checksum."""


class Unreachable(DpadmmError):
    """Another party did not answer in time. Nothing is lost: what was begun goes on when it is back."""


class PrivacyError(DpadmmError):
    """A privacy promise cannot be made or was not kept. Never caught inside the library."""


class CannotCertify(PrivacyError):
    """No accountant can certify this plan, or only at an absurd cost."""


class SchemeMismatch(CannotCertify):
    """Sampler, accountant and neighbouring relation do not belong together."""


class BudgetExceeded(PrivacyError):
    """The request would spend more than the declared budget."""


class QueryRefused(PrivacyError):
    """An oracle was asked for something its plan does not contain."""


class PromiseBroken(PrivacyError):
    """What was performed differs from what was planned, so nothing may be released."""


class Diverged(DpadmmError):
    """The iterates of a solver left the finite numbers."""


class PublicWarning(UserWarning):
    """Public numbers alone show that a fit would go badly. No cell decides whether such a warning is given.

    It is given before the budget is charged: with `warnings.simplefilter("error", PublicWarning)` nothing is spent.
    """

    key = "public"


class UndeclaredBounds(PublicWarning):
    """Neither the ranges of the features nor a norm of the rows were declared."""

    key = "undeclared-bounds"


class UndeclaredTargetBounds(PublicWarning):
    """The range of a regression's target was not declared."""

    key = "undeclared-target-bounds"


class UnusedSetting(PublicWarning):
    """A setting was given that does nothing beside the others."""

    key = "unused-setting"


class TooLargeRowNorm(PublicWarning):
    """The declared norm is larger than any row within the declared bounds, so that the fit is noisier than needed."""

    key = "too-large-row-norm"


class TooSmallBudget(PublicWarning):
    """The budget is too small for the number of rows to learn anything."""

    key = "too-small-budget"
