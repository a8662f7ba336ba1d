"""Tables mapped from a file."""

from __future__ import annotations

import mmap
from pathlib import Path

import numpy as np
import pytest

from dpadmm import DPLogisticRegression
from dpadmm.rows import file_pages
from dpadmm.rows.file_pages import FilePages


@pytest.fixture
def on_disk(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    np.save(tmp_path / "rows.npy", rng.random((3000, 5), dtype=np.float32))
    return tmp_path / "rows.npy"


class Recorder:
    def __init__(self) -> None:
        self.advice: list[int] = []

    def madvise(self, option: int) -> None:
        self.advice.append(option)


@pytest.mark.parametrize("mode", ["r", "r+", "c"])
def test_only_shared_pages_are_let_go(on_disk, mode):
    X = np.load(on_disk, mmap_mode=mode)
    pages = FilePages(np.asarray(X)[5:])
    assert (pages._mapping is None) == (mode == "c")
    pages.after(file_pages.FORGET_AFTER)
    np.testing.assert_array_equal(X, np.load(on_disk))


def test_changes_of_a_private_mapping_survive(on_disk):
    X = np.load(on_disk, mmap_mode="c")
    X[0, 0] = 7
    FilePages(X).after(file_pages.FORGET_AFTER)
    assert X[0, 0] == 7


def test_arrays_in_memory_have_no_pages():
    assert FilePages(np.eye(3))._mapping is None
    assert FilePages("no array")._mapping is None


def test_pages_are_let_go_now_and_then(on_disk):
    pages, recorder = FilePages(np.load(on_disk, mmap_mode="r")), Recorder()
    pages._mapping = recorder
    for _ in range(8):
        pages.after(file_pages.FORGET_AFTER // 4)
    assert recorder.advice == [mmap.MADV_DONTNEED] * 2


@pytest.mark.parametrize("solver", ["auto", "full-admm", "dp-sadmm"])
def test_a_mapped_table_trains_the_same_model(on_disk, solver, monkeypatch):
    monkeypatch.setattr(file_pages, "FORGET_AFTER", 1000)
    y = np.arange(3000) % 2
    model = DPLogisticRegression(1.0, 1e-5, solver=solver, steps=20, classes=[0, 1], random_state=0)
    resident = model.fit(np.load(on_disk), y).coef_
    np.testing.assert_array_equal(model.fit(np.load(on_disk, mmap_mode="r"), y).coef_, resident)


def test_changes_of_a_private_mapping_survive_behind_a_plain_array(on_disk):
    with on_disk.open("rb") as stream:
        private = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_COPY)
    X = np.ndarray((100,), np.float32, private)
    X[:] = 7
    FilePages(X).after(file_pages.FORGET_AFTER)
    assert (X == 7).all()
