"""Processes killed at any moment, full and read-only disks: no charge is lost, none is made twice, nothing breaks."""

from __future__ import annotations

import multiprocessing
import os
import random
import resource
import signal
import sqlite3
import subprocess
import time
from collections import Counter
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import numpy as np
import pytest

from dpadmm import Budget, DPLogisticRegression, Ledger
from dpadmm.errors import FileProblem
from dpadmm.privacy.ledger import sqlite as module
from dpadmm.privacy.ledger import store, verify

from .ledger_places import SMALL, new_database, postgres_server

LIMIT = Budget(50.0, 1e-5)
FORK = multiprocessing.get_context("fork")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "ledger.db"


def made(place):
    ledger = Ledger.create(place)
    ledger.set_limit("census", LIMIT, owner="Ada")
    return ledger


def spend_for_ever(place, diary):
    """Reserve and commit, and write down, flushed, what the ledger has confirmed."""
    ledger = Ledger(place)
    with open(diary, "a", encoding="ascii") as stream:
        while True:
            receipt = ledger.reserve("census", SMALL)
            stream.write(f"r {receipt}\n")
            stream.flush()
            ledger.commit(receipt, SMALL.event)
            stream.write(f"c {receipt}\n")
            stream.flush()


def kill_at_random(place, folder: Path, runs: int, seed: int, at_once: int = 4) -> list[Path]:
    """`runs` processes, four at a time on one ledger, each killed at a random moment of its life."""
    chance = random.Random(seed)
    diaries, alive = [], []
    for run in range(runs):
        diaries.append(folder / f"diary-{run}")
        process = FORK.Process(target=spend_for_ever, args=(place, diaries[-1]), daemon=True)
        process.start()
        alive.append((time.monotonic() + chance.expovariate(1 / 0.08), process))
        while len(alive) == at_once or (run == runs - 1 and alive):
            end, process = alive.pop(alive.index(min(alive, key=lambda pair: pair[0])))
            time.sleep(max(0.0, end - time.monotonic()))
            os.kill(process.pid, signal.SIGKILL)
            process.join()
    return diaries


def require_nothing_lost(place, diaries, runs):
    confirmed = Counter(line for diary in diaries if diary.exists() for line in diary.read_text().split("\n") if line)
    reserved = {line[2:] for line in confirmed if line[0] == "r"}
    committed = {line[2:] for line in confirmed if line[0] == "c"}
    fits = Ledger(place).account("census").fits
    receipts = [fit.receipt for fit in fits]
    assert len(receipts) == len(set(receipts)), "a charge was made twice"
    assert reserved <= set(receipts), "a confirmed charge was lost"
    assert committed <= {fit.receipt for fit in fits if fit.committed}, "a confirmed commit was lost"
    assert len(set(receipts) - reserved) <= runs, "more charges than processes asked for"
    assert len(reserved) > runs / 4, "the processes were killed too early to do anything"
    assert verify(place).problems == ()


class TestKilled:
    def test_eighty_processes_killed_on_one_file(self, path, tmp_path):
        made(path)
        require_nothing_lost(path, kill_at_random(path, tmp_path, 80, seed=1), 80)

    @pytest.mark.slow
    @pytest.mark.statistical
    def test_five_hundred_processes_killed_on_one_file(self, path, tmp_path):
        made(path)
        require_nothing_lost(path, kill_at_random(path, tmp_path, 500, seed=2), 500)

    @pytest.mark.slow
    def test_fifty_processes_killed_on_one_database(self, tmp_path):
        with postgres_server() as server:
            place = new_database(server)
            made(place)
            require_nothing_lost(place, kill_at_random(place, tmp_path, 50, seed=3), 50)

    def test_a_fit_killed_in_training_stays_charged(self, path):
        ledger = made(path)
        X = np.random.default_rng(0).uniform(-1, 1, (400, 3))
        model = DPLogisticRegression(0.5, 1e-6, classes=[0, 1], ledger=ledger, dataset="census")

        def fit_and_die():
            import dpadmm.estimators.base as base

            base.run = lambda *args, **more: os.kill(os.getpid(), signal.SIGKILL)
            model.fit(X, (X[:, 0] > 0).astype(int))

        process = FORK.Process(target=fit_and_die)
        process.start()
        process.join()
        assert process.exitcode == -signal.SIGKILL
        (fit,) = ledger.account("census").fits
        assert not fit.committed
        assert ledger.spent("census")[0] > 0.3

    @pytest.mark.parametrize("step", ["COMMIT", "INSERT", "BEGIN"])
    def test_killed_around_every_statement(self, path, step):
        """Death just before a statement leaves the ledger as it was; the next writer goes on."""
        ledger = made(path)
        before = ledger.head

        def die_at(step):
            connect = module._connect

            def traced(*args):
                connection = connect(*args)
                connection.set_trace_callback(
                    lambda sql: os.kill(os.getpid(), signal.SIGKILL) if sql.startswith(step) else None
                )
                return connection

            module._connect = traced
            ledger.reserve("census", SMALL)

        process = FORK.Process(target=die_at, args=(step,))
        process.start()
        process.join()
        assert process.exitcode == -signal.SIGKILL
        assert Ledger(path).head == before
        ledger.reserve("census", SMALL)
        assert verify(path).problems == ()


