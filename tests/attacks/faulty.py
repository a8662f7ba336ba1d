"""A process whose requests to the disk fail on demand, and folders in which to use it."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pandas as pd
import pytest

from dpadmm import Budget, Ledger, load_model
from dpadmm.cli.app import run
from dpadmm.cli.model_folder import MODEL_FILES, read_model
from dpadmm.errors import DpadmmError
from dpadmm.privacy.ledger import verify

from .campaign import Tally

COUNT, ONCE, FULL, SHORT, SIGNAL = range(5)
SOURCE = Path(__file__).with_name("fail_syscalls.c")
SCHEMA = """
[columns.age]
kind = "numeric"
lower = 0
upper = 100
[columns.tall]
kind = "numeric"
lower = 0
upper = 1
[target]
column = "owns"
kind = "classes"
classes = ["no", "yes"]
"""
SAVED = {
    "save": ("deep/saved", "none"),
    "save into an empty folder": ("empty", "none"),
    "save over a model": ("old", "old"),
}
"""Where each task saves its model, and what is there before."""

Case = TypeVar("Case")


@dataclass
class Ending:
    """How a task ended: its exit code (negative: killed by a signal), its error, and all that it said."""

    status: int
    said: str
    code: int = 0
    error: str | None = None
    text: str = ""
    count: int = 0

    @property
    def succeeded(self) -> bool:
        return self.status == 0 and self.code == 0 and self.error is None

    @property
    def words(self) -> str:
        """All that was said, on one line."""
        return " ".join((self.said + self.text).split())


@dataclass
class FaultyProcess:
    """Carries out tasks of `fault_tasks.py` under a fault."""

    process: subprocess.Popen[str]
    notes: Path
    template: Path
    _used: int = field(default=0)

    def folder(self) -> Path:
        """A fresh copy of the template."""
        self._used += 1
        return Path(shutil.copytree(self.template, self.notes / f"try-{self._used}"))

    def carry_out(self, task: str, folder: Path, **order: Any) -> Ending:
        """One task in one folder; `how`, `nth`, `code`, `stage` and `log` as the tasks know them."""
        report, said = self.notes / "report", self.notes / "said"
        report.unlink(missing_ok=True)
        order = {"how": COUNT, "nth": 0, "code": 0, **order}
        order |= {"task": task, "folder": str(folder), "report": str(report), "said": str(said)}
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(json.dumps(order), file=self.process.stdin, flush=True)
        status = int(self.process.stdout.readline())
        found = json.loads(report.read_text()) if report.exists() else {}
        return Ending(status, said.read_text(), **found)


def each_case(tally: Tally, cases: Sequence[Case]) -> Iterator[Case]:
    """Every case in full; in the sample, some that a fixed seed chose."""
    assert len(cases) <= tally.campaign.full, f"{len(cases)} cases: let the full campaign try them all"
    for case, _ in zip(random.Random(1).sample(cases, len(cases)), tally.each(), strict=False):
        yield case


@contextmanager
def faulty_process() -> Iterator[FaultyProcess]:
    """Compile the library of faults, and start a process with it; a skip says what is missing."""
    # In memory, where there is such a place: what is flushed is counted, and need not wait for a disk.
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as place:
        yield from _started(Path(place))


def _started(place: Path) -> Iterator[FaultyProcess]:
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None or not sys.platform.startswith("linux"):
        pytest.skip("faults of the disk are made by a small C library on Linux: it needs a C compiler")
    library = place / "faults.so"
    subprocess.run([compiler, "-O1", "-shared", "-fPIC", "-o", library, SOURCE, "-ldl"], check=True)
    template = place / "template"
    _fill(template)
    process = subprocess.Popen(
        [sys.executable, "-m", "attacks.fault_tasks", str(template)],
        cwd=SOURCE.parents[1],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "LD_PRELOAD": str(library), "DPADMM_KERNELS": "numpy"},
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield FaultyProcess(process, place, template)
    finally:
        process.kill()
        process.communicate()


def _fill(folder: Path) -> None:
    """A table, its schema, a ledger, a saved and a trained model, and files that are to be replaced."""
    from .fault_tasks import FIT, OLD

    folder.mkdir()
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"age": rng.uniform(0, 100, 200).round(1), "tall": rng.uniform(0, 1, 200).round(2)})
    table["owns"] = np.where(table["age"] > 50, "yes", "no")
    table.to_csv(folder / "table.csv", index=False)
    table.to_parquet(folder / "table.parquet", index=False)
    (folder / "schema.toml").write_text(SCHEMA)
    (folder / "empty").mkdir()
    (folder / "old.csv").write_text("old\n")
    OLD.save(folder / "old")
    Ledger.create(folder / "ledger.db").set_limit("people", Budget(20.0, 1e-4), owner="Ada")
    fit = ["fit", str(folder / "table.csv"), *FIT, "--out", str(folder / "trained"), "--quiet"]
    assert run([word if word != "schema.toml" else str(folder / word) for word in fit]) == 0


# -- what must hold afterwards ---------------------------------------------------------------------------------------


def saved(folder: Path) -> str:
    """Which model a folder of `save` holds: "old", "new", "none", or "half" of one."""
    from .fault_tasks import NEW, OLD

    if not folder.exists() or not any(folder.iterdir()):
        return "none"
    try:
        weights = load_model(folder).weights_
    except DpadmmError:
        return "half"
    return next((name for name, model in (("old", OLD), ("new", NEW)) if (weights == model.weights_).all()), "half")


def trained(folder: Path, before: Path | None = None) -> str:
    """The same for a folder of `dpadmm fit`."""
    if not folder.exists():
        return "none"
    if before is not None and {path.name: path.read_bytes() for path in folder.iterdir()} == {
        path.name: path.read_bytes() for path in before.iterdir()
    }:
        return "old"
    if {path.name for path in folder.iterdir()} != set(MODEL_FILES):
        return "half"
    try:
        read_model(folder)
    except DpadmmError:
        return "half"
    empty = any(path.stat().st_size == 0 for path in folder.iterdir())
    return "half" if empty else "new"


def leftovers(folder: Path) -> list[str]:
    """Names that no output has, at any depth. What belongs to SQLite beside its file is no leftover."""
    found = [path.relative_to(folder) for path in folder.rglob("*")]
    return [str(path) for path in found if any(part.startswith(".") for part in path.parts)]


def charges(folder: Path) -> tuple[int, int]:
    """(charged, committed) fits of the ledger in a folder, which must be sound."""
    assert verify(folder / "ledger.db").problems == ()
    fits = Ledger(folder / "ledger.db").account("people").fits
    return len(fits), sum(fit.committed for fit in fits)
