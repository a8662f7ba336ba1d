"""Every ε and δ the library prints, read back from the text and certified again; and numbers rounded at random."""

from __future__ import annotations

import json
import random
import struct
from collections.abc import Callable, Iterator
from decimal import ROUND_HALF_EVEN
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dpadmm import DPLogisticRegression, Ledger, PrivateQuantileClipper, compose_statements, load_model
from dpadmm.cli.app import run
from dpadmm.errors import BudgetExceeded
from dpadmm.preparation import total
from dpadmm.privacy import wording
from dpadmm.privacy.budget import Budget
from dpadmm.privacy.composition import compose_plans
from dpadmm.privacy.ledger.charge import total_epsilon
from dpadmm.privacy.plan import Plan
from dpadmm.privacy.wording import SPENT, rounded_down, rounded_up
from dpadmm.report import Spending
from dpadmm.report.audits import Audited, audit_picture

from .campaign import Campaign
from .printed_texts import Known, certified_epsilons, certifies, defects_of, plain, read_down, stated_pairs

SCHEMA = """
[columns.age]
kind = "numeric"
lower = 0
upper = 100

[columns.visits]
kind = "numeric"
lower = 0
upper = 9

[target]
column = "ill"
kind = "classes"
classes = ["no", "yes"]
"""
ROWS = 300
Arguments = Callable[[Path, str, str], list[str]]


# -- numbers ---------------------------------------------------------------------------------------------------------


def some_float(rng: random.Random) -> float:
    """Short decimals, sums of them, neighbours of both, anything at all, and the smallest floats there are."""
    kind = rng.randrange(5)
    short = rng.randrange(1, 10**6) * 10.0 ** rng.randrange(-12, 4)
    if kind == 0:
        return float(f"{short:.6g}")
    if kind == 1:
        return round(rng.random(), 2) + round(rng.random(), 2)
    if kind == 2:
        return float(np.nextafter(short, rng.choice((0.0, np.inf))))
    if kind == 3:
        return rng.randrange(1, 10**6) * 5e-324
    return float(struct.unpack("<d", struct.pack("<Q", rng.randrange(1, 0x7FEFFFFFFFFFFFFF)))[0])


def wrongly_rounded(value: float, digits: int) -> Iterator[str]:
    up, down = rounded_up(value, digits), rounded_down(value, digits)
    short = len(repr(value).split("e")[0].replace(".", "").strip("0")) <= digits
    exact = Fraction(value)
    if not float(down) <= value <= float(up):
        yield f"{value!r} read back from {down} and {up}"
    if short and not Fraction(up) == Fraction(down) == Fraction(repr(value)):
        yield f"{value!r}, which is short, prints as {up}"
    if not short and not Fraction(down) <= exact <= Fraction(up):
        yield f"{value!r} does not lie between {down} and {up}"
    if value > 1e-300 and Fraction(up) - Fraction(down) > exact * Fraction(10) ** (1 - digits):
        yield f"{value!r} is printed too coarsely: {down}, {up}"
    nearest = f"{value:.{digits}g}"
    if value > 1e-300 and digits <= 15 and nearest not in (up, down):
        yield f"{value!r} printed as {down} and {up}, but once as {nearest}"


NUMBERS = Campaign(
    room="printed numbers",
    attack="floats of every kind, rounded up and down to 1 to 17 digits and compared as exact fractions",
    before="ε and δ were rounded to the nearest decimal: half of those with more than six digits came out too small",
    sample=3000,
    full=300_000,
)


def test_numbers_are_rounded_to_the_safe_side() -> None:
    rng = random.Random(0)
    with NUMBERS.begin() as tally:
        for _ in tally.each():
            value, digits = some_float(rng), rng.choice((1, 2, 3, 4, 6, 17))
            for what in wrongly_rounded(value, digits):
                tally.defect(what)
            larger = value * (1 + rng.random() * 10.0 ** -rng.randrange(16))
            if float(rounded_up(value, digits)) > float(rounded_up(larger, digits)):
                tally.defect(f"{value!r} prints above {larger!r}")


def test_the_attack_sees_rounding_to_the_nearest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wording, "ROUND_CEILING", ROUND_HALF_EVEN)
    rng = random.Random(0)
    assert any(list(wrongly_rounded(some_float(rng), 6)) for _ in range(50))


