"""Sums, totals and audits as they are printed: certified again, rounded to the safe side, and said what they mean."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from decimal import ROUND_HALF_EVEN
from pathlib import Path

import numpy as np
import pytest

import dpadmm
from dpadmm import DPLogisticRegression, Ledger, PrivateQuantileClipper, compose_statements
from dpadmm.cli.app import run
from dpadmm.errors import BudgetExceeded
from dpadmm.preparation import composed_statements
from dpadmm.privacy.budget import Budget
from dpadmm.privacy.composition import compose_plans
from dpadmm.privacy.ledger.charge import total_epsilon
from dpadmm.privacy.wording import SPENT, rounded_up, rounding
from dpadmm.report import Spending
from dpadmm.report.audits import Audited, audit_picture

from .campaign import Campaign
from .printed_inputs import ROWS, odd_budget, printed, training, write_table
from .printed_texts import Known, defects_of, plain, read_down

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
            if total_epsilon([fit.charge for fit in account.fits], at_delta) > read_down(rounded_up(spent[1])):
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
            if not statement.facts.assumes(composed_statements.FIXED_IN_ADVANCE):
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
    full=4,
)


def test_audits_print_no_more_than_they_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_table(tmp_path)
    with AUDITS.begin() as tally:
        for number in tally.each():
            arguments = ["audit", *audits(number % 4, tmp_path, *odd_budget(number)), "--seed", str(number)]
            told = json.loads(printed([*arguments, "--json"], capsys))
            text = plain(printed(arguments, capsys))
            known = Known()
            for found in told.get("audits", [told]):
                known.at_least += [found["claimed"], found["proven"]]
                known.at_most += [found["lower_bound"], found["power"], found["detectable_noise"], found["confidence"]]
                if f"δ = {found['delta']!r}" not in text:
                    tally.defect("δ of an audit, which must be neither smaller nor larger, is not printed in full")
            for what in known.on_the_wrong_side(text):
                tally.defect(what)


def test_the_picture_of_audits_does_not_print_a_claim_below_itself() -> None:
    picture = audit_picture([Audited("dp-gd", 1.2345612, 1.23, 0.5, 0.6)], "svg").decode()
    assert "claimed ε = 1.23457" in plain(picture)


def test_the_attack_sees_totals_rounded_to_the_nearest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rounding, "ROUND_CEILING", ROUND_HALF_EVEN)
    X = np.random.default_rng(0).uniform(-1, 1, (ROWS, 2))
    found = []
    for number in range(4):
        epsilon, delta = (float(each) for each in odd_budget(number))
        clippers = [PrivateQuantileClipper((-4, 4), epsilon=epsilon, delta=delta).fit(X) for _ in range(2)]
        whole = compose_plans([clipper.plan_ for clipper in clippers], delta)
        found += [what for what in defects_of(compose_statements(*clippers).text, whole) if "not certified" in what]
    assert found


PROMISED = (
    "epsilon",
    "delta",
    "achieved",
    "spent",
    "lower_bound",
    "proven",
    "claimed",
    "noise_std",
    "noise_multiplier",
)


def own_formats(source: str) -> Iterator[str]:
    """Formats such as {plan.budget.epsilon:.4g}, which round to the nearest."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FormattedValue) and node.format_spec is not None:
            words = ast.unparse(node.value)
            if any(word in words for word in PROMISED):
                yield words


def test_no_text_rounds_a_promise_by_a_format_of_its_own() -> None:
    sources = Path(dpadmm.__file__).parent.rglob("*.py")
    assert not [(path.name, words) for path in sources for words in own_formats(path.read_text(encoding="utf-8"))]
    assert list(own_formats('f"ε = {plan.epsilon_achieved:.6g}"')) == ["plan.epsilon_achieved"]
