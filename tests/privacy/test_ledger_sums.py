"""Sums carried by entries: exact, compared by whoever reads all, and enough to charge from; names of data sets."""

from __future__ import annotations

import math
import random
from itertools import pairwise

import pytest

from dpadmm import Budget, Ledger
from dpadmm.errors import BudgetExceeded, FileProblem, InvalidParameter, PromiseBroken
from dpadmm.privacy.ledger import balance, names, sqlite, verify
from dpadmm.privacy.ledger.balance import INTERVAL, MARK, Balance
from dpadmm.privacy.ledger.charge import Charge, charge, total_epsilon
from dpadmm.privacy.ledger.entries import Entry, Head, chain, write_entry
from dpadmm.privacy.ledger.names import INVISIBLE, skeleton
from dpadmm.privacy.ledger.sums import Sums
from dpadmm.privacy.sampling import Poisson

from .ledger_places import SMALL, plan

LIMIT = Budget(50.0, 1e-5)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "ledger.db"


@pytest.fixture
def ledger(path):
    made = Ledger.create(path)
    made.set_limit("census", LIMIT, owner="Ada")
    made.set_limit("visits", LIMIT, owner="Ada")
    return made


def fill(ledger, count, dataset="census"):
    """So many fits, in one transaction."""
    cost = charge(SMALL.event, SMALL.budget.relation, 0.0)
    fields = {"dataset": dataset, "plan": SMALL.to_dict(), "plan_digest": SMALL.digest, "seeded": False}
    with ledger._page(ledger._store.writing) as page:
        for number in range(count):
            receipt = f"{page.balance.head.sequence:016x}{number:016x}"
            page.append("reserve", {**fields, "receipt": receipt, "shift": cost.shift, "slack": 0.0})


LIMITED = {"dataset": "a", "owner": "Ada", "epsilon": 1.0, "delta": 1e-5, "relation": "replace-one", "test": False}


class TestWhatAnEntryMaySay:
    """Read from an entry that someone else may have written."""

    @pytest.mark.parametrize(("sequence", "ledger"), [(2, ""), (1, "there"), (2, "there")])
    def test_a_ledger_begins_once(self, sequence, ledger):
        assert balance._created({"sequence": 1, "ledger": "new"}, "") == "new"
        with pytest.raises(ValueError, match="second beginning"):
            balance._created({"sequence": sequence, "ledger": "new"}, ledger)

    @pytest.mark.parametrize("other", [{"owner": "Bob"}, {"test": True}, {"relation": "add-remove"}])
    def test_a_limit_is_changed_by_its_owner_for_the_same_promise(self, other):
        before = balance._limited(LIMITED, None)
        assert balance._limited({**LIMITED, "epsilon": 2.0}, before).limit.epsilon == 2.0
        with pytest.raises(ValueError, match="another owner"):
            balance._limited({**LIMITED, **other}, before)


class TestSums:
    def test_fits_are_counted_from_nothing_one_by_one(self):
        for charges, sampled in (([], 0), ([Charge(1.0)], 0), ([Charge(1.0), Charge(0.5, 1e-9), Charge(2.0)], 1)):
            sums = Sums.of(charges)
            assert (sums.fits, sums.sampled) == (len(charges), sampled)

    def test_growing_sums_are_those_of_all_charges_to_the_last_bit(self):
        chance = random.Random(0)
        charges, sums = [], Sums()
        for _ in range(2000):
            cost = Charge(10.0 ** chance.uniform(-6, 3), chance.choice([0.0, 10.0 ** chance.uniform(-12, -6)]))
            charges.append(cost)
            sums = sums.plus(cost)
        assert sums.shift == math.sqrt(math.fsum(cost.shift * cost.shift for cost in charges))
        assert sums.slack == math.fsum(cost.slack for cost in charges)
        assert sums.sampled == sum(cost.slack > 0 for cost in charges)
        assert Sums.from_dict(sums.to_dict()) == sums
        assert len(sums.squares) < 10

    def test_an_endless_charge_is_an_endless_sum(self):
        for sums in (Sums.of([Charge(1e200), Charge(1.0)]), Sums.of([Charge(1.0), Charge(math.inf), Charge(1.0)])):
            assert sums.shift == math.inf
            assert total_epsilon(sums, 1e-5) == math.inf


