"""`load(name)`: your own folder, then the cache, then the data set's home."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from dpadmm.datasets import raw
from dpadmm.datasets.arrays import Arrays, content_sha256, file_sha256, read_npz, to_dataset, write_npz
from dpadmm.datasets.catalogue import DEMO, CatalogueEntry, find
from dpadmm.datasets.dataset import Dataset
from dpadmm.datasets.download import failed, fetch_any
from dpadmm.datasets.simulated import make_demo
from dpadmm.errors import DownloadFailed, FileProblem, InvalidData
from dpadmm.files import cache_directory


def load(name: str, *, download: bool = True, progress: bool = True) -> Dataset:
    """Load a public data set.

    Looked for as `NAME.npz` in the folder `$DPADMM_DATA`, then in the cache (`$DPADMM_CACHE/datasets`, else
    `dpadmm/datasets` in the user's cache folder), then fetched from its own home, checked, converted and cached.

    Parameters
    ----------
    name : str
        adult, a9a, mushrooms, w8a, covtype, bio_train, ipums_br, mnist, or demo (simulated, nothing to fetch).
    download : bool
        Whether the network may be used.
    progress : bool
        Show a progress bar while fetching.

    Returns
    -------
    Dataset
        `verified` is False only for a file in `$DPADMM_DATA` whose content differs from the catalogue's: that folder
        is yours, so an extract of your own under a known name is taken as it is.

    Raises
    ------
    InvalidParameter
        Unknown name.
    DownloadFailed
        Not found and not to be fetched, the terms of the data forbid fetching, or the bytes are not the expected ones.
    FileProblem
        A file is unreadable, or the cache cannot be written.

    Examples
    --------
    >>> from dpadmm.datasets import load
    >>> load("demo")
    Dataset('demo', 40000 × 100 dense, no test split)
    """
    if name == DEMO:
        return make_demo()
    entry = find(name)
    own = _own_file(entry)
    if own is not None:
        arrays = read_npz(own)
        return _dataset(entry, arrays, verified=_is_reference(entry, own, arrays))
    cached = cache_folder() / f"{entry.name}.npz"
    held = _from_cache(entry, cached)
    if held is None:
        _require_download(entry, download)
        held = _from_home(entry, cached, progress)
    return _dataset(entry, held, verified=True)


def cache_folder() -> Path:
    """Where fetched data sets are kept."""
    return cache_directory("datasets")


def is_here(name: str) -> bool:
    """Whether `load` finds a data set without the network; its content is not looked at.

    Examples
    --------
    >>> from dpadmm.datasets.loader import is_here
    >>> is_here("demo")
    True
    """
    if name == DEMO:
        return True
    entry = find(name)
    return _own_file(entry) is not None or (cache_folder() / f"{entry.name}.npz").is_file()


def _own_file(entry: CatalogueEntry) -> Path | None:
    folder = os.environ.get("DPADMM_DATA")
    if not folder:
        return None
    if not Path(folder).expanduser().is_dir():
        raise FileProblem(
            f"DPADMM_DATA={folder}", "a folder that exists", "create it, correct the variable, or unset it"
        )
    path = Path(folder).expanduser() / f"{entry.name}.npz"
    return path if path.is_file() else None


def _is_reference(entry: CatalogueEntry, path: Path, arrays: Arrays) -> bool:
    return file_sha256(path) == entry.npz_sha256 or content_sha256(arrays) == entry.content_sha256


def _from_cache(entry: CatalogueEntry, path: Path) -> Arrays | None:
    """The cached arrays, or None if absent or damaged: the cache holds nothing that cannot be fetched again."""
    if not path.is_file():
        return None
    try:
        arrays = read_npz(path)
    except FileProblem:
        return None
    return arrays if _is_reference(entry, path, arrays) else None


def _require_download(entry: CatalogueEntry, download: bool) -> None:
    if not entry.files:
        raise failed(
            f"the data set {entry.name!r}, which may not be fetched for you ({entry.licence})",
            f"a file {entry.name}.npz in the folder named by the environment variable DPADMM_DATA",
            f"{entry.by_hand} there with numpy.savez_compressed (arrays X, and y in -1 and +1)",
        )
    if not download:
        raise failed(
            f"the data set {entry.name!r} with download=False, found neither in DPADMM_DATA nor in the cache",
            f"{entry.name}.npz in {cache_folder()} or in the folder named by DPADMM_DATA",
            "allow the download or place the file",
        )


def _from_home(entry: CatalogueEntry, cached: Path, progress: bool) -> Arrays:
    """Fetch, convert, check the content, store."""
    try:
        cached.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cached.parent, prefix=f".{entry.name}-") as scratch:
            files = {file.name: Path(scratch) / file.name for file in entry.files}
            for file in entry.files:
                fetch_any(file.urls, file.sha256, files[file.name], progress)
            arrays = _converted(entry, files)
            write_npz(arrays, cached)
    except OSError as error:
        raise FileProblem(
            f"{type(error).__name__} while writing to {cached.parent}",
            "a cache folder that can be written",
            "free space there, or set DPADMM_CACHE to another folder",
        ) from None
    return arrays


def _converted(entry: CatalogueEntry, files: dict[str, Path]) -> Arrays:
    assert entry.converter is not None
    try:
        arrays = raw.convert(entry.converter, files)
    except InvalidData as error:
        raise DownloadFailed(str(error)) from None
    found = content_sha256(arrays)
    if found != entry.content_sha256:
        raise failed(
            f"content SHA-256 {found} for {entry.name!r}",
            f"content SHA-256 {entry.content_sha256}",
            "the home may have changed its files: place a good npz in the folder named by DPADMM_DATA",
        )
    return arrays


def _dataset(entry: CatalogueEntry, arrays: Arrays, *, verified: bool) -> Dataset:
    return to_dataset(entry.name, arrays, description=entry.description, licence=entry.licence, verified=verified)
