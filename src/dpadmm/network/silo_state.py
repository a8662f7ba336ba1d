"""What a silo remembers: written down as a whole, on the disk before anything leaves, or in memory for simulations."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from dpadmm.errors import FileProblem
from dpadmm.files import flush_folder, replacing
from dpadmm.network.handshake import History
from dpadmm.stored_json import entries, exactly, flag, listed, parse, read_words, reading, text, whole

LATEST = "state.json"
SECRET = "epoch.secret"
"""Never part of a backup: whoever has it and the traffic of its epoch can take the masks off."""


@dataclass(frozen=True)
class Epoch:
    """One epoch as a silo sees it. `session` is empty until all have acknowledged, and hellos are kept until then."""

    proposal: bytes
    number: int
    hello: bytes
    hellos: bytes = b""
    hello_parts: tuple[bytes, ...] = ()
    acknowledgement: bytes = b""
    acknowledgements: bytes = b""
    session: bytes = b""
    questions: tuple[bytes, ...] = ()
    closed: bool = False
    peers: Mapping[str, bytes] = field(default_factory=dict)

    @property
    def answered(self) -> int:
        """Number of the last question that was answered."""
        return len(self.questions)


@dataclass(frozen=True)
class Run:
    """What was asked of a silo in all epochs of one run, by one plan that was charged once."""

    receipt: str
    gate: Mapping[str, Any]
    first: bytes
    charged: bool = False


@dataclass(frozen=True)
class SiloState:
    """All that must survive a crash. Proposals, answers and the secret of the epoch have their own files.

    Attributes
    ----------
    history : History
        How far this silo is.
    spoken : tuple of bytes
        The marks in all its hellos.
    known : mapping
        The mark in the last hello of each peer, by its key.
    opened : mapping
        For each proposal, by its digest, the last epoch that began.
    runs : mapping
        By the digest of the first proposal of a run.
    epoch : Epoch or None
        The last one that began.
    """

    history: History = field(default_factory=History)
    spoken: tuple[bytes, ...] = ()
    known: Mapping[bytes, bytes] = field(default_factory=dict)
    opened: Mapping[bytes, int] = field(default_factory=dict)
    runs: Mapping[bytes, Run] = field(default_factory=dict)
    epoch: Epoch | None = None

    def moved(self, *what: bytes, **changes: Any) -> SiloState:
        """The state after one more step."""
        return replace(self, history=self.history.after(*what), **changes)

    def to_bytes(self) -> bytes:
        return json.dumps(
            {
                "history": _history(self.history),
                "spoken": [mark.hex() for mark in self.spoken],
                "known": {key.hex(): mark.hex() for key, mark in self.known.items()},
                "opened": {proposal.hex(): last for proposal, last in self.opened.items()},
                "runs": {run.hex(): _run(kept) for run, kept in self.runs.items()},
                "epoch": None if self.epoch is None else _epoch(self.epoch),
            }
        ).encode()

    @classmethod
    def from_bytes(cls, content: bytes) -> SiloState:
        """The state that `to_bytes` wrote; `FileProblem` for anything else."""
        fields = exactly(parse(content, WHAT), WHAT, ("history", "spoken", "known", "opened", "runs", "epoch"))
        with reading(WHAT):
            return cls(
                _read_history(fields["history"]),
                tuple(map(bytes.fromhex, listed(fields["spoken"], WHAT))),
                {bytes.fromhex(key): bytes.fromhex(mark) for key, mark in entries(fields["known"], WHAT).items()},
                {bytes.fromhex(key): whole(last, WHAT) for key, last in entries(fields["opened"], WHAT).items()},
                {bytes.fromhex(key): _read_run(each) for key, each in entries(fields["runs"], WHAT).items()},
                None if fields["epoch"] is None else _read_epoch(fields["epoch"]),
            )


WHAT = "the state of a silo"


class Vault(Protocol):
    """Where a silo keeps its files. What `keep` was given is safe when it returns."""

    def keep(self, name: str, content: bytes) -> None: ...

    def fetch(self, name: str) -> bytes | None:
        """The content, or None if there is no such file."""
        ...

    def forget(self, name: str) -> None: ...


class MemoryVault:
    """For simulations in one process; it outlives a silo that is killed, as a disk would."""

    def __init__(self) -> None:
        self._files: dict[str, bytes] = {}

    def keep(self, name: str, content: bytes) -> None:
        self._files[name] = content

    def fetch(self, name: str) -> bytes | None:
        return self._files.get(name)

    def forget(self, name: str) -> None:
        self._files.pop(name, None)


class FolderVault:
    """A folder that one process at a time holds; every file is replaced as a whole and flushed, its name too."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.chmod(0o700)  # `epoch.secret` takes the masks and the noise off
        self._lock = _locked(folder / "lock", folder)

    def keep(self, name: str, content: bytes) -> None:
        with replacing(self._folder / name) as stream:
            stream.write(content)

    def fetch(self, name: str) -> bytes | None:
        try:
            return read_words(self._folder / name)
        except FileNotFoundError:
            return None

    def forget(self, name: str) -> None:
        """Overwritten before it is removed; a disk may keep copies all the same."""
        place = self._folder / name
        with suppress(FileNotFoundError):
            with place.open("r+b") as stream:
                stream.write(bytes(place.stat().st_size))
                stream.flush()
                os.fsync(stream.fileno())
            place.unlink()
            flush_folder(self._folder)

    def release(self) -> None:
        """Let another process hold the folder."""
        os.close(self._lock)


