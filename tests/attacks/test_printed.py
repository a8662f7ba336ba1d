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
import pytest

from dpadmm import load_model
from dpadmm.privacy.plan import PROMISED, Plan
from dpadmm.privacy.wording import rounded_down, rounded_up, rounding

from .campaign import Campaign
from .printed_inputs import ROWS, odd_budget, printed, training, write_table
from .printed_texts import Known, certified_epsilons, certifies, defects_of, plain, stated_pairs

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
    full=100_000,
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
    monkeypatch.setattr(rounding, "ROUND_CEILING", ROUND_HALF_EVEN)
    rng = random.Random(0)
    assert any(list(wrongly_rounded(some_float(rng), 6)) for _ in range(50))


@pytest.mark.parametrize("text", ["0", "1", "0.1", "0.5", "1e-05", "3", "10", "1e-12", "0.25", "inf"])
def test_what_users_declare_prints_as_they_declared_it(text: str) -> None:
    assert rounded_up(float(text)) == rounded_down(float(text)) == text


# -- texts -----------------------------------------------------------------------------------------------------------


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


OF_A_PLAN = (*PROMISED, "queries", "arithmetic")
PLANS = {
    "auto": [],
    "mini-batches": ["--solver", "dp-sadmm", "--steps", "20", "--batch-size", "30"],
    "hidden passes": ["--solver", "noisy-admm", "--steps", "2"],
    "preparation": ["--penalty", "graph", "--private-graph", "0.2"],
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
                fields = {key: value for key, value in {**told, "n_rows": told["rows"]}.items() if key in OF_A_PLAN}
                pairs = stated_pairs(text) | {(each, repr(told["delta"])) for each in certified_epsilons(text)}
                assert len(pairs) >= 2, name
                found += [f"{pair}" for pair in pairs if not certifies(Plan.from_dict(fields), *pair)]
            for what in found:
                tally.defect(f"{name}: {what}")
