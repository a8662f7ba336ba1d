"""The ledger: charged before training, never overspent, safe across clone, grid search, threads and processes.

Every test runs on a file and on a PostgreSQL database.
"""

from __future__ import annotations

import copy
import json
import pickle
import sys
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from dpadmm import Budget, DPLinearRegression, DPLogisticRegression, Ledger, load_model
from dpadmm.errors import BudgetExceeded, FileProblem, InvalidData, InvalidParameter, PromiseBroken
from dpadmm.privacy.calibration import calibrate
from dpadmm.privacy.events import Event
from dpadmm.privacy.ledger import release_digest, verify
from dpadmm.privacy.ledger.entries import moment
from dpadmm.privacy.ledger.sqlite import SqliteLog
from dpadmm.privacy.plan import Request
from dpadmm.privacy.questions import ClippedGradient
from dpadmm.privacy.sampling import Poisson, WithoutReplacement
from dpadmm.privacy.selection import Repetitions, calibrate_search

from .ledger_places import new_database, plan, postgres_server

LIMIT = Budget(1.0, 1e-5)


@pytest.fixture(scope="module")
def server():
    with postgres_server() as address:
        yield address


@pytest.fixture(params=["file", "postgres"])
def place(request, tmp_path):
    if request.param == "file":
        return str(tmp_path / "ledger.db")
    return new_database(request.getfixturevalue("server"))


@pytest.fixture
def ledger(place):
    made = Ledger.create(place)
    made.set_limit("census", LIMIT, owner="Ada")
    made.set_limit("toy", Budget(5.0, 1e-5), owner="Ada", test=True)
    return made


@pytest.fixture
def table():
    X = np.random.default_rng(0).uniform(-1, 1, (400, 3))
    return X, (X[:, 0] > 0).astype(int)


def private(**more):
    return DPLogisticRegression(**{"delta": 1e-6, "classes": [0, 1], "dataset": "census", **more})


class Untouchable:
    """A table that says its shape and nothing else."""

    shape = (400, 3)

    def __getattr__(self, name):
        raise AssertionError("a row was read")

    def __array__(self, *args, **kwargs):
        raise AssertionError("a row was read")

    def __len__(self):
        raise AssertionError("a row was read")


def contradictory(kind: str):
    """A fit, or a search of fits, that draws from 200 times the rows of its plan, and so would cost next to nothing."""
    batches = WithoutReplacement(50, 500)
    single = [Request("gradient", 10, ClippedGradient(1.0))]
    if kind == "fit":
        return drawing_from_more(calibrate(Budget(0.5, 1e-6), single, batches, 500))

    def bases(budget: Budget):
        return (calibrate(budget, single, batches, 500),)

    search = calibrate_search(Budget(0.5, 1e-6), Repetitions("geometric", 2.0), bases, 600, 100)
    return replace(search, bases=tuple(map(drawing_from_more, search.bases)))


def drawing_from_more(made):
    queries = tuple(replace(query, sampler=replace(query.sampler, n_rows=500 * 200)) for query in made.queries)
    return replace(made, queries=queries)


class TestContradictions:
    @pytest.mark.parametrize("kind", ["fit", "search"])
    def test_a_plan_that_contradicts_itself_is_neither_priced_nor_charged(self, ledger, kind):
        wrong, before = contradictory(kind), ledger.head
        for asked in (ledger.check, ledger.price, ledger.reserve):
            with pytest.raises(PromiseBroken, match="draws from another number of rows"):
                asked("census", wrong)
        assert ledger.head == before

    @pytest.mark.parametrize("kind", ["fit", "search"])
    def test_one_that_an_earlier_version_accepted_is_found(self, ledger, place, kind, monkeypatch):
        wrong = contradictory(kind)
        monkeypatch.setattr("dpadmm.privacy.ledger.ledger.require_any_agreement", lambda plan: None, raising=False)
        ledger.commit(ledger.reserve("census", wrong), wrong.event)
        (problem,) = verify(place).problems
        assert "contradicts itself" in problem


