"""Fetch one file over HTTP: checksum, progress bar, and either the whole file or nothing."""

from __future__ import annotations

import hashlib
import http.client
import os
import ssl
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

from dpadmm._version import __version__
from dpadmm.errors import DownloadFailed, FileProblem, InvalidParameter, three_sentences

CHUNK = 1 << 16
TIMEOUT_S = 30.0


def failed(given: str, expected: str, do: str) -> DownloadFailed:
    """A `DownloadFailed` in the three-part form of every other error here."""
    return DownloadFailed(three_sentences(given, expected, do))


def fetch(url: str, sha256: str | None, target: Path, progress: bool = True) -> Path:
    """Download `url` to `target`.

    Parameters
    ----------
    url : str
        An http or https address.
    sha256 : str or None
        Checksum of the file. None only where the home publishes none: the caller then checks what it reads from it.
    target : Path
        Written under a temporary name beside it and renamed once complete and checked.
    progress : bool
        Show a bar on standard error.

    Raises
    ------
    DownloadFailed
        If the server cannot be reached, refuses, stops early, or sends other bytes than expected. Nothing remains
        on disk then, nor after an interruption.
    FileProblem
        If the file cannot be written.
    """
    if not url.startswith(("https://", "http://")):
        raise InvalidParameter(f"the address {url!r}", "an http or https address", "correct the address")
    partial = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        problem = _receive(url, sha256, target.name, partial, progress)
        if problem is not None:
            raise problem
        partial.replace(target)
    except OSError as error:
        raise FileProblem(
            f"{type(error).__name__} while writing {target}",
            "a folder that exists, can be written and has room",
            "choose another folder or free some space",
        ) from None
    finally:
        partial.unlink(missing_ok=True)
    return target


def fetch_any(urls: Sequence[str], sha256: str | None, target: Path, progress: bool = True) -> Path:
    """`fetch` from the first of several homes that delivers."""
    reasons: list[str] = []
    for url in urls:
        try:
            return fetch(url, sha256, target, progress)
        except DownloadFailed as error:
            reasons.append(str(error))
    raise DownloadFailed(" | ".join(reasons))


def _receive(url: str, sha256: str | None, label: str, partial: Path, progress: bool) -> DownloadFailed | None:
    retry = "check the network, then try again, or place the data set in the folder named by DPADMM_DATA"
    request = urllib.request.Request(url, headers={"User-Agent": f"dpadmm/{__version__}"})
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT_S) as response, partial.open("wb") as stream:
            announced = response.headers.get("Content-Length")
            size = int(announced) if announced and announced.isdigit() else None
            found, received = _copy(response, stream, label, size, progress)
    except urllib.error.HTTPError as error:
        error.close()
        return failed(f"HTTP status {error.code} from {url}", "the file", retry)
    except (urllib.error.URLError, http.client.HTTPException, ConnectionError, TimeoutError, ssl.SSLError) as error:
        return failed(f"{type(error).__name__} while reading {url}", "a server that delivers the file", retry)
    if size is not None and received != size:
        return failed(f"{received} of {size} bytes from {url}", "the whole file", retry)
    if sha256 is not None and found != sha256:
        stale = (
            "the home may have changed its file: do not use it; place a good copy in the folder named by DPADMM_DATA"
        )
        return failed(f"SHA-256 {found} from {url}", f"SHA-256 {sha256}", stale)
    return None


def _copy(
    source: http.client.HTTPResponse, stream: IO[bytes], label: str, size: int | None, progress: bool
) -> tuple[str, int]:
    digest, received = hashlib.sha256(), 0
    columns = TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True, disable=not progress) as bar:
        task = bar.add_task(f"fetching {label}", total=size)
        while chunk := source.read(CHUNK):
            stream.write(chunk)
            digest.update(chunk)
            received += len(chunk)
            bar.update(task, completed=received)
    return digest.hexdigest(), received
