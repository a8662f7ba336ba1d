"""Labels that do not depend on the features: `auto` must not guess, and must not doubt what it can see."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from dpadmm import DPLogisticRegression
from dpadmm.solvers.auto.coordinates import Coordinates
from dpadmm.solvers.auto.doubt import CONVINCING, LEAST_TRUST, REASSURING, agreement, beyond_noise, reassured, trust
from dpadmm.solvers.auto.fusion import Evidence
from dpadmm.solvers.auto.rules import LossModel, choose_rules

D, NOISE, DOUBT = 60, 0.01, 1.5


def mean_row() -> np.ndarray:
    row = np.linspace(1.0, 3.0, D)
    return row / np.linalg.norm(row)


def coordinates_of(mass: float, direction: np.ndarray) -> Coordinates:
    moment = mass * np.outer(direction, direction) + (1 - mass) / D * np.eye(D)
    return Coordinates.whiten(moment, 1.0)


def released(rng: np.random.Generator, mean_label: float, signal: float) -> np.ndarray:
    away = rng.standard_normal(D)
    away -= mean_row() * (mean_row() @ away)
    shape = math.sqrt(0.5) * mean_label * mean_row() + signal * away / np.linalg.norm(away)
    return shape + NOISE * rng.standard_normal(D)


def trusts(mean_label: float, signal: float, mass: float = 0.5, direction: np.ndarray | None = None) -> np.ndarray:
    rng = np.random.default_rng(0)
    coordinates = coordinates_of(mass, mean_row() if direction is None else direction)
    return np.array([trust(released(rng, mean_label, signal), coordinates, NOISE, 0.0, DOUBT) for _ in range(200)])


def test_eigenvalues_are_those_of_the_model():
    coordinates = Coordinates.whiten(np.diag([0.1, 0.3, 0.6]), 2.0)
    assert coordinates.eigenvalues == pytest.approx([0.1, 0.3, 0.6])


def test_noise_alone_is_centred_at_zero_with_unit_spread():
    rng, values = np.random.default_rng(1), np.linspace(0.5, 1.0, D)
    found = [beyond_noise(NOISE * rng.standard_normal(D), values, NOISE) for _ in range(2000)]
    assert abs(np.mean(found)) < 0.1
    assert np.std(found) == pytest.approx(1.0, abs=0.1)


def test_labels_without_signal_are_mistrusted_and_a_signal_is_not():
    without, with_signal = trusts(-0.5, 0.0), trusts(-0.5, 20 * NOISE)
    assert without.mean() < 0.65
    assert without.min() == pytest.approx(LEAST_TRUST)
    assert np.all(with_signal == 1.0)


def test_independent_noise_agrees_by_a_standard_normal_and_a_shared_signal_by_more():
    rng, coordinates = np.random.default_rng(3), coordinates_of(0.5, mean_row())
    signal = rng.standard_normal(D)

    def found(size: float) -> float:
        first, later = (
            Evidence(noise * (size * signal + rng.standard_normal(D)), np.full(D, noise**2)) for noise in (0.1, 0.02)
        )
        return agreement(first, later, coordinates)

    alone, shared = [found(0.0) for _ in range(2000)], [found(2.0) for _ in range(50)]
    assert abs(np.mean(alone)) < 0.1
    assert np.std(alone) == pytest.approx(1.0, abs=0.1)
    assert np.min(shared) > CONVINCING


def test_the_direction_of_the_mean_row_says_nothing_about_a_signal():
    coordinates = coordinates_of(0.5, mean_row())
    along_the_top = Evidence(np.append(np.zeros(D - 1), 50.0), np.ones(D))
    assert agreement(along_the_top, along_the_top, coordinates) == 0.0


def test_gradients_lift_doubt_and_never_raise_it():
    assert reassured(0.25, -30.0) == reassured(0.25, REASSURING) == 0.25
    assert reassured(0.25, (REASSURING + CONVINCING) / 2) == pytest.approx(0.625)
    assert reassured(0.25, CONVINCING) == reassured(0.25, 300.0) == 1.0


def test_an_uncertain_direction_explains_more():
    """The tilt of a noisy top direction turns a mean label into what looks like signal."""
    coordinates, rng = coordinates_of(0.5, mean_row()), np.random.default_rng(2)
    seen = released(rng, -0.5, 9 * NOISE)
    assert trust(seen, coordinates, NOISE, 0.0, DOUBT) == 1.0
    assert trust(seen, coordinates, NOISE, 0.05, DOUBT) < 1.0


@pytest.mark.parametrize(
    ("mean_label", "mass", "direction"),
    [
        pytest.param(0.0, 0.5, None, id="balanced classes"),
        pytest.param(-0.5, 0.05, None, id="no common direction"),
        pytest.param(-0.5, 0.5, np.full(D, D**-0.5), id="only the public direction"),
    ],
)
def test_nothing_is_doubted_where_the_commonest_class_would_not_do_better_or_cannot_be_told(
    mean_label, mass, direction
):
    assert trusts(mean_label, 0.0, mass, direction).mean() > 0.99


def test_doubt_follows_public_numbers():
    logistic, regression = LossModel(0.5, 0.25, calibrated=True), LossModel(1.0, 1.0, exact=True)
    assert choose_rules(1000.0, 100, 2, logistic).doubt == pytest.approx(1.5)
    assert choose_rules(100.0, 100, 2, logistic).doubt < -4
    assert choose_rules(1000.0, 100, 2, regression).doubt is None


@pytest.mark.parametrize("choice", [{"fit_intercept": False}, {"row_norm": 10.0}])
def test_rows_shorter_than_declared_and_models_without_intercept_are_not_doubted(choice, monkeypatch):
    def asked(*_: object) -> float:
        raise AssertionError("doubted")

    monkeypatch.setattr("dpadmm.solvers.auto.solver.trust", asked)
    X, y = np.eye(5)[np.arange(500) % 5], np.arange(500) % 4 == 0
    with pytest.raises(AssertionError, match="doubted"):
        DPLogisticRegression(1.0, 1e-6, classes=[False, True], random_state=0).fit(X, y)
    DPLogisticRegression(1.0, 1e-6, classes=[False, True], random_state=0, **choice).fit(X, y)


def score_beyond_the_commonest_class(seed: int, chance: Callable[[np.ndarray], np.ndarray]) -> float:
    """Twenty features of three categories, nμ about 180."""
    rng = np.random.default_rng(seed)
    X = np.concatenate([np.eye(3)[rng.integers(0, 3, 16_000)] for _ in range(20)], axis=1)
    y = (rng.random(16_000) < chance(X)).astype(int)
    model = DPLogisticRegression(0.1, 1e-6, classes=[0, 1], random_state=seed).fit(X[:8000], y[:8000])
    share = float(y[8000:].mean())
    return model.score(X[8000:], y[8000:]) - max(share, 1 - share)


def test_labels_without_signal_are_predicted_nearly_as_well_as_by_the_commonest_class():
    """Without doubt 0.005 of accuracy are lost."""
    lost = [-score_beyond_the_commonest_class(seed, lambda X: np.full(len(X), 0.25)) for seed in range(12)]
    assert np.mean(lost) < 0.003


def test_a_signal_that_can_be_told_is_not_lost():
    found = [
        score_beyond_the_commonest_class(seed, lambda X: np.where(X[:, 0] + X[:, 20] > 0, 0.8, 0.05))
        for seed in range(12)
    ]
    assert np.mean(found) > 0.22


def score_of_a_rare_class(seed: int) -> float:
    """A fifth of the rows have five of ten marks; nμ about 200."""
    rng = np.random.default_rng(seed)
    X = np.concatenate([np.eye(3)[rng.integers(0, 3, 8000)] for _ in range(20)], axis=1)
    y = (X[:, 0:30:3].sum(axis=1) >= 5).astype(int)
    model = DPLogisticRegression(0.3, 1e-6, classes=[0, 1], random_state=seed).fit(X[:4000], y[:4000])
    return float(model.score(X[4000:], y[4000:]))


def test_gradients_find_a_signal_that_the_first_release_overlooks(monkeypatch):
    heard = [score_of_a_rare_class(seed) for seed in range(8)]
    monkeypatch.setattr("dpadmm.solvers.auto.solver.reassured", lambda trust, agreement: trust)
    unheard = [score_of_a_rare_class(seed) for seed in range(8)]
    assert np.mean(heard) > np.mean(unheard) + 0.008


def test_blank_coordinates_are_those_of_no_preferred_direction():
    blank, whitened = Coordinates.blank(4, 3.0), Coordinates.whiten(np.eye(4) / 4, 3.0)
    for name in ("energy", "scale", "prior", "matrix", "eigenvalues"):
        np.testing.assert_allclose(getattr(blank, name), getattr(whitened, name), rtol=1e-14)
