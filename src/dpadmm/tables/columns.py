"""The kinds of column a schema can declare, each with the features it becomes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpadmm.errors import InvalidSchema, shown

Value: TypeAlias = str | int | float | bool
Unseen: TypeAlias = Literal["zero", "error"]


@dataclass(frozen=True)
class Numeric:
    """A number, clipped to the declared range and mapped onto [0, 1]; a missing cell counts as `fill`, if declared."""

    lower: float
    upper: float
    fill: float | None = None

    def features(self, name: str) -> tuple[str, ...]:
        return (name,)

    def to_dict(self) -> dict[str, Any]:
        return {"kind": "numeric", "lower": self.lower, "upper": self.upper, **_filled(self.fill)}

    def to_unit(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """[lower, upper] → [0, 1]; what lies outside is clipped first, NaN stays."""
        return (np.clip(values, self.lower, self.upper) - self.lower) / (self.upper - self.lower)

    def from_unit(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """[0, 1] → [lower, upper]."""
        return self.lower + values * (self.upper - self.lower)


@dataclass(frozen=True)
class Categorical:
    """One of the declared values, one-hot.

    `unseen="zero"` (the default) turns any other value, missing ones included, into zeros without a word, so that
    nothing about the row shows; `unseen="error"` makes the row invalid. With `fill`, one of the categories, a missing
    cell counts as that one.
    """

    categories: tuple[Value, ...]
    unseen: Unseen = "zero"
    fill: Value | None = None

    def features(self, name: str) -> tuple[str, ...]:
        return tuple(f"{name}={value}" for value in self.categories)

    def to_dict(self) -> dict[str, Any]:
        declared = {"kind": "categorical", "categories": list(self.categories), "unseen": self.unseen}
        return {**declared, **_filled(self.fill)}


@dataclass(frozen=True)
class Boolean:
    """true/false, yes/no, t/f, y/n or 1/0 → one feature, 1 or 0; a missing cell counts as `fill`, if declared."""

    fill: bool | None = None

    def features(self, name: str) -> tuple[str, ...]:
        return (name,)

    def to_dict(self) -> dict[str, Any]:
        return {"kind": "boolean", **_filled(self.fill)}


@dataclass(frozen=True)
class Ignore:
    """Declared so that its presence is no surprise; never read, and may be absent."""

    def features(self, name: str) -> tuple[str, ...]:
        return ()

    def to_dict(self) -> dict[str, Any]:
        return {"kind": "ignore"}


@dataclass(frozen=True)
class Classes:
    """A target that is one of the declared classes; their order is public and is that of the model."""

    classes: tuple[Value, ...]

    def to_dict(self) -> dict[str, Any]:
        return {"kind": "classes", "classes": list(self.classes)}


Column: TypeAlias = Numeric | Categorical | Boolean | Ignore
TargetKind: TypeAlias = Numeric | Classes


def column_from_dict(name: str, declared: Mapping[str, Any]) -> Column:
    """One `[columns.NAME]` table → a column."""
    makers: dict[str, Callable[[str, Mapping[str, Any]], Column]] = {
        "numeric": _numeric,
        "categorical": _categorical,
        "boolean": _boolean,
        "ignore": _ignore,
    }
    return makers[_kind(f"columns.{name}", declared, tuple(makers))](f"columns.{name}", declared)


def target_from_dict(declared: Mapping[str, Any]) -> TargetKind:
    """The `[target]` table without its `column` → what the target is."""
    if _kind("target", declared, ("classes", "numeric")) == "numeric":
        _only("target", declared, ("kind", "lower", "upper"))
        return _numeric("target", declared)
    _only("target", declared, ("kind", "classes"))
    return Classes(_values("target", declared, "classes", least=2))


def as_target(name: str, column: Column) -> TargetKind:
    """A column declared like any other, used as the target."""
    if not isinstance(column, Ignore) and column.fill is not None:
        raise InvalidSchema(
            f"fill in the column {name!r}, which is the target",
            "a target without fill, because a label that is missing is not known",
            "remove fill; a row without a label is invalid",
        )
    if isinstance(column, Numeric):
        return column
    if isinstance(column, Boolean):
        return Classes((False, True))
    if isinstance(column, Categorical) and len(column.categories) > 1:
        return Classes(column.categories)
    raise InvalidSchema(
        f"the target {name!r}, declared as {column.to_dict()['kind']!r}",
        "a target with at least two categories, a boolean, or a numeric range",
        f"declare [columns.{name}] with kind and categories, or with lower and upper",
    )


def _kind(where: str, declared: Mapping[str, Any], known: tuple[str, ...]) -> str:
    if not isinstance(declared, Mapping):
        raise InvalidSchema(f"{where} that is no table", f"a table [{where}]", f"write [{where}] and its kind below it")
    kind = declared.get("kind")
    if not isinstance(kind, str) or kind not in known:
        given = "no kind" if kind is None else f"kind = {shown(kind)}"
        raise InvalidSchema(
            f"{given} in [{where}]", "kind = " + " or ".join(f'"{name}"' for name in known), "write one of these"
        )
    return kind


def _only(where: str, declared: Mapping[str, Any], known: tuple[str, ...]) -> None:
    unknown = sorted(str(key) for key in declared if key not in known)
    if unknown:
        raise InvalidSchema(
            f"unknown {', '.join(unknown)} in [{where}]", "only " + ", ".join(known), "remove or correct the key"
        )


def _filled(fill: Value | None) -> dict[str, Value]:
    """Nothing where nothing was declared, so that schemas without fill values are written as ever."""
    return {} if fill is None else {"fill": fill}


def _ignore(where: str, declared: Mapping[str, Any]) -> Ignore:
    _only(where, declared, ("kind",))
    return Ignore()


def _boolean(where: str, declared: Mapping[str, Any]) -> Boolean:
    _only(where, declared, ("kind", "fill"))
    fill = declared.get("fill")
    if not (fill is None or isinstance(fill, bool)):
        raise _unusable_fill(where, fill, "true or false")
    return Boolean(fill)


def _numeric(where: str, declared: Mapping[str, Any]) -> Numeric:
    _only(where, declared, ("kind", "lower", "upper", "fill"))
    bounds = [declared.get("lower"), declared.get("upper")]
    if not all(isinstance(b, (int, float)) and not isinstance(b, bool) for b in bounds):
        raise InvalidSchema(
            f"[{where}] without numbers lower and upper",
            "the range that is known without looking at the data",
            f"write lower = … and upper = … in [{where}]",
        )
    lower, upper = (_finite(b) for b in bounds)
    if not (lower < upper and math.isfinite(upper - lower)):
        raise InvalidSchema(
            f"[{where}] with lower = {shown(bounds[0])} and upper = {shown(bounds[1])}",
            "finite numbers with lower < upper",
            "correct the range",
        )
    fill = declared.get("fill")
    if fill is None:
        return Numeric(lower, upper)
    if _sort(fill) != "number" or not lower <= _finite(fill) <= upper:
        raise _unusable_fill(where, fill, f"a number from {lower:g} to {upper:g}, the declared range")
    return Numeric(lower, upper, _finite(fill))


def _unusable_fill(where: str, fill: object, expected: str) -> InvalidSchema:
    return InvalidSchema(f"fill = {shown(fill)} in [{where}]", expected, "correct fill, or remove it")


def _finite(bound: Any) -> float:
    try:
        return float(bound)
    except OverflowError:
        return math.nan


def _categorical(where: str, declared: Mapping[str, Any]) -> Categorical:
    _only(where, declared, ("kind", "categories", "unseen", "fill"))
    unseen = declared.get("unseen", "zero")
    if unseen not in ("zero", "error"):
        raise InvalidSchema(f"unseen = {shown(unseen)} in [{where}]", '"zero" or "error"', "write one of these")
    categories, fill = _values(where, declared, "categories", least=1), declared.get("fill")
    if fill is None:
        return Categorical(categories, unseen)
    wanted = fill.strip() if isinstance(fill, str) else fill
    alike = [value for value in categories if _sort(value) == _sort(wanted) and value == wanted]
    if not alike:
        raise _unusable_fill(where, fill, "one of the categories, or a category of its own that is listed with them")
    return Categorical(categories, unseen, alike[0])


def _values(where: str, declared: Mapping[str, Any], key: str, least: int) -> tuple[Value, ...]:
    """The declared values: strings (stripped), numbers or booleans, of one sort, each once."""
    listed = declared.get(key)
    if not isinstance(listed, (list, tuple)) or len(listed) < least:
        raise InvalidSchema(
            f"[{where}] without {key}" if listed is None else f"{key} in [{where}] with fewer than {least} entries",
            f"a list of at least {least}, known without looking at the data",
            f'write {key} = ["…", "…"] in [{where}]',
        )
    values = tuple(value.strip() if isinstance(value, str) else value for value in listed)
    if len({_sort(value) for value in values}) != 1 or _sort(values[0]) == "other":
        raise InvalidSchema(
            f"{key} of several sorts in [{where}]",
            "only strings, only finite numbers or only booleans",
            f"correct {key}",
        )
    if len(set(values)) != len(values):
        raise InvalidSchema(f"{key} in [{where}] with an entry twice", "each entry once", "remove the repetition")
    return values


def _sort(value: object) -> str:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, (int, float)):
        return "number" if math.isfinite(_finite(value)) else "other"
    return "string" if isinstance(value, str) else "other"