class TestBusy:
    def test_a_stopped_writer_is_reported(self, path, monkeypatch):
        ledger = made(path)
        monkeypatch.setattr(store, "PATIENCE", 0.2)
        with ledger._store.writing(), pytest.raises(FileProblem, match="busy"):
            Ledger(path).reserve("census", SMALL)
        ledger.reserve("census", SMALL)

    def test_readers_do_not_wait_for_a_writer(self, path, monkeypatch):
        ledger = made(path)
        monkeypatch.setattr(store, "PATIENCE", 0.2)
        with ledger._store.writing():
            assert Ledger(path).spent("census") == (0.0, 0.0)


def refuses_until_there_is_room(ledger, fill, make_room):
    """Spend while the disk fills up, then see that the refusal was clean."""
    receipts = []

    def spend():
        while len(receipts) < 10_000:
            receipts.append(ledger.reserve("census", SMALL))

    with fill(), pytest.raises(FileProblem, match=r"nothing was recorded by this step|Look with"):
        spend()
    make_room()
    assert [fit.receipt for fit in ledger.account("census").fits] == receipts
    ledger.reserve("census", SMALL)
    assert verify(ledger.place).problems == ()


class TestDisks:
    def test_a_file_that_may_not_grow(self, path):
        ledger = made(path)

        @contextmanager
        def no_more_than(size):
            soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
            resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
            try:
                yield
            finally:
                resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

        refuses_until_there_is_room(ledger, lambda: no_more_than(60_000), lambda: None)

    @pytest.fixture
    def small_disk(self, tmp_path):
        disk = tmp_path / "disk"
        disk.mkdir()
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=400k", "tmpfs", str(disk)], capture_output=True)
        if mounted.returncode != 0:
            pytest.skip("a small file system can be mounted by root only")
        yield disk
        subprocess.run(["umount", "-l", str(disk)], check=True)

    def test_a_full_disk(self, small_disk):
        ledger = made(small_disk / "ledger.db")
        other = small_disk / "other"

        @contextmanager
        def filled():
            other.write_bytes(b"x" * 150_000)
            yield

        refuses_until_there_is_room(ledger, filled, other.unlink)

    def test_a_full_disk_leaves_no_half_made_ledger(self, small_disk):
        # The last page of space is taken, so that not even an empty ledger fits.
        fill(small_disk)
        with pytest.raises(FileProblem, match=r"full|cannot be"):
            Ledger.create(small_disk / "ledger.db")
        assert [file.name for file in small_disk.iterdir()] == ["other"]

    def test_a_read_only_disk_refuses_charges_and_can_be_read(self, small_disk):
        ledger = made(small_disk / "ledger.db")
        ledger.reserve("census", SMALL)
        subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
        with pytest.raises(FileProblem, match=r"read-only|cannot be opened"):
            ledger.reserve("census", SMALL)
        with pytest.raises(FileProblem, match=r"[Rr]ead-only|cannot be"):
            Ledger.create(small_disk / "new.db")
        assert len(Ledger(small_disk / "ledger.db").account("census").fits) == 1
        assert verify(small_disk / "ledger.db").problems == ()
        X = np.zeros((400, 3))
        model = DPLogisticRegression(0.5, 1e-6, classes=[0, 1], ledger=ledger, dataset="census")
        with pytest.raises(FileProblem):
            model.fit(X, np.zeros(400, int))
        assert not hasattr(model, "coef_")
        subprocess.run(["mount", "-o", "remount,rw", str(small_disk)], check=True)
        assert len(ledger.account("census").fits) == 1

    def test_a_read_only_disk_with_an_unfinished_commit_is_not_read_in_part(self, small_disk):
        """A crash left a journal that must be undone first; on a read-only disk it cannot be, so nothing is read."""
        made(small_disk / "ledger.db")
        interrupt_a_commit(small_disk / "ledger.db")
        subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
        with pytest.raises(FileProblem):
            Ledger(small_disk / "ledger.db")
        subprocess.run(["mount", "-o", "remount,rw", str(small_disk)], check=True)
        assert Ledger(small_disk / "ledger.db").account("census").fits == ()

    def test_a_full_disk_can_be_verified(self, small_disk):
        ledger = made(small_disk / "ledger.db")
        ledger.reserve("census", SMALL)
        fill(small_disk)
        assert verify(small_disk / "ledger.db").problems == ()

    def test_a_full_disk_is_said_to_be_full(self, small_disk):
        """An earlier version's ledger needs a little space before it can be read."""
        made(small_disk / "ledger.db")
        as_an_earlier_version_left_it(small_disk / "ledger.db")
        fill(small_disk)
        with pytest.raises(FileProblem, match="the disk is full"):
            verify(small_disk / "ledger.db")


