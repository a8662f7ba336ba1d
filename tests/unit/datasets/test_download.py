"""Fetching over HTTP: the whole checked file or nothing at all."""

from __future__ import annotations

import hashlib
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from rich.progress import Progress

from dpadmm.datasets import download
from dpadmm.datasets.download import fetch, fetch_any
from dpadmm.errors import DownloadFailed, FileProblem, InvalidParameter

BODY = bytes(range(256)) * 2000
GOOD = hashlib.sha256(BODY).hexdigest()


class Handler(BaseHTTPRequestHandler):
    """/file whole, /endless without a length, /short cut in the middle, the rest 404."""

    def do_GET(self) -> None:
        if self.path not in ("/file", "/endless", "/short"):
            self.send_error(404)
            return
        self.send_response(200)
        if self.path != "/endless":
            self.send_header("Content-Length", str(len(BODY)))
        self.end_headers()
        self.wfile.write(BODY[: len(BODY) // 2] if self.path == "/short" else BODY)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        yield f"http://127.0.0.1:{running.server_address[1]}"
        running.shutdown()


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "127.0.0.1")


def left_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("path", ["/file", "/endless"])
@pytest.mark.parametrize("sha256", [GOOD, None])
@pytest.mark.parametrize("progress", [True, False])
def test_good_file_arrives_whole(server: str, tmp_path: Path, path: str, sha256: str | None, progress: bool) -> None:
    target = fetch(server + path, sha256, tmp_path / "data.bin", progress)
    assert target.read_bytes() == BODY
    assert left_in(tmp_path) == ["data.bin"]


@pytest.mark.parametrize(
    ("path", "sha256", "says"),
    [
        ("/file", "0" * 64, "SHA-256"),
        ("/short", GOOD, "bytes"),
        ("/short", None, "bytes"),
        ("/absent", GOOD, "404"),
    ],
)
def test_bad_answers_leave_nothing(server: str, tmp_path: Path, path: str, sha256: str | None, says: str) -> None:
    with pytest.raises(DownloadFailed, match=says) as caught:
        fetch(server + path, sha256, tmp_path / "data.bin", progress=False)
    assert all(word in str(caught.value) for word in ("Got ", "Expected "))
    assert left_in(tmp_path) == []


def test_absent_server(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(DownloadFailed, match="URLError"):
        fetch(f"http://127.0.0.1:{port}/file", GOOD, tmp_path / "data.bin", progress=False)
    assert left_in(tmp_path) == []


def test_interruption_leaves_nothing(server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def press_ctrl_c(*args: object, **kwargs: object) -> None:
        assert len(left_in(tmp_path)) == 1
        raise KeyboardInterrupt

    monkeypatch.setattr(Progress, "update", press_ctrl_c)
    with pytest.raises(KeyboardInterrupt):
        fetch(f"{server}/file", GOOD, tmp_path / "data.bin", progress=False)
    assert left_in(tmp_path) == []


def test_failure_keeps_what_was_there(server: str, tmp_path: Path) -> None:
    target = tmp_path / "data.bin"
    target.write_bytes(b"older")
    with pytest.raises(DownloadFailed):
        fetch(f"{server}/file", "0" * 64, target, progress=False)
    assert target.read_bytes() == b"older"


def test_second_home_is_tried(server: str, tmp_path: Path) -> None:
    fetch_any([f"{server}/absent", f"{server}/file"], GOOD, tmp_path / "data.bin", progress=False)
    assert (tmp_path / "data.bin").read_bytes() == BODY
    with pytest.raises(DownloadFailed, match=r"404.*bytes"):
        fetch_any([f"{server}/absent", f"{server}/short"], GOOD, tmp_path / "other.bin", progress=False)
    assert left_in(tmp_path) == ["data.bin"]


def test_stalling_server_times_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(download, "TIMEOUT_S", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/file"
        with pytest.raises(DownloadFailed, match=r"TimeoutError|URLError"):
            fetch(url, GOOD, tmp_path / "data.bin", progress=False)
    assert left_in(tmp_path) == []


def test_only_http(tmp_path: Path) -> None:
    with pytest.raises(InvalidParameter, match="http"):
        fetch("file:///etc/hostname", None, tmp_path / "data.bin")


def test_missing_folder(server: str, tmp_path: Path) -> None:
    with pytest.raises(FileProblem, match="FileNotFoundError"):
        fetch(f"{server}/file", GOOD, tmp_path / "nowhere" / "data.bin", progress=False)
