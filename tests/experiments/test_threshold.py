"""The measures of `experiments.threshold`."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit

from dpadmm.solvers.auto import first_release
from experiments.threshold import best_accuracy, intercept_for_mean, knowing

RNG = np.random.default_rng(0)


def test_best_threshold_is_the_best_of_all() -> None:
    margins, positive = RNG.standard_normal(50), RNG.random(50) < 0.4
    cuts = [-np.inf, *margins]
    tried = max(float(np.mean((margins > cut) == positive)) for cut in cuts)
    assert best_accuracy(margins, positive) == pytest.approx(tried)


def test_intercept_gives_the_mean() -> None:
    margins, along = RNG.standard_normal(50), RNG.uniform(0.1, 1, 50)
    shift = intercept_for_mean(margins, along, 0.1)
    assert expit(margins + shift * along).mean() == pytest.approx(0.1)


def test_known_mean_row_is_the_top_direction() -> None:
    mean = RNG.uniform(0.1, 0.3, 6)
    with knowing(mean):
        model = first_release.clean_second_moment(np.eye(6), 1.0, 1.0)
    values, vectors = np.linalg.eigh(model)
    assert np.trace(model) == pytest.approx(1.0)
    assert values[-1] == pytest.approx(float(mean @ mean))
    assert abs(vectors[:, -1] @ mean) == pytest.approx(float(np.linalg.norm(mean)))
