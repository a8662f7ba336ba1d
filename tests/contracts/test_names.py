"""Names lead a reader to one place: no two modules and no two classes share one, and unit tests mirror the source."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import dpadmm

SOURCE = Path(dpadmm.__file__).parent
UNIT_TESTS = Path(__file__).parents[1] / "unit"
REPEATED = {"__init__", "__main__", "base"}
"""`base` holds what all files of its room have in common, so that each room may have one."""


def module_names() -> Iterator[str]:
    """Files and rooms by their own names. A file may be named like the room it is in: `problem/problem.py`."""
    for path in SOURCE.rglob("*.py"):
        if path.stem == "__init__":
            yield path.parent.name
        elif path.stem not in {*REPEATED, path.parent.name}:
            yield path.stem


def class_names() -> Iterator[str]:
    for path in SOURCE.rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        yield from (node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef))


def shared(names: Iterator[str]) -> set[str]:
    return {name for name, times in Counter(names).items() if times > 1}


def test_no_two_modules_share_a_name() -> None:
    assert not shared(module_names())


def test_no_two_classes_share_a_name() -> None:
    assert not shared(class_names())


def test_unit_tests_stand_in_the_rooms_of_what_they_test() -> None:
    rooms = {path.parent.relative_to(UNIT_TESTS) for path in UNIT_TESTS.rglob("*.py")}
    assert not [room for room in rooms if not (SOURCE / room).is_dir()]
