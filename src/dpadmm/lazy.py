"""Names that a package offers and that are loaded by those who use them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def on_first_use(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """A `__getattr__` for `package`: each name is looked up in the module that is its home, or is that module.

    Examples
    --------
    >>> find = on_first_use("numbers of all kinds", {"Fraction": "fractions", "decimal": "decimal"})
    >>> find("Fraction").__name__, find("decimal").__name__
    ('Fraction', 'decimal')
    """

    def find(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        home = import_module(homes[name])
        return home if homes[name].rpartition(".")[2] == name else getattr(home, name)

    return find
