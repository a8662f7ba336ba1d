"""Every public parameter of everything public, given what no one should: the library's own refusal, at once."""

from __future__ import annotations

import inspect
import random
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest

from dpadmm import (
    Budget,
    DPLinearRegression,
    DPLinearSVC,
    DPLogisticRegression,
    DPSearchCV,
    LaplacianBlur,
    PrivateGraph,
    PrivateQuantileClipper,
    PrivateSecondMoment,
)
from dpadmm.cli.app import run
from dpadmm.errors import DpadmmError, InvalidParameter
from dpadmm.problem.smoothers import RingLaplacian

from .campaign import Campaign

PARAMETERS = Campaign(
    room="parameters",
    attack="arrays, huge integers, NaN, texts, sets and other wrong values for every parameter of every public class",
    before="raw tracebacks (OverflowError, TypeError, ValueError of NumPy), and steps=2^63 that never end",
    sample=250,
    full=4000,
)
OPTIONS = Campaign(
    room="parameters",
    attack="wrong values for every option of `dpadmm plan`",
    before="tracebacks and commands that never end",
    sample=30,
    full=300,
)
SOON = 1.0
"""Seconds of processor time until a refusal."""

HUGE = "9" * 5000
NASTY: tuple[Any, ...] = (
    None, True, False, 0, -1, 2, 2**63, -(2**63), 10**400, 10**5000, 0.5, 0.0, -0.0, 1e-320, 1e308,
    float("nan"), float("inf"), -float("inf"), 1j, "", "x", "nan", "1", "\x00", "x" * 100_000, b"1",
    np.float32(0.5), np.float64("nan"), np.int8(-1), np.bool_(True), np.array(1.0), np.array([1.0, 2.0]),
    np.zeros((2, 2)), np.array(["a"], dtype=object), [], [None], ["a", "b"], [[]], (), (1, 2, 3), {}, {"a": 1}, {1},
    set(), range(3), object, object(), len, Ellipsis, Exception("x"), [float("nan"), 1.0], ([0.0, 0.0, 0.0], 1.0),
    (1.0, -1.0), ("a", "b"), (None, None), ([1.0], [2.0, 3.0]), [(0, 1)], [(0, 10**9)], {"steps": 3}, {"beta": "x"},
)  # fmt: skip


def table() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (200, 3))
    return X, (X[:, 0] > 0).astype(int)


X, Y = table()


def model(**more: Any) -> Any:
    return DPLogisticRegression(**{"epsilon": 1.0, "delta": 1e-4, "classes": [0, 1], "random_state": 0, **more})


def fitted(kind: Callable[..., Any], **usual: Any) -> Callable[..., Any]:
    return lambda **given: kind(**{**usual, **given}).fit(X, Y)


def uses() -> dict[str, tuple[Callable[..., Any], list[str]]]:
    """What is called with one wrong value, and the parameters that may get it."""
    usual: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-4, "random_state": 0}
    found: dict[str, tuple[Callable[..., Any], list[str]]] = {}

    def add(name: str, call: Callable[..., Any], of: Callable[..., Any], *left_out: str) -> None:
        names = [each for each in inspect.signature(of).parameters if each not in ("self", *left_out)]
        found[name] = call, names

    for solver in ("auto", "full-admm", "dp-sadmm", "dp-vradmm", "noisy-admm"):
        add(f"logistic, {solver}", fitted(DPLogisticRegression, **usual, solver=solver), DPLogisticRegression)
    for penalty in ("l1", "elasticnet", "group", "graph", "scad"):
        given: dict[str, Any] = {"penalty": penalty, "groups": [0, 0, 1], "graph": [(0, 1)]}
        add(f"logistic, {penalty}", fitted(DPLogisticRegression, **usual, **given), DPLogisticRegression)
    add("exact", fitted(DPLogisticRegression, **usual, arithmetic="exact"), DPLogisticRegression)
    add("svm", fitted(DPLinearSVC, **usual), DPLinearSVC)
    add("regression", fitted(DPLinearRegression, **usual), DPLinearRegression)
    clipper = {"bounds": (-1, 1), "epsilon": 1.0, "delta": 1e-4, "random_state": 0}
    add("clipper", fitted(PrivateQuantileClipper, **clipper), PrivateQuantileClipper)
    add("scaler", fitted(PrivateSecondMoment, **clipper), PrivateSecondMoment)
    add("graph", fitted(PrivateGraph, **usual), PrivateGraph)
    add("blur", fitted(LaplacianBlur, smoother=RingLaplacian(1.0)), LaplacianBlur)
    search = {"estimator": model(), "param_space": {"alpha": [1e-3, 1e-2]}, "mean_trials": 2.0}
    add("search", fitted(DPSearchCV, **search), DPSearchCV)
    plan = DPSearchCV(**search)
    add("search.plan", lambda **given: plan.plan(**{"n_rows": 200, "n_features": 3, **given}), plan.plan)
    add("Budget", lambda **given: Budget(**{"epsilon": 1.0, "delta": 1e-4, **given}), Budget)
    add("fit", lambda **given: model().fit(**{"X": X, "y": Y, **given}), DPLogisticRegression.fit, "X", "y")
    return found


