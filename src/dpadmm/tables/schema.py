"""What is known about a table before it is opened: its columns, their ranges, categories and classes."""

from __future__ import annotations

import json
import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dpadmm.errors import FileProblem, InvalidSchema
from dpadmm.files import why
from dpadmm.stored_json import read_words
from dpadmm.tables.columns import (
    Classes,
    Column,
    Ignore,
    TargetKind,
    Value,
    as_target,
    column_from_dict,
    target_from_dict,
)

MOST_SCHEMA = 1 << 24
"""Bytes of a schema file."""
ENDLESS_KEY = re.compile(r"""(?<![\w-])(?:(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){100}""")
"""A key a.b.c… of a hundred parts or more, which takes the reader of TOML memory by the square of its length."""

_TEMPLATE_HEAD = """\
# Declare every column from what is known without looking at the data:
#   kind = "numeric"      with  lower = 0  and  upper = 120
#   kind = "categorical"  with  categories = ["a", "b"]  and, if wanted, unseen = "error" (otherwise "zero")
#   kind = "boolean"
#   kind = "ignore"
# A missing cell (empty, NA, NaN, null or None) makes its row invalid, or no category. With fill = … in its column it
# counts as that value, for instance fill = 40, fill = "a" or fill = false.
# The column to predict is declared like any other and named by --target; its categories are the classes, in the order
# of the model. Or move it out of [columns]:
#   [target]
#   column = "NAME"
#   kind = "classes"            with  classes = ["no", "yes"];  or  "numeric"  with  lower  and  upper
"""


@dataclass(frozen=True)
class TargetColumn:
    """The column to predict and what it holds."""

    column: str
    kind: TargetKind

    @property
    def classes(self) -> tuple[Value, ...] | None:
        """The declared classes, or None for a numeric target."""
        return self.kind.classes if isinstance(self.kind, Classes) else None


