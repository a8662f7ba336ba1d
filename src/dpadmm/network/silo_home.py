"""The folder of one owner's silo: keys, settings, approvals and state, each in its place.

| in it | what | who may see it |
|---|---|---|
| `card.json` | name, public keys, address | everyone |
| `silo.json` | where table and ledger are | the owner |
| `signing.key`, `tls.key` | private keys | nobody; readable by the owner's user alone |
| `approvals/` | proposals that were approved | the owner |
| `state/` | what the silo remembers; `epoch.secret` must not be in backups | the owner |
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from dpadmm.errors import FileProblem, InvalidParameter
from dpadmm.files import flush_folder, replacing
from dpadmm.network.approvals import FolderApprovals, Owner
from dpadmm.network.cards import Card, parsed_address
from dpadmm.network.certificates import TlsFiles, make_certificate
from dpadmm.network.owner_budget import OwnerBudget
from dpadmm.network.owner_table import OwnerFile
from dpadmm.network.roster import require_names
from dpadmm.network.signing import Signer
from dpadmm.network.silo import Silo
from dpadmm.network.silo_state import LATEST, FolderVault, SiloState
from dpadmm.privacy.ledger import Ledger
from dpadmm.stored_json import parse, read_words, record

WHAT = "the settings of a silo"


@dataclass(frozen=True)
class SiloSettings:
    """Where the owner's things are. Paths are as they were given, from the folder the silo was made in."""

    silo: str
    table: str
    ledger: str | None = None
    dataset: str | None = None
    seed: int | None = None


class SiloHome:
    """An owner's folder, opened.

    Parameters
    ----------
    folder : Path
        Made by `make`.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        if not (folder / "silo.json").is_file():
            raise FileProblem(
                f"{folder}, which holds no silo", "a folder made by `dpadmm silo init`", "correct the path"
            )
        self.settings = record(SiloSettings, parse(read_words(folder / "silo.json"), WHAT), WHAT)
        self.card = Card.read(folder / "card.json")
        self.tls = TlsFiles(folder / "tls.key", folder / "tls.crt")
        self.approvals = FolderApprovals(folder / "approvals")

    @classmethod
    def make(cls, folder: Path, settings: SiloSettings, address: str) -> SiloHome:
        """Fresh keys in a new folder."""
        parsed_address(address)
        require_names([settings.silo])
        if (settings.ledger is None) != (settings.dataset is None):
            raise InvalidParameter("a ledger or a dataset alone", "both or none", "name the ledger and the data set")
        if folder.exists() and any(folder.iterdir()):
            raise FileProblem(f"{folder}, which is not empty", "a new folder", "choose another name")
        (folder / "state").mkdir(parents=True)
        make_party(folder, settings.silo, address)
        with replacing(folder / "silo.json") as stream:
            stream.write(json.dumps(asdict(settings), indent=2).encode())
        return cls(folder)

    @property
    def budget(self) -> OwnerBudget:
        """The ledger that pays for this silo's rows."""
        place = self.settings.ledger
        return OwnerBudget(None if place is None else Ledger(place), self.settings.dataset)

    @property
    def table(self) -> OwnerFile:
        """The owner's rows."""
        return OwnerFile(Path(self.settings.table))

    @property
    def owner(self) -> Owner:
        """What judges proposals."""
        seeded = self.settings.seed is not None
        return Owner(self.settings.silo, self.card.public, self.table, self.budget, seeded, self.approvals)

    @property
    def state(self) -> SiloState:
        """As it is on the disk, without holding it."""
        place = self.folder / "state" / LATEST
        return SiloState.from_bytes(read_words(place)) if place.is_file() else SiloState()

    def silo(self, observe: Callable[[str], None]) -> tuple[Silo, FolderVault]:
        """The silo, which holds the folder until the vault is released."""
        vault, settings = FolderVault(self.folder / "state"), self.settings
        signer = signer_in(self.folder)
        silo = Silo(settings.silo, signer, self.table, vault, self.budget, self.approvals, settings.seed, observe)
        return silo, vault


def make_party(folder: Path, name: str, address: str) -> Signer:
    """Keys and card of a silo or a coordinator, in a folder that exists."""
    signer = Signer.generate()
    key, certificate = make_certificate(name)
    _write_secret(folder / "signing.key", signer.secret)
    _write_secret(folder / "tls.key", key)
    (folder / "tls.crt").write_bytes(certificate)
    Card(name, signer.public.hex(), certificate.decode(), address).write(folder / "card.json")
    flush_folder(folder)
    return signer


def signer_in(folder: Path) -> Signer:
    """The key in a folder."""
    secret = read_words(folder / "signing.key")
    if len(secret) != 32:
        raise FileProblem(f"{folder / 'signing.key'}, which is no key", "32 bytes", "restore it from where it was made")
    return Signer(secret)


def _write_secret(place: Path, content: bytes) -> None:
    handle = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "wb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())