def _locked(place: Path, folder: Path) -> int:
    import fcntl

    handle = os.open(place, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        raise FileProblem(
            f"{folder}, which another process holds",
            "one process for each silo",
            "stop the other one; never run two copies of one silo",
        ) from None
    return handle


def _history(history: History) -> list[Any]:
    return [history.count, history.mark.hex()]


def _read_history(value: Any) -> History:
    count, mark = listed(value, WHAT)
    return History(whole(count, WHAT, least=0), bytes.fromhex(text(mark, WHAT)))


def _epoch(epoch: Epoch) -> dict[str, Any]:
    return {
        "proposal": epoch.proposal.hex(),
        "number": epoch.number,
        "hello": epoch.hello.hex(),
        "hellos": epoch.hellos.hex(),
        "hello_parts": [part.hex() for part in epoch.hello_parts],
        "acknowledgement": epoch.acknowledgement.hex(),
        "acknowledgements": epoch.acknowledgements.hex(),
        "session": epoch.session.hex(),
        "questions": [question.hex() for question in epoch.questions],
        "closed": epoch.closed,
        "peers": {name: key.hex() for name, key in epoch.peers.items()},
    }


def _read_epoch(value: Any) -> Epoch:
    fields = exactly(value, WHAT, [each.name for each in dataclasses.fields(Epoch)])
    return Epoch(
        bytes.fromhex(fields["proposal"]),
        whole(fields["number"], WHAT),
        bytes.fromhex(fields["hello"]),
        bytes.fromhex(fields["hellos"]),
        tuple(map(bytes.fromhex, listed(fields["hello_parts"], WHAT))),
        bytes.fromhex(fields["acknowledgement"]),
        bytes.fromhex(fields["acknowledgements"]),
        bytes.fromhex(fields["session"]),
        tuple(map(bytes.fromhex, listed(fields["questions"], WHAT))),
        bool(fields["closed"]),
        {name: bytes.fromhex(key) for name, key in entries(fields["peers"], WHAT).items()},
    )


def _run(run: Run) -> dict[str, Any]:
    return {"receipt": run.receipt, "gate": dict(run.gate), "first": run.first.hex(), "charged": run.charged}


def _read_run(value: Any) -> Run:
    fields = exactly(value, WHAT, ("receipt", "gate", "first", "charged"))
    first, charged = bytes.fromhex(fields["first"]), flag(fields["charged"], WHAT)
    return Run(text(fields["receipt"], WHAT), entries(fields["gate"], WHAT), first, charged)
