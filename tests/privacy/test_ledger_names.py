"""A file has one name, a process its own locks: hard links, mounted and exchanged files, and forks, are refused."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import threading

import pytest

from dpadmm import Budget, Ledger
from dpadmm.errors import FileProblem
from dpadmm.privacy.ledger import sqlite_place, verify
from dpadmm.privacy.ledger.sqlite_place import OPEN_LEDGERS, scratch_beside

from .ledger_places import SMALL

FORK = multiprocessing.get_context("fork")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "ledger.db"


@pytest.fixture
def ledger(path):
    made = Ledger.create(path)
    made.set_limit("census", Budget(3.0, 1e-5), owner="Ada")
    return made


class TestSecondNames:
    def refuses(self, ledger, *places):
        for place in places:
            for use in (Ledger, verify):
                with pytest.raises(FileProblem, match="second name"):
                    use(place)
        with pytest.raises(FileProblem, match="nothing was recorded"):
            ledger.reserve("census", SMALL)

    def test_hard_links_are_refused_under_both_names(self, path, ledger):
        os.link(path, path.with_name("other.db"))
        self.refuses(ledger, path, path.with_name("other.db"))
        path.with_name("other.db").unlink()
        ledger.reserve("census", SMALL)
        assert verify(path).ok

    def test_a_folder_is_no_ledger(self, tmp_path):
        for use in (Ledger, verify):
            with pytest.raises(FileProblem, match="not a ledger"):
                use(tmp_path)

    def test_symbolic_links_are_followed_to_the_one_name(self, path, ledger, tmp_path):
        (tmp_path / "there").mkdir()
        link = tmp_path / "there" / "link.db"
        link.symlink_to(path)
        (tmp_path / "again").symlink_to(tmp_path, target_is_directory=True)
        for place in (link, tmp_path / "again" / "ledger.db"):
            Ledger(place).reserve("census", SMALL)
            assert Ledger(place).place == str(path)
        assert len(ledger.account("census").fits) == 2
        assert [file.name for file in link.parent.iterdir()] == ["link.db"]

    @pytest.fixture
    def mount(self, tmp_path):
        mounted = []

        def bind(source, target):
            done = subprocess.run(["mount", "--bind", str(source), str(target)], capture_output=True)
            if done.returncode != 0:
                pytest.skip("only root may mount a file or folder a second time")
            mounted.append(target)

        yield bind
        for target in reversed(mounted):
            subprocess.run(["umount", "-l", str(target)], check=True)

    @pytest.mark.parametrize("name", ["mounted.db", "a b\\c.db"])
    def test_a_mounted_file_is_refused(self, path, ledger, tmp_path, mount, name):
        (tmp_path / "container").mkdir()
        other = tmp_path / "container" / name
        other.touch()
        mount(path, other)
        for use in (Ledger, verify):
            with pytest.raises(FileProblem, match="Mount its folder"):
                use(other)
        ledger.reserve("census", SMALL)

    def test_a_mounted_folder_is_the_same_ledger(self, path, ledger, tmp_path, mount):
        (tmp_path / "home").mkdir()
        inside, other = tmp_path / "home" / "ledger.db", tmp_path / "container"
        path.rename(inside)
        other.mkdir()
        mount(inside.parent, other)
        Ledger(inside).reserve("census", SMALL)
        Ledger(other / "ledger.db").reserve("census", SMALL)
        assert len(Ledger(inside).account("census").fits) == 2
        assert verify(other / "ledger.db").ok

    def test_where_mounts_are_unknown_ledgers_can_be_used(self, ledger, monkeypatch, tmp_path):
        monkeypatch.setattr(sqlite_place, "MOUNTS", tmp_path / "none")
        ledger.reserve("census", SMALL)

    def test_what_a_killed_create_left_behind_is_removed(self, path, ledger):
        left = scratch_beside(path, "0123456789abcdef" * 2)
        os.link(path, left)
        ledger.reserve("census", SMALL)
        assert not left.exists()

    def test_a_moved_ledger_goes_on(self, path, ledger):
        ledger.reserve("census", SMALL)
        moved = path.rename(path.with_name("moved.db"))
        Ledger(moved).reserve("census", SMALL)
        assert len(Ledger(moved).account("census").fits) == 2
        assert verify(moved, head=str(ledger_head(moved))).ok


def ledger_head(path):
    return Ledger(path).head


class TestExchanged:
    def test_a_file_put_in_place_during_a_charge_is_refused(self, path, ledger):
        other = Ledger.create(path.with_name("other.db"))
        other.set_limit("census", Budget(3.0, 1e-5), owner="Ada")

        def exchange_and_write():
            with ledger._store.writing():
                path.with_name("other.db").rename(path)

        with pytest.raises(FileProblem, match="another file was put"):
            exchange_and_write()


class TestForks:
    def outcome(self, path):
        """What a forked child says when it charges."""
        answers = FORK.Queue()

        def charge():
            try:
                Ledger(path).reserve("census", SMALL)
                answers.put("charged")
            except FileProblem as problem:
                answers.put(problem.given)

        child = FORK.Process(target=charge)
        child.start()
        answer = answers.get(timeout=60)
        child.join()
        return answer

    def test_a_fork_waits_until_no_thread_has_the_ledger_open(self, path, ledger):
        opened, done, order = threading.Event(), threading.Event(), []

        def hold():
            with ledger._store.reading():
                opened.set()
                done.wait(0.3)
                order.append("closed")

        thread = threading.Thread(target=hold)
        thread.start()
        opened.wait()
        assert self.outcome(path) == "charged"
        order.append("forked")
        thread.join()
        assert order == ["closed", "forked"]

    def test_a_child_forked_inside_a_transaction_is_refused(self, path, ledger):
        with ledger._store.reading():
            assert "forked while" in self.outcome(path)
        assert self.outcome(path) == "charged"

    def test_nothing_is_left_open(self, ledger):
        ledger.reserve("census", SMALL)
        assert not OPEN_LEDGERS._open


def test_the_library_opens_the_file_through_sqlite_only(path, ledger, monkeypatch):
    """Opening and closing it beside SQLite would drop SQLite's locks in this process."""
    import builtins
    import io
    from pathlib import Path

    def guarded(real):
        def opened(file, *args, **more):
            assert str(file) != str(path), "the file was opened beside SQLite"
            return real(file, *args, **more)

        return opened

    for module, name in ((builtins, "open"), (io, "open"), (os, "open")):
        monkeypatch.setattr(module, name, guarded(getattr(module, name)))
    monkeypatch.setattr(Path, "open", guarded(Path.open))
    receipt = Ledger(path).reserve("census", SMALL)
    ledger.commit(receipt, SMALL.event)
    assert Ledger(path).account("census").fits
    assert verify(path).ok
