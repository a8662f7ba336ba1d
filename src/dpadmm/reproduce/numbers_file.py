"""The numbers of a reproduced exhibit as JSON and CSV, from which pictures and pages are made."""

from __future__ import annotations

import csv
import io
import json
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dpadmm._version import __version__
from dpadmm.errors import FileProblem
from dpadmm.files import replacing
from dpadmm.reproduce.code_digest import library_digest
from dpadmm.reproduce.exhibit import Cell, Exhibit, PlottedExhibit


@dataclass(frozen=True)
class ExhibitNumbers:
    """All measurements of one exhibit, with how they were made."""

    exhibit: str
    quick: bool
    complete: bool
    made_with: Mapping[str, str]
    cells: Sequence[Mapping[str, Any]]

    @property
    def seconds(self) -> float:
        """Time of all measurements, had they been made one after the other."""
        return sum(float(cell["values"].get("seconds") or 0.0) for cell in self.cells)

    @property
    def seeds(self) -> tuple[int, int]:
        """The fewest and the most seeds of a point."""
        counts: dict[tuple[Any, ...], int] = {}
        for cell in self.cells:
            place = (cell["panel"], cell["curve"], cell["x"])
            counts[place] = counts.get(place, 0) + 1
        many = [count for count in counts.values() if count > 1]
        return (min(many), max(many)) if many else (1, 1)

    def write(self, folder: Path) -> None:
        """`NAME.json` and `NAME.csv`."""
        with replacing(folder / f"{self.exhibit}.json") as stream:
            stream.write(_as_json(self).encode())
        with replacing(folder / f"{self.exhibit}.csv") as stream:
            stream.write(_as_csv(self).encode())

    @classmethod
    def read(cls, folder: Path, exhibit: str) -> ExhibitNumbers | None:
        """What is in a folder, None if nothing is."""
        path = folder / f"{exhibit}.json"
        if not path.is_file():
            return None
        try:
            fields = json.loads(path.read_text(encoding="utf-8"))
            return cls(**fields)
        except (ValueError, TypeError):
            raise FileProblem(
                f"{path}, which this command did not write", "numbers of a reproduced exhibit", "remove or rename it"
            ) from None


def machine() -> dict[str, str]:
    """What measurements were made with."""
    return {
        "dpadmm": __version__,
        "code": library_digest()[:12],
        "numpy": np.__version__,
        "python": platform.python_version(),
        "machine": f"{_processor()}, {os.cpu_count()} cores",
    }


def cell_entry(exhibit: Exhibit, cell: Cell, values: Mapping[str, Any]) -> dict[str, Any]:
    """A measurement under the names that people read, in as many digits as can matter to them."""
    shown = {name: _shortened(value) for name, value in values.items()}
    if not isinstance(exhibit, PlottedExhibit):
        return {"panel": "", "curve": "", "x": 0.0, "seed": 0, "values": shown}
    panel, curve = exhibit.panels[cell.panel], exhibit.curves[cell.curve]
    return {"panel": panel.title, "curve": curve.label, "x": cell.x, "seed": cell.seed, "values": shown}


def _shortened(value: Any) -> Any:
    """Numbers to seven digits, digests of plans to twelve letters."""
    if isinstance(value, float):
        return float(f"{value:.7g}")
    return value[:12] if isinstance(value, str) and len(value) == 64 else value


def _processor() -> str:
    """The processor's name, without the name of the machine."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text(encoding="utf-8").splitlines() if cpuinfo.is_file() else []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.processor() or platform.machine())


def _as_json(numbers: ExhibitNumbers) -> str:
    """One line for each measurement, so that versions can be compared line by line."""
    cells = ",\n".join(json.dumps(cell, sort_keys=True, ensure_ascii=False) for cell in numbers.cells)
    head = {name: getattr(numbers, name) for name in ("exhibit", "quick", "complete", "made_with")}
    return json.dumps(head, sort_keys=True, ensure_ascii=False)[:-1] + ',\n"cells": [\n' + cells + "\n]}\n"


def _as_csv(numbers: ExhibitNumbers) -> str:
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    if numbers.cells and "rows" in numbers.cells[0]["values"]:
        writer.writerows([numbers.cells[0]["values"]["head"], *numbers.cells[0]["values"]["rows"]])
        return stream.getvalue()
    names = sorted({name for cell in numbers.cells for name in cell["values"]})
    writer.writerow(["panel", "curve", "x", "seed", *names])
    for cell in numbers.cells:
        values = [cell["values"].get(name) for name in names]
        writer.writerow([cell["panel"], cell["curve"], cell["x"], cell["seed"], *values])
    return stream.getvalue()
