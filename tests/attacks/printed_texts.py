"""Readers of printed promises: every pair a text states, and every number in it that stands for one of the plan's."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any
from unittest import mock

from dpadmm.errors import PromiseBroken
from dpadmm.privacy.budget import Budget
from dpadmm.privacy.calibration import verify_plan

NUMBER = r"([0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?)"
PAIRS = (
    rf"is \({NUMBER}, {NUMBER}\)-differentially private",
    rf"promise:? +\({NUMBER}, {NUMBER}\)-differentially private",
    rf"factor of at most e\^{NUMBER}, but for an extra probability of at most {NUMBER}",
    rf"ε = {NUMBER}, δ = {NUMBER}",
    rf"ε = {NUMBER} at δ = {NUMBER}",
    rf"ε promised {NUMBER} [0-9.e+-]+ certified δ {NUMBER}",
)
CERTIFIED = (
    rf"certif(?:ies|ied by)? (?:epsilon|ε) = {NUMBER}",
    rf"(?:ε =|certified ε =) {NUMBER} (?:certified )?by the",
    rf"{NUMBER} certified\b",
    rf"proven ε ≤ {NUMBER}",
)
OF_A_TRIAL = (rf"each trial ε = {NUMBER}, δ = {NUMBER}", rf"each \({NUMBER}, {NUMBER}\)-private by itself")
SHORT = 3
"""Decimals of fewer digits stand for too much to be told apart from other numbers."""


def stated_pairs(text: str, patterns: Iterable[str] = PAIRS) -> set[tuple[str, str]]:
    """Every (ε, δ) that a text promises, as printed."""
    return {(found[1], found[2]) for pattern in patterns for found in re.finditer(pattern, text)}


def certified_epsilons(text: str) -> set[str]:
    """Every ε that a text says is certified, as printed."""
    return {found[1] for pattern in CERTIFIED for found in re.finditer(pattern, text)}


def read_down(decimal: str) -> float:
    """The largest float that is no larger than a printed decimal, read exactly."""
    found = float(decimal)
    return math.nextafter(found, 0.0) if Fraction(found) > Fraction(decimal) else found


def certifies(plan: Any, epsilon: str, delta: str) -> bool:
    """Whether the accountant, run again, grants a plan the printed pair, word for word."""
    try:
        budget = Budget(read_down(epsilon), read_down(delta), plan.budget.relation)
        # Only the accountant is asked: another budget than the plan's contradicts the budgets of a search's parts.
        with mock.patch("dpadmm.privacy.selection.search_plan.require_any_agreement"):
            verify_plan(replace(plan, budget=budget, epsilon_achieved=budget.epsilon))
    except PromiseBroken:
        return False
    return True


@dataclass
class Known:
    """The numbers behind a text: those whose print must not be smaller, and those whose print must not be larger."""

    at_least: list[float] = field(default_factory=list)
    at_most: list[float] = field(default_factory=list)

    def on_the_wrong_side(self, text: str) -> Iterator[str]:
        """Decimals that stand for one of the numbers, to their last digit, and lie on the side that makes it false."""
        for decimal in set(re.findall(rf"(?<![\w.]){NUMBER}(?![\w.]*\w)", text)):
            digits = re.sub(r"e.*|\.", "", decimal).lstrip("0")
            if len(digits) < SHORT:
                continue
            printed, read, unit = Fraction(decimal), float(decimal), _unit(decimal)
            if self._says_one_truly(printed, read, unit):
                continue
            too_small = [value for value in self.at_least if read < value and Fraction(value) - printed < unit]
            too_large = [value for value in self.at_most if read > value and printed - Fraction(value) < unit]
            yield from (f"{decimal} printed for {value!r}" for value in (*too_small, *too_large))

    def _says_one_truly(self, printed: Fraction, read: float, unit: Fraction) -> bool:
        """Whether a decimal is right for one of the numbers, and so need not stand for another that is near."""
        over = any(value <= read and printed - Fraction(value) < unit for value in self.at_least)
        return over or any(value >= read and Fraction(value) - printed < unit for value in self.at_most)


def _unit(decimal: str) -> Fraction:
    mantissa, _, power = decimal.partition("e")
    places = len(mantissa.partition(".")[2])
    return Fraction(10) ** (int(power or 0) - places)


def of_plan(plan: Any) -> Known:
    """What texts about a plan of a fit or of a search speak of."""
    known = Known([plan.budget.epsilon, plan.budget.delta, plan.epsilon_achieved])
    distance = plan.budget.relation.record_distance
    for query in plan.queries:
        known.at_least += [query.clip_norm, distance * query.clip_norm]
        known.at_most += [query.noise_multiplier, query.noise_multiplier * query.clip_norm, query.noise_std]
    if hasattr(plan, "base_budget"):
        known.at_least += [plan.base_budget.epsilon, plan.base_budget.delta]
    return known


def plain(text: str) -> str:
    """A page or a table as one line of words."""
    text = re.sub(r'base64,[^"]*', "", text)
    text = re.sub(r"<style>.*?</style>|<details>.*?</details>", " ", text, flags=re.S)
    return " ".join(re.sub(r"<[^>]+>", " ", text).split())


def defects_of(text: str, plan: Any, more: Iterable[float] = ()) -> Iterator[str]:
    """What is false in a text about a plan."""
    text, known = plain(text), of_plan(plan)
    known.at_least += more
    yield from known.on_the_wrong_side(text)
    single = stated_pairs(text, OF_A_TRIAL)
    pairs = stated_pairs(text) - single
    deltas = {delta for _, delta in pairs} or {repr(plan.budget.delta)}
    pairs |= {(epsilon, delta) for epsilon in certified_epsilons(text) for delta in deltas}
    wanted = [(plan, *pair) for pair in pairs] + [(run, *pair) for pair in single for run in plan.runs]
    refused = [(epsilon, delta) for one, epsilon, delta in wanted if not certifies(one, epsilon, delta)]
    yield from (f"({epsilon}, {delta}) is not certified: {text[:60]}" for epsilon, delta in refused)
