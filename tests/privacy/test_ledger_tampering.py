"""A record that was changed is refused; what was cut off shows against a witness; foreign files are left alone."""

from __future__ import annotations

import pickle
import random
import shutil
import sqlite3
from contextlib import closing

import numpy as np
import pytest

from dpadmm import Budget, DPLogisticRegression, Ledger
from dpadmm.errors import FileProblem, InvalidParameter
from dpadmm.privacy.ledger import release_digest, verify
from dpadmm.privacy.ledger.charge import charge
from dpadmm.privacy.ledger.entries import Head, write_entry
from dpadmm.privacy.ledger.sqlite import APPLICATION
from dpadmm.privacy.sampling import Poisson

from .ledger_places import SMALL, new_database, plan, postgres_server

# The number of the SQLite version that wrote last says nothing about entries.
UNCHECKED = {97, 98, 99}


@pytest.fixture(scope="module")
def server():
    with postgres_server() as address:
        yield address


@pytest.fixture
def path(tmp_path):
    return tmp_path / "ledger.db"


@pytest.fixture
def ledger(path):
    made = Ledger.create(path)
    made.set_limit("census", Budget(3.0, 1e-5), owner="Ada")
    for _ in range(3):
        made.commit(made.reserve("census", SMALL), SMALL.event)
    return made


def found(path, **more) -> str:
    """The problems of a ledger, whether reported or raised."""
    try:
        return "; ".join(verify(path, **more).problems)
    except FileProblem as problem:
        return str(problem)


def rewrite(path, *statements):
    """Change a ledger as someone would who knows SQLite: past its triggers, which are put back."""
    with closing(sqlite3.connect(path)) as connection, connection:
        triggers = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
        for name, _ in triggers:
            connection.execute(f"DROP TRIGGER {name}")
        for statement, values in statements:
            connection.execute(statement, values)
        for _, sql in triggers:
            connection.execute(sql)


