"""`load`: your folder, then the cache, then the home; what it returns; what it refuses."""

from __future__ import annotations

import dataclasses
import hashlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from dpadmm import datasets
from dpadmm.datasets import catalogue, load, raw
from dpadmm.datasets.arrays import content_sha256, read_npz, write_npz
from dpadmm.errors import DownloadFailed, FileProblem, InvalidParameter

SHARED = Path(__file__).resolve().parents[3].parent / "shared" / "data"
SHAPES = {
    "adult": ((30162, 104), (15060, 104)),
    "a9a": ((32561, 123), (16281, 123)),
    "mushrooms": ((8124, 112), None),
    "w8a": ((49749, 300), (14951, 300)),
    "covtype": ((581012, 54), None),
    "mnist": ((60000, 784), (10000, 784)),
    "bio_train": ((145751, 74), None),
    "ipums_br": ((38000, 52), None),
}
TRAIN, TEST = b"+1 1:1 3:1\n-1 2:1\n", b"-1 1:1\n"
CONVERT = raw.libsvm("tiny", "tiny.t", 3)


class Home(ThreadingHTTPServer):
    """Serves the tiny data set; `bodies` may be changed by a test, `asked` counts."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.bodies = {"/tiny": TRAIN, "/tiny.t": TEST}
        self.asked: list[str] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class Handler(BaseHTTPRequestHandler):
    server: Home

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        body = self.server.bodies.get(self.path)
        if body is None:
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def shared(monkeypatch: pytest.MonkeyPatch) -> Path:
    if not (SHARED / "adult.npz").is_file():
        pytest.skip("the reference data (../shared/data beside the repository) are not on this machine")
    monkeypatch.setenv("DPADMM_DATA", str(SHARED))
    return SHARED


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("DPADMM_DATA", raising=False)
    monkeypatch.setenv("DPADMM_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    return tmp_path / "cache" / "datasets"


@pytest.fixture
def home() -> Iterator[Home]:
    with Home() as running:
        threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        yield running
        running.shutdown()


@pytest.fixture
def tiny(home: Home, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> catalogue.CatalogueEntry:
    """A catalogue entry whose home is the local server; its second file has no raw checksum."""
    files = {"tiny": tmp_path / "t", "tiny.t": tmp_path / "tt"}
    files["tiny"].write_bytes(TRAIN)
    files["tiny.t"].write_bytes(TEST)
    entry = catalogue.CatalogueEntry(
        name="tiny",
        description="tiny",
        licence="none",
        npz_sha256="0" * 64,
        content_sha256=content_sha256(CONVERT(files)),
        files=(
            catalogue.RawFile("tiny", (f"{home.url}/tiny",), hashlib.sha256(TRAIN).hexdigest()),
            catalogue.RawFile("tiny.t", (f"{home.url}/tiny.t",)),
        ),
        converter=CONVERT,
    )
    monkeypatch.setitem(catalogue.CATALOGUE, "tiny", entry)
    return entry


def left_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []


def test_download_then_cache(tiny: catalogue.CatalogueEntry, home: Home, cache: Path) -> None:
    first = load("tiny", progress=True)
    assert home.asked == ["/tiny", "/tiny.t"]
    assert left_in(cache) == ["tiny.npz"]
    assert isinstance(first.X, sp.csr_matrix)
    np.testing.assert_array_equal(first.X.toarray(), [[1, 0, 1], [0, 1, 0]])
    np.testing.assert_array_equal(first.y, [1, -1])
    assert first.X_test is not None
    assert first.X_test.shape == (1, 3)
    assert first.verified
    second = load("tiny", download=False)
    assert len(home.asked) == 2
    np.testing.assert_array_equal(second.X.toarray(), first.X.toarray())


def test_own_folder_comes_first(
    tiny: catalogue.CatalogueEntry, home: Home, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    load("tiny", progress=False)
    own = tmp_path / "own"
    own.mkdir()
    monkeypatch.setenv("DPADMM_DATA", str(own))
    assert load("tiny").X.shape == (2, 3)
    np.savez_compressed(own / "tiny.npz", X=np.ones((5, 2), dtype=np.float32), y=np.ones(5))
    mine = load("tiny")
    assert mine.X.shape == (5, 2)
    assert not mine.verified
    write_npz(read_npz(cache / "tiny.npz"), own / "tiny.npz")
    assert load("tiny").verified
    assert len(home.asked) == 2


@pytest.mark.parametrize("path", ["/tiny", "/tiny.t"])
@pytest.mark.parametrize("body", [None, b"", b"+1 1:1\n", b"SECRET-7431"])
def test_bad_home_leaves_nothing(
    tiny: catalogue.CatalogueEntry, home: Home, cache: Path, path: str, body: bytes | None
) -> None:
    home.bodies[path] = body  # type: ignore[assignment]
    with pytest.raises(DownloadFailed) as caught:
        load("tiny", progress=False)
    assert "7431" not in str(caught.value)
    assert left_in(cache) == []


def test_damaged_cache_is_fetched_again(tiny: catalogue.CatalogueEntry, home: Home, cache: Path) -> None:
    load("tiny", progress=False)
    good = (cache / "tiny.npz").read_bytes()
    arrays = read_npz(cache / "tiny.npz")
    for damage in (good[: len(good) // 2], b""):
        (cache / "tiny.npz").write_bytes(damage)
        with pytest.raises(DownloadFailed, match="download=False"):
            load("tiny", download=False)
        assert load("tiny", progress=False).verified
    write_npz({**arrays, "y": -arrays["y"]}, cache / "tiny.npz")
    np.testing.assert_array_equal(load("tiny", progress=False).y, [1, -1])
    assert len(home.asked) == 8


def test_interrupted_conversion_leaves_nothing(
    tiny: catalogue.CatalogueEntry, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def press_ctrl_c(files: object) -> raw.Arrays:
        raise KeyboardInterrupt

    monkeypatch.setitem(catalogue.CATALOGUE, "tiny", dataclasses.replace(tiny, converter=press_ctrl_c))
    with pytest.raises(KeyboardInterrupt):
        load("tiny", progress=False)
    assert left_in(cache) == []


def test_interrupted_writing_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def press_ctrl_c(stream: object, **arrays: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(np, "savez_compressed", press_ctrl_c)
    with pytest.raises(KeyboardInterrupt):
        write_npz({"y": np.ones(2)}, tmp_path / "a.npz")
    assert left_in(tmp_path) == []


@pytest.mark.usefixtures("tiny")
def test_unwritable_cache(cache: Path) -> None:
    cache.parent.mkdir()
    cache.write_text("a file where the folder should be")
    with pytest.raises(FileProblem, match="DPADMM_CACHE"):
        load("tiny", progress=False)


@pytest.mark.usefixtures("cache")
@pytest.mark.parametrize("name", ["ipums_br", "bio_train"])
def test_restricted_sets_say_where_to_get_them(name: str) -> None:
    with pytest.raises(DownloadFailed, match=f"{name}.npz in the folder.*DPADMM_DATA.*https://"):
        load(name)


@pytest.mark.usefixtures("cache")
@pytest.mark.parametrize("name", ["adults", "", None, 3, ["adult"]])
def test_unknown_name(name: object) -> None:
    with pytest.raises(InvalidParameter, match="adult"):
        load(name)  # type: ignore[arg-type]


@pytest.mark.usefixtures("cache")
def test_own_folder_must_exist(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DPADMM_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(FileProblem, match="DPADMM_DATA"):
        load("adult", download=False)


@pytest.mark.usefixtures("cache")
@pytest.mark.parametrize(
    "arrays",
    [
        {"X": np.ones((2, 2))},
        {"X": np.ones((2, 2)), "y": np.ones(3)},
        {"X": np.ones(2), "y": np.ones(2)},
        {"X_data": np.ones(1), "y": np.ones(1)},
        {"X": np.ones((1, 1)), "y": np.ones(1), "ytest": np.ones(1)},
        {"X": np.array([["SECRET-7431"]], dtype=object), "y": np.ones(1)},
        {"X": np.array([["SECRET-7431"]]), "y": np.array(["SECRET-7431"])},
        {"X_data": np.ones(1), "X_indices": np.array([7]), "X_indptr": np.array([0, 1]), "X_shape": [1, 2], "y": [1]},
        {"X_data": np.ones(1), "X_indices": np.array([0]), "X_indptr": np.array([0, 9]), "X_shape": [1, 2], "y": [1]},
    ],
)
def test_own_file_of_wrong_form(arrays: dict[str, object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DPADMM_DATA", str(tmp_path))
    np.savez(tmp_path / "adult.npz", **arrays)  # type: ignore[arg-type]
    with pytest.raises(FileProblem, match="not a readable data set") as caught:
        load("adult")
    assert "7431" not in str(caught.value)
    assert caught.value.__context__ is None


def test_cache_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DPADMM_CACHE", str(tmp_path))
    assert datasets.cache_folder() == tmp_path / "datasets"
    monkeypatch.delenv("DPADMM_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert datasets.cache_folder() == tmp_path / "dpadmm" / "datasets"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert datasets.cache_folder() == Path.home() / ".cache" / "dpadmm" / "datasets"


def test_content_checksum_sees_every_part() -> None:
    arrays = {"X": np.arange(6, dtype=np.float32).reshape(2, 3), "y": np.ones(2, dtype=np.float32)}
    seen = {content_sha256(arrays)}
    seen.add(content_sha256({**arrays, "X": arrays["X"].reshape(3, 2)}))
    seen.add(content_sha256({**arrays, "X": arrays["X"].astype(np.float64)}))
    seen.add(content_sha256({**arrays, "y": -arrays["y"]}))
    assert len(seen) == 4
    same = {"y": arrays["y"].astype(">f4"), "X": np.asfortranarray(arrays["X"]), "group": np.ones(1)}
    assert content_sha256(same) in seen


def test_every_home_is_guarded() -> None:
    assert set(catalogue.CATALOGUE) == set(SHAPES)
    for entry in catalogue.CATALOGUE.values():
        assert bool(entry.files) == (entry.converter is not None) == (not entry.by_hand)
        for file in entry.files:
            assert all(url.startswith("https://") for url in file.urls)
            assert file.sha256 is not None
            assert len(file.sha256) == 64


@pytest.mark.parametrize("name", sorted(SHAPES))
def test_reference_data(name: str, shared: Path) -> None:
    data = load(name, download=False)
    train, test = SHAPES[name]
    assert data.verified
    assert data.X.shape == train
    assert data.y.shape == train[:1]
    assert (None if data.X_test is None else data.X_test.shape) == test
    assert data.y.dtype == np.int64
    assert data.feature_names is None or len(data.feature_names) == train[1]
    assert data.licence
    assert data.description
    values = data.X.data if isinstance(data.X, sp.csr_matrix) else data.X[:5000]
    assert name == "bio_train" or (np.min(values) >= 0 and np.max(values) <= 1)
    assert content_sha256(read_npz(shared / f"{name}.npz")) == catalogue.CATALOGUE[name].content_sha256


def test_demo_needs_nothing() -> None:
    assert load("demo", download=False).X.shape == (40_000, 100)
    assert "demo" in datasets.names()
    assert repr(load("demo")) == "Dataset('demo', 40000 × 100 dense, no test split)"
