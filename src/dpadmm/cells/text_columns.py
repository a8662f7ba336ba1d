"""The refusal of a table with text in it, which names the columns: names and types are public, cells are not."""

from __future__ import annotations

from typing import Any

from dpadmm.errors import InvalidDataType

NAMED = 5
"""Columns a message names, at most."""


def not_numbers(X: Any) -> InvalidDataType:
    """What to say of a table some of whose entries are no numbers."""
    columns = _text_columns(X)
    listed = ", ".join(map(repr, columns[:NAMED])) + (f" and {len(columns) - NAMED} more" if columns[NAMED:] else "")
    where = f": text, dates or objects in column{'s' if columns[1:] else ''} {listed}" if columns else ""
    return InvalidDataType(
        f"X with entries that are not numbers{where}; an argument must be a number, or a string that spells a number",
        "numeric features",
        "encode categories first: `dpadmm fit` does it by a schema, and so does dpadmm.tables.encode in Python",
    )


def _text_columns(X: Any) -> list[str]:
    """Names of the columns of a DataFrame whose type is not numeric."""
    if not (hasattr(X, "iloc") and hasattr(X, "dtypes") and getattr(X, "ndim", 0) == 2):
        return []
    kinds = [getattr(dtype, "kind", "O") for dtype in X.dtypes]
    return [str(name)[:60] for name, kind in zip(X.columns, kinds, strict=True) if kind not in "biuf"]