class TestFlippedBytes:
    def flip(self, path, places):
        raw = path.read_bytes()
        missed = []
        chance = random.Random(3)
        for place in places(len(raw)):
            changed = bytearray(raw)
            changed[place] ^= 1 << chance.randrange(8)
            path.write_bytes(changed)
            if not found(path):
                missed.append(place)
        path.write_bytes(raw)
        assert not found(path)
        return missed

    def test_every_byte_of_the_header_and_a_sample_of_the_rest(self, path, ledger):
        chance = random.Random(2)
        assert set(self.flip(path, lambda size: range(100))) <= UNCHECKED
        assert self.flip(path, lambda size: [chance.randrange(100, size) for _ in range(150)]) == []

    def test_an_empty_ledger_has_no_blind_spot_either(self, path):
        Ledger.create(path)
        chance = random.Random(4)
        assert self.flip(path, lambda size: [size // 2, *(chance.randrange(100, size) for _ in range(60))]) == []

    def test_a_large_ledger(self, path):
        ledger = Ledger.create(path)
        ledger.set_limit("census", Budget(30.0, 1e-5), owner="Ada")
        with ledger._store.writing() as log:
            head = ledger.head
            for number in range(700):
                fields = {"owner": "Ada", "epsilon": 30.0, "delta": 1e-5, "relation": "replace-one", "test": False}
                size = random.Random(number).randrange(5000)
                entry = write_entry(head, head.time, "limit", {"dataset": "x" * size, **fields})
                log.append(entry)
                head = Head(entry.sequence, entry.hash, head.time)
        assert verify(path).ok
        chance = random.Random(5)
        assert self.flip(path, lambda size: [chance.randrange(100, size) for _ in range(30)]) == []

    def test_a_flipped_byte_is_refused_by_a_fit_too(self, path, ledger):
        raw = path.read_bytes()
        at = raw.index(b'"receipt"')
        path.write_bytes(raw[:at] + b"!" + raw[at + 1 :])
        with pytest.raises(FileProblem, match="changed after it was written"):
            Ledger(path)


class TestEdits:
    def test_entries_cannot_be_changed_by_accident(self, path, ledger):
        with closing(sqlite3.connect(path)) as connection:
            for statement in ("UPDATE entries SET hash = ''", "DELETE FROM entries"):
                with pytest.raises(sqlite3.IntegrityError, match="never"):
                    connection.execute(statement)

    def test_a_removed_entry_in_the_middle_is_found(self, path, ledger):
        rewrite(path, ("DELETE FROM entries WHERE sequence = ?", (4,)))
        assert "entry 4 is missing" in found(path)

    def test_a_rewritten_text_is_found(self, path, ledger):
        rewrite(path, ("UPDATE entries SET text = replace(text, '3.0', '9.0') WHERE sequence = ?", (2,)))
        assert "entry 2, or its hash, was changed" in found(path)

    def test_a_charge_recomputed_too_small_is_found(self, path, ledger):
        """An attacker who chains anew: the hashes agree, but the plan does not cost what was charged."""
        for sampler in (None, Poisson(0.1)):
            shutil.copy(path, path.with_suffix(".forged"))
            forged = Ledger(path.with_suffix(".forged"))
            costly = plan(0.5, sampler)
            fields = {"dataset": "census", "receipt": "0" * 32, "plan": costly.to_dict(), "seeded": False}
            slack = 0.0 if sampler is None else 1e-8
            fields |= {"plan_digest": costly.digest, "shift": 1e-6, "slack": slack}
            entry = write_entry(forged.head, forged.head.time, "reserve", fields)
            with forged._store.writing() as log:
                log.append(entry)
            assert "charged less than it costs" in found(path.with_suffix(".forged"))

    @pytest.mark.parametrize(("seeded", "copies", "said"), [(True, 1, "was seeded"), (False, 9, "more than its limit")])
    def test_fits_that_should_have_been_refused_are_found(self, path, ledger, seeded, copies, said):
        costly = plan(2.0)
        cost = charge(costly.event, costly.budget.relation, 0.0)
        with ledger._store.writing() as log:
            head = ledger.head
            for number in range(copies):
                fields = {"dataset": "census", "receipt": f"{number:032}", "plan": costly.to_dict(), "seeded": seeded}
                fields |= {"plan_digest": costly.digest, "shift": cost.shift, "slack": 0.0}
                entry = write_entry(head, head.time, "reserve", fields)
                log.append(entry)
                head = Head(entry.sequence, entry.hash, head.time)
        assert said in found(path)

    def test_a_trigger_that_swallows_charges_is_refused(self, path, ledger):
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("CREATE TRIGGER thief BEFORE INSERT ON entries BEGIN SELECT RAISE(IGNORE); END")
        with pytest.raises(FileProblem, match="tables were changed"):
            ledger.reserve("census", SMALL)

    def test_a_receipt_cannot_be_replayed(self, path, ledger):
        entry = ledger.entries[2]
        content = {k: v for k, v in entry.content.items() if k not in ("sequence", "time", "kind")}
        with ledger._store.writing() as log:
            log.append(write_entry(ledger.head, ledger.head.time, "reserve", content))
        assert "contradicts" in found(path)


class TestCutOff:
    """A chain of hashes alone does not see that its end is missing. What does: memory, a noted head, a model."""

    @pytest.fixture
    def earlier(self, path, ledger):
        """An older copy of the file, complete and consistent."""
        return shutil.copy(path, path.with_name("earlier.db"))

    def test_a_fresh_reader_sees_nothing(self, path, ledger, earlier):
        ledger.reserve("census", SMALL)
        shutil.copy(earlier, path)
        assert verify(path).ok
        assert len(Ledger(path).account("census").fits) == 3

    def test_a_noted_head_shows_it(self, path, ledger, earlier):
        before = str(ledger.head)
        ledger.reserve("census", SMALL)
        after = str(ledger.head)
        assert verify(path, head=before).ok
        assert verify(path, head=after).ok
        shutil.copy(earlier, path)
        assert verify(path, head=before).ok
        assert "was set back" in found(path, head=after)

    def test_a_released_model_shows_it(self, path, ledger, earlier):
        X = np.random.default_rng(0).uniform(-1, 1, (400, 3))
        model = DPLogisticRegression(0.2, 1e-6, classes=[0, 1], ledger=ledger, dataset="census")
        model.fit(X, (X[:, 0] > 0).astype(int))
        release = (model.plan_.digest, release_digest(model.weights_))
        assert verify(path, releases=[release]).ok
        shutil.copy(earlier, path)
        assert "no finished charge" in found(path, releases=[release])

    def test_an_open_ledger_remembers(self, path, ledger, earlier):
        ledger.reserve("census", SMALL)
        packed = pickle.dumps(ledger)
        shutil.copy(earlier, path)
        for open_one in (ledger, pickle.loads(packed)):
            with pytest.raises(FileProblem, match="set back"):
                open_one.reserve("census", SMALL)

    def test_rows_deleted_by_hand_leave_traces(self, path, ledger):
        rewrite(path, ("DELETE FROM entries WHERE sequence > ?", (6,)))
        assert "was changed" in found(path)

    def test_an_exchanged_file_is_refused_by_an_open_ledger(self, path, ledger):
        packed = pickle.dumps(ledger)
        path.unlink()
        with pytest.raises(FileProblem, match="holds no ledger"):
            ledger.reserve("census", SMALL)
        other = Ledger.create(path)
        other.set_limit("census", Budget(3.0, 1e-5), owner="Ada")
        for _ in range(5):
            other.reserve("census", SMALL)
        for open_one in (ledger, pickle.loads(packed)):
            with pytest.raises(FileProblem, match="exchanged"):
                open_one.reserve("census", SMALL)

    def test_a_copy_of_the_file_alone_holds_every_confirmed_charge(self, path, ledger):
        """Nothing confirmed waits beside the file, whoever dies and whatever is left behind."""
        reader = sqlite3.connect(path)
        reader.execute("SELECT * FROM entries").fetchall()
        ledger.reserve("census", SMALL)
        copied = shutil.copy(path, path.with_name("copied.db"))
        reader.close()
        assert verify(copied, head=str(ledger.head)).ok

    def test_a_head_must_look_like_one(self, path, ledger):
        for head in ("", "x:y", "0:" + "0" * 64, "3:abc"):
            with pytest.raises(InvalidParameter, match="head"):
                verify(path, head=head)


class TestForeign:
    def test_other_files_are_refused_and_left_alone(self, path):
        with closing(sqlite3.connect(path.with_suffix(".other"))) as connection, connection:
            connection.execute("CREATE TABLE entries (sequence, text, hash)")
        others = [b"", b"SQLite", b'{"limit": [1.0', path.with_suffix(".other").read_bytes(), b"\x00" * 8192]
        for content in others:
            path.write_bytes(content)
            for use in (Ledger, verify):
                with pytest.raises(FileProblem, match="not a ledger"):
                    use(path)
            with pytest.raises(FileProblem, match="exists"):
                Ledger.create(path)
            assert path.read_bytes() == content
            assert not list(path.parent.glob("ledger.db-*"))

    def test_a_folder_is_refused(self, tmp_path):
        for use in (Ledger, Ledger.create):
            with pytest.raises(FileProblem):
                use(tmp_path)

    def test_a_missing_folder_is_refused(self, tmp_path):
        with pytest.raises(FileProblem):
            Ledger.create(tmp_path / "no" / "ledger.db")

    def test_a_newer_ledger_is_refused_and_left_alone(self, path, ledger):
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("PRAGMA user_version = 2")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        before = path.read_bytes()
        for use in (Ledger, verify):
            with pytest.raises(FileProblem, match="newer dpadmm"):
                use(path)
        with pytest.raises(FileProblem, match="newer dpadmm"):
            ledger.reserve("census", SMALL)
        assert path.read_bytes() == before

    def test_a_ledger_without_entries_is_refused(self, path, ledger):
        rewrite(path, ("DELETE FROM entries", ()))
        with pytest.raises(FileProblem, match="first entry is missing"):
            Ledger(path)
        assert "first entry is missing" in found(path)

    def test_the_mark_of_our_files(self, path, ledger):
        assert path.read_bytes()[68:72] == APPLICATION.to_bytes(4, "big") == b"dpLg"


class TestPostgres:
    @pytest.fixture
    def place(self, server):
        return new_database(server)

    @pytest.fixture
    def connection(self, place):
        import psycopg

        ledger = Ledger.create(place)
        ledger.set_limit("census", Budget(3.0, 1e-5), owner="Ada")
        ledger.commit(ledger.reserve("census", SMALL), SMALL.event)
        with psycopg.connect(place, autocommit=True) as connection:
            yield connection

    @pytest.mark.parametrize(
        "statement", ["UPDATE dpadmm_ledger SET hash = ''", "DELETE FROM dpadmm_ledger", "TRUNCATE dpadmm_ledger"]
    )
    def test_entries_cannot_be_changed_by_accident(self, place, connection, statement):
        import psycopg

        with pytest.raises(psycopg.errors.RaiseException, match="never changed or removed"):
            connection.execute(statement)
        assert verify(place).ok

    def test_edits_past_the_triggers_are_found(self, place, connection):
        connection.execute("ALTER TABLE dpadmm_ledger DISABLE TRIGGER USER")
        connection.execute("UPDATE dpadmm_ledger SET text = overlay(text placing '!' from 9) WHERE sequence = 3")
        assert "its triggers were changed" in found(place)
        connection.execute("ALTER TABLE dpadmm_ledger ENABLE TRIGGER USER")
        assert "entry 3, or its hash, was changed" in found(place)
        connection.execute("ALTER TABLE dpadmm_ledger DISABLE TRIGGER USER")
        connection.execute("DELETE FROM dpadmm_ledger WHERE sequence = 3")
        connection.execute("ALTER TABLE dpadmm_ledger ENABLE TRIGGER USER")
        assert "entry 3 is missing" in found(place)

    def test_a_cut_off_end_shows_against_a_head(self, place, connection):
        head = str(Ledger(place).head)
        connection.execute("ALTER TABLE dpadmm_ledger DISABLE TRIGGER USER")
        connection.execute("DELETE FROM dpadmm_ledger WHERE sequence = 4")
        connection.execute("ALTER TABLE dpadmm_ledger ENABLE TRIGGER USER")
        assert verify(place).ok
        assert "was set back" in found(place, head=head)

    def test_who_may_only_append_can_spend_and_nothing_else(self, place, connection):
        import psycopg

        connection.execute("DROP ROLE IF EXISTS analyst; CREATE ROLE analyst LOGIN")
        connection.execute("GRANT SELECT ON dpadmm_ledger_format TO analyst")
        connection.execute("GRANT SELECT, INSERT ON dpadmm_ledger TO analyst")
        theirs = place.replace("owner@", "analyst@")
        Ledger(theirs).reserve("census", SMALL)
        with psycopg.connect(theirs) as analyst, pytest.raises(psycopg.errors.InsufficientPrivilege):
            analyst.execute("ALTER TABLE dpadmm_ledger DISABLE TRIGGER USER")
        assert verify(place).ok
        connection.execute("DROP OWNED BY analyst; DROP ROLE analyst")

    def test_a_newer_ledger_and_an_empty_database_are_refused(self, place, connection, server):
        connection.execute("UPDATE dpadmm_ledger_format SET version = 2")
        with pytest.raises(FileProblem, match="newer dpadmm"):
            Ledger(place)
        with pytest.raises(FileProblem, match="ledger init"):
            Ledger(new_database(server))

    def test_a_server_that_does_not_flush_is_refused(self, place, connection, server):
        connection.execute("ALTER SYSTEM SET fsync = off")
        connection.execute("SELECT pg_reload_conf(), pg_sleep(1)")
        try:
            with pytest.raises(FileProblem, match="fsync"):
                Ledger(place).reserve("census", SMALL)
        finally:
            connection.execute("ALTER SYSTEM RESET fsync")
            connection.execute("SELECT pg_reload_conf(), pg_sleep(1)")
