"""Verdicts: two standard errors a point, then shares of points."""

from __future__ import annotations

import pytest

from dpadmm.reproduce import Better, PaperClaim, find_exhibit
from dpadmm.reproduce.verdicts import (
    CONFIRMED,
    NOT_CONFIRMED,
    ONLY_MISTUNED,
    PART_CONFIRMED,
    TOO_FEW,
    Measurements,
    Point,
    Tally,
    behind,
    judge,
    tally,
)
from tests.unit.reproduce.test_campaign import TOY

UP = Better("steep", "flat", "value")


def measured(values):
    """Measurements of the toy by {curve: {x: values over seeds}}, the same in both panels."""
    cells = [
        {"panel": panel, "curve": curve, "x": x, "seed": seed, "values": {"value": value}}
        for panel in ("left", "right")
        for curve, line in values.items()
        for x, seeds in line.items()
        for seed, value in enumerate(seeds)
    ]
    return Measurements(find_exhibit(TOY), cells)


def test_a_point_has_a_mean_a_standard_error_and_what_failed():
    point = Point.of([1.0, 3.0, None])
    assert point is not None
    assert (point.mean, point.error, point.seeds, point.failed) == (2.0, pytest.approx(1.0), 2, 1)
    assert Point.of([None]) is None


def test_wins_ties_and_losses():
    found = measured(
        {
            "steep": {1.0: [5.0, 5.1], 2.0: [1.0, 3.0], 3.0: [0.0, 0.1]},
            "flat": {1.0: [1.0, 1.1], 2.0: [1.5, 2.6], 3.0: [4.0, 4.1]},
        }
    )
    assert tally(found, UP) == Tally(2, 2, 2)


@pytest.mark.parametrize(
    ("counts", "verdict"),
    [
        ((10, 0, 0), CONFIRMED),
        ((5, 5, 0), CONFIRMED),
        ((9, 0, 1), CONFIRMED),
        ((8, 0, 2), PART_CONFIRMED),
        ((4, 6, 0), PART_CONFIRMED),
        ((2, 6, 2), NOT_CONFIRMED),
        ((0, 10, 0), NOT_CONFIRMED),
        ((0, 0, 0), TOO_FEW),
    ],
)
def test_the_rule(counts, verdict):
    assert Tally(*counts).verdict == verdict


def test_a_claim_that_fails_with_steps_of_its_own_is_one_about_the_step():
    better = {1.0: [2.0, 2.01], 2.0: [2.0, 2.01]}
    worse = {1.0: [1.0, 1.01], 2.0: [1.0, 1.01]}
    found = measured({"steep": better, "flat": worse})
    reverse = Better("flat", "steep", "value")
    assert judge(found, PaperClaim("", UP, reverse)).verdict == ONLY_MISTUNED
    assert judge(found, PaperClaim("", UP, UP)).verdict == CONFIRMED
    assert judge(found, PaperClaim("", reverse, UP)).verdict == CONFIRMED
    assert judge(found, PaperClaim("", reverse)).verdict == NOT_CONFIRMED


def test_one_seed_decides_nothing():
    assert tally(measured({"steep": {1.0: [5.0]}, "flat": {1.0: [1.0, 1.1]}}), UP) == Tally(0, 0, 0)


def test_exceptions_are_named():
    found = measured({"steep": {1.0: [1.0, 1.01]}, "flat": {1.0: [2.0, 2.01]}})
    points, exceptions = behind(found, "value")
    assert points == 2
    assert [text.partition("flat")[0] for text in exceptions] == ["left, ε = 1: ", "right, ε = 1: "]


def test_a_gap_is_above_the_minimum_of_the_same_seed_where_there_is_one():
    exhibit = find_exhibit("liu2022-fig4")
    metric = exhibit.metrics[0]
    title = exhibit.panels[0].title
    cells = [
        {"panel": title, "curve": "auto", "x": 1.0, "seed": 3, "values": {"objective": 0.5}},
        {"panel": title, "curve": metric.above, "x": 0.05, "seed": 0, "values": {"objective": 0.2}},
    ]
    assert Measurements(exhibit, cells).line(title, "auto", metric)[1.0].mean == pytest.approx(0.3)
    cells.append({"panel": title, "curve": metric.above, "x": 0.05, "seed": 3, "values": {"objective": 0.4}})
    assert Measurements(exhibit, cells).line(title, "auto", metric)[1.0].mean == pytest.approx(0.1)
