"""Silos in processes of their own, on this machine: keys, TLS, state and all, for demonstrations and tests."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dpadmm.errors import FileProblem
from dpadmm.network.run_folder import RunFolder
from dpadmm.network.silo_home import SiloHome, SiloSettings

PATIENCE = 60.0
"""Seconds for a process to begin to listen."""


@dataclass
class SimulatedSilos:
    """A run and the processes of its silos."""

    folder: Path
    run: RunFolder
    homes: Mapping[str, SiloHome]
    processes: dict[str, subprocess.Popen[bytes]]

    def start(self, name: str) -> None:
        """Begin to serve; what was there before has to be stopped."""
        log = (self.folder / f"{name}.log").open("ab")
        coordinator = self.run.folder / "card.json"
        command = ["silo", "serve", str(self.homes[name].folder), "--coordinator", str(coordinator)]
        self.processes[name] = subprocess.Popen(
            [sys.executable, "-m", "dpadmm", *command, "--reply-every", "0.02"], stdout=log, stderr=log
        )
        log.close()

    def kill(self, name: str) -> None:
        """As a power cut would."""
        process = self.processes[name]
        process.kill()
        process.wait()

    def wait(self) -> None:
        """Until all listen."""
        end = time.monotonic() + PATIENCE
        for name, home in self.homes.items():
            place = Path(home.card.address.removeprefix("unix:"))
            while not place.exists():
                if self.processes[name].poll() is not None or time.monotonic() > end:
                    raise FileProblem(
                        f"silo {name!r}, which does not listen",
                        f"a process that serves within {PATIENCE:g} seconds",
                        f"look into {self.folder / name}.log",
                    )
                time.sleep(0.05)

    def stop(self) -> None:
        """End all processes that were started here."""
        for process in self.processes.values():
            process.terminate()
        for process in self.processes.values():
            with suppress(subprocess.TimeoutExpired):
                process.wait(timeout=5)
            if process.poll() is None:
                process.kill()
                process.wait()


@contextmanager
def simulated_silos(
    estimator: Any,
    tables: Mapping[str, tuple[Any, Any]],
    colluding: int,
    ledgers: Mapping[str, tuple[str, str]] | None = None,
    seed: int | None = None,
    spares: int = 0,
) -> Iterator[SimulatedSilos]:
    """Make silos of these tables, approve for each owner, serve, and end all of it with the block."""
    # Paths of Unix sockets are short, so that they do not fit below every folder for temporary files.
    with tempfile.TemporaryDirectory(prefix="dpadmm-", dir="/tmp" if Path("/tmp").is_dir() else None) as place:
        folder = Path(place)
        homes = {
            name: _home(folder, name, table, None if ledgers is None else ledgers.get(name), seed)
            for name, table in tables.items()
        }
        sizes = [np.shape(X) for X, _ in tables.values()]
        cards = [home.card for home in homes.values()]
        total, features = sum(rows for rows, _ in sizes), sizes[0][1]
        run = RunFolder.make(
            folder / "run", estimator, cards, colluding, total, features, spares, seeded=seed is not None
        )
        silos = SimulatedSilos(folder, run, homes, {})
        try:
            _begin(silos, list(tables))
            yield silos
        finally:
            silos.stop()


def _begin(silos: SimulatedSilos, names: Sequence[str]) -> None:
    for name in names:
        home = silos.homes[name]
        home.owner.examine(silos.run.proposal, home.state)
        home.approvals.grant(silos.run.proposal, 1)
        silos.start(name)
    silos.wait()


def _home(
    folder: Path, name: str, table: tuple[Any, Any], ledger: tuple[str, str] | None, seed: int | None
) -> SiloHome:
    file = folder / f"{name}.npz"
    np.savez(file, X=table[0], y=table[1])
    place, dataset = (None, None) if ledger is None else ledger
    return SiloHome.make(
        folder / name, SiloSettings(name, str(file), place, dataset, seed), f"unix:{folder / name}.sock"
    )
