"""What the commands print: JSON, paragraphs and small tables, plain where there is no terminal."""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from dpadmm.errors import FileProblem
from dpadmm.files import why


def print_json(content: Any) -> None:
    print_text(json.dumps(content, indent=2, allow_nan=False))


def print_text(text: str) -> None:
    """Text as it is."""
    with _told():
        print(text, flush=True)


def print_line(text: str = "", style: str = "") -> None:
    """A paragraph; wrapped on a terminal, one line in a file."""
    console = Console(highlight=False)
    with _told():
        console.print(text, style=style, markup=False, soft_wrap=not console.is_terminal)


def close_output() -> None:
    """Let go of a standard output that takes nothing more, about which Python would complain at its end."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@contextmanager
def _told() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise FileProblem(
            f"a standard output that cannot be written ({why(error)})",
            "a terminal, a pipe that is read to its end, or a file on a disk with space",
            "direct the output elsewhere; files that were written are complete",
        ) from None


def print_pairs(title: str, pairs: Iterable[tuple[str, str]]) -> None:
    """A two-column table of names and values."""
    print_line(title, style="bold")
    table = Table(box=box.SIMPLE, show_header=False, pad_edge=False)
    table.add_column(style="dim", overflow="fold")
    table.add_column(overflow="fold")
    for name, value in pairs:
        table.add_row(_plain(name), _plain(value))
    _print_table(table)


def print_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """A table with a header."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in head:
        table.add_column(name, overflow="fold")
    for row in rows:
        table.add_row(*map(_plain, row))
    _print_table(table)


@contextmanager
def working(what: str, visible: bool) -> Iterator[None]:
    """A spinner on standard error while something takes time; nothing where there is no terminal."""
    console = Console(stderr=True)
    if visible and console.is_terminal:
        with console.status(what):
            yield
    else:
        yield


@contextmanager
def log_on_screen(visible: bool) -> Iterator[None]:
    """What the library logs, on standard error while a command runs; nothing of it tells about a row."""
    logger = logging.getLogger("dpadmm")
    # A logger without any handler would have Python print its warnings.
    handler = logging.StreamHandler() if visible else logging.NullHandler()
    handler.setFormatter(logging.Formatter("dpadmm: %(message)s"))
    level = logger.level
    logger.addHandler(handler)
    if visible:
        logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)


def _plain(text: str) -> str:
    from rich.markup import escape

    return escape(text)


def _print_table(table: Table) -> None:
    console = Console(highlight=False)
    # In a file or a pipe there is no width to respect.
    with _told():
        console.print(table) if console.is_terminal else Console(highlight=False, width=160).print(table)