class TestCharges:
    def test_what_would_exceed_the_limit_is_refused_and_not_charged(self, ledger):
        ledger.reserve("census", plan(0.9))
        before = ledger.spent("census")
        with pytest.raises(BudgetExceeded, match="smaller epsilon"):
            ledger.reserve("census", plan(0.9))
        assert ledger.spent("census") == before

    def test_limits_are_separate(self, ledger):
        ledger.reserve("census", plan(0.9))
        ledger.reserve("toy", plan(0.9))
        assert len(ledger.account("census").fits) == len(ledger.account("toy").fits) == 1

    def test_a_plan_for_another_relation_is_refused(self, ledger):
        with pytest.raises(BudgetExceeded, match="relation"):
            ledger.reserve("census", plan(relation="add-remove"))

    def test_commit_compares_what_was_done(self, ledger):
        promised = plan()
        receipt = ledger.reserve("census", promised)
        with pytest.raises(PromiseBroken):
            ledger.commit(receipt, Event(()))
        with pytest.raises(PromiseBroken):
            ledger.commit("unknown", promised.event)
        assert not ledger.account("census").fits[0].committed
        ledger.commit(receipt, promised.event)
        with pytest.raises(PromiseBroken, match="committed before"):
            ledger.commit(receipt, promised.event)
        assert ledger.account("census").fits[0].committed

    def test_a_seeded_fit_is_refused_unless_marked_test(self, ledger):
        with pytest.raises(PromiseBroken, match="random_state=None"):
            ledger.reserve("census", plan(), seeded=True)
        receipt = ledger.reserve("census", plan(0.1))
        with pytest.raises(PromiseBroken, match="marked as a test"):
            ledger.commit(receipt, plan(0.1).event, seeded=True)
        assert not ledger.account("census").fits[0].committed
        receipt = ledger.reserve("toy", plan(), seeded=True)
        with pytest.raises(PromiseBroken):
            ledger.commit(receipt, plan().event, seeded=False)
        ledger.commit(receipt, plan().event, seeded=True)

    def test_check_charges_nothing_and_refuses_as_reserve_does(self, ledger):
        ledger.check("census", plan(0.9))
        ledger.check("census", Budget(0.9, 1e-6))
        assert ledger.spent("census") == (0.0, 0.0)
        ledger.reserve("census", plan(0.9))
        for wanted in (plan(0.9), Budget(0.9, 1e-6)):
            with pytest.raises(BudgetExceeded):
                ledger.check("census", wanted)


