"""One mutant against its tests, in a copy of the repository: caught, stopped for taking too long, or survived."""

from __future__ import annotations

import compileall
import multiprocessing
import os
import shutil
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from py_compile import PycInvalidationMode

import pytest

from .places import Mutant
from .sample import ROOT, Guard

LEFT_OUT = shutil.ignore_patterns(
    ".git", ".venv*", "results", "__pycache__", ".*_cache", ".hypothesis", "dpadmm-report", "build", "dist"
)
SHORTEST_TIMEOUT, TIMES_AS_LONG = 60.0, 5.0
"""A hang counts as noticed, so it must be one: tests get a minute, or five times what they take without a mistake."""
LONGEST = 1800.0
"""Seconds in which tests must end without a mistake."""
MEMORY = 24 << 30
"""Bytes of address space of a test run: a mistake may ask for all there is."""


@dataclass(frozen=True)
class Verdict:
    """What became of one run.

    Attributes
    ----------
    outcome : str
        "caught", "timeout" or "survived".
    seconds : float
        What it took.
    by : str
        The file of tests that noticed it.
    end : str
        The end of what was printed.
    """

    outcome: str
    seconds: float
    by: str = ""
    end: str = ""


class Copy:
    """A copy of the repository in which one file at a time is wrong.

    Parameters
    ----------
    home : Path
        A folder of its own.
    usual : dict
        Seconds that each file of tests takes without a mistake; filled in as they are needed.
    """

    def __init__(self, home: Path, usual: dict[str, float]) -> None:
        self._home, self._sources, self._usual = home, home / "src" / "dpadmm", usual
        shutil.rmtree(home, ignore_errors=True)
        shutil.copytree(ROOT, home, ignore=LEFT_OUT)
        # Compiled files are checked by what is in the source: a mutant may have the time and size of the original.
        compileall.compile_dir(home / "src", quiet=2, invalidation_mode=PycInvalidationMode.CHECKED_HASH)

    def judge(self, mutant: Mutant, guard: Guard) -> Verdict:
        """Run one file of tests after the other until one notices the mistake."""
        seconds = 0.0
        for test in guard.tests:
            limit = max(SHORTEST_TIMEOUT, TIMES_AS_LONG * self._usual_seconds(test))
            with self._wrong(mutant):
                verdict = self._run(test, limit)
            seconds += verdict.seconds
            if verdict.outcome != "survived":
                break
        return replace(verdict, seconds=round(seconds, 1))

    def _usual_seconds(self, test: str) -> float:
        """How long tests take without a mistake; they must pass."""
        if test not in self._usual:
            verdict = self._run(test, LONGEST)
            if verdict.outcome != "survived":
                raise SystemExit(f"{test} fails without any mistake:\n{verdict.end}")
            self._usual[test] = verdict.seconds
        return self._usual[test]

    @contextmanager
    def _wrong(self, mutant: Mutant) -> Iterator[None]:
        target = self._sources / mutant.file
        target.write_text(mutant.source, encoding="utf-8")
        try:
            yield
        finally:
            target.write_text(mutant.original, encoding="utf-8")

    def _run(self, test: str, limit: float) -> Verdict:
        shutil.rmtree(self._home / "cache", ignore_errors=True)
        began, log = time.monotonic(), self._home / "log.txt"
        run = PROCESSES.Process(target=_tests, args=(self._home, test, log))
        run.start()
        run.join(limit)
        outcome = "timeout" if run.exitcode is None else "survived" if run.exitcode == 0 else "caught"
        with suppress(ProcessLookupError):
            os.killpg(run.pid, signal.SIGKILL)
        run.join()
        by = "" if outcome == "survived" else test
        return Verdict(outcome, round(time.monotonic() - began, 1), by, log.read_text(errors="replace")[-2000:])


PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(
    ["numpy", "scipy.stats", "scipy.optimize", "pytest", "hypothesis", "numba", "sklearn.base", "dp_accounting.pld"]
)
"""Whatever takes long to import and is never wrong is imported once; `dpadmm` itself must not be among it."""


def _tests(home: Path, test: str, log: Path) -> None:
    """A process of its own: tests in the copy at `home`, in a group that can be ended with all they started."""
    os.setsid()
    threading.Thread(target=_end_with_parent, daemon=True).start()
    stream = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(stream, 1)
    os.dup2(stream, 2)
    with suppress(ImportError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    os.chdir(home)
    os.environ |= {"PYTHONPATH": str(home / "src"), "DPADMM_CACHE": str(home / "cache")}
    sys.path[:0] = [str(home / "src"), str(home)]
    status = pytest.main(["-x", "-q", "-p", "no:cacheprovider", "-m", "not slow", test])
    sys.stdout.flush()
    # At once: processes and threads that a failed test left behind are nothing to wait for.
    os._exit(status)


def _end_with_parent() -> None:
    """No test goes on when the run that started it was stopped."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os.killpg(0, signal.SIGKILL)
