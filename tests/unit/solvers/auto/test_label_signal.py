"""Labels that do not depend on the features: `auto` must not guess, and must not doubt what it can see."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from dpadmm import DPLinearSVC, DPLogisticRegression
from dpadmm.problem.constraints import Constraint
from dpadmm.problem.losses import HuberisedHinge, Logistic
from dpadmm.problem.losses.base import Loss
from dpadmm.problem.problem import Problem
from dpadmm.problem.regularizers import L1, Zero
from dpadmm.problem.regularizers.base import Regularizer
from dpadmm.solvers.auto.coordinates import FLATTENING, Coordinates
from dpadmm.solvers.auto.gradient_evidence import Evidence
from dpadmm.solvers.auto.label_signal import (
    CONVINCING,
    EVEN_REASSURED_LATER,
    LEAST_TRUST,
    NO_DOUBT,
    REASSURING,
    UNGUESSED,
    Doubt,
    agreement,
    beyond_noise,
    doubted,
)
from dpadmm.solvers.auto.rules import (
    NO_WEAK_NOISE,
    WEAK_CAP,
    WEAK_CURVATURE,
    WEAK_FLATTENING,
    WEAK_NOISE,
    LossModel,
    Rules,
    choose_rules,
    for_weak_noise,
    loss_model,
)
from dpadmm.solvers.auto.solver import Auto
from dpadmm.solvers.base import Setting

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
    drawn = [released(rng, mean_label, signal) for _ in range(200)]
    return np.array([unheard(doubted(seen, coordinates, NOISE, 0.0, DOUBT)) for seen in drawn])


def unheard(doubt: Doubt) -> float:
    """The trust that is left before any gradient is heard, where margins along the top direction are longer."""
    return doubt.trust(0.0, 2.0, 1.0)


def test_eigenvalues_are_those_of_the_model():
    coordinates = Coordinates.whiten(np.diag([0.1, 0.3, 0.6]), 2.0)
    assert coordinates.eigenvalues == pytest.approx([0.1, 0.3, 0.6])


def test_noise_alone_is_centred_at_zero_with_unit_spread():
    rng, values = np.random.default_rng(1), np.linspace(0.5, 1.0, D)
    noise = np.full(D, NOISE**2)
    found = [beyond_noise(noise * rng.standard_normal(D) ** 2, values, noise) for _ in range(2000)]
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


def test_what_both_estimates_share_by_chance_is_no_agreement():
    rng, coordinates = np.random.default_rng(4), coordinates_of(0.5, mean_row())

    def found(chance: float) -> float:
        shared = rng.standard_normal(D)
        first, later = (Evidence(shared + noise * rng.standard_normal(D), np.full(D, noise**2)) for noise in (0.5, 0.3))
        return agreement(first, later, coordinates, chance)

    alone, unaware = [found(1.0) for _ in range(2000)], [found(0.0) for _ in range(50)]
    assert abs(np.mean(alone)) < 0.1
    assert np.std(alone) == pytest.approx(1.0, abs=0.1)
    assert np.min(unaware) > CONVINCING


def test_the_direction_of_the_mean_row_says_nothing_about_a_signal():
    coordinates = coordinates_of(0.5, mean_row())
    along_the_top = Evidence(np.append(np.zeros(D - 1), 50.0), np.ones(D))
    assert agreement(along_the_top, along_the_top, coordinates) == 0.0


def test_gradients_lift_doubt_and_never_raise_it():
    doubt = Doubt(uneven=1.0)
    assert doubt.trust(-30.0, 1.0, 1.0) == doubt.trust(REASSURING, 1.0, 1.0) == LEAST_TRUST
    assert doubt.trust((REASSURING + CONVINCING) / 2, 1.0, 1.0) == pytest.approx((1 + LEAST_TRUST) / 2)
    assert doubt.trust(CONVINCING, 1.0, 1.0) == doubt.trust(300.0, 1.0, 1.0) == 1.0


def test_doubted_margins_of_even_classes_are_shorter_than_that_of_the_common_direction():
    doubt = Doubt(even=1.0)
    assert doubt.trust(REASSURING + EVEN_REASSURED_LATER, 0.1, 2.0) * 2.0 == pytest.approx(UNGUESSED * 0.1)
    assert doubt.trust(CONVINCING + EVEN_REASSURED_LATER, 0.1, 2.0) == 1.0
    assert doubt.trust(0.0, 50.0, 2.0) == LEAST_TRUST
    assert doubt.trust(0.0, 0.0, 0.0) == 0.0


def test_the_stronger_doubt_decides():
    assert Doubt(uneven=1.0, even=0.5).trust(0.0, 0.1, 2.0) == LEAST_TRUST
    assert Doubt(uneven=0.5, even=1.0).trust(0.0, 0.1, 2.0) == pytest.approx(UNGUESSED * 0.05)


def test_an_uncertain_direction_explains_more():
    """The tilt of a noisy top direction turns a mean label into what looks like signal."""
    coordinates, rng = coordinates_of(0.5, mean_row()), np.random.default_rng(2)
    seen = released(rng, -0.5, 9 * NOISE)
    assert doubted(seen, coordinates, NOISE, 0.0, DOUBT) == NO_DOUBT
    assert doubted(seen, coordinates, NOISE, 0.05, DOUBT).uneven > 0


def even_doubts(mean_label: float, noise_std: float, signal: float, label_noise: float = 0.0) -> np.ndarray:
    rng, coordinates = np.random.default_rng(5), coordinates_of(0.5, mean_row())
    drawn = [noise_std / NOISE * released(rng, mean_label * NOISE / noise_std, signal) for _ in range(200)]
    return np.array([doubted(seen, coordinates, noise_std, 0.0, DOUBT, label_noise).even for seen in drawn])


def test_nearly_even_labels_without_signal_are_doubted_once_the_budget_would_show_one():
    assert even_doubts(-0.1, 0.1 * NOISE, 0.0).mean() > 0.8
    assert even_doubts(-0.1, 2 * NOISE, 0.0).mean() < 0.05
    assert even_doubts(0.0, 0.1 * NOISE, 0.0).mean() < 0.01
    assert even_doubts(math.sqrt(1 / 4000), 0.1 * NOISE, 0.0, 1 / 4000).mean() < 0.05
    assert even_doubts(-0.1, 0.1 * NOISE, 20 * NOISE).max() == 0.0


def test_what_few_rows_leave_to_chance_is_no_signal():
    """Labels in random order correlate with every direction by √(λ/n)."""
    by_chance = math.sqrt(0.5 / 2000) / 0.1
    assert even_doubts(-0.1, 0.1 * NOISE, by_chance).mean() < 0.1
    assert even_doubts(-0.1, 0.1 * NOISE, by_chance, 1 / 2000).mean() > 0.3


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
    classifiers, regression = (loss_model(Logistic()), loss_model(HuberisedHinge())), LossModel(1.0, 1.0, exact=True)
    for model in classifiers:
        assert choose_rules(1000.0, 100, 2, model).doubt == pytest.approx(1.5)
        assert choose_rules(100.0, 100, 2, model).doubt < -4
    assert choose_rules(1000.0, 100, 2, regression).doubt is None


def test_margins_of_a_hinge_are_short_and_of_alike_labels_shorter():
    logistic, hinge = (choose_rules(1000.0, 100, 2, loss_model(loss)) for loss in (Logistic(), HuberisedHinge()))
    assert hinge.alike_prior_scale < hinge.prior_scale < logistic.prior_scale
    assert (hinge.calibrated, logistic.calibrated) == (False, True)


def test_coordinates_are_whiter_the_cap_smaller_and_the_model_flatter_where_noise_is_weak():
    rules = choose_rules(1000.0, 100, 2, loss_model(Logistic()))
    assert for_weak_noise(rules, NO_WEAK_NOISE) == rules
    weak = for_weak_noise(rules, WEAK_NOISE)
    assert for_weak_noise(rules, WEAK_NOISE / 2) == weak
    assert weak.flattening == pytest.approx(FLATTENING * WEAK_FLATTENING)
    assert weak.cap == pytest.approx(rules.cap * WEAK_CAP)
    assert weak.curvature == pytest.approx(rules.curvature * WEAK_CURVATURE)


def default_rules(loss: Loss, penalty: Regularizer, **chosen: int) -> Rules:
    """With three features per hundred units of nμ."""
    problem = Problem(loss, penalty, Constraint.identity(6))
    return Auto.default(problem, Setting(4000, 0.05, 2.0, 1.0, 1.0), 100, **chosen).rules


@pytest.mark.parametrize(
    ("loss", "penalty", "chosen", "expected"),
    [
        (Logistic(), Zero(), {}, FLATTENING * WEAK_FLATTENING),
        (Logistic(), Zero(), {"steps": 9}, FLATTENING * WEAK_FLATTENING),
        (Logistic(), L1(1e-3), {}, FLATTENING),
        (Logistic(), L1(1e-3), {"steps": 9}, FLATTENING),
        (HuberisedHinge(), Zero(), {}, FLATTENING),
    ],
)
def test_weak_noise_has_rules_of_its_own_for_the_logistic_loss_without_a_penalty(loss, penalty, chosen, expected):
    rules = default_rules(loss, penalty, **chosen)
    assert rules.flattening == pytest.approx(expected)
    assert rules.label_noise == 1 / 4000


def test_released_coordinates_are_as_flat_as_the_rules_say_before_and_after_they_are_refined_and_in_replays(
    monkeypatch,
):
    """The energy of every direction is its eigenvalue to that power, but for a factor."""
    made, whiten = [], Coordinates.whiten.__func__

    def noted(cls, second_moment, length, flattening=FLATTENING):
        made.append(whiten(cls, second_moment, length, flattening))
        return made[-1]

    monkeypatch.setattr(Coordinates, "whiten", classmethod(noted))
    X = np.random.default_rng(0).uniform(0, 1, (20_000, 4)) * [1.0, 0.5, 0.2, 0.1]
    model = DPLogisticRegression(1.0, 1e-6, classes=[0, 1], random_state=0).fit(X, X[:, 0] > 0.5)
    assert len(made) == 2
    assert np.all(model.coef_std_ > 0)
    assert len(made) > 2
    for coordinates in made:
        assert np.ptp(np.log(coordinates.energy / coordinates.eigenvalues ** (FLATTENING * WEAK_FLATTENING))) < 1e-9


@pytest.mark.parametrize("choice", [{"fit_intercept": False}, {"row_norm": 10.0}])
def test_rows_shorter_than_declared_and_models_without_intercept_are_not_doubted(choice, monkeypatch):
    def asked(*_: object) -> Doubt:
        raise AssertionError("doubted")

    monkeypatch.setattr("dpadmm.solvers.auto.solver.doubted", asked)
    X, y = np.eye(5)[np.arange(500) % 5], np.arange(500) % 4 == 0
    with pytest.raises(AssertionError, match="doubted"):
        DPLogisticRegression(1.0, 1e-6, classes=[False, True], random_state=0).fit(X, y)
    DPLogisticRegression(1.0, 1e-6, classes=[False, True], random_state=0, **choice).fit(X, y)


def score_beyond_the_commonest_class(
    seed: int, chance: Callable[[np.ndarray], np.ndarray], kind: type = DPLogisticRegression, epsilon: float = 0.1
) -> float:
    """Twenty features of three categories, nμ about 180."""
    rng = np.random.default_rng(seed)
    X = np.concatenate([np.eye(3)[rng.integers(0, 3, 16_000)] for _ in range(20)], axis=1)
    y = (rng.random(16_000) < chance(X)).astype(int)
    model = kind(epsilon, 1e-6, classes=[0, 1], random_state=seed).fit(X[:8000], y[:8000])
    share = float(y[8000:].mean())
    return model.score(X[8000:], y[8000:]) - max(share, 1 - share)


def test_labels_without_signal_are_predicted_nearly_as_well_as_by_the_commonest_class():
    """Without doubt 0.005 of accuracy are lost."""
    lost = [-score_beyond_the_commonest_class(seed, lambda X: np.full(len(X), 0.25)) for seed in range(12)]
    assert np.mean(lost) < 0.003


def test_so_they_are_by_a_hinge():
    """With the prior of the logistic loss and without doubt 0.011 are lost."""
    lost = [-score_beyond_the_commonest_class(seed, lambda X: np.full(len(X), 0.25), DPLinearSVC) for seed in range(12)]
    assert np.mean(lost) < 0.003


def test_so_they_are_where_classes_are_nearly_even(monkeypatch):
    def lost() -> float:
        found = [
            score_beyond_the_commonest_class(seed, lambda X: np.full(len(X), 0.45), epsilon=0.5) for seed in range(8)
        ]
        return -float(np.mean(found))

    assert lost() < 0.006
    monkeypatch.setattr("dpadmm.solvers.auto.solver.doubted", lambda *_: NO_DOUBT)
    assert lost() > 0.012


def test_gradients_of_a_large_budget_do_not_lift_doubt_by_what_labels_share_by_chance(monkeypatch):
    heard = []

    def noted(doubt: Doubt, agreement: float, common: float, signal: float) -> float:
        heard.append(agreement)
        return 1.0

    monkeypatch.setattr(Doubt, "trust", noted)
    monkeypatch.setattr("dpadmm.solvers.auto.solver.doubted", lambda *_: Doubt(even=1.0))
    for seed in range(6):
        score_beyond_the_commonest_class(seed, lambda X: np.full(len(X), 0.45), epsilon=10.0)
    assert np.mean(heard) < CONVINCING


@pytest.mark.parametrize(("kind", "expected"), [(DPLogisticRegression, 0.5), (DPLinearSVC, 0.0)])
def test_even_classes_are_doubted_with_the_logistic_loss_only(kind, expected, monkeypatch):
    heard = []

    def noted(doubt: Doubt, agreement: float, common: float, signal: float) -> float:
        heard.append(doubt)
        return 1.0

    monkeypatch.setattr(Doubt, "trust", noted)
    monkeypatch.setattr("dpadmm.solvers.auto.solver.doubted", lambda *_: Doubt(uneven=0.25, even=0.5))
    score_beyond_the_commonest_class(0, lambda X: np.full(len(X), 0.45), kind)
    assert heard == [Doubt(uneven=0.25, even=expected)]


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
    monkeypatch.setattr("dpadmm.solvers.auto.label_signal.lifted", lambda agreement: 0.0)
    unheard = [score_of_a_rare_class(seed) for seed in range(8)]
    assert np.mean(heard) > np.mean(unheard) + 0.008


def test_blank_coordinates_are_those_of_no_preferred_direction():
    blank, whitened = Coordinates.blank(4, 3.0), Coordinates.whiten(np.eye(4) / 4, 3.0)
    for name in ("energy", "scale", "prior", "matrix", "eigenvalues"):
        np.testing.assert_allclose(getattr(blank, name), getattr(whitened, name), rtol=1e-14)
