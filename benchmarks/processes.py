"""Fresh interpreters for what cannot be measured twice in one: peak memory, compilation, imports, luck."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")


def in_fresh_process(*arguments: str, **environment: str) -> dict[str, Any]:
    """Run Python with these arguments on one thread; it prints one JSON object last."""
    finished = subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": _search_path(), **ONE_THREAD, **environment},
        capture_output=True,
        text=True,
    )
    if finished.returncode != 0:
        reason = finished.stderr.strip().splitlines() or [f"exit status {finished.returncode}"]
        return {"failed": reason[-1]}
    answer: dict[str, Any] = json.loads(finished.stdout.splitlines()[-1])
    return answer


def required(*arguments: str) -> dict[str, Any]:
    """The same where there is no result without it."""
    found = in_fresh_process(*arguments)
    if "failed" in found:
        raise RuntimeError(found["failed"])
    return found


def _search_path() -> str:
    """That of this process, wherever it was started."""
    given = os.environ.get("PYTHONPATH", "")
    return os.pathsep.join(os.path.abspath(folder) for folder in given.split(os.pathsep) if folder)
