"""The promise in short: it hides no assumption, and is short."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dpadmm import DPLogisticRegression, DPSearchCV
from dpadmm.cli.promise_in_short import promise_pairs
from dpadmm.privacy.facts import Outlook
from dpadmm.privacy.statement import PrivacyStatement
from dpadmm.privacy.wording.assumption_words import WORDS

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y = (X[:, 0] > 0).astype(int)


def statement(**options: object) -> PrivacyStatement:
    return DPLogisticRegression(1.0, 1e-5, classes=[0, 1], solver="full-admm", steps=2, **options).fit(X, Y).privacy_


def lines(promised: PrivacyStatement) -> dict[str, str]:
    return dict(promise_pairs(promised, Path("model"), "census"))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "the number of rows is public"),
        ({"relation": "add-remove"}, "the number of rows was treated as public"),
        ({"relation": "add-remove", "n_rows": 60}, "the nominal row count n_rows was declared from public knowledge"),
    ],
)
def test_what_is_assumed_of_the_row_count_is_said(options: dict[str, object], words: str) -> None:
    assert words in lines(statement(**options))["assumes"]


def test_every_assumption_is_named_in_short() -> None:
    promised = statement(relation="add-remove")
    short = lines(promised)["assumes"].split("; ")
    assert len(short) == len(promised.assumptions)
    for part, whole in zip(short, promised.assumptions, strict=True):
        assert part in whole


@pytest.mark.parametrize("key", WORDS)
def test_what_is_short_is_short(key: str) -> None:
    assert len(WORDS[key].what) < 140


def test_unit_and_further_fits_are_said() -> None:
    assert "one row" in lines(statement())["unit"]
    assert "several rows is protected less" in lines(statement())["unit"]
    assert "every further fit on these rows costs again" in lines(statement())["unit"]


def test_what_a_search_learned_stays_an_exception() -> None:
    model = DPLogisticRegression(5.0, 1e-5, classes=[0, 1], solver="full-admm", steps=2)
    search = DPSearchCV(model, {"penalty": ["none", "l2"]}, mean_trials=2).fit(X, Y)
    assert "penalties, but for what these queries learned, were chosen" in lines(search.privacy_)["assumes"]


def test_it_takes_six_lines_at_most() -> None:
    made = statement()
    promised = replace(made, facts=replace(made.facts, outlook=Outlook(1.0, 8.0)))
    assert list(lines(promised)) == ["promise", "unit", "assumes", "warning", "charged to", "statement"]
