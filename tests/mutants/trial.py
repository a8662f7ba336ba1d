"""One mutant against its tests, in a copy of the repository: caught, survived, or stopped for taking too long."""

from __future__ import annotations

import compileall
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from .places import Mutant
from .sample import ROOT, Guard

LEFT_OUT = shutil.ignore_patterns(
    ".git", ".venv*", "results", "__pycache__", ".*_cache", ".hypothesis", "dpadmm-report", "build", "dist"
)
SHORTEST_TIMEOUT, TIMES_AS_LONG = 60.0, 5.0
"""A hang counts as noticed, so it must be one: tests get a minute, or five times what they take without a mistake."""
MEMORY = 24 << 30
"""Bytes of address space of a test run: a mistake may ask for all there is."""


@dataclass(frozen=True)
class Verdict:
    """What became of one run: "caught", "timeout" or "survived"; the seconds it took and the end of what it printed."""

    outcome: str
    seconds: float
    end: str


class Copy:
    """A copy of the repository in which one file at a time is wrong.

    Parameters
    ----------
    home : Path
        A folder of its own.
    """

    def __init__(self, home: Path) -> None:
        self._home, self._sources = home, home / "src" / "dpadmm"
        shutil.rmtree(home, ignore_errors=True)
        shutil.copytree(ROOT, home, ignore=LEFT_OUT)
        # Compiled files are checked by what is in the source: a mutant may have the time and size of the original.
        mode = compileall.PycInvalidationMode.CHECKED_HASH  # type: ignore[attr-defined]
        compileall.compile_dir(home / "src", quiet=2, invalidation_mode=mode)
        self._usual: dict[tuple[str, ...], float] = {}

    def usual_seconds(self, guard: Guard) -> float:
        """How long the tests take without a mistake; they must pass. A slow first run may have compiled kernels."""
        if guard.tests not in self._usual:
            for _ in range(2):
                verdict = self._run(guard, 1800.0)
                if verdict.outcome != "survived":
                    raise SystemExit(f"{' '.join(guard.tests)} fail without any mistake:\n{verdict.end}")
                if verdict.seconds < SHORTEST_TIMEOUT / TIMES_AS_LONG:
                    break
            self._usual[guard.tests] = verdict.seconds
        return self._usual[guard.tests]

    def judge(self, mutant: Mutant, guard: Guard) -> Verdict:
        """Run the tests with this mistake."""
        limit = max(SHORTEST_TIMEOUT, TIMES_AS_LONG * self.usual_seconds(guard))
        with self._wrong(mutant):
            return self._run(guard, limit)

    @contextmanager
    def _wrong(self, mutant: Mutant) -> Iterator[None]:
        target = self._sources / mutant.file
        target.write_text(mutant.source, encoding="utf-8")
        try:
            yield
        finally:
            target.write_text(mutant.original, encoding="utf-8")

    def _run(self, guard: Guard, limit: float) -> Verdict:
        shutil.rmtree(self._home / "cache", ignore_errors=True)
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-m", "not slow", *guard.tests]
        settings = {
            "PYTHONPATH": str(self._home / "src"),
            "PYTHONDONTWRITEBYTECODE": "1",
            "DPADMM_CACHE": str(self._home / "cache"),
        }
        began, log = time.monotonic(), self._home / "log.txt"
        with log.open("w", encoding="utf-8") as stream:
            run = subprocess.Popen(
                command,
                cwd=self._home,
                env={**os.environ, **settings},
                stdout=stream,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            try:
                _limit_memory(run.pid)
                outcome = {0: "survived", 5: "no test"}.get(run.wait(limit), "caught")
            except subprocess.TimeoutExpired:
                outcome = "timeout"
            finally:
                _end(run)
        return Verdict(outcome, round(time.monotonic() - began, 1), log.read_text(errors="replace")[-2000:])


def _limit_memory(process: int) -> None:
    # Not on every system, and the process may be gone.
    with suppress(ImportError, AttributeError, OSError):
        import resource

        resource.prlimit(process, resource.RLIMIT_AS, (MEMORY, MEMORY))


def _end(run: subprocess.Popen[bytes]) -> None:
    """End a run with all it started."""
    with suppress(ProcessLookupError):
        os.killpg(run.pid, signal.SIGKILL)
    run.wait()
