"""What private training returns: the network, its privacy statement, its plan and public numbers of every step."""

from __future__ import annotations

import copy
import hashlib
import io
import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpadmm._version import __version__
from dpadmm.errors import FileProblem, PromiseBroken
from dpadmm.files import usable_path, why, write_folder
from dpadmm.nn.descent import PublicStep
from dpadmm.privacy.plan import Plan
from dpadmm.privacy.plan_agreement import require_agreement
from dpadmm.privacy.statement import PrivacyStatement
from dpadmm.stored_json import exactly, listed, parse, read_words, reading, real, unreadable, whole

Tensor = Any

FORMAT = 1
NUMBERS, WORDS = "weights.npz", "network.json"
MOST_BYTES = 1 << 36
"""Of a file of weights."""
DESCRIBED = ("format", "library_version", "weights_sha256", "plan", "privacy", "history", "checksum")


@dataclass(frozen=True, eq=False, repr=False)
class TrainedNetwork:
    """A network that was trained privately.

    Attributes
    ----------
    model : torch.nn.Module
        The network, a copy of the one that was passed, with the weights that training released.
    privacy : PrivacyStatement
        What was promised, and why it holds.
    plan : Plan
        What was asked of the rows.
    history : tuple of PublicStep
        Learning rate and norm of the noisy gradient of every step. No losses: a loss of private rows is private.
    """

    model: Any
    privacy: PrivacyStatement
    plan: Plan
    history: tuple[PublicStep, ...]

    def save(self, path: str | Path, force: bool = False) -> Path:
        """Write weights, statement and plan as a folder of `weights.npz` and `network.json`; no pickle.

        A folder that holds anything is refused; with `force` an earlier network is replaced. `dpadmm.nn.load` reads it.
        """
        folder = usable_path(path, "a network")
        try:
            _require_room(folder, force)
            write_folder(folder, self._files(), force)
        except OSError as problem:
            raise FileProblem(
                f"the folder {folder}, which cannot be written ({why(problem)})",
                "a folder on a disk that can be written and has space",
                "save again, in another folder or when this one can be written",
            ) from None
        return folder

    def __repr__(self) -> str:
        return f"{type(self).__name__}({type(self.model).__name__}, {len(self.history)} private steps)"

    def _files(self) -> dict[str, bytes]:
        numbers = as_npz(self.model.state_dict())
        words = {
            "format": FORMAT,
            "library_version": __version__,
            "weights_sha256": hashlib.sha256(numbers).hexdigest(),
            "plan": self.plan.to_dict(),
            "privacy": self.privacy.to_dict(),
            "history": [[step, _or_none(rate), norm] for step, rate, norm in self.history],
        }
        text = json.dumps({**words, "checksum": _checksum(words)}, indent=2)
        return {NUMBERS: numbers, WORDS: text.encode()}


def load_network(path: str | Path, model: Any) -> TrainedNetwork:
    """Read a network that `TrainedNetwork.save` wrote.

    Parameters
    ----------
    path : str or Path
        Its folder.
    model : torch.nn.Module
        A network of the same architecture; it is copied, and its weights do not matter.

    Notes
    -----
    Files that were changed, and a statement that says otherwise than its plan, are refused. Nothing is executed.
    """
    folder = usable_path(path, "a network")
    try:
        words = parse(read_words(folder / WORDS), "the description of a network")
        numbers = read_words(folder / NUMBERS, MOST_BYTES)
    except (FileNotFoundError, NotADirectoryError):
        raise FileProblem(
            f"{folder}, which holds no network",
            f"a folder with {NUMBERS} and {WORDS}",
            "pass the folder of a saved network",
        ) from None
    exactly(words, "a network", DESCRIBED)
    stated = words.pop("checksum")
    if words["format"] != FORMAT or stated != _checksum(words):
        raise unreadable("a network", "of another version, or whose description was changed after it was written")
    if hashlib.sha256(numbers).hexdigest() != words["weights_sha256"]:
        raise unreadable("a network", "whose two files do not belong together")
    plan, privacy = Plan.from_dict(words["plan"]), PrivacyStatement.from_dict(words["privacy"])
    _require_true(plan, privacy)
    loaded = copy.deepcopy(model)
    fill(loaded, from_npz(numbers, "the weights of a network"))
    return TrainedNetwork(loaded, privacy, plan, _history(words["history"]))


def as_npz(tensors: dict[str, Tensor]) -> bytes:
    """Named tensors as a file without pickle."""
    stream = io.BytesIO()
    np.savez(stream, allow_pickle=False, **{name: tensor.detach().cpu().numpy() for name, tensor in tensors.items()})
    return stream.getvalue()


def from_npz(content: bytes, what: str) -> dict[str, NDArray[Any]]:
    """The arrays of `as_npz`, by name."""
    with reading(what):
        try:
            with np.load(io.BytesIO(content), allow_pickle=False) as file:
                return {name: file[name] for name in file.files}
        except (OSError, EOFError, KeyError) as problem:
            raise ValueError from problem
        except Exception as problem:  # of the reader of zip files
            raise ValueError from problem


def fill(model: Any, numbers: dict[str, NDArray[Any]]) -> None:
    """Put stored numbers where a network has numbers of the same names, shapes and types."""
    import torch

    places = model.state_dict()
    stored = {name: torch.from_numpy(values) for name, values in numbers.items()}
    fits = places.keys() == stored.keys() and all(
        places[name].shape == values.shape and places[name].dtype == values.dtype for name, values in stored.items()
    )
    if not fits:
        raise FileProblem(
            "stored weights of another network than the one passed",
            "a network with weights of the same names, shapes and types",
            "build the network as it was built for training",
        )
    model.load_state_dict(stored)


def _require_true(plan: Plan, privacy: PrivacyStatement) -> None:
    try:
        require_agreement(plan)
        wrong = privacy.contradictions(plan)
    except PromiseBroken as problem:
        raise unreadable("a network", f"whose plan does not hold ({problem})") from None
    if wrong:
        raise unreadable("a network", f"whose statement speaks of another plan (they differ in {', '.join(wrong)})")


def _require_room(folder: Path, force: bool) -> None:
    held = {entry.name for entry in folder.iterdir()} if folder.is_dir() else set()
    if held and not (force and held <= {NUMBERS, WORDS}):
        raise FileProblem(
            f"the folder {folder}, which is not empty",
            "a new or empty folder",
            "choose another name, or pass force=True to replace a network that was saved in it",
        )


def _history(stored: Any) -> tuple[PublicStep, ...]:
    return tuple(_public_step(listed(each, "a step")) for each in listed(stored, "the history of a network"))


def _public_step(fields: list[Any]) -> PublicStep:
    with reading("a step"):
        step, rate, norm = fields
    learned = math.nan if rate is None else real(rate, "a learning rate")
    return PublicStep(whole(step, "a step"), learned, real(norm, "the norm of a gradient"))


def _or_none(rate: float) -> float | None:
    return None if math.isnan(rate) else rate


def _checksum(words: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(words, sort_keys=True).encode()).hexdigest()
