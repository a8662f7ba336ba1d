"""What is minimised is public: `dpadmm.problem` imports nothing that reads rows, and no class of it can hold any."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import pkgutil
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

import dpadmm.problem

PRIVATE_ROOMS = ("dpadmm.cells", "dpadmm.rows", "dpadmm.oracles", "dpadmm.tables", "dpadmm.datasets")
MODULES = [module.name for module in pkgutil.walk_packages(dpadmm.problem.__path__, "dpadmm.problem.")]

PUBLIC_ARRAYS = {
    ("Constraint", "A_matrix"),  # matrices and graphs that the user declares
    ("Constraint", "B_matrix"),
    ("Constraint", "offset"),
    ("Edges", "tail"),
    ("Edges", "head"),
    ("Edges", "weight"),
    ("SpikedMap", "scale"),  # coordinates chosen from noisy answers
    ("SpikedMap", "direction"),
}
SMALL = {"int", "float", "bool", "str", "tuple", "Literal", "ClassVar", "None"}
"""Numbers, words and what is declared entry by entry."""


def classes_of(module: str) -> list[type]:
    home = import_module(module)
    return [kind for _, kind in inspect.getmembers(home, inspect.isclass) if kind.__module__ == module]


PARTS = {kind.__name__ for module in MODULES for kind in classes_of(module)}
FIELDS = [
    (kind.__name__, field.name, str(field.type))
    for module in MODULES
    for kind in classes_of(module)
    if dataclasses.is_dataclass(kind)
    for field in dataclasses.fields(kind)
]


def names_in(annotation: str) -> set[str]:
    return {node.id for node in ast.walk(ast.parse(annotation)) if isinstance(node, ast.Name)}


def imported(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{name.name}" for name in node.names)
        elif isinstance(node, ast.Import):
            yield from (name.name for name in node.names)


def holds_no_rows(owner: str, field: str, annotation: str) -> bool:
    """A number, a word, another public part, or one of the few arrays known to be public."""
    return (owner, field) in PUBLIC_ARRAYS or names_in(annotation) <= SMALL | PARTS


def test_no_class_of_the_problem_can_hold_rows():
    assert not [each for each in FIELDS if not holds_no_rows(*each)]
    assert {(owner, field) for owner, field, _ in FIELDS} >= PUBLIC_ARRAYS


@pytest.mark.parametrize("annotation", ["Matrix", "NDArray[np.float64]", "Array | None", "Any", "PackedRows"])
def test_a_field_for_rows_would_be_noticed(annotation):
    assert not holds_no_rows("RowMap", "table", annotation)


@pytest.mark.parametrize("name", MODULES)
def test_the_problem_imports_nothing_that_reads_rows(name):
    path = Path(str(import_module(name).__file__))
    assert not [each for each in imported(path) if each.startswith(PRIVATE_ROOMS)]
