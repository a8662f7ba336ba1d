"""Name → class, so that estimators, the command line and the test-suite find every part without a list kept by hand."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import Generic, TypeVar

from dpadmm.errors import InvalidParameter, shown

T = TypeVar("T")


class Registry(Generic[T]):
    """A dictionary of classes of one kind.

    Parameters
    ----------
    kind : str
        What its entries are, in words.
    homes : mapping, optional
        Modules by the name of the entry they make, for kinds of which a user needs one: they are loaded when named.

    Examples
    --------
    >>> shapes = Registry[type]("shape")
    >>> @shapes.register("square")
    ... class Square: ...
    >>> shapes.names()
    ('square',)
    """

    def __init__(self, kind: str, homes: Mapping[str, str] | None = None) -> None:
        self.kind = kind
        self._homes = homes or {}
        self._entries: dict[str, T] = {}

    def register(self, name: str) -> Callable[[T], T]:
        def enter(entry: T) -> T:
            if name in self._entries or self._homes.get(name, entry.__module__) != entry.__module__:
                raise InvalidParameter(f"{self.kind} name {name!r} twice", "a new name", "choose another name")
            self._entries[name] = entry
            return entry

        return enter

    def __getitem__(self, name: str) -> T:
        if name not in self:
            raise InvalidParameter(
                f"{self.kind} {shown(name)}",
                "one of " + ", ".join(map(repr, self.names())),
                f"choose a known {self.kind}",
            )
        if name in self._homes:
            import_module(self._homes[name])  # also waits for another thread that is at it
        return self._entries[name]

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and (name in self._entries or name in self._homes)

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def names(self) -> tuple[str, ...]:
        return tuple(sorted({*self._entries, *self._homes}))
