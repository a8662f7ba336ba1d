"""Names of data sets and owners: one way to write each, and no two that a reader could take for each other."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

from dpadmm.errors import InvalidParameter

# Scripts whose letters look alike: a name may use one of them.
ALIKE_SCRIPTS = {"LATIN", "GREEK", "CYRILLIC", "ARMENIAN", "CHEROKEE", "COPTIC"}
# Signs, and the Greek, Cyrillic and odd Latin letters that look like each of them, small or large.
ALIKE = {
    "!": "ǃ",
    '"': "“”„‟",
    "'": "‘’‛`ʹʻʼˈ′",
    ",": "‚",
    ".": "·",
    "/": "⁄∕",
    "5": "ƽ",
    "8": "ȣ",
    ":": "꞉",
    "a": "аαɑᴀ",
    "b": "вβʙ",
    "c": "сᴄ",
    "d": "ԁᴅ",
    "e": "еεᴇ",
    "f": "ꜰ",
    "g": "ɡɢ",
    "h": "нһηʜ",
    "j": "јᴊ",
    "k": "кκᴋ",
    "l": "1i|ıіιɩʟǀ",
    "m": "мμᴍ",
    "n": "νɴ",
    "o": "0оοᴏ",
    "p": "рρᴘ",
    "q": "ԛ",
    "r": "ʀ",
    "s": "ѕꜱ",
    "t": "тτᴛ",
    "u": "υᴜ",
    "v": "ᴠ",
    "w": "ԝᴡ",
    "x": "хχ",
    "y": "уγʏ",
    "z": "ζᴢ",
}
LOOKALIKES = str.maketrans({other: sign for sign, others in ALIKE.items() for other in others})
# Printable characters that show nothing: joiners, fillers, variation selectors, an empty braille cell.
INVISIBLE = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
SEPARATORS = re.compile(r"[\s_\-\u2010-\u2015\u2212]+")


def plain(name: str) -> str:
    """The one way to write a name: composed characters (Unicode NFC), no space around it.

    Examples
    --------
    >>> plain(" cafe\\u0301 ") == "caf\\u00e9"
    True
    """
    return unicodedata.normalize("NFC", name).strip()


def usable(what: str, name: object) -> str:
    """A new name in its plain form; refused if it is empty, long, invisible in part, or of scripts that look alike."""
    if isinstance(name, str):
        written = plain(name)
        if 1 <= len(written) <= 200 and written.isprintable() and not INVISIBLE.search(written):
            if len(_scripts(written) & ALIKE_SCRIPTS) > 1:
                raise InvalidParameter(
                    f"an unusable {what}, with letters of several scripts that look alike",
                    "letters of one of Latin, Greek, Cyrillic",
                    f"write the name of the {what} anew",
                )
            return written
    raise InvalidParameter(f"an unusable {what}", "a printable name of 1 to 200 visible characters", f"name the {what}")


def known_as(dataset: object, known: Iterable[str]) -> str:
    """The declared name that `dataset` means: itself, or what it is in its plain form. No other is guessed."""
    names = list(known)
    if dataset is None:
        raise InvalidParameter(
            "a ledger without the name of a data set", "dataset='name'", "say whose budget is to be charged"
        )
    if isinstance(dataset, str):
        for written in (dataset, plain(dataset)):
            if written in names:
                return written
    raise InvalidParameter(
        f"dataset={dataset!r}, which this ledger does not hold",
        "one of: " + (", ".join(map(repr, names)) or "(none was declared)"),
        "correct the name, or let the owner set a limit: dpadmm ledger limit PATH --dataset NAME --epsilon E --delta D",
    )


def require_distinct(name: str, known: Iterable[str]) -> None:
    """Refuse a new data set whose name reads like that of another: its people would have two accounts by mistake."""
    alike = [other for other in known if skeleton(other) == skeleton(name)]
    if alike:
        raise InvalidParameter(
            f"a new data set {name!r}, whose name reads like that of {alike[0]!r}",
            "a name that differs by more than case, the kind of space or hyphen, or letters that look alike",
            f"use {alike[0]!r} if these are the same people, and another name if they are not",
        )


def skeleton(name: str) -> str:
    """What is left of a name when all is removed that a reader may overlook.

    Examples
    --------
    >>> skeleton("Visits_2023") == skeleton("visits 2o23")
    True
    """
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())
    return SEPARATORS.sub(" ", INVISIBLE.sub("", folded)).strip().translate(LOOKALIKES)


def _scripts(name: str) -> set[str]:
    """The first words of the Unicode names of its letters."""
    return {unicodedata.name(letter, "").partition(" ")[0] for letter in name if letter.isalpha()}
