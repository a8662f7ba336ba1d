"""A silo: one owner's rows, keys and ledger, and the few things it does when it is asked.

approve → charge → draw → checkpoint → return. What it is asked again it answers with the same bytes. What it does not
go along with gets one fixed reply, and from the moment a question is admitted any failure ends the epoch.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from dpadmm.errors import DpadmmError, PromiseBroken, QueryRefused
from dpadmm.network import handshake
from dpadmm.network.approvals import Approvals, MemoryApprovals, Owner
from dpadmm.network.encoding import decode, digest
from dpadmm.network.epoch_work import EpochWork
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
    read_as,
)
from dpadmm.network.owner_budget import OwnerBudget
from dpadmm.network.owner_table import OwnedTable
from dpadmm.network.pads import SECRET_BYTES, public_half
from dpadmm.network.proposal import Proposal
from dpadmm.network.signing import NotAuthentic, Signer, opened
from dpadmm.network.silo_state import LATEST, SECRET, Epoch, MemoryVault, Run, SiloState, Vault


class Silo:
    """The state machine of one owner. `answer` is all that a transport ever calls.

    Parameters
    ----------
    name : str
        As in the roster.
    signer : Signer
        The owner's key.
    table : OwnedTable
        The owner's rows.
    vault : Vault, optional
        Where the state is kept; in memory if left out, which is for simulations.
    budget : OwnerBudget, optional
        The ledger that pays; without one nothing is charged.
    approvals : Approvals, optional
        What the owner approves; in memory if left out.
    seed : int, optional
        Makes keys and noise repeatable, for tests: NOT private.
    observe : callable, optional
        Told of each step ("charged", "drawn", "kept", …) and why something was refused, for the owner's eyes alone.

    Notes
    -----
    *Formal guarantees.* What docs/proofs/federated.md asks of an honest silo is what this class does.
    """

    def __init__(
        self,
        name: str,
        signer: Signer,
        table: OwnedTable,
        vault: Vault | None = None,
        budget: OwnerBudget | None = None,
        approvals: Approvals | None = None,
        seed: int | None = None,
        observe: Callable[[str], None] = lambda step: None,
    ) -> None:
        self.name, self._signer = name, signer
        self._vault: Vault = MemoryVault() if vault is None else vault
        budget, approvals = budget or OwnerBudget(), MemoryApprovals() if approvals is None else approvals
        self._owner = Owner(name, signer.public, table, budget, seed is not None, approvals)
        self._seed, self._observe = seed, observe
        self._alone = threading.Lock()
        stored = self._vault.fetch(LATEST)
        self._state = SiloState() if stored is None else SiloState.from_bytes(stored)
        if self._state.epoch is None or self._state.epoch.closed:
            self._vault.forget(SECRET)  # a crash may have come between the end of the epoch and its erasure
        self._proposals: dict[bytes, Proposal] = {}
        self._work: EpochWork | None = None
        self._handlers: dict[str, Callable[[Any], Message]] = {
            Invite.name: lambda content: self._greet(read_as(Invite, content)),
            Gathered.name: lambda content: self._gather(read_as(Gathered, content)),
            Ask.name: lambda content: self._reply(read_as(Ask, content)),
            Close.name: lambda content: self._finish(read_as(Close, content)),
        }

    # -- for the owner ----------------------------------------------------------------------------------------------

    @property
    def state(self) -> SiloState:
        """What is remembered; nothing in it is computed from rows."""
        return self._state

    def approve(self, proposal: Proposal, epoch: int = 1) -> None:
        """The owner's word that one epoch of this proposal may begin. Nothing is charged before it does."""
        with self._alone:
            self._owner.examine(proposal, self._state)
            self._owner.approvals.grant(proposal, epoch)

    def close(self) -> None:
        """Close the epoch that is open, by the will of the owner; its secrets are erased."""
        with self._alone:
            self._end_epoch()

    # -- for the network --------------------------------------------------------------------------------------------

    def answer(self, raw: bytes) -> bytes:
        """What is sent back for whatever arrives: a signed message, or `REFUSED`."""
        with self._alone, np.errstate(all="ignore"):
            try:
                content = self._authentic(raw)
                sealed = self._signer.seal(self.name, self._handlers[str(content[0])](content).content)
            except Exception as problem:
                self._observe(f"refused: {problem}" if isinstance(problem, DpadmmError) else "refused")
                return REFUSED
        self._observe("sent")
        return sealed

    def _authentic(self, raw: bytes) -> tuple[object, ...]:
        """The content of a message that the coordinator of an approved proposal signed."""
        try:
            _, body, _ = decode(raw)
            name, subject, *_ = decode(body)
        except (TypeError, ValueError):
            raise NotAuthentic("a message that no party of this federation wrote") from None
        epoch = self._state.epoch
        if name not in (Invite.name, Gathered.name):
            if epoch is None or epoch.closed or not epoch.session or subject != epoch.session:
                raise NotAuthentic("a message of another session than the open one")
            subject = epoch.proposal
        roster = self._proposal(subject).roster
        return opened(raw, {roster.coordinator_name: roster.coordinator}).content

    # -- how an epoch begins ----------------------------------------------------------------------------------------

    def _greet(self, invite: Invite) -> Hello:
        epoch = self._state.epoch
        if epoch is not None and (epoch.proposal, epoch.number) == (invite.proposal, invite.epoch):
            if epoch.closed:
                raise QueryRefused("an epoch that was closed stays closed; approve the next one")
            return _hello(epoch)
        if not self._owner.approvals.granted(invite.proposal, invite.epoch):
            raise QueryRefused("an epoch that the owner did not approve")
        if invite.epoch <= self._state.opened.get(invite.proposal, 0):
            raise QueryRefused("an epoch that began before")
        proposal = self._proposal(invite.proposal)
        self._require_free(proposal)
        self._owner.examine(proposal, self._state)
        return self._said_hello(invite)

    def _require_free(self, proposal: Proposal) -> None:
        """Another run has to end first; an earlier epoch of the same run ends now."""
        epoch = self._state.epoch
        if epoch is not None and not epoch.closed and self._proposal(epoch.proposal).run != proposal.run:
            raise QueryRefused("an epoch of another run is open; close it first")

    def _said_hello(self, invite: Invite) -> Hello:
        secret = self._fresh(2 * SECRET_BYTES, "secret", invite)
        self._end_epoch()
        self._vault.keep(SECRET, secret)
        nonce, ephemeral = self._fresh(SECRET_BYTES, "nonce", invite), public_half(secret[:SECRET_BYTES])
        # With the nonce, no hello after a rollback has the mark of one that was lost.
        after = self._state.history.after(b"hello", invite.proposal, nonce)
        hello = Hello(invite.proposal, invite.epoch, nonce, ephemeral, after.mark)
        self._keep(
            replace(
                self._state,
                history=after,
                spoken=(*self._state.spoken, after.mark),
                opened={**self._state.opened, invite.proposal: invite.epoch},
                epoch=Epoch(invite.proposal, invite.epoch, self._signer.seal(self.name, hello.content)),
            )
        )
        return hello

    def _gather(self, gathered: Gathered) -> Message:
        epoch = self._state.epoch
        if epoch is None or epoch.closed or (epoch.proposal, epoch.number) != (gathered.proposal, gathered.epoch):
            raise QueryRefused("a message of another epoch than the one that begins")
        return (self._acknowledge if gathered.of == Hello.name else self._begin)(epoch, gathered.parts)

    def _acknowledge(self, epoch: Epoch, parts: tuple[bytes, ...]) -> Acknowledgement:
        """Once, of one set of hellos: of two sets, two groups of silos could otherwise have one name."""
        seen = handshake.gathered_digest(parts)
        if epoch.hellos:
            if epoch.hellos != seen:
                raise QueryRefused("other hellos than were acknowledged")
            return read_as(Acknowledgement, decode(epoch.acknowledgement))
        roster = self._proposal(epoch.proposal).roster
        hellos = handshake.hellos_of(parts, roster, epoch.proposal, epoch.number)
        if parts[roster.names.index(self.name)] != epoch.hello:
            raise NotAuthentic("another hello of this silo than it sent")
        peers = {peer: roster.silos[peer] for peer in roster.names if peer != self.name}
        known = self._state.known
        # Of others than these peers nothing is said: they may be of another federation.
        said = Acknowledgement(seen, tuple((peer, known[key]) for peer, key in peers.items() if key in known))
        met = {key: hellos[peer].mark for peer, key in peers.items()}
        begun = replace(
            epoch,
            hellos=seen,
            hello_parts=parts,
            acknowledgement=_encoded(said),
            peers={peer: hellos[peer].ephemeral for peer in peers},
        )
        self._advance("acknowledged", seen, epoch=begun, known={**known, **met})
        return said

    def _begin(self, epoch: Epoch, parts: tuple[bytes, ...]) -> Ready:
        """All have approved and nobody remembers more of this silo than itself: charge, and open the session."""
        if not epoch.hellos:
            raise QueryRefused("acknowledgements before there were hellos")
        seen = handshake.gathered_digest(parts)
        if epoch.session:
            if epoch.acknowledgements != seen:
                raise QueryRefused("another session than the open one")
            return Ready(epoch.session)
        session = handshake.session_of(epoch.hello_parts, parts)
        proposal = self._proposal(epoch.proposal)
        said = handshake.acknowledgements_of(parts, proposal.roster, epoch.hellos)
        handshake.require_same_past(self.name, self._state.spoken, said)
        self._require_paid(proposal)
        self._advance("opened", session, epoch=replace(epoch, session=session, acknowledgements=seen, hello_parts=()))
        return Ready(session)

    def _require_paid(self, proposal: Proposal) -> None:
        """Charge a run once. That it will be charged is noted first, so that after a crash it is not charged again.

        A charge that this state never intended is refused: it is one of a state that was lost.
        """
        known = self._state.runs.get(proposal.run)
        if known is not None and known.charged:
            return
        run = Run(proposal.run.hex()[:32], {}, proposal.digest) if known is None else known
        if known is None:
            self._advance("charging", proposal.run, runs={**self._state.runs, proposal.run: run})
        self._observe("charging")
        try:
            self._owner.budget.charge(run.receipt, proposal.plan, proposal.seeded, resumed=known is not None)
        except PromiseBroken:
            if known is None:
                # Charged by a state that was lost, or by another silo: asked once more it must not pass for a crash.
                rest = {each: kept for each, kept in self._state.runs.items() if each != proposal.run}
                self._advance("not charged", proposal.run, runs=rest)
            raise
        self._observe("charged")
        self._advance("charged", proposal.run, runs={**self._state.runs, proposal.run: replace(run, charged=True)})

    # -- questions --------------------------------------------------------------------------------------------------

    def _reply(self, ask: Ask) -> Answer:
        epoch = self._state.epoch
        assert epoch is not None
        if 1 <= ask.number <= epoch.answered:
            if epoch.questions[ask.number - 1] != ask.question:
                raise QueryRefused("another question under a number that was answered")
            return self._kept_answer(ask)
        if ask.number != epoch.answered + 1:
            raise QueryRefused("a question out of order")
        try:
            return self._drawn(epoch, ask)
        except Exception:
            # Admitted: whatever went wrong may have told something by going wrong, and must not do so twice.
            self._end_epoch()
            raise

    def _drawn(self, epoch: Epoch, ask: Ask) -> Answer:
        work = self._at_work(epoch)
        answer = Answer(ask.session, ask.number, ask.question, work.answer(ask).astype("<u8").tobytes())
        self._observe("drawn")
        run = self._proposal(epoch.proposal).run
        runs = {**self._state.runs, run: replace(self._state.runs[run], gate=work.gate.to_dict())}
        self._vault.keep(_answer_file(ask.number), answer.masked)
        self._advance(
            "answered",
            ask.question,
            digest(answer.masked),
            epoch=replace(epoch, questions=(*epoch.questions, ask.question)),
            runs=runs,
        )
        self._observe("kept")
        return answer

    def _kept_answer(self, ask: Ask) -> Answer:
        content = self._vault.fetch(_answer_file(ask.number))
        if content is None:
            raise PromiseBroken("an answer that was given is no longer there")
        return Answer(ask.session, ask.number, ask.question, content)

    def _at_work(self, epoch: Epoch) -> EpochWork:
        """The oracle of the open session, made anew after a crash."""
        if self._work is None:
            secret = self._vault.fetch(SECRET)
            if secret is None or len(secret) != 2 * SECRET_BYTES or not _is_of(secret, epoch):
                raise PromiseBroken("the secrets of this epoch are gone; a new epoch has to be approved")
            proposal = self._proposal(epoch.proposal)
            counts = self._state.runs[proposal.run].gate
            rows = self._owner.table.rows(proposal)
            self._work = EpochWork(self.name, proposal, epoch.session, secret, epoch.peers, rows, counts)
        return self._work

    def _finish(self, close: Close) -> Close:
        epoch = self._state.epoch
        assert epoch is not None
        proposal = self._proposal(epoch.proposal)
        run = self._state.runs[proposal.run]
        try:
            self._owner.budget.commit(run.receipt, self._at_work(epoch).gate.spent, proposal.plan, proposal.seeded)
        finally:
            self._end_epoch()
        return close

    # -- its own state ----------------------------------------------------------------------------------------------

    def _end_epoch(self) -> None:
        """Erase the secrets of the epoch, then its answers; nothing of it is ever answered again."""
        self._work = None
        epoch = self._state.epoch
        if epoch is None or epoch.closed:
            self._vault.forget(SECRET)
            return
        try:
            # Closed before the secret is overwritten: half erased, it is one that everybody knows.
            self._advance("closed", epoch.session, epoch=replace(epoch, closed=True))
        finally:
            self._vault.forget(SECRET)
        for number in range(1, epoch.answered + 1):
            self._vault.forget(_answer_file(number))
        self._observe("closed")

    def _advance(self, what: str, *which: bytes, **changes: Any) -> None:
        self._keep(self._state.moved(what.encode(), *which, **changes))

    def _keep(self, state: SiloState) -> None:
        self._vault.keep(LATEST, state.to_bytes())
        self._state = state

    def _proposal(self, wanted: object) -> Proposal:
        """An approved proposal, read again after a crash."""
        if not isinstance(wanted, bytes):
            raise NotAuthentic("a message about nothing")
        if wanted not in self._proposals:
            found = self._owner.approvals.proposal(wanted)
            if found is None:
                raise NotAuthentic("a message about a proposal that the owner did not approve")
            self._proposals[wanted] = found
        return self._proposals[wanted]

    def _fresh(self, size: int, purpose: str, invite: Invite) -> bytes:
        """Secret bytes from the operating system; from the seed in tests."""
        if self._seed is None:
            return secrets.token_bytes(size)
        label = (purpose, self._seed, self.name, invite.proposal, invite.epoch)
        return b"".join(digest(part, *label) for part in range(size // SECRET_BYTES))

    def __reduce__(self) -> Any:
        raise TypeError("a silo holds private rows and is never copied or stored")

    def __repr__(self) -> str:
        return f"Silo({self.name!r})"


def _hello(epoch: Epoch) -> Hello:
    return read_as(Hello, decode(decode(epoch.hello)[1]))


def _is_of(secret: bytes, epoch: Epoch) -> bool:
    """Whether these are the keys of the epoch's hello, whole and not erased."""
    return public_half(secret[:SECRET_BYTES]) == _hello(epoch).ephemeral and any(secret[SECRET_BYTES:])


def _encoded(said: Message) -> bytes:
    from dpadmm.network.encoding import encode

    return encode(*said.content)  # type: ignore[arg-type]


def _answer_file(number: int) -> str:
    return f"answer-{number}.bin"
