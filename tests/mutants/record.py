"""What was found so far, one line of JSON a mutant, so that a run can be stopped and taken up again."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from threading import Lock
from typing import Any

from .places import Mutant
from .sample import ROOT, Guard
from .trial import Verdict


class Record:
    """A file that grows by one line a verdict; the last line about a mutant counts."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._path, self._lock = path, Lock()
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        self._found = {found["mutant"]: found for found in map(json.loads, lines)}

    def known(self, mutant: Mutant, guard: Guard) -> dict[str, Any] | None:
        """The verdict on the very same mistake in the very same file; a survivor's, if its tests are the same too."""
        found = self._found.get(_digest(mutant.file, mutant.source))
        if found is not None and found["outcome"] == "survived" and found["tests"] != _tests_digest(guard):
            return None
        return found

    def add(self, mutant: Mutant, guard: Guard, verdict: Verdict) -> None:
        """Write a verdict down."""
        found = {
            "mutant": _digest(mutant.file, mutant.source),
            "tests": _tests_digest(guard),
            "file": mutant.file,
            "function": mutant.function,
            "before": mutant.before,
            "after": mutant.after,
            "outcome": verdict.outcome,
            "by": verdict.by,
            "seconds": verdict.seconds,
        }
        with self._lock, self._path.open("a", encoding="utf-8") as stream:
            self._found[found["mutant"]] = found
            stream.write(json.dumps(found) + "\n")


def _tests_digest(guard: Guard) -> str:
    files = sorted({test.split("::")[0] for test in guard.tests})
    return _digest(*files, *((ROOT / file).read_text(encoding="utf-8") for file in files))


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()
