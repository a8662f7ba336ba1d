"""Remembered calibrations: one small JSON file per set of public inputs, so that a known plan costs milliseconds.

Only the noise scale and its ε are stored; the plan itself is rebuilt from the caller's own inputs, so an entry can
change nothing but the scale. A checksum turns damaged entries into misses. It is no signature: whoever can write to
the cache directory could also write to the installed code, and is trusted as much. `calibration.verify_plan`
re-runs the accountant when that trust is not wanted, and `calibrate(cache=False)` neither reads nor writes.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from dpadmm._version import __version__
from dpadmm.files import cache_directory, replacing
from dpadmm.privacy.budget import Budget
from dpadmm.privacy.plan import Request
from dpadmm.privacy.questions.stored import question_to_dict
from dpadmm.privacy.sampling import Sampler, sampler_to_dict

# Raise this number whenever an accountant's arithmetic changes: old entries are then never read again.
REVISION = 3


def directory() -> Path:
    """Where plans are remembered."""
    return cache_directory("plans")


def key(budget: Budget, requests: Sequence[Request], sampler: Sampler, n_rows: int, accountant: str) -> str:
    """SHA-256 of everything the search depends on. All of it is public."""
    inputs = {
        "library": __version__,
        "revision": REVISION,
        "budget": [budget.epsilon.hex(), budget.delta.hex(), str(budget.relation)],
        "requests": [{**asdict(request), "question": question_to_dict(request.question)} for request in requests],
        "sampler": sampler_to_dict(sampler),
        "n_rows": n_rows,
        "accountant": accountant,
    }
    return hashlib.sha256(json.dumps(inputs, sort_keys=True).encode()).hexdigest()


def read(name: str, epsilon: float) -> tuple[float, float] | None:
    """(scale, ε achieved) of an entry that is whole, is the one asked for and keeps the promise; otherwise None."""
    try:
        entry = json.loads((directory() / f"{name}.json").read_text(encoding="utf-8"))
        scale, achieved = float(entry["scale"]), float(entry["epsilon_achieved"])
        whole = entry["key"] == name and entry["checksum"] == _checksum(name, scale, achieved)
    except (OSError, ValueError, KeyError, TypeError, RuntimeError):
        return None
    usable = whole and math.isfinite(scale) and scale > 0 and 0.99 * epsilon <= achieved <= epsilon
    return (scale, achieved) if usable else None


def write(name: str, scale: float, achieved: float) -> None:
    """Store an entry atomically; a cache that cannot be written is no reason to fail."""
    entry = {
        "key": name,
        "scale": scale,
        "epsilon_achieved": achieved,
        "checksum": _checksum(name, scale, achieved),
    }
    with suppress(OSError, RuntimeError):
        folder = directory()
        folder.mkdir(parents=True, exist_ok=True)
        with replacing(folder / f"{name}.json", flushed=False) as stream:
            stream.write(json.dumps(entry).encode())


def _checksum(name: str, scale: float, achieved: float) -> str:
    return hashlib.sha256(f"{name} {scale.hex()} {achieved.hex()}".encode()).hexdigest()