@dataclass(frozen=True)
class Schema:
    """A declared table. Nothing in it may be measured from private data.

    Examples
    --------
    A schema is a TOML file:

    >>> text = '''
    ... [columns.age]
    ... kind = "numeric"
    ... lower = 17
    ... upper = 90
    ... fill = 40                  # a missing age counts as 40
    ...
    ... [columns.work]
    ... kind = "categorical"
    ... categories = ["private", "state"]
    ... unseen = "zero"            # or "error"
    ...
    ... [columns.married]
    ... kind = "boolean"
    ...
    ... [columns.id]
    ... kind = "ignore"
    ...
    ... [target]
    ... column = "income"
    ... kind = "classes"
    ... classes = ["low", "high"]
    ... '''
    >>> schema = Schema.from_toml(text)
    >>> schema.feature_names
    ('age', 'work=private', 'work=state', 'married')
    >>> schema.target.classes
    ('low', 'high')

    The target may instead be declared like any other column and chosen later with `with_target`.
    """

    columns: Mapping[str, Column]
    target: TargetColumn | None = None

    def __post_init__(self) -> None:
        if self.target is not None and self.target.column in self.columns:
            raise InvalidSchema(
                f"the column {self.target.column!r} both in [columns] and as [target]",
                "each column declared once",
                "remove it from [columns]",
            )
        names = self.feature_names
        if not names:
            raise InvalidSchema(
                "a schema without features",
                "at least one numeric, categorical or boolean column",
                "declare [columns.NAME] with its kind",
            )
        if len(set(names)) != len(names):
            twice = sorted(name for name, times in Counter(names).items() if times > 1)
            raise InvalidSchema(
                "the feature names " + ", ".join(map(repr, twice)) + " twice", "distinct names", "rename a column"
            )

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names after expansion, in the order of the columns of the encoded table."""
        return tuple(feature for name, column in self.columns.items() for feature in column.features(name))

    @property
    def n_features(self) -> int:
        return len(self.feature_names)

    @property
    def required(self) -> tuple[str, ...]:
        """Columns a table must have, the target apart."""
        return tuple(name for name, column in self.columns.items() if not isinstance(column, Ignore))

    def with_target(self, column: str) -> Schema:
        """The same schema with `column` as its target; a column of `[columns]` is taken out of the features."""
        if self.target is not None:
            if self.target.column == column:
                return self
            raise InvalidSchema(
                f"the target {column!r}",
                f"the schema's own target {self.target.column!r}",
                "name that one, or edit [target]",
            )
        if column not in self.columns:
            raise InvalidSchema(
                f"the target {column!r}, which the schema does not declare",
                "one of " + ", ".join(map(repr, self.columns)),
                f"add [columns.{_key(str(column))}], or choose a declared column",
            )
        others = {name: kind for name, kind in self.columns.items() if name != column}
        return replace(self, columns=others, target=TargetColumn(column, as_target(column, self.columns[column])))

    @classmethod
    def read(cls, path: str | Path) -> Schema:
        """Read a TOML file."""
        text = None
        try:
            text = read_words(Path(path), MOST_SCHEMA).decode("utf-8-sig")
        except OSError as error:
            raise FileProblem(
                f"the schema file {path}, which cannot be read ({why(error)})",
                "a TOML file that can be read",
                "correct the path",
            ) from None
        except UnicodeDecodeError:
            text = None
        if text is None:
            raise InvalidSchema(f"the schema file {path}, not in UTF-8", "a TOML file", "save it as UTF-8 text")
        return cls.from_toml(text)

    @classmethod
    def from_toml(cls, text: str) -> Schema:
        """Parse TOML text."""
        parsed, place = None, ""
        try:
            parsed = None if ENDLESS_KEY.search(text) else tomllib.loads(text)
        except (ValueError, RecursionError) as error:  # of a number or a nesting without end, too
            # Only the place is repeated: the wrong file may have been given, and its text may be private.
            found = re.search(r"at line \d+, column \d+|at end of document", str(error))
            place = f" ({found.group(0)})" if found else ""
        if parsed is None:
            raise InvalidSchema(
                f"a schema that is not TOML{place}", "tables [columns.NAME], each once", "correct the syntax there"
            )
        return cls.from_dict(parsed)

    @classmethod
    def from_dict(cls, declared: Mapping[str, Any]) -> Schema:
        """Build from the nested dictionary of the TOML file."""
        if not isinstance(declared, Mapping):
            raise InvalidSchema(f"a schema of type {type(declared).__name__}", "a dictionary", "pass the parsed TOML")
        unknown = sorted(str(key) for key in declared if key not in ("columns", "target"))
        if unknown:
            raise InvalidSchema(
                "unknown " + ", ".join(unknown) + " in the schema",
                "only columns and target",
                "remove or correct the key",
            )
        tables = declared.get("columns")
        if not isinstance(tables, Mapping) or not tables:
            raise InvalidSchema("a schema without columns", "tables [columns.NAME]", "declare each column of the table")
        columns = {str(name): column_from_dict(str(name), table) for name, table in tables.items()}
        return cls(columns, _target(declared["target"]) if "target" in declared else None)

    def to_dict(self) -> dict[str, Any]:
        """The nested dictionary `from_dict` takes."""
        result: dict[str, Any] = {"columns": {name: column.to_dict() for name, column in self.columns.items()}}
        if self.target is not None:
            result["target"] = {"column": self.target.column, **self.target.kind.to_dict()}
        return result

    def to_toml(self) -> str:
        """The text `from_toml` takes."""
        declared = self.to_dict()
        tables = [(f"columns.{_key(name)}", table) for name, table in declared["columns"].items()]
        if "target" in declared:
            tables.append(("target", declared["target"]))
        return "\n".join(
            f"[{title}]\n" + "".join(f"{key} = {_literal(value)}\n" for key, value in table.items())
            for title, table in tables
        )

    @staticmethod
    def template(columns: Iterable[str]) -> str:
        """TOML to start from, made from column names alone: every column ignored until its kind is written."""
        return _TEMPLATE_HEAD + "".join(f'\n[columns.{_key(str(name))}]\nkind = "ignore"\n' for name in columns)


def _target(table: Any) -> TargetColumn:
    if not isinstance(table, Mapping) or not isinstance(table.get("column"), str):
        raise InvalidSchema(
            '[target] without column = "…"', "the name of the column to predict", "write it in [target]"
        )
    return TargetColumn(
        table["column"], target_from_dict({key: value for key, value in table.items() if key != "column"})
    )


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _literal(name)


def _literal(value: Any) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(map(_literal, value)) + "]"
    if isinstance(value, str):
        # A JSON string is a TOML basic string but for DEL, which JSON leaves bare.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return json.dumps(value) if isinstance(value, bool) else repr(value)
