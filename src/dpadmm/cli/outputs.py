"""Outputs that appear complete or not at all: a folder, or a single file."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

from dpadmm.errors import FileProblem
from dpadmm.files import replacing


@contextmanager
def new_folder(out: Path, known_files: Collection[str], force: bool) -> Iterator[Path]:
    """A temporary sibling of `out` that takes its name if the block succeeds and vanishes if it does not.

    Parameters
    ----------
    out : Path
        The folder to make. Its parent must exist.
    known_files : collection of str
        Files this program writes. Only a folder that holds nothing else is ever replaced.
    force : bool
        Replace an earlier folder of the same kind; without it anything but an absent or empty folder is refused.
    """
    out = out.resolve()
    _check_target(out, known_files, force)
    scratch = out.parent / f".{out.name}.{secrets.token_hex(6)}"
    try:
        scratch.mkdir()
    except OSError as error:
        raise _unwritable(out, error) from None
    try:
        yield scratch
        _take_place(scratch, out)
    except OSError as error:
        raise _unwritable(out, error) from None
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def check_new_file(out: Path, force: bool) -> None:
    """Refuse a file that exists or a folder that cannot take one, before any work is done."""
    folder = out.resolve().parent
    if out.is_dir():
        raise FileProblem(f"the output {out}, which is a folder", "the name of a file", "add a file name")
    if out.exists() and not force:
        raise FileProblem(f"the output {out}, which exists", "a new name", "choose another name, or add --force")
    if not folder.is_dir() or not os.access(folder, os.W_OK | os.X_OK):
        raise FileProblem(
            f"the output {out}", "a folder that exists and can be written", "create the folder or choose another"
        )


def write_new_file(out: Path, content: bytes) -> None:
    """Write a whole file or none."""
    try:
        with replacing(out) as stream:
            stream.write(content)
    except OSError as error:
        raise _unwritable(out, error) from None


def _check_target(out: Path, known_files: Collection[str], force: bool) -> None:
    if not out.parent.is_dir():
        raise FileProblem(
            f"the output folder {out}", "a parent folder that exists", "create the parent or choose another --out"
        )
    if not out.exists():
        return
    if not out.is_dir():
        raise FileProblem(f"the output {out}, which is a file", "the name of a folder", "choose another --out")
    entries = {entry.name for entry in out.iterdir()}
    if entries and not force:
        raise FileProblem(
            f"the output folder {out}, which is not empty",
            "a new or empty folder",
            "choose another name, or add --force",
        )
    if not entries <= set(known_files):
        raise FileProblem(
            f"the output folder {out}, which holds other files", "a folder written by dpadmm", "choose another --out"
        )


def _take_place(scratch: Path, out: Path) -> None:
    if not out.exists():
        scratch.rename(out)
        return
    aside = scratch.with_name(scratch.name + ".old")
    out.rename(aside)
    try:
        scratch.rename(out)
    except OSError:
        aside.rename(out)
        raise
    shutil.rmtree(aside, ignore_errors=True)


def _unwritable(out: Path, error: OSError) -> FileProblem:
    return FileProblem(
        f"the output {out}, which cannot be written ({type(error).__name__})",
        "a place on a disk that can be written and has space",
        "choose another --out or fix its permissions",
    )
