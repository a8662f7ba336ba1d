"""The examples in the docstrings run and print what they say."""

from __future__ import annotations

import doctest
import pkgutil
from importlib import import_module

import pytest

import dpadmm

# Commands are tested by running them.
SKIPPED = ("dpadmm.cli",)


def modules() -> list[str]:
    found = [dpadmm.__name__, *(module.name for module in pkgutil.walk_packages(dpadmm.__path__, "dpadmm."))]
    return [name for name in found if not name.startswith(SKIPPED)]


@pytest.mark.parametrize("name", modules())
def test_examples(name: str, tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DPADMM_CACHE", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    result = doctest.testmod(import_module(name), optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    assert result.failed == 0


def test_there_are_examples() -> None:
    finder = doctest.DocTestFinder(exclude_empty=True)
    examples = sum(len(test.examples) for name in modules() for test in finder.find(import_module(name)))
    assert examples > 50