@pytest.mark.parametrize("text", ["0", "1", "0.1", "0.5", "1e-05", "3", "10", "1e-12", "0.25", "inf"])
def test_what_users_declare_prints_as_they_declared_it(text: str) -> None:
    assert rounded_up(float(text)) == rounded_down(float(text)) == text


# -- texts -----------------------------------------------------------------------------------------------------------


def odd_budget(number: int) -> tuple[str, str]:
    """Budgets whose nearest decimals of six digits lie below them."""
    rng = random.Random(number)
    epsilon = f"{rng.uniform(0.4, 2.0):.5f}{rng.choice('01234')}{rng.randrange(1, 99):02d}"
    return epsilon, f"{rng.randrange(100000, 999999) / 1e5:.5f}{rng.choice('1234')}e-6"


def write_table(folder: Path) -> None:
    rng = np.random.default_rng(0)
    age = rng.integers(0, 101, ROWS)
    ill = np.where(age + rng.normal(0, 10, ROWS) > 50, "yes", "no")
    pd.DataFrame({"age": age, "visits": rng.integers(0, 10, ROWS), "ill": ill}).to_csv(folder / "t.csv", index=False)
    (folder / "s.toml").write_text(SCHEMA)


def training(folder: Path, epsilon: str, delta: str) -> list[str]:
    places = [str(folder / "t.csv"), "--schema", str(folder / "s.toml"), "--out", str(folder / "model"), "--force"]
    return [*places, "--epsilon", epsilon, "--delta", delta]


def fits(*more: str) -> Arguments:
    return lambda folder, epsilon, delta: ["fit", *training(folder, epsilon, delta), *more]


def tunes(*more: str) -> Arguments:
    tries = ["--try", "alpha=1e-4,1e-2", "--penalty", "l1", "--mean-trials", "2", "--solver", "dp-gd", "--steps", "3"]
    return lambda folder, epsilon, delta: ["tune", *training(folder, epsilon, delta), *tries, *more]


COMMANDS: dict[str, Arguments] = {
    "auto": fits(),
    "full data": fits("--solver", "full-admm", "--steps", "5"),
    "mini-batches": fits("--solver", "dp-sadmm", "--steps", "20", "--batch-size", "30"),
    "hidden passes": fits("--solver", "noisy-admm", "--steps", "2"),
    "exact": fits("--arithmetic", "exact", "--steps", "5"),
    "preparation": fits("--penalty", "graph", "--private-graph", "0.2", "--steps", "5"),
    "search": tunes(),
    "poisson search": tunes("--trials", "poisson"),
}


def printed(arguments: list[str], capsys: pytest.CaptureFixture[str], code: int = 0) -> str:
    capsys.readouterr()
    assert run(arguments) == code
    shown = capsys.readouterr()
    return shown.out + shown.err


