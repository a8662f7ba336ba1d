"""Outputs that appear complete or not at all: a folder, or a single file."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

from dpadmm.errors import FileProblem
from dpadmm.files import replacing, replacing_folder, why

LEAST_SPACE, SPACE_PER_WEIGHT = 1 << 22, 1 << 10
"""Bytes of a model folder, with room to spare: pictures and pages, and what grows with the model."""


@contextmanager
def new_folder(
    out: Path, known_files: Collection[str], force: bool, placed: Callable[[], None] = lambda: None
) -> Iterator[Path]:
    """A hidden sibling of `out` that takes its name if the block succeeds and vanishes if it does not.

    When the block has ended the folder is on the disk, flushed. Errors of the block itself pass unchanged.

    Parameters
    ----------
    out : Path
        The folder to make. Its parent must exist.
    known_files : collection of str
        Files this program writes. Only a folder that holds nothing else is ever replaced.
    force : bool
        Replace an earlier folder of the same kind; without it anything but an absent or empty folder is refused.
    placed : callable
        Called when the folder is complete and in its place.
    """
    out, within = out.resolve(), False
    try:
        _check_target(out, known_files, force)
        with replacing_folder(out, force, placed) as scratch:
            try:
                yield scratch
            except BaseException:
                within = True
                raise
    except OSError as error:
        raise error if within else _unwritable(out, error) from None


@contextmanager
def held_space(folder: Path, out: Path, weights: int) -> Iterator[None]:
    """Space for a model of so many weights, its report included, taken for as long as the block trains.

    So a full disk is found before the budget is spent, and nobody else fills it up in the meantime.
    """
    hold = folder / ".space"
    with told(out), hold.open("xb") as stream:
        _allocate(stream.fileno(), LEAST_SPACE + SPACE_PER_WEIGHT * weights)
    yield
    with told(out):
        hold.unlink()


@contextmanager
def told(out: Path) -> Iterator[None]:
    """Failures to write an output in the words of this program."""
    try:
        yield
    except OSError as error:
        raise _unwritable(out, error) from None


def check_new_file(out: Path, force: bool) -> None:
    """Refuse a file that exists or a folder that cannot take one, before any work is done."""
    with told(out):
        exists, is_folder, is_file = os.path.lexists(out), out.is_dir(), out.is_file()
        folder = out.resolve().parent
        writable = folder.is_dir() and os.access(folder, os.W_OK | os.X_OK)
    if is_folder:
        raise FileProblem(f"the output {out}, which is a folder", "the name of a file", "add a file name")
    if exists and not is_file:
        raise FileProblem(
            f"the output {out}, which is no ordinary file", "the name of a file to make", "choose another name"
        )
    if exists and not force:
        raise FileProblem(f"the output {out}, which exists", "a new name", "choose another name, or add --force")
    if not writable:
        raise FileProblem(
            f"the output {out}, whose folder is missing or cannot be written",
            "a folder that exists and can be written",
            "create the folder or choose another",
        )


def write_new_file(out: Path, content: bytes) -> None:
    """Write a whole file or none, flushed to the disk; what was there before stays if that fails."""
    with told(out), replacing(out.resolve()) as stream:
        stream.write(content)


def _allocate(handle: int, size: int) -> None:
    """Take space on the disk, where the file system can promise it."""
    if not hasattr(os, "posix_fallocate"):
        return
    try:
        os.posix_fallocate(handle, 0, size)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.EOPNOTSUPP):
            raise


def _check_target(out: Path, known_files: Collection[str], force: bool) -> None:
    if not out.parent.is_dir():
        raise FileProblem(
            f"the output folder {out}, whose parent does not exist",
            "a parent folder that exists",
            "create the parent or choose another --out",
        )
    if not out.exists():
        return
    if not out.is_dir():
        raise FileProblem(f"the output {out}, which is a file", "the name of a folder", "choose another --out")
    if os.path.ismount(out):
        raise FileProblem(
            f"the output folder {out}, which is a mounted volume", "a folder that can be renamed", f"choose {out}/model"
        )
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


def _unwritable(out: Path, error: OSError) -> FileProblem:
    return FileProblem(
        f"the output {out}, which cannot be written ({why(error)})",
        "a place on a disk that can be written and has space",
        "choose another output, or free space or permissions there",
    )
