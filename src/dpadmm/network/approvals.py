"""The owner's word: what is looked at before it is given, and where it is kept until an epoch begins."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Protocol

from dpadmm.files import replacing
from dpadmm.network.owner_budget import OwnerBudget
from dpadmm.network.owner_table import OwnedTable
from dpadmm.network.proposal import Proposal, ProposalRefused
from dpadmm.network.silo_state import SiloState
from dpadmm.stored_json import parse, read_words


class Approvals(Protocol):
    """Proposals that the owner approved, each up to an epoch."""

    def grant(self, proposal: Proposal, epoch: int) -> None: ...

    def granted(self, proposal: bytes, epoch: int) -> bool:
        """Whether the owner approved this epoch of this proposal."""
        ...

    def proposal(self, wanted: bytes) -> Proposal | None:
        """The proposal of this digest, if the owner ever approved it."""
        ...


class MemoryApprovals:
    """For simulations in one process."""

    def __init__(self) -> None:
        self._proposals: dict[bytes, Proposal] = {}
        self._epochs: set[tuple[bytes, int]] = set()

    def grant(self, proposal: Proposal, epoch: int) -> None:
        self._proposals[proposal.digest] = proposal
        self._epochs.add((proposal.digest, epoch))

    def granted(self, proposal: bytes, epoch: int) -> bool:
        return (proposal, epoch) in self._epochs

    def proposal(self, wanted: bytes) -> Proposal | None:
        return self._proposals.get(wanted)


class FolderApprovals:
    """A folder that the owner's command writes and the owner's server reads."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def grant(self, proposal: Proposal, epoch: int) -> None:
        self._folder.mkdir(exist_ok=True)
        for place, content in (
            (self._place(proposal.digest), proposal.to_dict()),
            (self._place(proposal.digest, epoch), {"approved": epoch}),
        ):
            with replacing(place) as stream:
                stream.write(json.dumps(content, indent=2).encode())

    def granted(self, proposal: bytes, epoch: int) -> bool:
        return self._place(proposal, epoch).is_file()

    def proposal(self, wanted: bytes) -> Proposal | None:
        place = self._place(wanted)
        if not place.is_file():
            return None
        found = Proposal.from_dict(parse(read_words(place), "a proposal"))
        return found if found.digest == wanted else None

    def _place(self, proposal: bytes, epoch: int | None = None) -> Path:
        return self._folder / f"{proposal.hex()}{'' if epoch is None else f'-epoch-{epoch}'}.json"


@dataclass(frozen=True)
class Owner:
    """What decides whether a proposal can be carried out at one silo.

    Parameters
    ----------
    name : str
        Of the silo.
    key : bytes
        Its public key.
    table : OwnedTable
        The rows.
    budget : OwnerBudget
        Who pays.
    seeded : bool
        Whether its noise can be repeated.
    approvals : Approvals
        What was approved before.
    """

    name: str
    key: bytes
    table: OwnedTable
    budget: OwnerBudget
    seeded: bool
    approvals: Approvals

    def examine(self, proposal: Proposal, state: SiloState) -> None:
        """Refuse, in words for the owner, what this silo could not carry out."""
        if proposal.roster.silos.get(self.name) != self.key:
            raise ProposalRefused(
                f"Got a roster without silo {self.name!r} and its key. Expected both. Ask for a roster with the key "
                "that `dpadmm silo status` shows."
            )
        if proposal.seeded != self.seeded:
            raise ProposalRefused(
                f"Got a proposal {'with' if proposal.seeded else 'without'} a seed, for a silo "
                f"{'without' if proposal.seeded else 'with'} one. Expected both alike. Seeds are for tests: use none "
                "on private rows."
            )
        if proposal.continues:
            self._require_continuation(proposal, state)
        self.table.rows(proposal)
        self.budget.check(proposal.plan, proposal.seeded, charged=proposal.run in state.runs)

    def _require_continuation(self, proposal: Proposal, state: SiloState) -> None:
        """Refuse to go on with another model, plan or trust than the run began with, or with new members."""
        known = state.runs.get(proposal.run)
        first = None if known is None else self.approvals.proposal(known.first)
        if first is None:
            raise ProposalRefused(
                "Got a proposal that continues a run this silo took no part in. Expected one it knows. Ask for a new "
                "run."
            )
        fewer = proposal.roster.keys.items() <= first.roster.keys.items()
        if not fewer or _kept(proposal) != _kept(first):
            raise ProposalRefused(
                "Got a continued run with other members, trust or model than its first proposal. Expected some of the "
                "same silos and all else unchanged. Ask for a new run."
            )


def _kept(proposal: Proposal) -> tuple[object, ...]:
    """What a run keeps to the end: all but its members and the name it began with."""
    roster = proposal.roster
    rest = {field.name: getattr(proposal, field.name) for field in fields(proposal)}
    del rest["roster"], rest["continues"]
    return roster.colluding, roster.coordinator, roster.coordinator_name, tuple(rest.items())