def texts_of_a_model(folder: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[str]:
    """Whatever is written or printed about a saved model."""
    model = folder / "model"
    for name in ("statement.txt", "report.html", "statement.json", "plan.json"):
        yield (model / name).read_text(encoding="utf-8")
    for more in (["--verify"], ["--json"]):
        yield printed(["statement", str(model), *more], capsys)
    yield printed(["evaluate", str(model), str(folder / "t.csv"), "--public-or-test"], capsys)
    loaded = load_model(model)
    yield from (str(loaded.privacy_), repr(loaded.privacy_), repr(loaded.plan_), loaded.privacy_.to_json())


TEXTS = Campaign(
    room="printed numbers",
    attack="texts about fits and searches with odd budgets: every printed (ε, δ) certified again, all numbers compared",
    before="statement, report and commands printed pairs that the accountant does not certify, by up to half a unit of "
    "the sixth digit",
    sample=len(COMMANDS),
    full=6 * len(COMMANDS),
)


def test_every_text_about_a_model_is_certified_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_table(tmp_path)
    with TEXTS.begin() as tally:
        for number in tally.each():
            name = list(COMMANDS)[number % len(COMMANDS)]
            shown = printed(COMMANDS[name](tmp_path, *odd_budget(number)), capsys)
            plan = load_model(tmp_path / "model").plan_
            assert stated_pairs(plain(shown)), name
            assert certified_epsilons(plain(shown)), name
            for text in (shown, *texts_of_a_model(tmp_path, capsys)):
                for what in defects_of(text, plan):
                    tally.defect(f"{name}: {what}")


PLANS = {
    "auto": [],
    "mini-batches": ["--solver", "dp-sadmm", "--steps", "20", "--batch-size", "30"],
    "hidden passes": ["--solver", "noisy-admm", "--steps", "2"],
    "preparation": ["--private-graph", "0.2"],
}
BEFORE_A_FIT = Campaign(
    room="printed numbers",
    attack="`plan` and the cost of a search, before anything is trained, certified again",
    before="the same pairs as in statements, too small by the last digit",
    sample=len(PLANS) + 1,
    full=6 * (len(PLANS) + 1),
)


def test_what_is_printed_before_a_fit_is_certified_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_table(tmp_path)
    with BEFORE_A_FIT.begin() as tally:
        for number in tally.each():
            epsilon, delta = odd_budget(number)
            name = [*PLANS, "search"][number % (len(PLANS) + 1)]
            if name == "search":
                arguments = tunes("--rows", str(ROWS), "--dry-run")(tmp_path, epsilon, delta)
                told = json.loads(printed([*arguments, "--json"], capsys))
                known = Known(
                    [told[key] for key in ("epsilon", "delta", "epsilon_achieved", "base_epsilon", "base_delta")]
                )
            else:
                public = ["--rows", "5000", "--features", "4", "--epsilon", epsilon, "--delta", delta]
                arguments = ["plan", *public, *PLANS[name]]
                told = json.loads(printed([*arguments, "--json"], capsys))
                known = Known([told["epsilon"], told["delta"], told["epsilon_achieved"]])
                known.at_most += [told["noise_std"], *(query["noise_multiplier"] for query in told["queries"])]
            text = plain(printed(arguments, capsys))
            found = list(known.on_the_wrong_side(text))
            if name != "search":
                fields = {**told, "n_rows": told["rows"]}
                pairs = stated_pairs(text) | {(each, repr(told["delta"])) for each in certified_epsilons(text)}
                assert len(pairs) >= 2, name
                found += [f"{pair}" for pair in pairs if not certifies(Plan.from_dict(fields), *pair)]
            for what in found:
                tally.defect(f"{name}: {what}")


# -- ledgers, totals, audits -----------------------------------------------------------------------------------------


LEDGERS = Campaign(
    room="printed numbers",
    attack="what a ledger shows, draws, exports and refuses: printed sums compared with the charges behind them",
    before="spent ε was rounded to the nearest of four digits: 0.42751 of a limit printed as 0.4275",
    sample=2,
    full=20,
)


def test_what_a_ledger_prints_is_not_below_what_was_spent(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (ROWS, 2))
    y = (X[:, 0] > 0).astype(int)
    with LEDGERS.begin() as tally:
        for number in tally.each():
            place, (epsilon, delta) = tmp_path / f"{number}.db", odd_budget(number)
            limit = ["--dataset", "d", "--epsilon", str(3 * float(epsilon)), "--delta", str(4 * float(delta))]
            made = plain(printed(["ledger", "init", str(place), *limit], capsys))
            for _ in range(2):
                DPLogisticRegression(
                    float(epsilon), float(delta), classes=[0, 1], solver="dp-gd", steps=2, ledger=place, dataset="d"
                ).fit(X, y)
            account = Ledger(place).account("d")
            spent = [account.spent_after(1), account.spent_after(2)]
            known = Known([account.limit.epsilon, account.limit.delta, float(epsilon), float(delta), *spent])
            shown = plain(printed(["ledger", "show", str(place)], capsys))
            label = Spending("d", account.limit.epsilon, [], spent).label
            with pytest.raises(BudgetExceeded) as refused:
                Ledger(place).check("d", Budget(9.0, float(delta)))
            for text in (made, shown, label, str(refused.value)):
                for what in known.on_the_wrong_side(text):
                    tally.defect(what)
            for text, title in ((shown, "ledger show"), (made, "ledger init")):
                if SPENT not in text:
                    tally.defect(f"{title} does not say what spent means")
            at_delta = read_down(rounded_up(account.limit.delta))
            if total_epsilon(account.charges, at_delta) > read_down(rounded_up(spent[1])):
                tally.defect("the printed sum is not certified at the printed δ")
            exported = json.loads(printed(["ledger", "export", str(place), "--json"], capsys))
            if exported["spent_means"] != SPENT or exported["datasets"][0]["spent"]["epsilon"] != spent[1]:
                tally.defect("the export is not exact, or does not say what spent means")


TOTALS = Campaign(
    room="printed numbers",
    attack="totals of several parts: the printed pair certified again, and what it rests on",
    before="totals, which have all their digits, were rounded down half of the time",
    sample=4,
    full=40,
)


def test_totals_are_certified_again() -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (ROWS, 2))
    y = (X[:, 0] > 0).astype(int)
    with TOTALS.begin() as tally:
        for number in tally.each():
            epsilon, delta = (float(each) for each in odd_budget(number))
            clipper = PrivateQuantileClipper((-4, 4), epsilon=epsilon / 2, delta=delta).fit(X)
            model = DPLogisticRegression(epsilon, delta, classes=[0, 1], solver="dp-gd", steps=2).fit(X, y)
            statement = compose_statements(clipper, model)
            whole = compose_plans([clipper.plan_, model.plan_], delta)
            for what in defects_of(statement.text, whole):
                tally.defect(what)
            if total.FIXED_IN_ADVANCE not in statement.assumptions:
                tally.defect("a total that does not say that plans must be fixed in advance")


