"""Run the benchmarks, print one table, write results/bench.json part by part; `--only` leaves other parts alone."""

from __future__ import annotations

import argparse
import json
from datetime import date
from pathlib import Path
from types import ModuleType

from rich.console import Console
from threadpoolctl import threadpool_limits

from benchmarks import cold, endtoend, gradient, growth, iteration, machine, memory, network, smoothing, split
from benchmarks.report import Row, number, print_rows
from dpadmm import __version__
from dpadmm.files import replacing

RESULTS = Path("results/bench.json")
PARTS: dict[str, ModuleType] = {
    "gradient": gradient,
    "iteration": iteration,
    "split": split,
    "smoothing": smoothing,
    "network": network,
    "fit": endtoend,
    "memory": memory,
    "growth": growth,
    "cold": cold,
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="leave out what is slow or large")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS), metavar="PART", help=", ".join(PARTS))
    options = parser.parse_args()
    with threadpool_limits(1):
        about = {"date": date.today().isoformat(), "dpadmm": __version__, **machine.describe()}
        for part in options.only:
            when = {"date": about["date"], "load": machine.load()}
            rows = measured(part, options.quick)
            write(about, {**stored_parts(), part: when}, [*other_parts(part), *rows])
    print_rows([row for row in stored() if row.part in options.only])


def measured(part: str, quick: bool) -> list[Row]:
    console, rows = Console(stderr=True), []
    for row in PARTS[part].run(quick):
        console.print(f"{row.part}: {row.case}, {row.measure}: {number(row.value, row.unit)} {row.note}")
        rows.append(row)
    return rows


def stored() -> list[Row]:
    return [Row(**row) for row in json.loads(RESULTS.read_text())["rows"]] if RESULTS.exists() else []


def stored_parts() -> dict[str, dict[str, object]]:
    """When each part was measured, and at what load."""
    parts = json.loads(RESULTS.read_text()).get("parts", {}) if RESULTS.exists() else {}
    return dict(parts)


def other_parts(part: str) -> list[Row]:
    """What earlier runs found on the other parts."""
    return [row for row in stored() if row.part != part]


def write(about: dict[str, object], parts: dict[str, dict[str, object]], rows: list[Row]) -> None:
    RESULTS.parent.mkdir(exist_ok=True)
    results = {"machine": about, "parts": parts, "rows": [row.as_json() for row in rows]}
    with replacing(RESULTS) as stream:
        stream.write(json.dumps(results, indent=1).encode())


if __name__ == "__main__":
    main()
