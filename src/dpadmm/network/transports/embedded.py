"""Silos in this process, behind a network that is as bad as a test wants it, and the same each time.

Time is that of the simulation: nothing waits. Messages are delivered in the order of their arrival, which chance, from
a public seed, decides with their loss and their repetition.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import count

from dpadmm.randomness import public_generator

Reply = Callable[[bytes], bytes]
RESEND_AFTER = 1.0
"""Seconds of the simulation after which a message without a reply is sent again."""


@dataclass(frozen=True)
class Weather:
    """How bad a network is.

    Parameters
    ----------
    delay : float
        Mean seconds that a message takes; each takes its own time, so that they overtake each other.
    dropped, repeated : float
        Chance of each message, and of each reply, to be lost or to arrive twice.
    cut : tuple of (name, from, until)
        Silos that nobody reaches between two times.
    seed : int
        Of all that is left to chance.
    """

    delay: float = 0.0
    dropped: float = 0.0
    repeated: float = 0.0
    cut: tuple[tuple[str, float, float], ...] = ()
    seed: int = 0


@dataclass(order=True)
class _Event:
    time: float
    order: int
    happen: Callable[[], None] = field(compare=False)


class EmbeddedTransport:
    """Delivers to silos by calling them.

    Parameters
    ----------
    silos : mapping of str to callable
        What each does with a message.
    weather : Weather
        How bad the network is.
    record : callable
        Sees everything on the wire: (from, to, bytes).
    """

    def __init__(
        self,
        silos: Mapping[str, Reply],
        weather: Weather | None = None,
        record: Callable[[str, str, bytes], None] = lambda sender, receiver, content: None,
    ) -> None:
        self._silos, self._weather, self._record = silos, Weather() if weather is None else weather, record
        self._chance = public_generator(self._weather.seed)
        self._now, self._order = 0.0, count()
        self._events: list[_Event] = []

    def exchange(self, messages: Mapping[str, bytes], patience: float) -> dict[str, bytes]:
        replies: dict[str, bytes] = {}
        end = self._now + patience
        for name, message in messages.items():
            self._send(name, message, replies, end)
        while self._events and len(replies) < len(messages) and self._events[0].time <= end:
            event = heapq.heappop(self._events)
            self._now = event.time
            event.happen()
        if len(replies) < len(messages):
            self._now = end
        return replies

    def close(self) -> None:
        """What is on its way still arrives, and nobody listens."""
        while self._events:
            heapq.heappop(self._events).happen()

    def _send(self, name: str, message: bytes, replies: dict[str, bytes], end: float) -> None:
        if name in replies or self._now > end:
            return
        self._carry("coordinator", name, message, lambda: self._arrive(name, message, replies))
        self._at(self._now + RESEND_AFTER + 2 * self._weather.delay, lambda: self._send(name, message, replies, end))

    def _arrive(self, name: str, message: bytes, replies: dict[str, bytes]) -> None:
        reply = self._silos[name](message)

        def deliver() -> None:
            replies.setdefault(name, reply)

        if reply:
            self._carry(name, "coordinator", reply, deliver)

    def _carry(self, sender: str, receiver: str, content: bytes, deliver: Callable[[], None]) -> None:
        """One message on its way; nothing arrives where a silo is cut off."""
        weather = self._weather
        silo = sender if receiver == "coordinator" else receiver
        for _ in range(1 + (self._chance.random() < weather.repeated)):
            self._record(sender, receiver, content)
            if self._chance.random() >= weather.dropped and not self._cut(silo):
                self._at(self._now + weather.delay * self._chance.standard_exponential(), deliver)

    def _cut(self, silo: str) -> bool:
        return any(name == silo and start <= self._now < until for name, start, until in self._weather.cut)

    def _at(self, time: float, happen: Callable[[], None]) -> None:
        heapq.heappush(self._events, _Event(time, next(self._order), happen))
