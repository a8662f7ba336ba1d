"""Reports: escaped, self-contained, complete, and metrics that agree with scikit-learn."""

from __future__ import annotations

import dataclasses
import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import log_loss, r2_score, roc_auc_score

from dpadmm.errors import InvalidParameter
from dpadmm.estimators import DPLogisticRegression, DPSearchCV
from dpadmm.privacy.budget import Budget
from dpadmm.privacy.calibration import calibrate
from dpadmm.privacy.plan import Plan, Request
from dpadmm.privacy.questions import ClippedGradient
from dpadmm.privacy.sampling import Everything
from dpadmm.privacy.statement import PrivacyStatement
from dpadmm.privacy.wording.assumption_words import WORDS, Phrase
from dpadmm.report import (
    REPORT_FILES,
    Coefficients,
    Report,
    Spending,
    classification_metrics,
    regression_metrics,
    spending_picture,
    write_report,
)
from dpadmm.report.page import report_page
from dpadmm.report.picture import MOST_FEATURES, coefficient_picture
from dpadmm.report.spending import time_span

PNG = b"\x89PNG\r\n\x1a\n"


def plan() -> Plan:
    return calibrate(Budget(1.0, 1e-5), [Request("gradient", 10, ClippedGradient(1.0))], Everything(), 1000)


def report(names: tuple[str, ...] = ("age", "<b>$x^2$</b>", "=cmd()"), seeded: bool = False) -> Report:
    statement = PrivacyStatement.of(plan(), "full-admm", ("rows-public",), seeded)
    values = np.linspace(-1, 1, len(names))[None, :]
    coefficients = Coefficients(names, ("score",), values, np.array([0.5]))
    return Report("A <title>", "sub & title", (("accuracy", "97 %"),), statement, plan(), coefficients, "log-odds")


def test_folder_holds_every_file(tmp_path: Path) -> None:
    write_report(tmp_path, report())
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(REPORT_FILES)
    stored = json.loads((tmp_path / "plan.json").read_text())
    assert Plan.from_dict(stored) == plan()
    assert stored["digest"] == plan().digest
    assert json.loads((tmp_path / "statement.json").read_text())["epsilon"] == 1.0
    assert (tmp_path / "statement.txt").read_text().startswith("This model is (1, 1e-05)-differentially private")
    lines = (tmp_path / "coefficients.csv").read_text().splitlines()
    assert lines[0] == "feature,coefficient before row scaling"
    assert lines[-1] == "(intercept),0.5"
    assert (tmp_path / "coefficients.png").read_bytes().startswith(PNG)
    assert (tmp_path / "report.html").stat().st_size < 300_000


def test_page_is_escaped_and_needs_nothing_from_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(WORDS, "rows-public", Phrase("the sky is <blue>"))
    page = report_page(report(), PNG)
    assert "A &lt;title&gt;" in page
    assert "sub &amp; title" in page
    assert "The sky is &lt;blue&gt;." in page
    assert "<b>" not in page
    assert "<script" not in page
    assert re.findall(r'(?:src|href)="(?!data:)', page) == []
    assert "http" not in page.replace("http-equiv", "")
    assert "97 %" in page
    assert "$" not in re.sub(r"\$x\^2\$", "", page)


def test_only_a_seeded_report_warns() -> None:
    assert "NOT private" not in report_page(report(), PNG)
    assert 'class="warning"' in report_page(report(seeded=True), PNG)


@pytest.mark.parametrize("size", [1, 3, 80])
def test_picture_of_one_output(size: int) -> None:
    table = Coefficients(tuple(f"f{i}" for i in range(size)), ("s",), np.ones((1, size)), np.zeros(1))
    assert coefficient_picture(table, "log-odds", relevant={0}).startswith(PNG)
    assert len(table.largest(MOST_FEATURES)) == min(size, MOST_FEATURES)


def test_picture_of_several_outputs_and_of_nothing() -> None:
    names = ("a", "b" * 80)
    several = Coefficients(names, tuple("uvwxyz"), np.arange(12.0).reshape(6, 2), np.zeros(6))
    assert coefficient_picture(several, "log-odds").startswith(PNG)
    nothing = Coefficients(names, ("s",), np.zeros((1, 2)), np.zeros(1))
    assert coefficient_picture(nothing, "log-odds").startswith(PNG)
    assert nothing.largest(5).size == 0


def test_coefficients_of_another_shape_are_refused() -> None:
    with pytest.raises(InvalidParameter):
        Coefficients(("a", "b"), ("s",), np.zeros((1, 3)), np.zeros(1))