def wrong_end(call: Callable[[], Any]) -> str:
    """How a call ended, if it ended badly: other errors than the library's, or too late a refusal."""
    began = time.process_time()
    try:
        call()
    except DpadmmError as refusal:
        seconds = time.process_time() - began
        if len(str(refusal)) > 2000:
            return "a message of more than 2000 characters"
        return f"refused after {seconds:.1f} s" if seconds > SOON else ""
    except Exception as problem:
        return f"{type(problem).__name__}: {str(problem)[:120]}"
    return ""


def cases() -> Iterator[tuple[str, Callable[..., Any], str, Any]]:
    for use, (call, names) in uses().items():
        for name in names:
            for value in NASTY:
                yield use, call, name, value


def test_every_parameter_is_refused_in_the_librarys_words() -> None:
    everything = list(cases())
    random.Random(1).shuffle(everything)
    with PARAMETERS.begin() as tally:
        for number in tally.each():
            use, call, name, value = everything[number % len(everything)]
            wrong = wrong_end(partial(call, **{name: value}))
            if wrong:
                tally.defect(f"{use}: {name} of type {type(value).__name__}: {wrong}")


ONCE: tuple[tuple[str, Any], ...] = (
    ("epsilon", 10**400), ("steps", 2**63), ("delta", 10**5000), ("alpha", 10**400), ("batch_size", np.zeros(2)),
    ("solver_options", 3), ("groups", 1.5), ("sampler", []), ("row_norm", 10**400), ("smoothing", 10**400),
)  # fmt: skip


@pytest.mark.parametrize(("name", "value"), ONCE, ids=[name for name, _ in ONCE])
def test_what_once_ended_in_a_traceback_or_not_at_all(name: str, value: Any) -> None:
    more = {"penalty": "group"} if name == "groups" else {"solver": "full-admm"}
    began = time.process_time()
    with pytest.raises(InvalidParameter):
        model(**more, **{name: value}).fit(X, Y)
    assert time.process_time() - began < SOON


def test_a_table_in_place_of_a_number_is_not_quoted() -> None:
    with pytest.raises(InvalidParameter) as refusal:
        model(alpha=np.full((1, 3), 7431.5), penalty="l1").fit(X, Y)
    assert "7431" not in str(refusal.value)


def commands() -> list[list[str]]:
    """`dpadmm plan` with one wrong value for one option."""
    wrong = ["1e400", "9223372036854775808", HUGE[:4000], "nan", "inf", "-inf", "-1", "0", "x", "", "None", "1e-400"]
    options = ["--epsilon", "--delta", "--rows", "--features", "--classes", "--steps", "--batch-size", "--clip-norm"]
    options += ["--row-norm", "--smoothing", "--alpha", "--l1-ratio", "--relation", "--solver", "--sampler"]
    options += ["--penalty", "--accountant", "--arithmetic", "--model", "--private-graph"]
    usual = ["plan", "--rows", "1000", "--features", "4", "--epsilon", "1", "--delta", "1e-5", "--json"]
    return [[*usual, option, value] for option in options for value in wrong]


def test_every_option_is_refused_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    everything = commands()
    random.Random(1).shuffle(everything)
    with OPTIONS.begin() as tally:
        for number in tally.each():
            arguments = everything[number % len(everything)]
            began = time.process_time()
            code = run(arguments)
            seconds = time.process_time() - began
            if code not in (0, 2, 3) or "Traceback" in capsys.readouterr().err:
                tally.defect(f"{arguments[-2]} {arguments[-1][:20]}: exit code {code}")
            if code != 0 and seconds > SOON:
                tally.defect(f"{arguments[-2]} {arguments[-1][:20]}: refused after {seconds:.1f} s")
