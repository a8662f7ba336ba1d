"""`dpadmm reproduce`: the figures and tables of the papers, measured anew."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dpadmm.cli.early_end import Outcome
from dpadmm.cli.screen import print_line, print_table
from dpadmm.errors import InvalidParameter

if TYPE_CHECKING:
    from dpadmm.reproduce.campaign import Watcher

HELP = """\
Reproduce the figures and tables of the papers this library implements.

`list` shows them. Each is computed from public data, and written to --out as numbers (CSV, JSON), pictures (SVG, PNG) \
and one page a paper: what the paper shows, what was measured, where its privacy claim is not valid, and a verdict. \
Data must be on this machine; nothing is fetched. All measurements are kept. A run that was interrupted goes on where \
it was with --resume. The models are trained on public data, with fixed seeds: they are not private.

\b
Examples
  dpadmm reproduce list
  dpadmm reproduce liu2022-fig2 --quick
  dpadmm reproduce all --quick                # some minutes
  dpadmm reproduce all --resume --out docs/reproduction
  dpadmm reproduce my_figure.py --quick       # a figure of your own
"""
KEPT = Outcome("All measurements that were finished are kept: go on with --resume.", False)
LIST, ALL = "list", "all"
QUIET_INTERVAL = 60.0
"""Seconds between two lines about progress where there is no terminal."""

What = Annotated[
    str, typer.Argument(metavar="WHAT", help="list, all, the name of an exhibit or paper, or a Python file.")
]
Quick = Annotated[bool, typer.Option("--quick", help="Fewer rows, seeds and budgets: minutes instead of hours.")]
Resume = Annotated[bool, typer.Option("--resume", help="Use what earlier runs have measured with the same code.")]
OutFolder = Annotated[Path | None, typer.Option("--out", "-o", metavar="DIR", help="Folder for numbers and pages.")]
Jobs = Annotated[int | None, typer.Option("--jobs", "-j", metavar="N", min=1, help="Processes; all cores if left out.")]
Seeds = Annotated[int | None, typer.Option("--seeds", metavar="N", min=1, help="Seeds, instead of the usual number.")]
DrawOnly = Annotated[
    bool, typer.Option("--draw-only", help="Measure nothing; write pictures and pages of what is there.")
]


def reproduce(
    *,
    what: What,
    quick: Quick = False,
    resume: Resume = False,
    out: OutFolder = None,
    jobs: Jobs = None,
    seeds: Seeds = None,
    draw_only: DrawOnly = False,
) -> None:
    """Read the command line."""
    from dpadmm.reproduce import Campaign, MeasurementStore

    if what == LIST:
        return _list()
    folder = out or Path("reproduction-quick" if quick else "reproduction")
    run = Campaign(chosen(what), folder, quick, resume, jobs or os.cpu_count() or 1, seeds)
    store = MeasurementStore()
    if draw_only:
        pages = run.draw(store)
    else:
        with interruptible(), _progress() as watch:
            pages = run.carry_out(store, watch)
    print_line(f"Wrote numbers, pictures and pages to {folder}: begin with {pages[-1]}.")


def chosen(what: str) -> tuple[str, ...]:
    """Names of exhibits: all of them, those of one paper, or a single one.

    Examples
    --------
    >>> chosen("liu2022-fig2")
    ('liu2022-fig2',)
    """
    from dpadmm.reproduce.bookshelf import exhibit_names, find_exhibit

    if what.endswith(".py"):
        return (what,)
    names = exhibit_names()
    found = names if what == ALL else tuple(name for name in names if what in (name, find_exhibit(name).paper))
    if not found:
        raise InvalidParameter(
            f"{what!r}", f"list, all, a Python file, a paper, or one of {', '.join(names)}", "choose one of these"
        )
    return found


def _list() -> None:
    from dpadmm.reproduce.bookshelf import exhibit_names, find_exhibit
    from dpadmm.reproduce.papers import PAPERS

    exhibits = [find_exhibit(name) for name in exhibit_names()]
    print_table(
        ("name", "paper", "where", "what", "data"),
        ((e.name, PAPERS[e.paper].short, e.number, e.title, ", ".join(e.tables) or "–") for e in exhibits),
    )


@contextmanager
def interruptible() -> Iterator[None]:
    """Whatever ends the run early is told that nothing measured is lost."""
    try:
        yield
    except BaseException as problem:
        problem.add_note(KEPT)
        raise


@contextmanager
def _progress() -> Iterator[Watcher]:
    """A bar with the time left on a terminal, a line a minute elsewhere; both on standard error."""
    from rich.console import Console

    console = Console(stderr=True, soft_wrap=True, highlight=False)
    if not console.is_terminal:
        yield _lines(console.print)
        return
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (TextColumn("{task.description:<22}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, TextColumn("left"), TimeRemainingColumn(), console=console) as bar:
        task = bar.add_task("measuring", total=None)
        yield lambda done, total, name: bar.update(task, completed=done, total=total, description=name)


def _lines(say: Callable[[str], None]) -> Watcher:
    begun, last = time.monotonic(), [float("-inf")]

    def watch(done: int, total: int, name: str) -> None:
        now = time.monotonic()
        if now - last[0] >= QUIET_INTERVAL or done == total:
            left = (now - begun) / done * (total - done)
            say(f"{name}: {done} of {total} measurements, about {left / 60:.0f} minutes left")
            last[0] = now

    return watch