def fill(disk):
    with suppress(OSError), (disk / "other").open("wb", buffering=0) as stream:
        while True:
            stream.write(b"x" * 4096)


def interrupt_a_commit(path):
    """A process dies when its pages are in the file and its journal still says that they do not count."""

    def write_and_die():
        connection = sqlite3.connect(path, isolation_level=None)
        connection.execute("PRAGMA cache_spill = 1")
        connection.execute("PRAGMA cache_size = 1")
        connection.execute("BEGIN IMMEDIATE")
        for number in range(3, 40):
            connection.execute("INSERT INTO entries VALUES (?, ?, 'x')", (number, "x" * 3000))
        os.kill(os.getpid(), signal.SIGKILL)

    process = FORK.Process(target=write_and_die)
    process.start()
    process.join()


def as_an_earlier_version_left_it(path):
    """With a write-ahead log: a mark in the file, so that SQLite looks for a log beside it."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")


class TestEarlierVersions:
    def test_a_ledger_with_a_write_ahead_log_is_read_and_brought_to_an_end(self, path):
        made(path).reserve("census", SMALL)
        as_an_earlier_version_left_it(path)
        assert len(Ledger(path).account("census").fits) == 1
        assert verify(path).problems == ()
        Ledger(path).reserve("census", SMALL)
        assert path.read_bytes()[18:20] == bytes([1, 1])
        assert not list(path.parent.glob("*-wal")) + list(path.parent.glob("*-shm"))
        assert len(Ledger(path).account("census").fits) == 2
        assert verify(path).problems == ()

    def test_what_a_crash_left_in_the_log_is_not_lost(self, path):
        made(path)
        as_an_earlier_version_left_it(path)

        def reserve_in_the_log_and_die():
            module._end_write_ahead_log = lambda connection: None
            keep = sqlite3.connect(path)
            keep.execute("SELECT count(*) FROM entries").fetchall()
            Ledger(path).reserve("census", SMALL)
            os.kill(os.getpid(), signal.SIGKILL)

        process = FORK.Process(target=reserve_in_the_log_and_die)
        process.start()
        process.join()
        assert path.with_name("ledger.db-wal").stat().st_size > 0
        assert len(Ledger(path).account("census").fits) == 1
        Ledger(path).reserve("census", SMALL)
        assert len(Ledger(path).account("census").fits) == 2
        assert not path.with_name("ledger.db-wal").exists()


class TestDurability:
    """A killed process does not show a missing flush; only a power cut would. So the settings themselves are asked."""

    def test_every_commit_of_a_file_is_flushed(self, path):
        with made(path)._store.writing() as log:
            ask = log.connection.execute
            asked = {name: ask(f"PRAGMA {name}").fetchone()[0] for name in ("journal_mode", "synchronous")}
        assert asked == {"journal_mode": "persist", "synchronous": 3}

    @pytest.mark.slow
    def test_every_commit_of_a_server_is_flushed_whatever_its_default(self):
        with postgres_server() as server:
            place = new_database(server)
            ledger = made(place)
            with ledger._store._connected() as connection:
                connection.execute(f"ALTER DATABASE {place.split('/')[-1]} SET synchronous_commit = off")
            with ledger._store.writing() as log:
                assert log.connection.execute("SHOW synchronous_commit").fetchone()[0] == "on"
