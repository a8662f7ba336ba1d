"""Name → class, so that estimators, the command line and the test-suite find every part without a list kept by hand."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from dpadmm.errors import InvalidParameter

T = TypeVar("T")


class Registry(Generic[T]):
    """A dictionary of classes of one kind.

    Examples
    --------
    >>> shapes = Registry[type]("shape")
    >>> @shapes.register("square")
    ... class Square: ...
    >>> shapes.names()
    ('square',)
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._entries: dict[str, T] = {}

    def register(self, name: str) -> Callable[[T], T]:
        def enter(entry: T) -> T:
            if name in self._entries:
                raise InvalidParameter(f"{self.kind} name {name!r} twice", "a new name", "choose another name")
            self._entries[name] = entry
            return entry

        return enter

    def __getitem__(self, name: str) -> T:
        if not isinstance(name, str) or name not in self._entries:
            raise InvalidParameter(
                f"{self.kind} {name!r}", "one of " + ", ".join(map(repr, self.names())), f"choose a known {self.kind}"
            )
        return self._entries[name]

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def names(self) -> tuple[str, ...]:
        return tuple(sorted(self._entries))
