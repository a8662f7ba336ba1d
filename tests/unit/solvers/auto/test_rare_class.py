"""Labels nearly all of which are alike: margins of a strong signal are lengthened, and no prior is widened for them."""

from __future__ import annotations

import numpy as np
import pytest

from dpadmm import DPLinearSVC, DPLogisticRegression
from dpadmm.solvers.auto import solver
from dpadmm.solvers.auto.coordinates import Coordinates
from dpadmm.solvers.auto.rare_class import (
    COMMON_LENGTHENED,
    SIGNAL_LENGTHENED,
    follows_mean_row,
    lengthening,
    likeness,
    mean_label,
    usual_prior,
)

D = 20


def mean_row() -> np.ndarray:
    row = np.linspace(1.0, 3.0, D)
    return row / np.linalg.norm(row)


def coordinates_of(mass: float = 0.5, direction: np.ndarray | None = None) -> Coordinates:
    direction = mean_row() if direction is None else direction
    return Coordinates.whiten(mass * np.outer(direction, direction) + (1 - mass) / D * np.eye(D), 1.0)


def correlation_of(label: float, coordinates: Coordinates) -> np.ndarray:
    """Of rows whose labels have this mean and nothing else to do with them."""
    return label * np.sqrt(coordinates.eigenvalues[-1]) * mean_row()


def strong(coordinates: Coordinates, deviation: float) -> np.ndarray:
    """A model whose signal has margins of this standard deviation."""
    z = np.ones(D)
    return z * deviation / np.sqrt(float(coordinates.energy[:-1].sum()))


@pytest.mark.parametrize(("label", "expected"), [(0.0, 0.0), (-0.8, 0.0), (-0.866, 0.5), (-0.98, 1.0), (0.98, 1.0)])
def test_labels_are_alike_as_their_mean_says(label, expected):
    coordinates = coordinates_of()
    correlation = correlation_of(label, coordinates)
    assert mean_label(correlation, coordinates) ** 2 == pytest.approx(label**2)
    assert likeness(correlation, coordinates) == pytest.approx(expected, abs=0.01)


@pytest.mark.parametrize(("mass", "direction"), [(0.04, None), (0.5, np.full(D, D**-0.5))])
def test_nothing_is_told_of_labels_without_the_direction_of_the_mean_row(mass, direction):
    coordinates = coordinates_of(mass, direction)
    assert not follows_mean_row(coordinates)
    assert likeness(correlation_of(-0.98, coordinates), coordinates) == 0.0


def test_a_strong_signal_is_lengthened_more_than_the_common_direction():
    coordinates = coordinates_of()
    factors = lengthening(1.0, strong(coordinates, 2.5), coordinates)
    assert factors[-1] == pytest.approx(COMMON_LENGTHENED)
    assert factors[:-1] == pytest.approx(SIGNAL_LENGTHENED)


@pytest.mark.parametrize(("alike", "deviation"), [(1.0, 1.4), (0.0, 2.5)])
def test_a_weak_signal_and_mixed_labels_are_left_alone(alike, deviation):
    coordinates = coordinates_of()
    assert np.all(lengthening(alike, strong(coordinates, deviation), coordinates) == 1.0)


def rare_class(share: float) -> tuple[np.ndarray, np.ndarray]:
    """The rows furthest out along some direction."""
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(20_000, 8)) ** 2
    score = X @ np.array([3.0, 2.0, 1.0, 1.0, -1.0, -1.0, -2.0, -3.0])
    return X, np.where(score > np.quantile(score, 1 - share), 1, 0)


def weights(share: float, monkeypatch, told: float | None = None, **choices) -> np.ndarray:
    X, y = rare_class(share)
    with monkeypatch.context() as patch:
        if told is not None:
            patch.setattr(solver, "likeness", lambda correlation, coordinates: told)
        return DPLogisticRegression(3.0, 1e-6, random_state=0, **choices).fit(X, y).weights_


def test_a_fit_of_a_rare_class_has_longer_margins(monkeypatch):
    longer, plain = weights(0.02, monkeypatch), weights(0.02, monkeypatch, told=0.0)
    assert 1.2 < np.linalg.norm(longer) / np.linalg.norm(plain) < 1.4


@pytest.mark.parametrize(
    ("share", "choices"),
    [(0.4, {}), (0.02, {"penalty": "l2", "alpha": 1e-3}), (0.02, {"row_norm": 10.0}), (0.02, {"fit_intercept": False})],
)
def test_other_fits_have_not(share, choices, monkeypatch):
    found, plain = weights(share, monkeypatch, **choices), weights(share, monkeypatch, told=0.0, **choices)
    assert np.array_equal(found, plain)


@pytest.mark.parametrize(
    ("scale", "alike", "expected"),
    [(5.0, 0.0, 5.0), (5.0, 1.0, 3.0), (5.0, 0.5, 4.0), (3.0, 1.0, 3.0), (2.0, 1.0, 2.0)],
)
def test_the_prior_is_widened_as_far_as_labels_are_mixed(scale, alike, expected):
    assert usual_prior(scale, 3.0, alike) == expected


@pytest.mark.parametrize(("told", "narrower"), [(1.0, True), (0.0, False)])
def test_under_strong_noise_alike_labels_keep_the_usual_prior(told, narrower, monkeypatch):
    X, y = rare_class(0.02)
    model = DPLogisticRegression(0.002, 1e-6, random_state=0)
    monkeypatch.setattr(solver, "likeness", lambda correlation, coordinates: told)
    monkeypatch.setattr(solver, "lengthening", lambda likeness, z, coordinates: np.ones(len(z)))
    usual = model.fit(X, y).weights_
    monkeypatch.setattr(solver, "usual_prior", lambda prior_scale, alike_prior_scale, likeness: prior_scale)
    widened = model.fit(X, y).weights_
    assert (np.linalg.norm(usual) < np.linalg.norm(widened)) == narrower


def test_a_hinge_is_not_lengthened_and_has_a_narrower_prior_where_labels_are_alike(monkeypatch):
    X, y = rare_class(0.02)
    seen = []

    def noted(alike, z, coordinates):
        seen.append(alike)
        return np.ones(len(z))

    def fitted(told: float) -> float:
        monkeypatch.setattr(solver, "likeness", lambda correlation, coordinates: told)
        return float(np.linalg.norm(DPLinearSVC(0.05, 1e-6, random_state=0).fit(X, y).weights_))

    monkeypatch.setattr(solver, "lengthening", noted)
    assert fitted(1.0) < fitted(0.0)
    assert set(seen) == {0.0}
