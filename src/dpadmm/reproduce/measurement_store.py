"""Measurements on disk, so that an interrupted run goes on where it was.

One line of JSON each, added at the end of one file. A line that was cut in two by a crash is passed over.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from dpadmm.errors import FileProblem
from dpadmm.files import cache_directory, why
from dpadmm.reproduce.code_digest import code_digest
from dpadmm.reproduce.exhibit import Algorithm, Case


def measurement_key(algorithm: Algorithm, case: Case) -> str:
    """What decides about a measurement, in one digest: its declared settings and the code.

    The figure's name is not in it, so that figures that show the same measurement share it.
    """
    panel = None if case.panel is None else repr(case.panel)
    settings = [panel, described(algorithm), case.x, case.seed, case.quick, code_digest(named(algorithm))]
    return hashlib.sha256(json.dumps(settings).encode()).hexdigest()


def described(algorithm: Any) -> str:
    """An algorithm in words that are the same in every process.

    Examples
    --------
    >>> described(math.sqrt)
    'math.sqrt'
    >>> described(partial(math.pow, 2))
    'math.pow(2)'
    """
    if isinstance(algorithm, partial):
        options = [repr(each) for each in algorithm.args]
        options += [f"{name}={value!r}" for name, value in sorted(algorithm.keywords.items())]
        return f"{described(algorithm.func)}({', '.join(options)})"
    if hasattr(algorithm, "__qualname__"):
        return f"{algorithm.__module__}.{algorithm.__qualname__}"
    kind, text = type(algorithm), repr(algorithm)
    return f"{kind.__module__}.{kind.__qualname__}:{text}"


def named(algorithm: Any) -> Any:
    """What has the file of an algorithm's code."""
    return named(algorithm.func) if isinstance(algorithm, partial) else getattr(algorithm, "rows", algorithm)


class MeasurementStore:
    """What has been measured, by key.

    Parameters
    ----------
    path : Path, optional
        The file; one in the library's cache folder if left out.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.path = cache_directory("reproduce") / "measurements.jsonl" if path is None else path
        self._known = _read(self.path)

    def __contains__(self, key: str) -> bool:
        return key in self._known

    def __getitem__(self, key: str) -> dict[str, Any]:
        return self._known[key]

    def keep(self, key: str, values: Mapping[str, Any]) -> None:
        """Write a measurement down before anything is made of it."""
        self._known[key] = {name: finite(value) for name, value in values.items()}
        line = json.dumps({"key": key, "values": self._known[key]}, sort_keys=True) + "\n"
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("a", encoding="utf-8") as stream:
                stream.write(line)
        except OSError as error:
            raise FileProblem(
                f"{why(error)} while writing to {self.path.parent}",
                "a cache folder that can be written",
                "free space there, or set DPADMM_CACHE to another folder",
            ) from None


def finite(value: Any) -> Any:
    """Numbers that are not finite are None, which JSON knows: an algorithm that diverged."""
    if isinstance(value, (list, tuple)):
        return [finite(each) for each in value]
    if isinstance(value, (str, bool)) or value is None:
        return value
    if isinstance(value, int):
        return int(value)
    return float(value) if math.isfinite(value) else None


def _read(path: Path) -> dict[str, dict[str, Any]]:
    known: dict[str, dict[str, Any]] = {}
    if not path.is_file():
        return known
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            entry = json.loads(line)
            known[entry["key"]] = dict(entry["values"])
        except (ValueError, KeyError, TypeError):
            continue
    return known