def test_csv_of_several_outputs_is_quoted() -> None:
    table = Coefficients(('a,"b"', "c"), ("u", "v"), np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([5.0, 6.0]))
    head = "feature,coefficient before row scaling for u,coefficient before row scaling for v\n"
    assert table.to_csv() == head + '"a,""b""",1.0,3.0\nc,2.0,4.0\n(intercept),5.0,6.0\n'


def test_standard_errors_are_shown_and_explained() -> None:
    errors = np.array([[0.5, 0.25]])
    table = Coefficients(("a", "b"), ("s",), np.array([[1.0, 2.0]]), np.array([3.0]), errors, np.array([0.125]))
    head = "feature,coefficient before row scaling,noise std\n"
    assert table.to_csv() == head + "a,1.0,0.5\nb,2.0,0.25\n(intercept),3.0,0.125\n"
    page = report_page(dataclasses.replace(report(), coefficients=table), PNG)
    assert "<td>0.125</td>" in page
    assert "rows held fixed" in page
    assert "rows held fixed" not in report_page(report(), PNG)
    plain = Coefficients(("a", "b"), ("s",), table.values, table.intercepts)
    assert coefficient_picture(table, "log-odds") != coefficient_picture(plain, "log-odds")
    several = Coefficients(("a",), ("u", "v"), np.ones((2, 1)), np.ones(2), np.ones((2, 1)), np.ones(2))
    assert several.head[3:] == ("noise std for u", "noise std for v")
    with pytest.raises(InvalidParameter):
        Coefficients(("a", "b"), ("s",), table.values, table.intercepts, np.ones((1, 3)), np.ones(1))


def test_the_rows_of_a_search_are_those_of_its_parts() -> None:
    search = DPSearchCV(DPLogisticRegression(1.0, 1e-5, solver="dp-gd", steps=3), {"penalty": ["none", "l2"]})
    page = report_page(dataclasses.replace(report(), plan=search.plan(4000, 3)), PNG)
    assert "<td>all training rows</td>" in page
    assert "<td>all scoring rows</td>" in page
    assert "<td>all rows</td>" not in page
    assert "<td>all rows</td>" in report_page(report(), PNG)


@pytest.mark.parametrize("minutes", [(0.0,), (0.0, 0.2), (0.0, 3.0, 40.0), (0.0, 6e4)])
def test_the_time_axis_shows_what_was_charged(minutes: tuple[float, ...]) -> None:
    start = datetime(2026, 1, 1, tzinfo=UTC)
    times = [start + timedelta(minutes=each) for each in minutes]
    left, right = time_span(times, times[-1] + timedelta(seconds=2))
    places = [(time - left) / (right - left) for time in times]
    assert min(places) >= 0.05
    assert max(places) <= 0.95
    assert len(places) == 1 or max(places) - min(places) > 0.1
    assert spending_picture([Spending("census", 1.0, times, [0.1] * len(times))], times[-1]).startswith(PNG)


def test_classification_metrics_agree_with_scikit_learn() -> None:
    rng = np.random.default_rng(0)
    classes = np.array(["x", "a", "m"])
    y = classes[rng.integers(0, 3, 200)]
    scores = rng.normal(size=(200, 3)) + 2 * (y[:, None] == classes)
    proba = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    found = classification_metrics(y, classes, classes[scores.argmax(axis=1)], scores, proba)
    order = np.argsort(classes)
    assert found["auc"] == pytest.approx(roc_auc_score(y, proba[:, order], multi_class="ovr"))
    assert found["log_loss"] == pytest.approx(log_loss(y, proba[:, order]))
    assert found["accuracy"] == np.mean(classes[scores.argmax(axis=1)] == y)


def test_undefined_metrics_are_none() -> None:
    y, classes = np.array([1, 1]), np.array([0, 1])
    found = classification_metrics(y, classes, y, np.array([0.3, 2.0]), None)
    assert (found["auc"], found["log_loss"], found["accuracy"]) == (None, None, 1.0)
    assert regression_metrics(np.ones(3), np.zeros(3))["r2"] is None


def test_regression_metrics_agree_with_scikit_learn() -> None:
    rng = np.random.default_rng(0)
    y, predicted = rng.normal(size=50), rng.normal(size=50)
    found = regression_metrics(y, predicted)
    assert found["r2"] == pytest.approx(r2_score(y, predicted))
    assert found["mean_absolute_error"] == pytest.approx(np.mean(np.abs(y - predicted)))
