"""The party that asks: it opens epochs, puts questions to all silos, and adds what they answer."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpadmm.errors import PrivacyError, Unreachable
from dpadmm.network import handshake
from dpadmm.network.journal import Journal, MemoryJournal
from dpadmm.network.messages import (
    REFUSED,
    Acknowledgement,
    Answer,
    Ask,
    Close,
    Gathered,
    Hello,
    Invite,
    Message,
    Ready,
    Said,
    read_as,
)
from dpadmm.network.pads import unmasked
from dpadmm.network.proposal import Proposal
from dpadmm.network.signing import Sealed, Signer, opened
from dpadmm.network.transports.base import Transport


@dataclass(frozen=True)
class Exchanged:
    """One message to every silo, and what came back: sizes and time, for progress and pictures.

    Parameters
    ----------
    name : str
        Of the message: "ask", for one.
    number : int
        Of the question, from 1 in a run; 0 where none was asked.
    sent : int
        Bytes to each silo.
    received : mapping of str to int
        Bytes from each.
    seconds : float
        Until the last had answered.
    """

    name: str
    number: int
    sent: int
    received: Mapping[str, int]
    seconds: float


Observer = Callable[[Exchanged], None]


class SilosMissing(Unreachable):
    """Silos that did not answer in time. The run goes on when they are back."""


class SilosRefused(PrivacyError):
    """Silos that refused. Their owners see why; nobody else does."""


class Coordinator:
    """Asks all silos of a roster, in one epoch of one proposal.

    Parameters
    ----------
    proposal : Proposal
        What the owners approved.
    signer : Signer
        The coordinator's key, as in the roster.
    transport : Transport
        The ways to the silos.
    epoch : int
        Which attempt this is.
    journal : Journal, optional
        What was asked and answered, before it is sent and used; in memory if left out.
    patience : float
        Seconds to wait for all silos before a run pauses.
    observe : callable
        Told of each exchange.
    """

    def __init__(
        self,
        proposal: Proposal,
        signer: Signer,
        transport: Transport,
        epoch: int = 1,
        journal: Journal | None = None,
        patience: float = 60.0,
        observe: Observer = lambda exchanged: None,
    ) -> None:
        self._proposal, self._signer, self._transport, self._epoch = proposal, signer, transport, epoch
        self._journal: Journal = MemoryJournal() if journal is None else journal
        self._patience, self._observe = patience, observe
        self._session, self._number = b"", 0

    def open(self) -> None:
        """Gather hellos and acknowledgements: afterwards every ledger is charged and questions are answered."""
        hellos = self._parts(Invite(self._proposal.digest, self._epoch), Hello)
        acknowledgements = self._parts(self._gathered(Hello, hellos), Acknowledgement)
        self._session = handshake.session_of(hellos, acknowledgements)
        ready = self._all(self._gathered(Acknowledgement, acknowledgements), Ready)
        if any(said.session != self._session for said in ready.values()):
            raise SilosRefused("Got a silo in another session. Expected one session of all. Start a new epoch.")

    def ask(self, kind: str, at: tuple[Any, ...], coordinates: tuple[Any, ...], size: int) -> NDArray[np.int64]:
        """The sum of all silos' counts with all their noise; from the journal, if it was asked before."""
        self._number += 1
        kept = self._journal.answer(self._number)
        if kept is not None:
            return kept
        if not self._session:
            self.open()
        question = Ask(self._session, self._number - self._journal.skipped, kind, at, coordinates)
        answers = self._all(self._journal.asked(question), Answer)
        total = unmasked([self._masked(name, answers[name], question, size) for name in self._proposal.roster.names])
        self._journal.answered(self._number, total)
        return total

    def close(self) -> None:
        """The run is over: silos forget the secrets of the epoch. One that does not hear of it is told by its owner."""
        if not self._session:
            return
        message = self._signer.seal(self._proposal.roster.coordinator_name, Close(self._session).content)
        self._exchanged(Close.name, message)

    def _gathered(self, kind: type[Message], parts: tuple[bytes, ...]) -> Gathered:
        return Gathered(self._proposal.digest, self._epoch, kind.name, parts)

    def _parts(self, message: Message, kind: type[Message]) -> tuple[bytes, ...]:
        replies = self._replies(message, kind)
        return tuple(replies[name].raw for name in self._proposal.roster.names)

    def _all(self, message: Message, kind: type[Said]) -> dict[str, Said]:
        return {name: read_as(kind, reply.content) for name, reply in self._replies(message, kind).items()}

    def _replies(self, message: Message, kind: type[Message]) -> dict[str, Sealed]:
        """An authentic reply of the right kind from every silo; else the run pauses."""
        roster = self._proposal.roster
        raw = self._signer.seal(roster.coordinator_name, message.content)
        replies = self._exchanged(f"gathered {message.of}" if isinstance(message, Gathered) else message.name, raw)
        if refused := sorted(name for name, reply in replies.items() if reply == REFUSED):
            raise SilosRefused(
                f"Got a refusal of {message.name!r} from {', '.join(refused)}. Expected an answer. Ask the owner, who "
                "sees the reason on the screen of `dpadmm silo serve`; after a failed question a new epoch is approved."
            )
        if missing := sorted(set(roster.names) - set(replies)):
            raise SilosMissing(
                f"Got no answer to {message.name!r} from {', '.join(missing)} within {self._patience:g} seconds. "
                "Expected one of every silo. Run again when they are back: the run goes on where it stopped, at no "
                "further cost."
            )
        return {name: self._authentic(name, reply, kind) for name, reply in replies.items()}

    def _exchanged(self, name: str, raw: bytes) -> dict[str, bytes]:
        began = time.monotonic()
        replies = self._transport.exchange(dict.fromkeys(self._proposal.roster.names, raw), self._patience)
        number = self._number if name == Ask.name else 0
        sizes = {silo: len(reply) for silo, reply in replies.items()}
        self._observe(Exchanged(name, number, len(raw), sizes, time.monotonic() - began))
        return replies

    def _authentic(self, name: str, reply: bytes, kind: type[Message]) -> Sealed:
        sealed = opened(reply, {name: self._proposal.roster.silos[name]})
        if not handshake.is_message(kind, sealed.content):
            raise SilosRefused(f"Got another message than {kind.name!r} from {name}. Expected one. Ask the owner.")
        return sealed

    def _masked(self, name: str, answer: Answer, question: Ask, size: int) -> NDArray[np.uint64]:
        right = (question.session, question.number, question.question)
        if (answer.session, answer.number, answer.question) != right or len(answer.masked) != 8 * size:
            raise SilosRefused(
                f"Got an answer to another question, or of another size, from {name}. Expected {size} numbers. Compare "
                "the versions of dpadmm at both parties."
            )
        return np.frombuffer(answer.masked, dtype="<u8").astype(np.uint64)
