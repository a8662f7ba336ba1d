"""What the fault attack does to the disk, in processes whose requests can be made to fail (`fail_syscalls.c`).

`python -m attacks.fault_tasks`, with that library loaded, reads one order a line (JSON) and carries out each in a
fork of its own, so that a trial costs no start of Python. A report of how the task ended goes to a file outside of the
folder that is watched.
"""

from __future__ import annotations

import contextlib
import ctypes
import io
import json
import os
import shutil
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from dpadmm import Budget, DPLogisticRegression, Ledger
from dpadmm.cli.app import main
from dpadmm.privacy.calibration import calibrate
from dpadmm.privacy.plan import Request
from dpadmm.privacy.questions import ClippedGradient
from dpadmm.privacy.sampling import Everything

FIT = ["--schema", "schema.toml", "--epsilon", "1", "--delta", "1e-6", "--solver", "full-admm", "--steps", "4"]
PAID = ["--ledger", "ledger.db", "--dataset", "people"]
SMALL = calibrate(Budget(0.01, 1e-6), [Request("gradient", 10, ClippedGradient(1.0))], Everything(), 1000)
Task = Callable[[], None]


def fitted(seed: int) -> DPLogisticRegression:
    X = np.random.default_rng(0).uniform(-1, 1, (300, 3))
    model = DPLogisticRegression(2.0, 1e-6, classes=[0, 1], solver="full-admm", steps=4, random_state=seed)
    return model.fit(X, (X[:, 0] > 0).astype(int))


OLD, NEW = fitted(1), fitted(2)


def command(*arguments: str) -> Task:
    def run() -> None:
        sys.argv = ["dpadmm", *arguments]
        main()

    return run


def reserve_and_commit() -> None:
    """Spend, and note in the record of requests what the ledger has confirmed."""
    library = ctypes.CDLL(None)
    ledger = Ledger("ledger.db")
    for _ in range(2):
        receipt = ledger.reserve("people", SMALL)
        library.faults_note(f"reserved {receipt}".encode())
        ledger.commit(receipt, SMALL.event)
        library.faults_note(f"committed {receipt}".encode())


def new_ledger() -> None:
    Ledger.create("fresh.db").set_limit("people", Budget(1.0, 1e-6), owner="Ada")


TASKS: dict[str, Task] = {
    "save": lambda: NEW.save("deep/saved") and None,
    "save into an empty folder": lambda: NEW.save("empty") and None,
    "save over a model": lambda: NEW.save("old", force=True) and None,
    "fit": command("fit", "table.csv", *FIT, *PAID, "--out", "model"),
    "fit over a model": command("fit", "table.csv", *FIT, *PAID, "--out", "trained", "--force"),
    "fit on disk": command("fit", "table.parquet", *FIT, *PAID, "--on-disk", ".", "--out", "model"),
    "predict": command("predict", "trained", "table.csv", "--out", "predictions.csv"),
    "predict over a file": command("predict", "trained", "table.csv", "--out", "old.csv", "--force"),
    "schema": command("schema", "table.csv", "--out", "template.toml"),
    "export": command("ledger", "export", "ledger.db", "--out", "record.txt"),
    "spending picture": command("ledger", "show", "ledger.db", "--picture", "spending.png"),
    "reserve and commit": reserve_and_commit,
    "new ledger": new_ledger,
}


def stopping_at(stage: str, number: int) -> Any:
    """A patch that sends a signal to this process at one stage of a fit."""

    def stop() -> None:
        os.kill(os.getpid(), number)

    def before(work: Any) -> Any:
        return lambda *given, **more: (stop(), work(*given, **more))[1]

    def after(work: Any) -> Any:
        return lambda *given, **more: (work(*given, **more), stop())[0]

    import dpadmm.cli.fit_command as fit
    import dpadmm.cli.model_folder as folder
    import dpadmm.estimators.base as base

    place, name, when = {
        "before the table is read": (folder, "read_table", before),
        "before the charge": (Ledger, "reserve", before),
        "after the charge": (Ledger, "reserve", after),
        "in training": (base, "run", before),
        "after training": (base, "run", after),
        "after the commit": (Ledger, "commit", after),
        "before writing": (fit, "write_model_folder", before),
        "after writing": (fit, "write_model_folder", after),
        "in telling": (fit, "_tell", before),
    }[stage]
    return mock.patch.object(place, name, when(getattr(place, name)))


def carry_out(order: dict[str, Any]) -> None:
    """In a fork: do one task under one fault, and report."""
    said = os.open(order["said"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(said, 1), os.dup2(said, 2)
    signal.signal(signal.SIGINT, signal.default_int_handler), signal.signal(signal.SIGTERM, signal.SIG_DFL)
    os.chdir(order["folder"])
    library, report = ctypes.CDLL(None), {"error": None, "text": "", "code": 0}
    patch = stopping_at(order["stage"], order["code"]) if order.get("stage") else mock.MagicMock()
    log = order["log"].encode() if order.get("log") else None
    with patch:
        library.faults_arm(order["folder"].encode(), order["nth"], order["how"], order["code"], log)
        try:
            TASKS[order["task"]]()
            library.faults_note(b"returned")
        except SystemExit as done:
            report["code"] = done.code
            library.faults_note(b"returned" if done.code == 0 else b"refused")
        except BaseException as error:
            report |= {"error": type(error).__name__, "text": "".join(traceback.format_exception_only(error))}
        report["count"] = library.faults_disarm()
    Path(order["report"]).write_text(json.dumps(report))


def warm_up(template: Path) -> None:
    """Do everything once, so that a fork finds its modules loaded."""
    with tempfile.TemporaryDirectory() as place, contextlib.redirect_stdout(io.StringIO()):
        os.chdir(shutil.copytree(template, Path(place) / "folder"))
        for task in ("save", "fit", "fit on disk", "predict", "export", "spending picture"):
            with contextlib.suppress(SystemExit):
                TASKS[task]()
            shutil.rmtree("model", ignore_errors=True)
        os.chdir("/")


def serve() -> None:
    print("ready", flush=True)
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            try:
                carry_out(json.loads(line))
            finally:
                sys.stdout.flush()
                os._exit(0)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


if __name__ == "__main__":
    # Pictures take a second to draw, and how they look is no matter here.
    import dpadmm.report.folder
    import dpadmm.report.spending

    dpadmm.report.folder.coefficient_picture = lambda *given: b"picture" * 9000
    dpadmm.report.spending_picture = lambda *given: b"picture" * 9000
    warm_up(Path(sys.argv[1]))
    serve()