class TestFits:
    def test_a_refused_fit_reads_no_row(self, ledger):
        ledger.reserve("census", plan(0.9))
        for model in (private(epsilon=0.9, ledger=ledger), private(epsilon=0.9, ledger=ledger, classes=None)):
            with pytest.raises(BudgetExceeded):
                model.fit(Untouchable(), Untouchable())
        regression = DPLinearRegression(0.9, 1e-6, ledger=ledger, dataset="census")
        with pytest.raises(BudgetExceeded):
            regression.fit(Untouchable(), Untouchable())

    def test_a_seeded_fit_reads_no_row(self, ledger):
        with pytest.raises(PromiseBroken, match="seeded"):
            private(ledger=ledger, random_state=0).fit(Untouchable(), Untouchable())
        assert ledger.spent("census") == (0.0, 0.0)

    def test_a_seeded_fit_on_test_data_is_recorded_as_such(self, ledger, table):
        private(ledger=ledger, dataset="toy", random_state=0).fit(*table)
        (fit,) = ledger.account("toy").fits
        assert fit.seeded
        assert fit.committed

    def test_a_fit_by_path_is_found_by_its_release(self, place, ledger, table):
        model = private(epsilon=0.5, ledger=place).fit(*table)
        (fit,) = ledger.account("census").fits
        assert fit.committed
        assert (fit.plan_digest, fit.release) == (model.plan_.digest, release_digest(model.weights_))
        assert fit.plan == model.plan_

    def test_a_clone_pays_again(self, ledger, table):
        model = private(epsilon=0.9, ledger=ledger)
        model.fit(*table)
        with pytest.raises(BudgetExceeded):
            clone(model).fit(*table)
        assert len(ledger.account("census").fits) == 1

    @pytest.mark.parametrize("by_path", [True, False])
    def test_grid_search_charges_every_fit(self, place, ledger, table, by_path):
        model = private(epsilon=0.2, ledger=place if by_path else ledger)
        GridSearchCV(model, {"alpha": [1e-4, 1e-3]}, cv=2, n_jobs=2).fit(*table)
        assert [fit.committed for fit in ledger.account("census").fits] == [True] * 5
        assert verify(place).ok

    def test_a_crash_after_reserving_stays_charged(self, ledger, table, monkeypatch):
        monkeypatch.setattr("dpadmm.estimators.base.run", lambda *a, **k: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            private(epsilon=0.5, ledger=ledger).fit(*table)
        (fit,) = ledger.account("census").fits
        assert not fit.committed
        assert ledger.spent("census")[0] > 0

    def test_bad_rows_cost_nothing(self, ledger, table):
        X = table[0].copy()
        X[0, 0] = np.nan
        with pytest.raises(InvalidData):
            private(ledger=ledger).fit(X, table[1])
        assert ledger.account("census").fits == ()

    def test_mini_batches_are_charged_too(self, ledger, table):
        private(epsilon=0.4, solver="dp-sadmm", ledger=ledger).fit(*table)
        private(epsilon=0.4, ledger=ledger).fit(*table)
        assert 0.4 < ledger.spent("census")[0] < 0.8

    def test_a_saved_model_does_not_tell_where_the_ledger_is(self, place, ledger, table, tmp_path):
        private(epsilon=0.5, ledger=place).fit(*table).save(tmp_path / "model")
        words = (tmp_path / "model" / "model.json").read_text()
        assert "ledger" not in json.loads(words)["parameters"]
        assert place not in words
        assert load_model(tmp_path / "model").dataset == "census"

    def test_a_data_set_without_a_ledger_is_refused(self, table):
        with pytest.raises(InvalidParameter, match="ledger"):
            private().fit(*table)

    @pytest.mark.parametrize("name", [None, "cenus", 3])
    def test_a_missing_or_unknown_name_is_refused(self, ledger, table, name):
        with pytest.raises(InvalidParameter, match=r"data ?set|does not hold"):
            private(ledger=ledger, dataset=name).fit(*table)

    def test_something_else_than_a_ledger_is_refused(self, table):
        with pytest.raises(InvalidParameter, match=r"dpadmm\.Ledger"):
            private(ledger=3).fit(*table)


def _try_to_spend(place):
    try:
        Ledger(place).reserve("census", plan(0.5))
    except BudgetExceeded:
        return 0
    return 1


class TestSeveralAtOnce:
    def test_copies_are_the_same_account(self, ledger):
        copy.deepcopy(ledger).reserve("census", plan(0.2))
        pickle.loads(pickle.dumps(ledger)).reserve("census", plan(0.2))
        assert len(ledger.account("census").fits) == 2

    def test_racing_processes_never_overspend(self, place, ledger):
        with ProcessPoolExecutor(4) as pool:
            granted = sum(pool.map(_try_to_spend, [place] * 12))
        assert granted == len(ledger.account("census").fits) == 4
        assert ledger.spent("census")[0] <= 1.0

    def test_racing_threads_on_one_object_never_overspend(self, ledger):
        def spend(_):
            try:
                return bool(ledger.reserve("census", plan(0.5)))
            except BudgetExceeded:
                return False

        with ThreadPoolExecutor(8) as pool:
            granted = sum(pool.map(spend, range(24)))
        assert granted == len(ledger.account("census").fits) == 4

    def test_racing_mini_batch_fits_share_the_slack(self, ledger):
        sampled = plan(0.05, Poisson(0.1), steps=30)
        with ThreadPoolExecutor(4) as pool:
            receipts = set(pool.map(lambda _: ledger.reserve("census", sampled), range(8)))
        slacks = sorted((fit.charge.slack for fit in ledger.account("census").fits), reverse=True)
        assert len(receipts) == 8
        assert sum(slacks) < 0.05 * LIMIT.delta
        assert slacks[0] == 0.5 * 0.05 * LIMIT.delta


class TestBadInput:
    def test_a_place_that_does_not_exist_is_refused(self, tmp_path, table):
        with pytest.raises(FileProblem, match="ledger init"):
            private(ledger=tmp_path / "none.db").fit(*table)
        assert not (tmp_path / "none.db").exists()

    def test_a_second_beginning_is_refused(self, place, ledger):
        ledger.reserve("census", plan())
        with pytest.raises(FileProblem, match="exists"):
            Ledger.create(place)
        assert len(Ledger(place).account("census").fits) == 1

    def test_a_limit_below_what_is_spent_is_refused(self, ledger):
        ledger.reserve("census", plan(0.5))
        ledger.reserve("census", plan(0.5))
        with pytest.raises(InvalidParameter, match="cannot be taken back"):
            ledger.set_limit("census", Budget(0.3, 1e-5), owner="Ada")
        assert ledger.account("census").limit == LIMIT
        ledger.set_limit("census", Budget(0.8, 1e-5), owner="Ada")
        ledger.set_limit("census", Budget(2.0, 1e-5), owner="Ada")
        ledger.reserve("census", plan(0.9))

    def test_two_owners_are_refused(self, ledger):
        with pytest.raises(InvalidParameter, match="'Ada' declared"):
            ledger.set_limit("census", Budget(9.0, 1e-5), owner="Eve")
        assert ledger.account("census").limit == LIMIT

    def test_relation_and_test_mark_never_change(self, ledger):
        for limit, mark in ((Budget(2.0, 1e-5, "add-remove"), None), (Budget(2.0, 1e-5), True)):
            with pytest.raises(InvalidParameter, match="fixed when a data set is declared"):
                ledger.set_limit("census", limit, owner="Ada", test=mark)

    @pytest.mark.parametrize("name", ["", "  ", "a\nb", "x" * 201])
    def test_unusable_names_are_refused(self, ledger, name):
        with pytest.raises(InvalidParameter):
            ledger.set_limit(name, LIMIT, owner="Ada")
        with pytest.raises(InvalidParameter):
            ledger.set_limit("new", LIMIT, owner=name)

    def test_a_statement_of_another_model_is_not_in_the_ledger(self, place, ledger, table):
        paid = private(epsilon=0.3, ledger=ledger).fit(*table)
        unpaid = DPLogisticRegression(0.3, 1e-6, classes=[0, 1]).fit(*table)
        found = [(model.plan_.digest, release_digest(model.weights_)) for model in (paid, unpaid)]
        assert verify(place, releases=found[:1]).ok
        assert "no finished charge" in verify(place, releases=found).problems[0]

    def test_an_unknown_address_is_refused(self):
        with pytest.raises(FileProblem, match="postgresql"):
            Ledger("mysql://host/db")

    def test_a_server_that_is_not_there_is_refused_without_its_password(self):
        pytest.importorskip("psycopg")
        with pytest.raises(FileProblem, match="cannot be reached") as refusal:
            Ledger("postgresql://ada:s3cret@127.0.0.1:1/census")
        assert "s3cret" not in str(refusal.value)

    def test_postgres_without_its_driver_is_refused(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "psycopg", None)
        with pytest.raises(InvalidParameter, match=r"dpadmm\[postgres\]"):
            Ledger("postgresql://127.0.0.1/census")


class TestClock:
    @pytest.fixture
    def ledger(self, tmp_path):
        made = Ledger.create(tmp_path / "ledger.db")
        made.set_limit("census", LIMIT, owner="Ada")
        return made

    def set_clock(self, monkeypatch, minutes):
        late = (datetime.now(UTC) + timedelta(minutes=minutes)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        monkeypatch.setattr(SqliteLog, "now", lambda self: late)

    def test_a_clock_going_backwards_is_refused_and_nothing_is_lost(self, ledger, monkeypatch):
        receipt = ledger.reserve("census", plan(0.5))
        self.set_clock(monkeypatch, -60)
        with pytest.raises(FileProblem, match="backwards"):
            ledger.reserve("census", plan(0.1))
        ledger.commit(receipt, plan(0.5).event)
        (fit,) = ledger.account("census").fits
        assert fit.committed
        assert verify(ledger.place).ok

    def test_an_owner_starts_the_time_anew_after_a_clock_that_ran_ahead(self, ledger, monkeypatch):
        with monkeypatch.context() as patch:
            self.set_clock(patch, 60 * 24 * 365)
            ledger.reserve("census", plan(0.1))
        with pytest.raises(FileProblem, match="starts the time anew"):
            ledger.reserve("census", plan(0.1))
        ledger.set_limit("census", LIMIT, owner="Ada")
        ledger.reserve("census", plan(0.1))
        assert len(Ledger(ledger.place).account("census").fits) == 2
        assert verify(ledger.place).ok

    def test_a_small_correction_is_not(self, ledger, monkeypatch):
        self.set_clock(monkeypatch, -1)
        ledger.reserve("census", plan(0.5))
        times = [moment(entry.content["time"]) for entry in ledger.entries]
        assert times == sorted(times)
        assert verify(ledger.place).ok
