"""What a transport is: it may lose, delay and repeat messages, and it cannot make one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol


class Transport(Protocol):
    """Ways from the coordinator to each silo."""

    def exchange(self, messages: Mapping[str, bytes], patience: float) -> dict[str, bytes]:
        """Send each silo its message, again where none comes back, and return what came within `patience` seconds."""
        ...

    def close(self) -> None: ...