class TestBalances:
    def test_opening_reads_the_last_entries_only_and_knows_the_same(self, path, ledger, monkeypatch):
        fill(ledger, 3 * INTERVAL)
        fill(ledger, 5, "visits")
        ledger.reserve("census", plan(0.1, Poisson(0.1)))
        read = []
        entries = sqlite.SqliteLog.entries

        def counted(self, *limits):
            found = entries(self, *limits)
            read.append(len(found))
            return found

        monkeypatch.setattr(sqlite.SqliteLog, "entries", counted)
        fresh = Ledger(path)
        assert sum(read) <= INTERVAL + 2
        assert fresh.spent("census") == fresh.account("census").spent
        assert fresh.account("census").spent == ledger.spent("census")
        with ledger._store.reading() as log:
            assert Balance.read(log).standings == Balance().after(log.entries(0)).standings
        assert verify(path).ok

    def test_a_balance_follows_so_many_entries_at_most(self, ledger):
        fill(ledger, 5 * INTERVAL)
        carriers = [entry.sequence for entry in ledger.entries if entry.text.startswith(MARK)]
        assert carriers[0] == INTERVAL
        assert {later - earlier for earlier, later in pairwise(carriers)} == {INTERVAL}

    def test_the_limit_holds_over_balances(self, path, ledger):
        ledger.set_limit("census", Budget(0.2, 1e-5), owner="Ada")

        def spend():
            while True:
                Ledger(path).reserve("census", SMALL)

        with pytest.raises(BudgetExceeded):
            spend()
        granted = len(Ledger(path).account("census").fits)
        assert granted > INTERVAL
        assert Ledger(path).account("census").spent[0] <= 0.2
        assert Ledger(path).account("census").spent_after(granted) > 0.19

    @pytest.mark.parametrize("field", ["squares", "fits", "epsilon", "only_plan"])
    def test_forged_sums_are_found(self, path, ledger, field):
        fill(ledger, INTERVAL)
        with ledger._store.writing() as log:
            now = Balance.read(log)
            fields = now._to_dict()
            fields["accounts"]["census"][field] = {"squares": [1e-12], "fits": 1, "epsilon": 9e9, "only_plan": {}}[
                field
            ]
            limit = {"epsilon": 50.0, "delta": 1e-5, "relation": "replace-one"}
            content = {"dataset": "visits", "owner": "Ada", **limit, "test": False, "balance": fields}
            log.append(write_entry(now.head, now.head.time, "limit", content))
        assert "carries sums that are not those" in verify(path).problems[0]
        with pytest.raises(FileProblem, match="carries sums"):
            Ledger(path).account("census")
        with pytest.raises(FileProblem, match="carries sums"):
            ledger.reserve("census", SMALL)

    def test_a_flipped_letter_in_a_balance_is_refused_on_opening(self, path, ledger):
        fill(ledger, INTERVAL + 5)
        raw = path.read_bytes()
        at = raw.rindex(b'"squares"')
        path.write_bytes(raw[:at] + b"!" + raw[at + 1 :])
        with pytest.raises(FileProblem, match="changed after it was written"):
            Ledger(path)

    def test_a_missing_entry_before_a_balance_is_refused(self, ledger):
        class Log:
            def last_with(self, words, at_start=False):
                return Entry(9, MARK, "0")

            def entries(self, after, until=None):
                return [Entry(9, MARK, "0")]

        with pytest.raises(FileProblem, match="entry 8 is missing"):
            Balance.read(Log())

    def test_a_fit_can_be_committed_long_after_its_reservation(self, path, ledger):
        receipt = ledger.reserve("census", SMALL)
        fill(ledger, 2 * INTERVAL, "visits")
        Ledger(path).commit(receipt, SMALL.event, release="0" * 64)
        fill(ledger, 2 * INTERVAL, "visits")
        with pytest.raises(PromiseBroken, match="committed before"):
            Ledger(path).commit(receipt, SMALL.event)
        for unknown in ("", "%", "0" * 32, receipt + " ", receipt.upper() + "X"):
            with pytest.raises(PromiseBroken, match="never gave out"):
                Ledger(path).commit(unknown, SMALL.event)
        assert verify(path).ok

    def test_a_ledger_of_an_earlier_version_goes_on(self, path, ledger):
        """Its entries carry no sums: it is read from the beginning once, and carries them from the next entry on."""
        cost = charge(SMALL.event, SMALL.budget.relation, 0.0)
        with ledger._store.writing() as log:
            head = Balance.read(log).head
            for number in range(3 * INTERVAL):
                fields = {"dataset": "census", "receipt": f"{number:032x}", "plan": SMALL.to_dict(), "seeded": False}
                fields |= {"plan_digest": SMALL.digest, "shift": cost.shift, "slack": 0.0}
                entry = write_entry(head, head.time, "reserve", fields)
                log.append(entry)
                head = Head(entry.sequence, entry.hash, head.time)
        Ledger(path).reserve("census", SMALL)
        assert Ledger(path).entries[-1].text.startswith(MARK)
        assert len(Ledger(path).account("census").fits) == 3 * INTERVAL + 1
        assert Ledger(path).spent("census") == ledger.account("census").spent
        assert verify(path).ok

    def test_a_chain_is_what_it_was(self):
        assert chain("0" * 64, "{}").startswith("5649d09e")


