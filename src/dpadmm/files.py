"""Where the library keeps files, and how it writes them: whole or not at all, and on the disk before it says so."""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
import sys
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from dpadmm.errors import FileProblem, shown
from dpadmm.signals import HeldSignals

HIDDEN = ".dpadmm-"
"""How the names of files and folders begin that are not complete: what a killed process leaves may be removed."""

IMMOVABLE = (errno.EBUSY, errno.EXDEV, errno.EACCES, errno.EPERM, errno.EROFS)
"""What the system answers where a folder cannot be made beside another one, or not take its place."""


def cache_directory(kind: str) -> Path:
    """`$DPADMM_CACHE`/kind, or `dpadmm`/kind in the platform's user cache directory."""
    if chosen := os.environ.get("DPADMM_CACHE"):
        return Path(chosen).expanduser() / kind
    if sys.platform == "win32":
        root = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        root = Path.home() / "Library" / "Caches"
    else:
        root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return root / "dpadmm" / kind


def usable_path(place: object, what: str) -> Path:
    """`place` as a path; `FileProblem` for what no file can be called."""
    if isinstance(place, (str, os.PathLike)):
        with suppress(TypeError, ValueError):
            found = Path(place)
            if b"\0" not in os.fsencode(found):
                return found
    raise FileProblem(f"{shown(place)} as the place of {what}", "the name of a file or folder", "correct the name")


@contextmanager
def replacing(target: Path, flushed: bool = True) -> Iterator[IO[bytes]]:
    """A binary stream that becomes `target` if the block succeeds and vanishes if it does not.

    It is a hidden neighbour, renamed at the end: a reader sees the old file or the new one, never half of one. When the
    block has ended the new file is on the disk, unless `flushed` is False, which is for what can be made again.
    """
    scratch, existed = _beside(target), os.path.lexists(target)
    with HeldSignals() as signals:
        try:
            with scratch.open("xb") as stream:
                with signals.let_through():
                    yield stream
                stream.flush()
                if flushed:
                    os.fsync(stream.fileno())
            scratch.replace(target)
            if flushed:
                try:
                    flush_folder(target.parent)
                except OSError:
                    if not existed:
                        target.replace(scratch)
                    raise
        finally:
            with suppress(OSError):
                scratch.unlink()


@contextmanager
def replacing_folder(target: Path, replace: bool = False, placed: Callable[[], None] = lambda: None) -> Iterator[Path]:
    """A new folder that becomes `target` if the block succeeds and vanishes, with all it holds, if it does not.

    It is a hidden neighbour. At the end its files are flushed to the disk and it takes its place by one rename, which
    is flushed too: a reader sees the old folder or the new one, whole, also after a power cut.

    Parameters
    ----------
    target : Path
        Absent or an empty folder. Its parent must exist.
    replace : bool
        Let `target` be a folder that holds files, and remove them when the new folder is in its place.
    placed : callable
        Called when the new folder is in its place for good, before a signal can say otherwise.
    """
    scratch = _beside(target)
    with HeldSignals() as signals:
        try:
            scratch.mkdir()
            if target.is_dir():
                shutil.copymode(target, scratch)
            with signals.let_through():
                yield scratch
            _flush_tree(scratch)
            _take_place(scratch, target, replace)
            placed()
        finally:
            shutil.rmtree(scratch, ignore_errors=True)


def write_folder(target: Path, files: Mapping[str, bytes], replace: bool = False) -> None:
    """Make a folder of these files, with its parents; on failure what was there before is there again.

    An empty folder that exists is filled, and so is one that cannot be renamed, such as a mounted volume. Only there a
    power cut may leave some of the files: the last is written last.
    """
    if target.is_dir() and (not replace or not any(target.iterdir()) or target.samefile(Path.cwd())):
        _fill(target, files)
        return
    made = _make_parents(target.parent)
    try:
        with replacing_folder(target, replace) as scratch:
            for name, content in files.items():
                (scratch / name).write_bytes(content)
    except BaseException as problem:
        if isinstance(problem, OSError) and problem.errno in IMMOVABLE and target.is_dir():
            _fill(target, files)
            return
        for folder in reversed(made):
            with suppress(OSError):
                folder.rmdir()
        raise


def why(problem: OSError) -> str:
    """What the system says of a failure, without the names of files."""
    return os.strerror(problem.errno) if problem.errno else type(problem).__name__


def flush_folder(folder: Path) -> None:
    """Put the names in a folder on the disk: a file is safe from a power cut when its name is."""
    if os.name == "posix":
        _flush(folder)


def _beside(target: Path) -> Path:
    return target.with_name(f"{HIDDEN}{uuid.uuid4().hex}")


def _flush(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as problem:
        # Some file systems have nothing to flush for a folder, and say so.
        if problem.errno != errno.EINVAL or not path.is_dir():
            raise
    finally:
        os.close(handle)


def _flush_tree(folder: Path) -> None:
    for entry in folder.iterdir():
        if entry.is_dir():
            _flush_tree(entry)
        elif os.name == "posix":
            _flush(entry)
    flush_folder(folder)


def _take_place(scratch: Path, target: Path, replace: bool) -> None:
    """Rename, with whatever `target` held left under the name `scratch`; undone if it cannot be flushed."""
    move = _swap if replace and target.is_dir() and any(target.iterdir()) else Path.rename
    move(scratch, target)
    try:
        flush_folder(target.parent)
    except OSError:
        move(target, scratch)
        raise


def _swap(one: Path, other: Path) -> None:
    """Exchange the names of two folders, in one step where the system can."""
    if _exchanged(one, other):
        return
    aside = _beside(other)
    done: list[tuple[Path, Path]] = []
    try:
        for step in ((other, aside), (one, other), (aside, one)):
            step[0].rename(step[1])
            done.append(step)
    except OSError:
        for before, after in reversed(done):
            after.rename(before)
        raise


def _exchanged(one: Path, other: Path) -> bool:
    """Whether Linux's renameat2 has exchanged two names; False where this system or file system does not know it."""
    if not sys.platform.startswith("linux"):
        return False
    library = ctypes.CDLL(None, use_errno=True)
    if not hasattr(library, "renameat2"):
        return False
    here, exchange = -100, 2
    if library.renameat2(here, os.fsencode(one), here, os.fsencode(other), exchange) == 0:
        return True
    code = ctypes.get_errno()
    if code in (errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP):
        return False
    raise OSError(code, os.strerror(code), str(one), None, str(other))


def _make_parents(folder: Path) -> list[Path]:
    """The folders made so that `folder` exists, outermost first."""
    missing = []
    while not folder.is_dir():
        missing.append(folder)
        folder = folder.parent
    made: list[Path] = []
    try:
        for each in reversed(missing):
            each.mkdir()
            made.append(each)
            flush_folder(each.parent)
    except BaseException:
        for each in reversed(made):
            with suppress(OSError):
                each.rmdir()
        raise
    return made


def _fill(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write files into a folder that stays: all are complete, beside their places, before the first takes its own."""
    fresh = {name for name in files if not (folder / name).exists()}
    staged = {name: _beside(folder / name) for name in files}
    placed: list[Path] = []
    with HeldSignals():
        try:
            for name, content in files.items():
                staged[name].write_bytes(content)
                if os.name == "posix":
                    _flush(staged[name])
            for name, scratch in staged.items():
                scratch.replace(folder / name)
                placed.append(folder / name)
            flush_folder(folder)
        except BaseException:
            for path in (*staged.values(), *(path for path in placed if path.name in fresh)):
                with suppress(OSError):
                    path.unlink()
            raise
