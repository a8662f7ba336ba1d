"""A declared schema as the raw columns that files outside this library read."""

from __future__ import annotations

from dpadmm.scoring import Category, Input, Ranged, YesNo
from dpadmm.tables import Schema
from dpadmm.tables.columns import Boolean, Categorical, Column, Ignore, Numeric


def raw_columns(schema: Schema) -> tuple[Input, ...]:
    """The columns a model of this schema reads, in the order of its features."""
    return tuple(_input(name, column) for name, column in schema.columns.items() if not isinstance(column, Ignore))


def _input(name: str, column: Column) -> Input:
    fill = getattr(column, "fill", None)
    if isinstance(column, Numeric):
        return Ranged(name, column.lower, column.upper, fill)
    if isinstance(column, Boolean):
        return YesNo(name, fill)
    if isinstance(column, Categorical):
        return Category(name, column.categories, column.unseen == "error", fill)
    raise AssertionError("an ignored column is not read")
