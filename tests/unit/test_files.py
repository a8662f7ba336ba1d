"""Files and folders that are written whole or not at all, and signals held back meanwhile."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpadmm import DPLogisticRegression, Ledger, files, load_model
from dpadmm.errors import FileProblem
from dpadmm.files import replacing, replacing_folder, write_folder
from dpadmm.signals import HeldSignals

OLD, NEW = {"one": b"old", "two": b"old"}, {"one": b"new", "two": b"newer"}


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture
def target(tmp_path: Path) -> Path:
    write_folder(tmp_path / "target", OLD)
    return tmp_path / "target"


@pytest.mark.parametrize("at_once", [True, False])
def test_a_folder_is_replaced_with_or_without_an_exchange_of_names(
    target: Path, at_once: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not at_once:
        monkeypatch.setattr(files, "_exchanged", lambda one, other: False)
    target.chmod(0o750)
    write_folder(target, NEW, replace=True)
    assert content(target) == NEW
    assert target.stat().st_mode & 0o777 == 0o750
    assert list(target.parent.iterdir()) == [target]


@pytest.mark.parametrize("failing", [1, 2, 3])
def test_an_exchange_in_steps_is_undone(target: Path, failing: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rename, calls = Path.rename, []

    def sometimes(path: Path, other: Path) -> Path:
        calls.append(path)
        if len(calls) == failing:
            raise OSError(5, "broken")
        return rename(path, other)

    monkeypatch.setattr(files, "_exchanged", lambda one, other: False)
    monkeypatch.setattr(Path, "rename", sometimes)
    with pytest.raises(OSError, match="broken"):
        write_folder(target, NEW, replace=True)
    assert content(target) == OLD
    assert list(target.parent.iterdir()) == [target]


def test_a_folder_that_holds_files_is_replaced_on_request_only(target: Path) -> None:
    with pytest.raises(OSError, match="not empty"), replacing_folder(target) as scratch:
        (scratch / "one").write_bytes(b"new")
    assert content(target) == OLD


@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt, ValueError])
def test_a_block_that_fails_changes_nothing(target: Path, error: type[BaseException]) -> None:
    def half_a_folder() -> None:
        with replacing_folder(target, replace=True) as scratch:
            (scratch / "one").write_bytes(b"new")
            raise error

    def half_a_file() -> None:
        with replacing(target / "one") as stream:
            stream.write(b"new")
            raise error

    for half in (half_a_folder, half_a_file):
        with pytest.raises(error):
            half()
    assert content(target) == OLD
    assert list(target.parent.iterdir()) == [target]


def test_the_current_folder_can_be_filled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_folder(Path(), OLD)
    write_folder(Path(), NEW, replace=True)
    assert content(Path.cwd()) == NEW


def test_parents_are_made_and_taken_back(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="too long"):
        write_folder(tmp_path / "a" / "b" / ("x" * 300), NEW)
    assert list(tmp_path.iterdir()) == []
    write_folder(tmp_path / "a" / "b" / ("x" * 255), NEW)
    assert content(tmp_path / "a" / "b" / ("x" * 255)) == NEW


@pytest.fixture
def python_interrupts() -> Iterator[None]:
    """Ctrl-C raises KeyboardInterrupt, also where the tests run in the background of a shell, which ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("python_interrupts")
def test_signals_wait_for_the_end_of_a_block() -> None:
    steps = []

    def interrupted() -> None:
        with HeldSignals() as held:
            with held.let_through():
                steps.append("open")
            signal.raise_signal(signal.SIGINT)
            steps.append("held")

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert steps == ["open", "held"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.usefixtures("python_interrupts")
def test_signals_are_let_through_where_a_block_allows_it() -> None:
    steps = []

    def interrupted() -> None:
        with HeldSignals() as outer, outer.let_through(), HeldSignals() as inner:
            signal.raise_signal(signal.SIGINT)
            steps.append("held by the inner block")
            with inner.let_through():
                steps.append("not reached: the signal was waiting")

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert steps == ["held by the inner block"]


def test_other_threads_hold_nothing_and_can_write(tmp_path: Path) -> None:
    thread = threading.Thread(target=write_folder, args=(tmp_path / "made", NEW))
    thread.start()
    thread.join()
    assert content(tmp_path / "made") == NEW


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_termination_ends_a_process_after_tidying_up(tmp_path: Path) -> None:
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        try:
            with replacing(tmp_path / "file") as stream:
                stream.write(b"half")
                os.kill(os.getpid(), signal.SIGTERM)
                stream.write(b"other half")
        finally:
            os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGTERM
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("place", ["\ud800", "\0", "a\0b", b"x", None, 3, object(), {"a": 1}])
def test_what_no_file_can_be_called_is_refused_by_all_who_take_a_path(place: Any) -> None:
    model = DPLogisticRegression(1.0, 1e-3, classes=[0, 1], solver="dp-gd", steps=1, row_norm=1.0, random_state=0)
    model.fit(np.eye(2)[np.arange(200) % 2], np.arange(200) % 2)
    for use in (Ledger, Ledger.create, load_model, model.save):
        with pytest.raises(FileProblem):
            use(place)


def test_a_ledger_in_no_known_home_or_at_the_root_is_refused() -> None:
    for place in ("~nobody-of-this-name/ledger.db", "/"):
        for use in (Ledger, Ledger.create):
            with pytest.raises(FileProblem):
                use(place)
