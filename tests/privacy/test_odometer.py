"""What was spent is no promise to someone who stops when it suits, and the limit is: both computed, not sampled.

An attacker who wants to tell two neighbouring tables apart makes fits, looks at each release, and stops when it tells
much for what the ledger prints by then. After releases with privacy loss l a promise of ε falls short by
(1 − e^(ε − l))₊, and an (ε, δ) that may depend on what was released is kept only if that is at most δ in the mean.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from dpadmm.privacy import profiles
from dpadmm.privacy.budget import Budget
from dpadmm.privacy.ledger.charge import SLACK_SHARE, Charge, judged_epsilon, total_epsilon

DELTA = 1e-5


def shortfall(epsilon: float, loss: NDArray[np.float64]) -> NDArray[np.float64]:
    """By how much a promise of ε falls short of outcomes with these privacy losses."""
    return np.maximum(-np.expm1(np.minimum(epsilon - loss, 0.0)), 0.0)


def two_fits(first: float, second: float, printed: tuple[float, float]) -> float:
    """Mean shortfall of the best rule for stopping after one of two Gaussian fits, where these ε are printed."""
    x, step = np.linspace(first - 12.0, first + 12.0, 100_001, retstep=True)
    loss = first * x - first**2 / 2.0
    density = np.exp(-((x - first) ** 2) / 2.0) / math.sqrt(2.0 * math.pi)
    going_on = profiles.gaussian(second, printed[1] - loss)
    return float(np.sum(density * np.maximum(shortfall(printed[0], loss), going_on)) * step)


def many_fits(shift: float, printed: list[float]) -> float:
    """The same for as many equal fits as there are printed ε, by going backwards from the last."""
    reach = 2.0 * max(printed) + 14.0 * shift * math.sqrt(len(printed))
    loss = np.linspace(-reach, reach, 8001)
    nodes = np.linspace(-9.0, 9.0, 241)
    weights = np.exp(-(nodes**2) / 2.0)
    value = shortfall(printed[-1], loss)
    for epsilon in [*printed[-2::-1], math.inf]:
        moved = [np.interp(loss + shift**2 / 2.0 + shift * node, loss, value) for node in nodes]
        value = np.maximum(shortfall(epsilon, loss), weights @ np.array(moved) / weights.sum())
    return float(np.interp(0.0, loss, value))


def spent(shifts: list[float]) -> list[float]:
    """What a ledger prints after each of these fits."""
    return [total_epsilon([Charge(shift) for shift in shifts[: count + 1]], DELTA) for count in range(len(shifts))]


@pytest.mark.parametrize(("first", "second", "times"), [(0.1, 0.1, 1.75), (0.3, 0.3, 1.8), (0.3, 3.0, 1.95)])
def test_two_fits_and_a_choice_when_to_stop_break_what_was_spent(first: float, second: float, times: float) -> None:
    assert two_fits(first, second, tuple(spent([first, second]))) > times * DELTA  # type: ignore[arg-type]


def test_every_further_fit_breaks_it_more() -> None:
    games = [many_fits(0.1, spent([0.1] * count)) / DELTA for count in (1, 2, 5, 10, 20)]
    assert games == sorted(games)
    assert games[0] == pytest.approx(1.0, rel=0.02)
    assert games[1] == pytest.approx(two_fits(0.1, 0.1, tuple(spent([0.1, 0.1]))) / DELTA, rel=0.02)  # type: ignore[arg-type]
    assert games[-1] > 6.0


def test_fixed_in_advance_the_total_holds() -> None:
    """Without the choice it is the exact composition."""
    for first, second in ((0.1, 0.1), (0.3, 3.0)):
        total = spent([first, second])[1]
        assert two_fits(first, second, (math.inf, total)) == pytest.approx(DELTA, rel=1e-4)


@pytest.mark.parametrize(("first", "second"), [(0.1, 0.1), (0.3, 0.3), (0.3, 3.0)])
def test_the_limit_holds_whenever_one_stops(first: float, second: float) -> None:
    """The filter allows these fits under this limit; its ε does not depend on the transcript."""
    limit = Budget(judged_epsilon([Charge(first), Charge(second)], Budget(1.0, DELTA)), DELTA)
    assert two_fits(first, second, (limit.epsilon, limit.epsilon)) <= (1.0 - SLACK_SHARE) * DELTA * (1.0 + 1e-4)


def test_the_limit_holds_for_twenty_fits_too() -> None:
    fits = [Charge(0.1)] * 20
    limit = judged_epsilon(fits, Budget(1.0, DELTA))
    assert many_fits(0.1, [limit] * 20) <= DELTA
