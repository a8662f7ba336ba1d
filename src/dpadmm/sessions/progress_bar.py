"""A progress bar that knows nothing but the clock."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from dpadmm.solvers.base import Observer


@contextmanager
def progress_observer(visible: bool, title: str) -> Iterator[Observer]:
    """An observer for `run`; draws a bar on standard error when `visible`."""
    if not visible:
        yield lambda done, total: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task(title, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
