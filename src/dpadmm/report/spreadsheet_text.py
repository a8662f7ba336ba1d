"""Text in cells of a table that a spreadsheet may open."""

from __future__ import annotations

FORMULA = ("=", "+", "-", "@", "\t")
"""How a text begins that a spreadsheet would compute."""


def as_text(name: object) -> str:
    """A name as a cell that is shown and never computed: a quote before it keeps a spreadsheet from doing so.

    A line break becomes a space, as it would begin a new row. This is the usual convention, and the quote is part of
    the file: a program that reads names back removes a leading quote before one of these characters.

    Examples
    --------
    >>> as_text("age"), as_text("=1+1"), as_text("-cost")
    ('age', "'=1+1", "'-cost")
    """
    text = str(name).replace("\r", " ").replace("\n", " ")
    return f"'{text}" if text.lstrip(" ").startswith(FORMULA) else text