class TestNames:
    def test_a_name_means_the_same_however_it_is_typed(self, ledger):
        ledger.set_limit("  cafe\u0301 ", LIMIT, owner=" Zoe\u0308 ")
        assert ledger.account("caf\u00e9").dataset == "caf\u00e9"
        ledger.reserve(" cafe\u0301", SMALL)
        ledger.set_limit("cafe\u0301", LIMIT, owner="Zo\u00eb")
        assert len(ledger.account("caf\u00e9").fits) == 1
        assert [account.dataset for account in ledger.accounts] == ["census", "visits", "caf\u00e9"]

    @pytest.mark.parametrize(
        "name",
        [
            "Census",
            "CENSUS",
            "c\u0435nsus",
            "\uff43ensus",
            "cen\u2060sus",
            "census\ufe0f",
            "\u0441ensus",
            "census\u200b",
        ],
    )
    def test_a_second_account_that_reads_like_the_first_is_refused(self, ledger, name):
        with pytest.raises(InvalidParameter):
            ledger.set_limit(name, LIMIT, owner="Ada")
        assert len(ledger.accounts) == 2

    @pytest.mark.parametrize(
        ("first", "second"),
        [
            ("visits 2023", "visits_2O23"),
            ("cop", "\u0441\u043e\u0440"),
            ("site 1", "site l"),
            ("a-b", "A\u2013B"),
            ("x y", "x  y"),
            ("pic", "\u0440\u0456\u0441"),
            ("Ann's", "Ann\u2019s"),
            ("a/b", "a\u2044b"),
            ("group", "\u0261roup"),
            ("census", "\u1d04ensus"),
        ],
    )
    def test_names_that_read_alike_have_one_skeleton(self, ledger, first, second):
        ledger.set_limit(first, LIMIT, owner="Ada")
        with pytest.raises(InvalidParameter, match="reads like"):
            ledger.set_limit(second, LIMIT, owner="Ada")

    def test_a_letter_is_replaced_once_and_for_all(self):
        assert skeleton("".join(names.ALIKE)) == "".join(names.ALIKE)

    def test_names_that_differ_are_two_accounts(self, ledger):
        different = [
            "visits 2022",
            "visits 2023",
            "v1.1",
            "v11",
            "\u4eba\u53e3",
            "\u3072\u3068",
            "\u03bb\u03bf\u03b3\u03bf\u03c2",
            "census (old)",
        ]
        for name in different:
            ledger.set_limit(name, LIMIT, owner="Ada")
        assert [account.dataset for account in ledger.accounts][2:] == different

    def test_a_misspelt_name_is_never_taken_for_another(self, ledger):
        for name in ("Census", "censuss", "c\u0435nsus"):
            with pytest.raises(InvalidParameter, match="does not hold"):
                ledger.reserve(name, SMALL)

    def test_names_of_earlier_versions_are_found_as_they_were_given(self, path, ledger):
        old = [" spaced ", "cafe\u0301", "CENSUS", "m\u0456x"]
        with ledger._store.writing() as log:
            head = Balance.read(log).head
            for name in old:
                limit = {"epsilon": 50.0, "delta": 1e-5, "relation": "replace-one"}
                entry = write_entry(
                    head, head.time, "limit", {"dataset": name, "owner": "Ada ", **limit, "test": False}
                )
                log.append(entry)
                head = Head(entry.sequence, entry.hash, head.time)
        fresh = Ledger(path)
        for name in old[:3]:
            fresh.reserve(name, SMALL)
            fresh.set_limit(name, Budget(60.0, 1e-5), owner="Ada")
            assert len(fresh.account(name).fits) == 1
        fresh.reserve(old[3], SMALL)
        assert verify(path).ok

    def test_the_skeleton_shows_no_invisible_letter(self):
        assert not INVISIBLE.search(skeleton("a\u3164b\u2800c\U000e0100"))