def audits(kind: int, folder: Path, epsilon: str, delta: str) -> list[str]:
    """An audit of one solver, of a saved model, of one run, or of all solvers."""
    if kind == 1:
        assert run(["fit", *training(folder, epsilon, delta), "--solver", "dp-gd", "--steps", "2"]) == 0
        return [str(folder / "model"), "--runs", "200"]
    if kind == 2:
        table = ["--one-run", str(folder / "t.csv"), "--schema", str(folder / "s.toml"), "--canaries", "100"]
        return [*table, "--epsilon", epsilon, "--delta", delta]
    solver = ["--solver", "all"] if kind == 3 else ["--solver", "dp-gd", "--delta", "0.050000049"]
    return [*solver, "--epsilon", epsilon, "--runs", "200"]


AUDITS = Campaign(
    room="printed numbers",
    attack="audits of a solver, a saved model, one run and all solvers: no bound above, no claim below what was found",
    before="lower bounds were rounded to the nearest of four digits: half of them lay above what was certified",
    sample=3,
    full=12,
)


def test_audits_print_no_more_than_they_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_table(tmp_path)
    with AUDITS.begin() as tally:
        for number in tally.each():
            arguments = ["audit", *audits(number % 4, tmp_path, *odd_budget(number)), "--seed", str(number)]
            told = json.loads(printed([*arguments, "--json"], capsys))
            text = plain(printed(arguments, capsys))
            for found in told.get("audits", [told]):
                known = Known([found["claimed"], found["proven"]])
                known.at_most += [found["lower_bound"], found["power"], found["detectable_noise"], found["confidence"]]
                for what in known.on_the_wrong_side(text):
                    tally.defect(what)
                if f"δ = {found['delta']!r}" not in text:
                    tally.defect("δ of an audit, which must be neither smaller nor larger, is not printed in full")


def test_the_picture_of_audits_does_not_print_a_claim_below_itself() -> None:
    picture = audit_picture([Audited("dp-gd", 1.2345612, 1.23, 0.5, 0.6)], "svg").decode()
    assert "claimed ε = 1.23457" in plain(picture)


def test_the_attack_sees_totals_rounded_to_the_nearest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wording, "ROUND_CEILING", ROUND_HALF_EVEN)
    X = np.random.default_rng(0).uniform(-1, 1, (ROWS, 2))
    found = []
    for number in range(4):
        epsilon, delta = (float(each) for each in odd_budget(number))
        clippers = [PrivateQuantileClipper((-4, 4), epsilon=epsilon, delta=delta).fit(X) for _ in range(2)]
        whole = compose_plans([clipper.plan_ for clipper in clippers], delta)
        found += [what for what in defects_of(compose_statements(*clippers).text, whole) if "not certified" in what]
    assert found
