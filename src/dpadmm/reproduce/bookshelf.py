"""Every exhibit by its name: each file in `exhibits/` holds one, and so may a file of one's own."""

from __future__ import annotations

import importlib.util
import pkgutil
import sys
from functools import lru_cache
from importlib import import_module
from pathlib import Path

from dpadmm.errors import FileProblem, InvalidParameter
from dpadmm.reproduce import exhibits
from dpadmm.reproduce.exhibit import Exhibit

HOLDS = "EXHIBIT"
"""The name that a file gives its exhibit."""


def exhibit_names() -> tuple[str, ...]:
    """All exhibits, by paper and then as they are numbered there.

    Examples
    --------
    >>> "liu2022-fig2" in exhibit_names()
    True
    """
    modules = sorted(module.name for module in pkgutil.iter_modules(exhibits.__path__))
    return tuple(module.replace("_", "-") for module in modules)


def find_exhibit(name: str) -> Exhibit:
    """By its name, or by the path of a Python file that holds one."""
    return _from_file(name) if name.endswith(".py") else _from_shelf(name)


@lru_cache(maxsize=64)
def _from_shelf(name: str) -> Exhibit:
    if name not in exhibit_names():
        raise InvalidParameter(
            f"the figure or table {name!r}",
            f"one of {', '.join(exhibit_names())}, or the path of a Python file",
            "see `dpadmm reproduce list`",
        )
    found: Exhibit = getattr(import_module(f"{exhibits.__name__}.{name.replace('-', '_')}"), HOLDS)
    return found


@lru_cache(maxsize=64)
def _from_file(path: str) -> Exhibit:
    place = Path(path)
    if not place.is_file():
        raise FileProblem(f"{path}, which is no file", "a Python file that holds an exhibit", "correct the path")
    # A name of its own, so that instances of its classes are found again by their class.
    name = f"dpadmm_exhibit_{place.stem}"
    spec = importlib.util.spec_from_file_location(name, place)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    found = getattr(module, HOLDS, None)
    if not isinstance(found, Exhibit):
        raise FileProblem(f"{path} without {HOLDS}", f"{HOLDS} = a PlottedExhibit or a PrintedTable", f"define {HOLDS}")
    return found
