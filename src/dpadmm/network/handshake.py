"""How an epoch begins: what all silos said, checked by each of them, and the session that follows from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dpadmm.errors import PromiseBroken
from dpadmm.network.encoding import digest
from dpadmm.network.messages import Acknowledgement, Hello, Message, Said, marks_of, read_as
from dpadmm.network.roster import Roster
from dpadmm.network.signing import NotAuthentic, opened


@dataclass(frozen=True)
class History:
    """How far one silo is: a counter that never goes back, and a mark of all it did up to there."""

    count: int = 0
    mark: bytes = bytes(32)

    def after(self, *what: bytes) -> History:
        """One step further."""
        return History(self.count + 1, digest("history", self.count + 1, self.mark, what))


class RolledBack(PromiseBroken):
    """A silo whose peers have seen more of it than it remembers: a restored backup or a cloned disk."""


def all_said(kind: type[Said], parts: Sequence[bytes], roster: Roster) -> dict[str, Said]:
    """One message of each silo, signed by it; refused if one is missing, is twice, or is another's."""
    sealed = [opened(part, roster.keys) for part in parts]
    if [each.sender for each in sealed] != list(roster.names):
        raise NotAuthentic("Got messages of other parties than the roster's. Expected one of each silo, by name.")
    return {each.sender: read_as(kind, each.content) for each in sealed}


def gathered_digest(parts: Sequence[bytes]) -> bytes:
    """Of hellos, as each silo saw them."""
    return digest("hellos", tuple(parts))


def session_of(hellos: Sequence[bytes], acknowledgements: Sequence[bytes]) -> bytes:
    """The name of a session: another hello, or another mark, is another session with other masks and other noise."""
    return digest("session", tuple(hellos), tuple(acknowledgements))


def hellos_of(parts: Sequence[bytes], roster: Roster, proposal: bytes, epoch: int) -> dict[str, Hello]:
    """All hellos of one epoch of one proposal, each with an ephemeral key and a nonce of its own."""
    hellos = all_said(Hello, parts, roster)
    if any(hello.proposal != proposal or hello.epoch != epoch for hello in hellos.values()):
        raise NotAuthentic("Got a hello to another proposal or epoch. Expected all silos to approve the same.")
    if len({hello.ephemeral for hello in hellos.values()}) < len(hellos):
        raise NotAuthentic("Got one ephemeral key from two silos. Expected fresh keys.")
    return hellos


def acknowledgements_of(parts: Sequence[bytes], roster: Roster, hellos: bytes) -> dict[str, Acknowledgement]:
    """All acknowledgements of the same hellos."""
    found = all_said(Acknowledgement, parts, roster)
    if any(said.hellos != hellos for said in found.values()):
        raise NotAuthentic("Got an acknowledgement of other hellos. Expected all silos to have seen the same.")
    return found


def require_same_past(own: str, spoken: Sequence[bytes], said: Mapping[str, Acknowledgement]) -> None:
    """Refuse if a peer remembers a hello of this silo that the silo does not: `spoken` are the marks in its hellos."""
    for peer, acknowledgement in said.items():
        seen = marks_of(acknowledgement).get(own)
        if seen is not None and seen not in spoken:
            raise RolledBack(
                f"Got a state of silo {own!r} that does not know what {peer!r} has seen of it. Expected a state that "
                "was never set back or copied. Make a new silo with a new key, and add to its ledger what this one may "
                "have spent since its backup."
            )


def is_message(kind: type[Message], content: tuple[object, ...]) -> bool:
    """Whether a content says it is of this kind."""
    return bool(content) and content[0] == kind.name
