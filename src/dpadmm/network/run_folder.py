"""The coordinator's folder of one run: its keys, the proposal, the cards of all silos, and the journal.

It holds no secret of a row: everything in it but the two private keys may be read by anyone.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from dpadmm.errors import FileProblem, InvalidParameter
from dpadmm.files import replacing
from dpadmm.network.cards import Card
from dpadmm.network.certificates import TlsFiles
from dpadmm.network.coordinator import Coordinator, Observer
from dpadmm.network.federation import Federation
from dpadmm.network.journal import FolderJournal
from dpadmm.network.proposal import Proposal
from dpadmm.network.roster import Roster
from dpadmm.network.silo_home import make_party, signer_in
from dpadmm.network.transports.base import Transport
from dpadmm.network.transports.sockets import SocketTransport
from dpadmm.stored_json import parse, read_words
from dpadmm.tables.schema import Schema

PROPOSAL = "proposal.json"


class RunFolder:
    """One run as its coordinator keeps it.

    Parameters
    ----------
    folder : Path
        Made by `make`.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        if not (folder / PROPOSAL).is_file():
            raise FileProblem(
                f"{folder}, which holds no run", "a folder made by `dpadmm network plan --out`", "correct the path"
            )
        self.proposal = Proposal.from_dict(parse(read_words(folder / PROPOSAL), "a proposal"))
        self.cards = {card.stem: Card.read(card) for card in sorted((folder / "cards").glob("*.json"))}
        self.tls = TlsFiles(folder / "tls.key", folder / "tls.crt")

    @classmethod
    def make(
        cls,
        folder: Path,
        estimator: Any,
        cards: Sequence[Card],
        colluding: int,
        n_rows: int,
        n_features: int,
        spares: int = 0,
        schema: Schema | None = None,
        seeded: bool = False,
    ) -> RunFolder:
        """Fresh keys for the coordinator, and a proposal to be approved by the owners."""
        if folder.exists() and any(folder.iterdir()):
            raise FileProblem(f"{folder}, which is not empty", "a new folder", "choose another name")
        names = [card.name for card in cards]
        if len(set(names)) < len(names):
            raise InvalidParameter("two cards of one name", "one card of each silo", "drop or rename one")
        (folder / "cards").mkdir(parents=True)
        signer = make_party(folder, "coordinator", "")
        roster = Roster({card.name: card.public for card in cards}, colluding, signer.public)
        made = Proposal.of(estimator, roster, n_rows, n_features, spares, seeded, schema)
        for card in cards:
            card.write(folder / "cards" / f"{card.name}.json")
        with replacing(folder / PROPOSAL) as stream:
            stream.write(json.dumps(made.to_dict(), indent=2).encode())
        return cls(folder)

    def federation(
        self, epoch: int, patience: float, observe: Observer, ways: Callable[[], Transport] | None = None
    ) -> Federation:
        """What `fit` is given: silos asked for this proposal, at their addresses, or by other `ways`."""
        proposal, reach = self.proposal, self._sockets if ways is None else ways

        def connect(asked: Proposal) -> tuple[Coordinator, Transport]:
            journal, ways = FolderJournal(self.folder / "journal", epoch), reach()
            return Coordinator(asked, signer_in(self.folder), ways, epoch, journal, patience, observe), ways

        return Federation(
            proposal.roster, proposal.n_rows, proposal.n_features, connect, proposal.spares, proposal.seeded, proposal
        )

    def _sockets(self) -> Transport:
        return SocketTransport({name: self.cards[name] for name in self.proposal.roster.names}, self.tls)

    def drop(self, names: Sequence[str]) -> None:
        """Propose to go on without some silos; the owners of the others approve the next epoch of it."""
        gone = set(names)
        if unknown := sorted(gone - set(self.proposal.roster.names)):
            raise InvalidParameter(
                f"{', '.join(unknown)}, of whom the roster knows nothing",
                f"some of {', '.join(self.proposal.roster.names)}",
                "correct the name",
            )
        made = self.proposal.continued(gone)
        (self.folder / PROPOSAL).rename(self.folder / f"proposal-{self.proposal.digest.hex()[:16]}.json")
        with replacing(self.folder / PROPOSAL) as stream:
            stream.write(json.dumps(made.to_dict(), indent=2).encode())
        self.proposal = made

    @property
    def answered(self) -> int:
        """How many questions of the run have a total."""
        return len(list((self.folder / "journal").glob("total-*.bin")))
